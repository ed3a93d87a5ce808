// Formats an answer as text for a socket without a response object of Node.

import { STATUS_CODES } from 'node:http'
import type { TextAnswer } from '../problem.ts'

/** `connection`: the header lines Connection and Keep-Alive. */
export function answerText(
  answer: TextAnswer,
  requestId: string,
  rateFields: readonly string[] | null,
  connection: string,
): string {
  const { body } = answer
  const rates = rateFields === null ? '' : fieldLines(rateFields)
  const length = Buffer.byteLength(body)
  return `${memoizedHead(answer, connection)}X-Request-Id: ${requestId}\r\nContent-Length: ${length}\r\n${rates}\r\n${body}`
}

function fieldLines(fields: readonly string[]): string {
  let lines = ''
  for (let i = 0; i < fields.length; i += 2) lines += `${fields[i]}: ${fields[i + 1]}\r\n`
  return lines
}

interface Head {
  readonly status: number
  readonly headers: TextAnswer['headers']
  readonly date: string
  readonly connection: string
  readonly text: string
}

let last: Head = { status: 0, headers: {}, date: '', connection: '', text: '' }

/** Memoizes the last head: consecutive receipts differ only in request id, rates and body. */
function memoizedHead({ status, headers }: TextAnswer, connection: string): string {
  const date = httpDate()
  const isSame = status === last.status && headers === last.headers
  if (isSame && date === last.date && connection === last.connection) return last.text
  let text = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`
  for (const name in headers) text += `${name}: ${headers[name]}\r\n`
  text += `Date: ${date}\r\n${connection}\r\n`
  last = { status, headers, date, connection, text }
  return text
}

let formattedSecond = -1
let formatted = ''

/** Memoized by second: formatting a date costs as much as the rest of an answer. */
function httpDate(): string {
  const second = Math.floor(Date.now() / 1000)
  if (second !== formattedSecond) {
    formattedSecond = second
    formatted = new Date(second * 1000).toUTCString()
  }
  return formatted
}
