import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { deflateSync, gzipSync } from 'node:zlib'
import { startTestApp } from '../support/app.ts'
import { RawConnection } from '../support/client.ts'
import { assertDocumented } from '../support/contract.ts'
import { anyDriver } from '../support/drivers.ts'
import { INTAKE_PATHS, idOf, postTo, rowsStoredDuring } from '../support/intake.ts'
import { allAnswers, chunked, exchange, firstAnswer, postHeaders, rawPost, rawRequest } from '../support/raw.ts'
import { sharedApp } from '../support/shared-app.ts'
import { until, within } from '../support/until.ts'

const BODY = '{"message":{"type":"text","text":"Gr\u00fc\u00dfe"}}'

for (const driver of anyDriver) {
  for (const path of INTAKE_PATHS) {
    describe(`the framing of POST ${path} on ${driver.name}`, () => {
      const shared = sharedApp(driver)
      const send = (request: Buffer) => exchange(shared.app.port, 'POST', path, request)
      const kept = async (id: number) => Buffer.from((await shared.app.store.events.payload(id))!).toString()
      /** A connection that is gone when the test is over. */
      const connect = async (t: TestContext) => {
        const connection = await RawConnection.open(shared.app.port)
        t.after(() => connection.destroy())
        return connection
      }

      describe('bodies in every shape', () => {
        test('415 before the end of a chunked body: the connection is closed with that end, not after the linger', async (t) => {
          const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${shared.app.token}\r\n`
          // Each would take the 2 s of the linger: five of them more than there is time for.
          const all = async () => {
            for (let n = 0; n < 5; n += 1) {
              const connection = await connect(t)
              connection.write(`${head}Content-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`)
              assert.equal((await firstAnswer(connection)).status, 415)
              connection.write('0\r\n\r\n')
              await connection.closed
            }
          }
          await within('five closed connections', all())
        })

        test('200: a fixed length, in one piece and byte by byte', async (t) => {
          assert.equal(await kept(idOf(await send(rawPost(path, shared.app.token, BODY)))), BODY)
          const connection = await connect(t)
          connection.socket.setNoDelay(true)
          for (const byte of rawPost(path, shared.app.token, BODY)) {
            connection.write(Uint8Array.of(byte))
            await new Promise((resolve) => setImmediate(resolve))
          }
          assert.equal(await kept(idOf(await firstAnswer(connection))), BODY)
        })

        test('200: chunks of any size, of one byte too, with extensions and trailers', async () => {
          const headers = [...postHeaders(shared.app.token), 'Transfer-Encoding: chunked']
          const post = (body: string | Uint8Array) => send(rawRequest({ target: path, headers, body, sized: false }))
          for (const size of [1, 2, 7, 1000]) assert.equal(await kept(idOf(await post(chunked(BODY, size)))), BODY)
          const bytes = Buffer.byteLength(BODY).toString(16)
          assert.equal(await kept(idOf(await post(`${bytes};a=b\r\n${BODY}\r\n0\r\nX-Trailer: 1\r\n\r\n`))), BODY)
          assert.equal(await kept(idOf(await post(`000${bytes.toUpperCase()}\r\n${BODY}\r\n000\r\n\r\n`))), BODY)
        })

        test('200: gzip and x-gzip, in any case, with a length and in chunks', async () => {
          const zipped = gzipSync(BODY)
          for (const encoding of ['gzip', 'x-gzip', 'GZIP', ' gzip ', 'identity', 'Identity', '']) {
            const plain = !encoding.toLowerCase().includes('gzip')
            const body = plain ? Buffer.from(BODY) : zipped
            const headers = [...postHeaders(shared.app.token), `Content-Encoding: ${encoding}`]
            assert.equal(await kept(idOf(await send(rawRequest({ target: path, headers, body })))), BODY, encoding)
            const inChunks = { headers: [...headers, 'Transfer-Encoding: chunked'], body: chunked(body), sized: false }
            assert.equal(await kept(idOf(await send(rawRequest({ target: path, ...inChunks })))), BODY, encoding)
          }
        })

        test('400 invalid_json: gzip that is cut, damaged, empty or not gzip at all', async () => {
          const zipped = gzipSync(BODY)
          const damaged = Buffer.from(zipped)
          damaged[damaged.length - 8]! ^= 0xff
          for (const body of [
            zipped.subarray(0, -1),
            zipped.subarray(0, 12),
            damaged,
            Buffer.alloc(0),
            Buffer.from(BODY),
          ]) {
            const answer = await postTo(shared.app, path, body, { 'Content-Encoding': 'gzip' })
            assert.equal(answer.status, 400, `${body.length} bytes`)
            assert.equal(answer.json?.error, 'invalid_json')
            assert.match(String(answer.json?.message), /gzip/)
          }
        })

        test('400 invalid_json: gzip without saying so', async () => {
          const answer = await postTo(shared.app, path, gzipSync(BODY))
          assert.equal(answer.status, 400)
          assert.equal(answer.json?.error, 'invalid_json')
        })

        test('415: any other encoding, with those that are taken', async () => {
          for (const encoding of [
            'br',
            'deflate',
            'zstd',
            'compress',
            'gzip, gzip',
            'gzip, br',
            'identity, gzip',
            'x',
            '*',
          ]) {
            const answer = await postTo(shared.app, path, deflateSync(BODY), { 'Content-Encoding': encoding })
            assert.equal(answer.status, 415, encoding)
            assert.equal(answer.json?.error, 'unsupported_encoding')
            assert.match(String(answer.headers['accept-encoding']), /gzip/)
          }
        })

        test('400 invalid_json: no body, with a length of zero and without any', async () => {
          const headers = postHeaders(shared.app.token)
          for (const request of [
            rawRequest({ target: path, headers, body: '' }),
            rawRequest({ target: path, headers }),
          ]) {
            const answer = await send(request)
            assert.equal(answer.status, 400)
            assert.equal(answer.json?.error, 'invalid_json')
          }
        })
      })

      describe('connections', () => {
        test('20 requests in one write get 20 answers in their order', async (t) => {
          const { app } = shared
          const connection = await connect(t)
          const requests = Array.from({ length: 20 }, (_, n) =>
            rawPost(path, app.token, `{"n":${n},"p":"${'x'.repeat(n * 50)}"}`),
          )
          connection.write(Buffer.concat(requests))
          const answers = await allAnswers(connection, 20)
          for (const [n, answer] of answers.entries()) {
            assertDocumented('POST', path, answer)
            assert.equal(JSON.parse(await kept(idOf(answer))).n, n)
          }
        })

        test('20 requests of all kinds in one write get 20 answers in their order', async (t) => {
          const { app } = shared
          const connection = await connect(t)
          const kinds: readonly (readonly [number, Buffer])[] = [
            [200, rawPost(path, app.token, '{}')],
            [401, rawPost(path, 'nonsense', '{}')],
            [400, rawPost(path, app.token, '{')],
            [200, rawRequest({ method: 'GET', target: '/api/ping', headers: [`Authorization: Bearer ${app.token}`] })],
            [422, rawPost(path, app.token, '{"source_ref":true}')],
            [
              415,
              rawRequest({
                target: path,
                headers: [`Authorization: Bearer ${app.token}`, 'Content-Type: text/html'],
                body: '{}',
              }),
            ],
            [404, rawRequest({ target: '/nowhere', body: 'x' })],
            [405, rawRequest({ method: 'PUT', target: path, body: 'x' })],
            [200, rawRequest({ method: 'GET', target: '/livez' })],
            [200, rawPost(path, app.token, '{"source_ref":"pipelined"}')],
          ]
          const twice = [...kinds, ...kinds]
          connection.write(Buffer.concat(twice.map(([, request]) => request)))
          const answers = await allAnswers(connection, 20)
          assert.deepEqual(
            answers.map(({ status }) => status),
            twice.map(([status]) => status),
          )
          assert.equal(idOf(answers[9]!), idOf(answers[19]!))
        })

        test('a connection stays usable after every refusal that was read whole', async (t) => {
          const { app } = shared
          const processor = await app.createToken({ scope: 'processor' })
          const as = (contentType: string) => [`Authorization: Bearer ${app.token}`, `Content-Type: ${contentType}`]
          const refusals: Record<string, Buffer> = {
            '400 invalid_json': rawPost(path, app.token, 'not json'),
            '400 invalid_request, two tokens': rawRequest({
              target: path,
              headers: ['Authorization: a', ...postHeaders(app.token)],
              body: BODY,
            }),
            '400 invalid_request, two hosts': rawRequest({
              target: path,
              headers: ['Host: b', ...postHeaders(app.token)],
              body: BODY,
            }),
            '401 missing_token': rawRequest({ target: path, headers: ['Content-Type: application/json'], body: BODY }),
            '401 invalid_token': rawPost(path, 'nonsense', BODY),
            '403 forbidden_scope': rawPost(path, processor, BODY),
            '404 not_found': rawPost('/v1/inbox/nowhere', app.token, BODY),
            '405 method_not_allowed': rawRequest({
              method: 'PUT',
              target: path,
              headers: postHeaders(app.token),
              body: BODY,
            }),
            '415 unsupported_media_type': rawRequest({ target: path, headers: as('text/html'), body: BODY }),
            '415 unsupported_encoding': rawRequest({
              target: path,
              headers: [...postHeaders(app.token), 'Content-Encoding: br'],
              body: BODY,
            }),
            '422 invalid_payload': rawPost(path, app.token, '{"channel_ref":0.5}'),
            '401 with a body of 60 kB': rawPost(path, 'nonsense', `"${'x'.repeat(60_000)}"`),
            '403 with a body of 60 kB': rawPost(path, processor, `"${'x'.repeat(60_000)}"`),
          }
          const connection = await connect(t)
          let count = 0
          for (const [name, request] of Object.entries(refusals)) {
            connection.write(request)
            count += 1
            const refused = (await allAnswers(connection, count)).at(-1)!
            assert.equal(String(refused.status), name.slice(0, 3), name)
            assert.notEqual(refused.headers.connection, 'close', name)
            connection.write(rawPost(path, app.token, BODY))
            count += 1
            assert.equal((await allAnswers(connection, count)).at(-1)?.status, 200, `after ${name}`)
          }
        })

        test('a connection that is to be closed after a refusal says so and is closed', async (t) => {
          const { app } = shared
          for (const request of [
            rawRequest({
              target: path,
              headers: ['Transfer-Encoding: chunked'],
              body: chunked('x'.repeat(100), 10),
              sized: false,
            }),
            rawRequest({ target: path, headers: ['Content-Length: 900000'] }),
          ]) {
            const connection = await connect(t)
            connection.write(request)
            const answer = await firstAnswer(connection)
            assert.equal(answer.status, 401)
            assert.equal(answer.headers.connection, 'close')
            // Until then it is open, so that what is still on its way does not reset it and take the answer along.
            connection.socket.end()
            await within('the connection is closed', connection.closed)
          }
          assert.equal((await postTo(app, path, '{}')).status, 200)
        })

        test('a client that asks for it gets its connection closed', async (t) => {
          const connection = await connect(t)
          const headers = [...postHeaders(shared.app.token), 'Connection: close']
          connection.write(rawRequest({ target: path, headers, body: BODY }))
          assert.equal((await firstAnswer(connection)).headers.connection, 'close')
          await within('the connection is closed', connection.closed)
        })

        test('a valid request followed by garbage is answered 200 and stored once', async (t) => {
          const rows = await rowsStoredDuring(shared.app, async () => {
            for (const garbage of ['GARBAGE\r\n\r\n', '\0\0\0\0', 'POST / HTTP/9.9\r\n\r\n', '{}']) {
              const connection = await connect(t)
              connection.write(Buffer.concat([rawPost(path, shared.app.token, BODY), Buffer.from(garbage)]))
              await within('the connection is closed', connection.closed)
              const [answer, ...more] = await connection.answers(1)
              assert.equal(answer?.status, 200, JSON.stringify(garbage))
              assert.deepEqual(
                more.map(({ status }) => status).filter((status) => status !== 400),
                [],
              )
            }
          })
          assert.equal(rows.length, 4)
        })

        test('empty lines before a request are passed over', async () => {
          const request = Buffer.concat([Buffer.from('\r\n\r\n'), rawPost(path, shared.app.token, BODY)])
          assert.equal((await send(request)).status, 200)
        })

        test('HTTP/1.0, with and without Host, is answered and closed', async (t) => {
          for (const host of [null, 'intray.test']) {
            const connection = await connect(t)
            const headers = postHeaders(shared.app.token)
            connection.write(rawRequest({ target: path, version: '1.0', host, headers, body: BODY }))
            const answer = await firstAnswer(connection)
            assertDocumented('POST', path, answer)
            assert.equal(answer.status, 200)
            await within('the connection is closed', connection.closed)
          }
        })
      })

      describe('Expect', () => {
        const expecting = (headers: readonly string[], length: number) =>
          rawRequest({ target: path, headers: [...headers, 'Expect: 100-continue', `Content-Length: ${length}`] })

        test('100-continue gets 100, and 200 once the body is there', async (t) => {
          for (const value of ['100-continue', '100-Continue', '100-CONTINUE']) {
            const connection = await connect(t)
            const headers = [
              ...postHeaders(shared.app.token),
              `Expect: ${value}`,
              `Content-Length: ${Buffer.byteLength(BODY)}`,
            ]
            connection.write(rawRequest({ target: path, headers }))
            const told = await within(
              '100 Continue',
              connection.until((text) => text.includes('\r\n\r\n')),
            )
            assert.match(told, /^HTTP\/1\.1 100 Continue\r\n\r\n$/)
            connection.write(BODY)
            const answer = await firstAnswer(connection)
            assertDocumented('POST', path, answer)
            assert.equal(answer.status, 200)
            assert.equal(await kept(idOf(answer)), BODY)
          }
        })

        test('100-continue with a chunked body, or with one that comes at once, is answered 200', async (t) => {
          const { app } = shared
          const inChunks = [...postHeaders(app.token), 'Expect: 100-continue', 'Transfer-Encoding: chunked']
          const whole = [...postHeaders(app.token), 'Expect: 100-continue']
          for (const request of [
            rawRequest({ target: path, headers: inChunks, body: chunked(BODY, 5), sized: false }),
            rawRequest({ target: path, headers: whole, body: BODY }),
          ]) {
            const connection = await connect(t)
            connection.write(request)
            assert.equal((await firstAnswer(connection)).status, 200)
          }
        })

        test('a request refused by its headers is not told to go on', async (t) => {
          const { app } = shared
          const processor = await app.createToken({ scope: 'processor' })
          const refusals = [
            [401, ['Authorization: Bearer nonsense', 'Content-Type: application/json'], 10],
            [401, ['Content-Type: application/json'], 10],
            [403, postHeaders(processor), 10],
            [415, [`Authorization: Bearer ${app.token}`, 'Content-Type: text/html'], 10],
            [415, [...postHeaders(app.token), 'Content-Encoding: br'], 10],
            [413, postHeaders(app.token), 1_048_577],
          ] as const
          for (const [status, headers, length] of refusals) {
            const connection = await connect(t)
            connection.write(expecting(headers, length))
            const answer = await firstAnswer(connection)
            assertDocumented('POST', path, answer)
            assert.equal(answer.status, status)
            assert.doesNotMatch(connection.text, /100 Continue/)
            assert.equal(answer.headers.connection, 'close', 'its body may or may not come')
            await within('the connection is closed', connection.closed)
          }
        })

        test('an unknown address or method is not told to go on', async (t) => {
          for (const [status, method, target] of [
            [404, 'POST', '/nowhere'],
            [405, 'PUT', path],
          ] as const) {
            const connection = await connect(t)
            connection.write(rawRequest({ method, target, headers: ['Expect: 100-continue', 'Content-Length: 10'] }))
            assert.equal((await firstAnswer(connection)).status, status)
            assert.doesNotMatch(connection.text, /100 Continue/)
          }
        })

        test('417: anything else', async (t) => {
          for (const value of ['something-else', '200-ok', '100']) {
            const connection = await connect(t)
            const headers = [...postHeaders(shared.app.token), `Expect: ${value}`]
            connection.write(rawRequest({ target: path, headers, body: BODY }))
            const answer = await firstAnswer(connection)
            assertDocumented('POST', path, answer)
            assert.equal(answer.status, 417, value)
            assert.equal(answer.json?.error, 'expectation_failed')
          }
        })
      })

      describe('requests that break the rules', () => {
        const assertBroken = async (request: string | Buffer, name: string) => {
          const answer = await send(Buffer.from(request as string))
          assert.equal(answer.status, 400, name)
          assert.equal(answer.json?.error, 'invalid_request', name)
          assert.equal(answer.json?.retryable, false)
          assert.equal(answer.json?.request_id, answer.headers['x-request-id'])
        }
        const withHeaders = (...headers: string[]) =>
          rawRequest({ target: path, headers: [...postHeaders(shared.app.token), ...headers], body: BODY })

        test('400: no Host, and two of them', async () => {
          const headers = postHeaders(shared.app.token)
          await assertBroken(rawRequest({ target: path, host: null, headers, body: BODY }), 'no Host')
          await assertBroken(withHeaders('Host: other.test'), 'two Hosts')
          await assertBroken(withHeaders('Host: intray.test'), 'two equal Hosts')
        })

        test('400: a length that is not one, or not alone', async () => {
          const head = rawRequest({ target: path, headers: postHeaders(shared.app.token) })
            .toString()
            .slice(0, -2)
          for (const lines of [
            'Content-Length: 2\r\nContent-Length: 2\r\n',
            'Content-Length: 2\r\nContent-Length: 3\r\n',
            'Content-Length: 2\r\nTransfer-Encoding: chunked\r\n',
            'Transfer-Encoding: chunked\r\nContent-Length: 2\r\n',
            'Content-Length: -1\r\n',
            'Content-Length: 2x\r\n',
            'Content-Length: 0x2\r\n',
            'Content-Length: 99999999999999999999999\r\n',
            'Transfer-Encoding: identity\r\n',
            'Transfer-Encoding: chunked, identity\r\n',
          ]) {
            await assertBroken(`${head}${lines}\r\n{}`, lines)
          }
        })

        test('400: chunks that are not chunks', async () => {
          const headers = [...postHeaders(shared.app.token), 'Transfer-Encoding: chunked']
          for (const body of [
            'zz\r\n{}\r\n0\r\n\r\n',
            '-2\r\n{}\r\n',
            '2\r\n{}xx\r\n0\r\n\r\n',
            '\r\n',
            'ffffffffffffffffff\r\n',
          ]) {
            await assertBroken(rawRequest({ target: path, headers, body, sized: false }), JSON.stringify(body))
            const nowhere = rawRequest({ target: '/nowhere', headers, body, sized: false })
            await assertBroken(nowhere, `${JSON.stringify(body)} behind an unknown path`)
            const wrongMethod = rawRequest({ method: 'PUT', target: path, headers, body, sized: false })
            await assertBroken(wrongMethod, `${JSON.stringify(body)} behind a wrong method`)
          }
        })

        test('400: what is not HTTP', async () => {
          for (const text of [
            'hello\r\n\r\n',
            '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
            `POST ${path} HTTP/3.7\r\nHost: a\r\n\r\n`,
            `POST ${path}\r\n\r\n`,
            `BREW ${path} HTTP/1.1\r\nHost: a\r\n\r\n`,
            `POST ${path} HTTP/1.1\r\nHost: a\r\nNo colon\r\n\r\n`,
            `POST ${path} HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n`,
            `POST ${path} HTTP/1.1\r\nHost: a\r\nX Y: b\r\n\r\n`,
            'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
          ]) {
            await assertBroken(Buffer.from(text, 'latin1'), JSON.stringify(text))
          }
        })

        test('nothing is stored of a broken request', async () => {
          const rows = await rowsStoredDuring(shared.app, async () => {
            await assertBroken(withHeaders('Host: other.test'), 'two Hosts')
            const headers = [...postHeaders(shared.app.token), 'Transfer-Encoding: chunked']
            await assertBroken(rawRequest({ target: path, headers, body: '2\r\n{}\r\nx', sized: false }), 'a bad chunk')
          })
          assert.deepEqual(rows, [])
        })

        test('431: headers or an address that are too large', async () => {
          for (const request of [
            withHeaders(`X-Large: ${'x'.repeat(20_000)}`),
            withHeaders(...Array.from({ length: 2000 }, (_, n) => `X-Header-${n}: x`)),
            rawRequest({ target: `${path}?${'x'.repeat(20_000)}`, headers: postHeaders(shared.app.token), body: BODY }),
            rawPost(path, 'x'.repeat(20_000), BODY),
          ]) {
            const answer = await send(request)
            assert.equal(answer.status, 431)
            assert.equal(answer.json?.error, 'headers_too_large')
            assert.equal(answer.headers.connection, 'close')
          }
        })

        test('200: as many headers as allowed, none of which is dropped; 431: one more', async () => {
          const own = postHeaders(shared.app.token)
          // Besides Host and Content-Length.
          const headers = Array.from({ length: 100 - 2 - own.length }, (_, n) => `X${n}:1`)
          const request = (...more: string[]) =>
            rawRequest({ target: path, headers: [...more, ...headers, ...own], body: BODY })
          assert.equal((await send(request())).status, 200)
          const refused = await send(request('X:1'))
          assert.deepEqual([refused.status, refused.json?.error], [431, 'headers_too_large'])
          assert.equal(refused.headers.connection, 'close')
        })
      })

      describe('clients that vanish', () => {
        const gone = () => shared.app.log.filter((line) => line.client_gone === true).length

        test('half-way through the body: nothing is stored, and the service goes on', async (t) => {
          const { app } = shared
          const inChunks = rawRequest({
            target: path,
            headers: [...postHeaders(app.token), 'Transfer-Encoding: chunked'],
          })
          const beginnings: readonly Buffer[] = [
            rawPost(path, app.token, BODY).subarray(0, -5),
            Buffer.concat([inChunks, Buffer.from(`2\r\n{}\r\n`)]),
            Buffer.concat([inChunks, Buffer.from('5\r\n{"a"')]),
            inChunks,
          ]
          const rows = await rowsStoredDuring(app, async () => {
            for (const vanish of ['destroy', 'resetAndDestroy', 'end'] as const) {
              for (const beginning of beginnings) {
                const before = gone()
                const connection = await connect(t)
                connection.write(beginning)
                await new Promise((resolve) => connection.socket.write('', resolve))
                connection.socket[vanish]()
                await connection.closed
                await until('the service has noticed', () => gone() > before)
              }
            }
          })
          assert.deepEqual(rows, [])
        })

        test('half-way through the headers: the service goes on', async (t) => {
          const { app } = shared
          const request = rawPost(path, app.token, BODY)
          for (const length of [1, 10, 60, 120]) {
            for (const vanish of ['destroy', 'resetAndDestroy', 'end'] as const) {
              const connection = await connect(t)
              connection.write(request.subarray(0, length))
              await new Promise((resolve) => connection.socket.write('', resolve))
              connection.socket[vanish]()
              await connection.closed
            }
          }
          assert.equal((await postTo(app, path, '{}')).status, 200)
        })

        test('before the answer: the service goes on', async (t) => {
          const { app } = shared
          for (let count = 0; count < 20; count += 1) {
            const connection = await connect(t)
            connection.write(rawPost(path, app.token, BODY))
            connection.socket.resetAndDestroy()
            await connection.closed
          }
          assert.equal((await postTo(app, path, '{}')).status, 200)
        })
      })
    })

    describe(`slow clients of POST ${path} on ${driver.name}`, () => {
      const shared = sharedApp(driver, { settings: { headersTimeout: '300ms', requestTimeout: '600ms' } })

      const assertTooSlow = async (beginning: Buffer) => {
        const connection = await RawConnection.open(shared.app.port)
        try {
          connection.write(beginning)
          const answer = await firstAnswer(connection)
          assertDocumented('POST', path, answer)
          assert.equal(answer.status, 408)
          assert.equal(answer.json?.error, 'request_timeout')
          assert.equal(answer.json?.retryable, true)
          assert.equal(answer.headers.connection, 'close')
          await within('the connection is closed', connection.closed)
        } finally {
          connection.destroy()
        }
      }

      test('408: headers that do not end', async () => {
        const request = rawPost(path, shared.app.token, BODY)
        await Promise.all([request.subarray(0, 5), request.subarray(0, 60)].map(assertTooSlow))
      })

      test('408: a body that does not end, and nothing is stored of it', async () => {
        const { app } = shared
        const inChunks = rawRequest({
          target: path,
          headers: [...postHeaders(app.token), 'Transfer-Encoding: chunked'],
        })
        const rows = await rowsStoredDuring(app, async () => {
          await Promise.all(
            [
              rawPost(path, app.token, BODY).subarray(0, -1),
              Buffer.concat([inChunks, Buffer.from('2\r\n{}\r\n')]),
              inChunks,
            ].map(assertTooSlow),
          )
        })
        assert.deepEqual(rows, [])
      })

      test('a request that is slow to begin on a kept connection is not held against it', async () => {
        const connection = await RawConnection.open(shared.app.port)
        try {
          connection.write(rawPost(path, shared.app.token, BODY))
          await allAnswers(connection, 1)
          // Another connection runs into both timeouts meanwhile.
          await assertTooSlow(rawPost(path, shared.app.token, BODY).subarray(0, -1))
          connection.write(rawPost(path, shared.app.token, BODY))
          assert.equal((await allAnswers(connection, 2))[1]?.status, 200)
        } finally {
          connection.destroy()
        }
      })

      test('the service goes on', async () => {
        assert.equal((await postTo(shared.app, path, BODY)).status, 200)
      })
    })
  }

  describe(`connections on ${driver.name}`, () => {
    test('CONNECT is answered 400 and its connection closed on both sides', async () => {
      // Stopped by hand: a connection that is left over would keep it from stopping.
      const context = { after: () => {} } as unknown as TestContext
      const app = await startTestApp(context, driver, { settings: { stopTimeout: '1s' } })
      const tunnel = 'CONNECT intray.test:443 HTTP/1.1\r\nHost: intray.test:443\r\n'
      for (const [leave, rest] of [
        ['destroy', '\r\n'],
        ['resetAndDestroy', 'Content-Length: 90000\r\n\r\nbody'],
        ['end', 'Transfer-Encoding: chunked\r\n\r\n5\r\nbo'],
        ['end', '\r\n'],
      ] as const) {
        const connection = await RawConnection.open(app.port)
        connection.write(tunnel + rest)
        const answer = await firstAnswer(connection)
        assertDocumented('CONNECT', '/nowhere', answer)
        assert.equal(answer.status, 400)
        assert.equal(answer.json?.error, 'invalid_request')
        connection.write('more'.repeat(10_000))
        connection.socket[leave]()
        await within('the connection is closed', connection.closed)
      }
      assert.equal((await app.post('{}')).status, 200)
      await within('the service stops', app.app.stop())
    })

    test('a message with CONNECT behind it is stored and gets its own answer first', async (t) => {
      const app = await startTestApp(t, driver)
      const connection = await RawConnection.open(app.port)
      const post = rawPost('/v1/inbox/events', app.token, '{"source_ref":"before CONNECT"}')
      connection.write(Buffer.concat([post, Buffer.from('CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n')]))
      const [stored, refused] = await allAnswers(connection, 2)
      assert.equal(stored?.text, '{"ok":true,"id":1}')
      assert.equal(refused?.status, 400)
      await within('the connection is closed', connection.closed)
    })

    for (const [name, version, coding] of [
      ['a transfer coding beside chunked', '1.1', 'gzip, chunked'],
      ['chunked in HTTP/1.0', '1.0', 'chunked'],
      ['another version of HTTP', '2.0', null],
    ] as const) {
      test(`400: ${name}, which others may frame differently`, async (t) => {
        const app = await startTestApp(t, driver)
        const connection = await RawConnection.open(app.port)
        t.after(() => connection.destroy())
        const headers = [`Authorization: Bearer ${app.token}`, 'Content-Type: application/json']
        if (coding !== null) headers.push(`Transfer-Encoding: ${coding}`)
        const body = coding === null ? '{}' : '2\r\n{}\r\n0\r\n\r\n'
        connection.write(rawRequest({ target: '/v1/inbox/events', version, headers, body, sized: coding === null }))
        const answer = await firstAnswer(connection)
        assert.equal(answer.status, 400)
        assert.equal(answer.json?.error, 'invalid_request')
        assert.equal(await app.store.events.watermark(), 0)
      })
    }

    test('a body in a hundred thousand chunks of one byte is stored as one', async (t) => {
      const app = await startTestApp(t, driver)
      const body = `{"text":"${'x'.repeat(100_000)}"}`
      const connection = await RawConnection.open(app.port)
      t.after(() => connection.destroy())
      const chunks = Array.from(body, (character) => `1\r\n${character}\r\n`).join('')
      const head = rawRequest({
        target: '/v1/inbox/events',
        headers: [`Authorization: Bearer ${app.token}`, 'Content-Type: application/json', 'Transfer-Encoding: chunked'],
      })
      connection.write(Buffer.concat([head, Buffer.from(`${chunks}0\r\n\r\n`)]))
      assert.equal((await firstAnswer(connection)).text, '{"ok":true,"id":1}')
      assert.equal(Buffer.from((await app.store.events.payload(1))!).toString(), body)
    })

    test('an empty Expect expects nothing; one among others is unknown', async (t) => {
      const app = await startTestApp(t, driver)
      for (const [value, status] of [
        ['', 200],
        ['100-Continue, tea', 417],
      ] as const) {
        const connection = await RawConnection.open(app.port)
        const headers = [`Authorization: Bearer ${app.token}`, 'Content-Type: application/json', `Expect: ${value}`]
        connection.write(rawRequest({ target: '/v1/inbox/events', headers, body: '{}' }))
        assert.equal((await firstAnswer(connection)).status, status, value)
        connection.destroy()
      }
    })

    test('more connections than allowed are closed at accept', async (t) => {
      const app = await startTestApp(t, driver, { settings: { maxConnections: '2' } })
      const first = await RawConnection.open(app.port)
      const second = await RawConnection.open(app.port)
      t.after(() => [first, second].map((connection) => connection.destroy()))
      for (const connection of [first, second]) {
        connection.write(rawPost('/v1/inbox/events', app.token, '{}'))
        assert.equal((await firstAnswer(connection)).status, 200)
      }
      const third = await RawConnection.open(app.port)
      await within('the third connection is closed', third.closed)
      assert.equal(third.text, '')
      first.destroy()
      await until('there is room again', () =>
        app.post('{}').then(
          (answer) => answer.status === 200,
          () => false,
        ),
      )
    })

    test('an idle connection is closed after the keep-alive timeout', async (t) => {
      const app = await startTestApp(t, driver, { settings: { keepAliveTimeout: '100ms' } })
      const connection = await RawConnection.open(app.port)
      t.after(() => connection.destroy())
      connection.write(rawPost('/v1/inbox/events', app.token, '{}'))
      assert.equal((await firstAnswer(connection)).status, 200)
      await within('the connection is closed', connection.closed)
    })
  })
}
