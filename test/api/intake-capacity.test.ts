import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Appender, AppendItem, AppendOutcome } from '../../src/store/contract/append.ts'
import { StoreFailure } from '../../src/store/contract/failure.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { startTestApp, type TestApp } from '../support/app.ts'
import { RawConnection } from '../support/client.ts'
import { anyDriver } from '../support/drivers.ts'
import { INTAKE_PATHS, idOf, postTo, rowsStoredDuring } from '../support/intake.ts'
import { firstAnswer, rawPost } from '../support/raw.ts'
import { until } from '../support/until.ts'

const SECRET_DETAIL = 'SQLITE_SECRET_DETAIL at /var/lib/intray'

/** A store whose appends pass through `append`. */
function appending(append: (items: readonly AppendItem[], real: Appender) => Promise<AppendOutcome[]>) {
  return (store: Store): Store => ({
    ...store,
    // One append at a time, so that it is known what waits.
    traits: { ...store.traits, appendsInFlight: 1 },
    journal: { append: (items) => append(items, store.journal) },
  })
}

/** A store whose commits wait until they are let go. */
function holding() {
  const gate = Promise.withResolvers<void>()
  const reached = Promise.withResolvers<void>()
  const batches: number[] = []
  const wrapStore = appending(async (items, real) => {
    batches.push(items.length)
    reached.resolve()
    await gate.promise
    return real.append(items)
  })
  return { wrapStore, batches, reached: reached.promise, release: gate.resolve }
}

async function readiness(app: TestApp): Promise<number> {
  return (await app.send({ path: '/readyz' })).status
}

