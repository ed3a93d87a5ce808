import assert from 'node:assert/strict'
import http from 'node:http'
import { describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { TestApp } from '../support/app.ts'
import { RawConnection, type TestAnswer } from '../support/client.ts'
import { assertDocumented } from '../support/contract.ts'
import { anyDriver } from '../support/drivers.ts'
import { INTAKE_PATHS, idOf, jsonHeaders, postTo, rowsStoredDuring } from '../support/intake.ts'
import { chunked, exchange, firstAnswer, postHeaders, rawRequest } from '../support/raw.ts'
import { sharedApp } from '../support/shared-app.ts'

const MAX = 2048
const MIB = 1_048_576
const MB = 1_000_000

function bodyOf(bytes: number): string {
  const frame = '{"text":""}'
  return `{"text":"${'x'.repeat(bytes - frame.length)}"}`
}

/** Data that gzip cannot make smaller. */
function incompressible(bytes: number): string {
  let text = ''
  for (let seed = 1; text.length < bytes; seed = (seed * 48_271) % 2_147_483_647) text += seed.toString(36)
  return `{"text":"${text.slice(0, bytes - 11)}"}`
}

function assertTooLarge(answer: TestAnswer, maxBytes: number): void {
  assert.equal(answer.status, 413, answer.text)
  assert.equal(answer.json?.error, 'payload_too_large')
  assert.equal(answer.json?.max_bytes, maxBytes)
  assert.equal(answer.json?.retryable, false)
}

/** Uploads as HTTP clients do: it reads while it writes, and writes until the answer is there or all is sent. */
async function upload(app: TestApp, path: string, bytes: number, fixedLength: boolean): Promise<TestAnswer> {
  const length = fixedLength ? { 'Content-Length': String(bytes) } : { 'Transfer-Encoding': 'chunked' }
  const headers = { ...jsonHeaders(app.token), ...length }
  const req = http.request({ host: '127.0.0.1', port: app.port, method: 'POST', path, headers, agent: false })
  const answer = Promise.withResolvers<TestAnswer>()
  let over = false
  let goOn = () => {}
  const finish = (settle: () => void) => {
    over = true
    settle()
    goOn()
  }
  req.on('drain', () => goOn())
  req.on('error', (error) => finish(() => answer.reject(error)))
  req.on('response', (res) => {
    let text = ''
    res.on('data', (chunk: Buffer) => (text += chunk))
    res.on('end', () => {
      const json = JSON.parse(text) as Record<string, unknown>
      finish(() => answer.resolve({ status: res.statusCode ?? 0, headers: res.headers, text, json }))
    })
  })
  const chunk = Buffer.alloc(64 * 1024, 'x')
  for (let left = bytes; left > 0 && !over; left -= chunk.length) {
    if (req.write(chunk.subarray(0, Math.min(chunk.length, left)))) continue
    await new Promise<void>((resolve) => {
      goOn = resolve
    })
  }
  if (!over) req.end()
  return answer.promise
}

/** Writes all of it whatever happens meanwhile. */
async function writeStubbornly(connection: RawConnection, bytes: number, fixedLength: boolean): Promise<void> {
  const chunk = 'x'.repeat(100_000)
  const framed = fixedLength ? chunk : `${chunk.length.toString(16)}\r\n${chunk}\r\n`
  for (let left = bytes; left > 0 && !connection.socket.destroyed; left -= chunk.length) {
    if (connection.socket.write(framed)) continue
    await new Promise<void>((resolve) => {
      connection.socket.once('drain', resolve)
      void connection.closed.then(resolve)
    })
  }
}

for (const driver of anyDriver) {
  for (const path of INTAKE_PATHS) {
    describe(`the size of POST ${path} on ${driver.name}`, () => {
      const shared = sharedApp(driver, { settings: { maxBodyBytes: String(MAX) } })
      const post = (body: string | Uint8Array, headers: Record<string, string> = {}) =>
        postTo(shared.app, path, body, headers)
      const postChunked = (body: string | Uint8Array, size: number, more: readonly string[] = []) => {
        const headers = [...postHeaders(shared.app.token), 'Transfer-Encoding: chunked', ...more]
        const request = rawRequest({ target: path, headers, body: chunked(body, size), sized: false })
        return exchange(shared.app.port, 'POST', path, request)
      }
      const GZIP = { 'Content-Encoding': 'gzip' }

      test('200: exactly the limit, by length, by chunks and by gzip', async () => {
        const body = bodyOf(MAX)
        assert.equal((await post(body)).status, 200)
        for (const size of [1, 100, MAX, MAX * 2]) assert.equal((await postChunked(body, size)).status, 200, `${size}`)
        assert.equal((await post(gzipSync(body), GZIP)).status, 200)
        assert.equal((await postChunked(gzipSync(body), 7, ['Content-Encoding: gzip'])).status, 200)
      })

      test('413: one byte more, by length, by chunks and by gzip', async () => {
        const body = bodyOf(MAX + 1)
        assertTooLarge(await post(body), MAX)
        for (const size of [1, 100, MAX, MAX + 1]) assertTooLarge(await postChunked(body, size), MAX)
        assertTooLarge(await post(gzipSync(body), GZIP), MAX)
        assertTooLarge(await postChunked(gzipSync(body), 7, ['Content-Encoding: gzip']), MAX)
      })

      test('413: counted in bytes, not in characters', async () => {
        assertTooLarge(await post(`{"text":"${'\u20ac'.repeat(MAX / 2)}"}`), MAX)
      })

      test('413: compressed data that is itself over the limit', async () => {
        const body = gzipSync(incompressible(MAX * 4))
        assert.ok(body.length > MAX)
        assertTooLarge(await post(body, GZIP), MAX)
        assertTooLarge(await postChunked(body, 500, ['Content-Encoding: gzip']), MAX)
      })

      test('413: a bomb stops at the limit, in one member or in many', async () => {
        const bomb = gzipSync(Buffer.alloc(1_000_000))
        assert.ok(bomb.length < MAX)
        assertTooLarge(await post(bomb, GZIP), MAX)
        const members = Buffer.concat(Array.from({ length: 20 }, () => gzipSync(' '.repeat(200))))
        assert.ok(members.length < MAX)
        assertTooLarge(await post(members, GZIP), MAX)
      })

      test('413: the declared length alone is enough', async () => {
        const connection = await RawConnection.open(shared.app.port)
        try {
          const headers = [...postHeaders(shared.app.token), `Content-Length: ${10 * MB}`]
          connection.write(rawRequest({ target: path, headers }))
          connection.write('x'.repeat(70_000))
          const answer = await firstAnswer(connection)
          assertDocumented('POST', path, answer)
          assertTooLarge(answer, MAX)
          assert.equal(answer.headers.connection, 'close')
        } finally {
          connection.destroy()
        }
      })

      test('413: a chunked stream is answered while it goes on', async () => {
        const connection = await RawConnection.open(shared.app.port)
        try {
          const headers = [...postHeaders(shared.app.token), 'Transfer-Encoding: chunked']
          connection.write(rawRequest({ target: path, headers }))
          connection.write(`${(MAX + 1).toString(16)}\r\n${'x'.repeat(MAX + 1)}\r\n`)
          assertTooLarge(await firstAnswer(connection), MAX)
        } finally {
          connection.destroy()
        }
      })

      test('nothing is stored of what is too large', async () => {
        const rows = await rowsStoredDuring(shared.app, async () => {
          await post(bodyOf(MAX + 1))
          await postChunked(bodyOf(MAX + 1), 100)
          await post(gzipSync(bodyOf(MAX + 1)), GZIP)
        })
        assert.deepEqual(rows, [])
      })
    })

    describe(`large streams to POST ${path} on ${driver.name}`, () => {
      const shared = sharedApp(driver)

      test('200: a mebibyte, by default', async () => {
        const answer = await postTo(shared.app, path, bodyOf(MIB))
        assert.equal(answer.status, 200)
        assert.equal((await shared.app.store.events.find(idOf(answer)))?.size, MIB)
      })

      test('413: a mebibyte and one byte, by default', async () => {
        assertTooLarge(await postTo(shared.app, path, bodyOf(MIB + 1)), MIB)
      })

      test('413: a gzip bomb of 100 MB, by default', async () => {
        const bomb = gzipSync(Buffer.alloc(100 * MB))
        assertTooLarge(await postTo(shared.app, path, bomb, { 'Content-Encoding': 'gzip' }), MIB)
      })

      for (const megabytes of [10, 30]) {
        for (const fixedLength of [true, false]) {
          test(`413: the answer reaches a client that sends ${megabytes} MB, ${fixedLength ? 'with a length' : 'in chunks'}`, async () => {
            const answer = await upload(shared.app, path, megabytes * MB, fixedLength)
            assertDocumented('POST', path, answer)
            assertTooLarge(answer, MIB)
          })
        }
      }

      for (const fixedLength of [true, false]) {
        const how = fixedLength ? 'with a length' : 'in chunks'
        const begin = async (bytes: number) => {
          const connection = await RawConnection.open(shared.app.port)
          const length = fixedLength ? `Content-Length: ${bytes}` : 'Transfer-Encoding: chunked'
          connection.write(rawRequest({ target: path, headers: [...postHeaders(shared.app.token), length] }))
          return connection
        }

        test(`413: the answer reaches a client that goes on sending 30 MB regardless, ${how}`, async () => {
          const connection = await begin(30 * MB)
          try {
            await writeStubbornly(connection, 30 * MB, fixedLength)
            assertTooLarge(await firstAnswer(connection), MIB)
          } finally {
            connection.destroy()
          }
        })

        test(`413: the answer reaches a client that reads only once all 10 MB are written, ${how}`, async () => {
          const connection = await begin(10 * MB)
          try {
            connection.socket.pause()
            await writeStubbornly(connection, 10 * MB, fixedLength)
            connection.socket.resume()
            assertTooLarge(await firstAnswer(connection), MIB)
          } finally {
            connection.destroy()
          }
        })
      }

      test('401 and 415: the answer reaches a client that sends 10 MB', async () => {
        for (const [name, headers] of [
          ['401', ['Authorization: Bearer nonsense', 'Content-Type: application/json']],
          ['415', [`Authorization: Bearer ${shared.app.token}`, 'Content-Type: text/html']],
        ] as const) {
          const connection = await RawConnection.open(shared.app.port)
          try {
            connection.write(rawRequest({ target: path, headers: [...headers, `Content-Length: ${10 * MB}`] }))
            for (let count = 0; count < 100; count += 1) connection.write('x'.repeat(100_000))
            const answer = await firstAnswer(connection)
            assert.equal(String(answer.status), name)
          } finally {
            connection.destroy()
          }
        }
      })

      test('the service goes on after all of this', async () => {
        assert.equal((await postTo(shared.app, path, '{}')).status, 200)
      })
    })
  }
}
