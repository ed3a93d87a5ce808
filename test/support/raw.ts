// Requests written byte by byte, for what no HTTP client would send, and their answers held against the contract.

import assert from 'node:assert/strict'
import { RawConnection, type TestAnswer } from './client.ts'
import { assertDocumented } from './contract.ts'
import { within } from './until.ts'

export interface RawRequest {
  readonly method?: string
  /** What stands in the request line. */
  readonly target: string
  readonly version?: string
  /** Whole lines, in order; `Host` comes first unless it is left out. */
  readonly headers?: readonly string[]
  readonly host?: string | null
  readonly body?: string | Uint8Array
  /** Adds a Content-Length for the body; true unless said otherwise. */
  readonly sized?: boolean
}

export function rawRequest(request: RawRequest): Buffer {
  const { method = 'POST', target, version = '1.1', headers = [], host = 'intray.test', body, sized = true } = request
  const bytes = Buffer.from(body ?? '')
  const lines = [
    `${method} ${target} HTTP/${version}`,
    ...(host === null ? [] : [`Host: ${host}`]),
    ...headers,
    ...(body !== undefined && sized ? [`Content-Length: ${bytes.length}`] : []),
  ]
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), bytes])
}

export function postHeaders(token: string): string[] {
  return [`Authorization: Bearer ${token}`, 'Content-Type: application/json']
}

/** A post of a JSON body as every plugin would send it. */
export function rawPost(path: string, token: string, body: string | Uint8Array): Buffer {
  return rawRequest({ target: path, headers: postHeaders(token), body })
}

/** Sends bytes on a connection of their own and returns the one answer, held against the contract of that path. */
export async function exchange(port: number, method: string, path: string, bytes: Uint8Array): Promise<TestAnswer> {
  const connection = await RawConnection.open(port)
  try {
    connection.write(bytes)
    const answer = await firstAnswer(connection)
    assertDocumented(method, path, answer)
    return answer
  } finally {
    connection.destroy()
  }
}

/** The first answer on a connection; a failure that shows what came instead. */
export async function firstAnswer(connection: RawConnection): Promise<TestAnswer> {
  const [answer] = await within('an answer', connection.answers(1))
  assert.ok(answer, `the connection was closed without a whole answer: ${JSON.stringify(connection.text)}`)
  return answer
}

/** The same for as many as given. */
export async function allAnswers(connection: RawConnection, count: number): Promise<TestAnswer[]> {
  const answers = await within(`${count} answers`, connection.answers(count))
  assert.equal(answers.length, count, `the connection carried ${answers.length} of ${count} answers`)
  return answers
}

/** Each byte a chunk of its own, or as many as given. */
export function chunked(body: string | Uint8Array, size = 1): Buffer {
  const bytes = Buffer.from(body)
  const parts: Buffer[] = []
  for (let at = 0; at < bytes.length; at += size) {
    const chunk = bytes.subarray(at, at + size)
    parts.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n'))
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')])
}
