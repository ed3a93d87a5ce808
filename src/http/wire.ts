// An answer as it goes over the wire, for where no response of node's is there to write it.

import { STATUS_CODES } from 'node:http'
import type { TextAnswer } from './problem.ts'

/** `connection`: the lines about what becomes of the connection. */
export function wireText(
  { status, headers, body }: TextAnswer,
  requestId: string,
  rateFields: readonly string[] | null,
  connection: string,
): string {
  let text = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nX-Request-Id: ${requestId}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`
  for (const name in headers) text += `${name}: ${headers[name]}\r\n`
  if (rateFields !== null)
    for (let i = 0; i < rateFields.length; i += 2) text += `${rateFields[i]}: ${rateFields[i + 1]}\r\n`
  return `${text}Date: ${httpDate()}\r\n${connection}\r\n\r\n${body}`
}

let formattedSecond = -1
let formatted = ''

/** Formatting a date costs as much as the rest of an answer: one text serves all answers of a second. */
function httpDate(): string {
  const second = Math.floor(Date.now() / 1000)
  if (second !== formattedSecond) {
    formattedSecond = second
    formatted = new Date(second * 1000).toUTCString()
  }
  return formatted
}