for (const driver of anyDriver) {
  for (const path of INTAKE_PATHS) {
    describe(`the capacity of POST ${path} on ${driver.name}`, () => {
      test('503 overloaded: what does not fit into the queue is refused at once; what waits is stored', async (t) => {
        const held = holding()
        const app = await startTestApp(t, driver, { settings: { queueMaxEvents: '3' }, wrapStore: held.wrapStore })
        const first = postTo(app, path, '{"n":0}')
        await held.reached
        const more = Array.from({ length: 10 }, (_, n) => postTo(app, path, `{"n":${n + 1}}`))
        let refused = 0
        const counted = more.map((post) => post.then((answer) => (refused += answer.status === 503 ? 1 : 0)))
        await until('eight are refused', () => refused === 8)
        held.release()
        await Promise.all(counted)
        const answers = await Promise.all([first, ...more])
        assert.equal(answers.filter(({ status }) => status === 200).length, 3)
        for (const answer of answers.filter(({ status }) => status === 503)) {
          assert.equal(answer.json?.error, 'overloaded')
          assert.equal(answer.json?.stored, 'no')
          assert.equal(answer.json?.retryable, true)
          assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/)
        }
        const stored = await Promise.all(
          answers.filter(({ status }) => status === 200).map((answer) => app.store.events.find(idOf(answer))),
        )
        assert.ok(stored.every((event) => event !== null))
        assert.equal(await readiness(app), 200, 'a full queue does not take the server out of service')
        assert.equal((await postTo(app, path, '{}')).status, 200)
      })

      test('503 overloaded: the queue is bounded in bytes too', async (t) => {
        const held = holding()
        const settings = { queueMaxBytes: '4096' }
        const app = await startTestApp(t, driver, { settings, wrapStore: held.wrapStore })
        const first = postTo(app, path, '{}')
        await held.reached
        const body = `{"text":"${'x'.repeat(1500)}"}`
        const more = Array.from({ length: 6 }, () => postTo(app, path, body))
        let refused = 0
        for (const post of more) void post.then((answer) => (refused += answer.status === 503 ? 1 : 0))
        await until('four are refused', () => refused === 4)
        held.release()
        const statuses = (await Promise.all([first, ...more])).map(({ status }) => status).sort()
        assert.deepEqual(statuses, [200, 200, 200, 503, 503, 503, 503])
      })

      test('200: a message larger than the whole queue is taken when nothing else waits', async (t) => {
        const app = await startTestApp(t, driver, { settings: { queueMaxBytes: '1024', batchMaxBytes: '1024' } })
        assert.equal((await postTo(app, path, `{"text":"${'x'.repeat(100_000)}"}`)).status, 200)
      })

      test('what arrives while a commit runs shares the next one', async (t) => {
        const held = holding()
        const app = await startTestApp(t, driver, { wrapStore: held.wrapStore })
        const first = postTo(app, path, '{}')
        await held.reached
        const connections = await Promise.all(Array.from({ length: 10 }, () => RawConnection.open(app.port)))
        t.after(() => connections.map((connection) => connection.destroy()))
        for (const connection of connections) connection.write(rawPost(path, app.token, '{}'))
        // Each connection's post has been taken in before a ping on a later one is answered in full.
        await app.send({ path: '/livez' })
        held.release()
        assert.equal((await first).status, 200)
        for (const connection of connections) assert.equal((await firstAnswer(connection)).status, 200)
        assert.equal(held.batches[0], 1)
        assert.ok(held.batches.length < 11, `11 messages took ${held.batches.length} commits`)
      })

      test('503 storage_unavailable: a failed commit leaves it unknown, and readiness follows the store', async (t) => {
        let failing = false
        let probes = 0
        const app = await startTestApp(t, driver, {
          wrapStore: (store) => ({
            ...store,
            journal: {
              append: (items) =>
                failing ? Promise.reject(new StoreFailure('unavailable', SECRET_DETAIL)) : store.journal.append(items),
            },
            probe: () => {
              probes += 1
              return failing ? Promise.reject(new StoreFailure('unavailable', SECRET_DETAIL)) : store.probe()
            },
          }),
        })
        assert.equal((await postTo(app, path, '{}')).status, 200)
        assert.equal(await readiness(app), 200)
        failing = true
        const answers = await Promise.all(Array.from({ length: 5 }, () => postTo(app, path, '{}')))
        for (const answer of answers) {
          assert.equal(answer.status, 503)
          assert.equal(answer.json?.error, 'storage_unavailable')
          assert.equal(answer.json?.stored, 'unknown')
          assert.equal(answer.json?.retryable, true)
          assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/)
          assert.doesNotMatch(answer.text, /SECRET_DETAIL/)
        }
        const notReady = await app.send({ path: '/readyz' })
        assert.equal(notReady.status, 503)
        assert.equal(notReady.json?.error, 'storage_unavailable')
        assert.equal((await app.send({ path: '/livez' })).status, 200, 'the process itself is well')
        await until('it has looked and found the store still failing', () => probes > 0)
        assert.equal(await readiness(app), 503)
        failing = false
        await until('it is ready again, unaided', async () => (await readiness(app)) === 200)
        assert.equal((await postTo(app, path, '{}')).status, 200)
      })

      test('a message that gets through makes the service ready again', async (t) => {
        let failing = true
        const app = await startTestApp(t, driver, {
          wrapStore: appending((items, real) =>
            failing ? Promise.reject(new StoreFailure('unavailable', 'disk full')) : real.append(items),
          ),
        })
        assert.equal((await postTo(app, path, '{}')).status, 503)
        failing = false
        assert.equal((await postTo(app, path, '{}')).status, 200)
        assert.equal(await readiness(app), 200)
      })

      test('a message sent again after an unknown commit is stored once', async (t) => {
        let failing = true
        const app = await startTestApp(t, driver, {
          wrapStore: appending(async (items, real) => {
            const outcomes = await real.append(items)
            if (failing) throw new StoreFailure('unavailable', 'no answer')
            return outcomes
          }),
        })
        const body = '{"source_ref":"unknown:1"}'
        assert.equal((await postTo(app, path, body)).json?.stored, 'unknown')
        failing = false
        const rows = await rowsStoredDuring(app, async () => {
          const answer = await postTo(app, path, body)
          assert.equal(answer.status, 200)
          assert.equal(answer.json?.duplicate, true)
        })
        assert.deepEqual(rows, [])
      })

      test('500: a message that alone cannot be stored, without a word about why', async (t) => {
        const app = await startTestApp(t, driver, {
          wrapStore: appending(async (items, real) => {
            const outcomes = await real.append(items.filter((item) => item.sourceRef !== 'bad'))
            return items.map((item) =>
              item.sourceRef === 'bad' ? { outcome: 'failed', reason: SECRET_DETAIL } : outcomes.shift()!,
            )
          }),
        })
        const answers = await Promise.all(
          ['good:1', 'bad', 'good:2'].map((ref) => postTo(app, path, `{"source_ref":"${ref}"}`)),
        )
        assert.deepEqual(
          answers.map(({ status }) => status),
          [200, 500, 200],
        )
        assert.equal(answers[1]?.json?.error, 'internal_error')
        assert.doesNotMatch(answers[1]!.text + JSON.stringify(answers[1]!.headers), /SECRET_DETAIL|sqlite/i)
        assert.equal(await readiness(app), 200)
      })

      test('500: an unexpected failure, without a word about it but in the log', async (t) => {
        let failing = false
        const clock = {
          now: () => {
            if (failing) throw new TypeError(SECRET_DETAIL)
            return Date.now()
          },
        }
        const app = await startTestApp(t, driver, { clock })
        const headers = { Authorization: `Bearer ${app.token}` }
        failing = true
        const answer = await postTo(app, path, '{}')
        const ping = await app.send({ path: '/api/ping', headers })
        failing = false
        for (const { status, json, text, headers: sent } of [answer, ping]) {
          assert.equal(status, 500)
          assert.equal(json?.error, 'internal_error')
          assert.equal(json?.retryable, true)
          assert.doesNotMatch(text + JSON.stringify(sent), /SECRET_DETAIL|TypeError|\.ts/)
          const logged = app.log.find(
            (line) => line.msg === 'unexpected failure' && line.request_id === sent['x-request-id'],
          )
          assert.match(String(logged?.error), /SECRET_DETAIL/)
        }
        assert.equal((await postTo(app, path, '{}')).status, 200)
      })

      test('503 storage_unavailable: a token that cannot be looked up, since that is our trouble', async (t) => {
        let failing = true
        const app = await startTestApp(t, driver, {
          wrapStore: (store) => ({
            ...store,
            tokens: {
              ...store.tokens,
              find: (keyId) =>
                failing ? Promise.reject(new StoreFailure('unavailable', SECRET_DETAIL)) : store.tokens.find(keyId),
            },
          }),
        })
        const answer = await postTo(app, path, '{}')
        assert.equal(answer.status, 503)
        assert.equal(answer.json?.error, 'storage_unavailable')
        assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/)
        assert.doesNotMatch(answer.text, /SECRET_DETAIL/)
        failing = false
        assert.equal((await postTo(app, path, '{}')).status, 200)
      })
    })
  }
}
