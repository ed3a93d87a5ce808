// Hostile requests by the thousand, over bare sockets: the right answer each time, never a 5xx, never a hang, never a second
// message out of one. HOSTILE_REQUESTS=20000 sends more; HOSTILE_SEED=<seed> repeats a run. See docs/internals/hostile-input.md.

import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { after, before, describe, type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { startTestApp, type TestApp } from '../support/app.ts'
import { drivers } from '../support/drivers.ts'
import { BODIES, MAX_BODY_BYTES } from './bodies.ts'
import { anyRequest, caseOf, goodRequest, table } from './composed.ts'
import type { HostileCase } from './hostile-case.ts'
import { judgeJson } from './json-oracle.ts'
import { anyBody, bodyCase } from './mutations.ts'
import { anyPipeline, pipelineCase } from './pipelines.ts'
import { anyQuery, queryCase } from './queries.ts'
import { type Tokens, tokensOf } from './senders.ts'
import { fortressOf, Siege } from './siege.ts'
import { edgeCases, fieldsCase, messageCase, storeCases } from './text-cases.ts'
import { LONE, TEXTS, UNUSABLE } from './texts.ts'

const REQUESTS = Number(process.env.HOSTILE_REQUESTS ?? 5000)
const SEED = Number(process.env.HOSTILE_SEED ?? randomInt(2 ** 31))
/** So many are played at a time: a failure is then made smaller by leaving out. */
const BATCH = 50
/** A failure is told even if each try to make it smaller waits for an answer that does not come. */
const MAKE_SMALLER = { skipAllAfterTimeLimit: 60_000 } as const
/** Of a whole describe block, on a machine that does ten other things. */
const TIMEOUT = { timeout: 600_000 * Math.max(1, REQUESTS / 5000) }

interface Stage {
  app: TestApp
  tokens: Tokens
  siege: Siege
}

const sieges: Siege[] = []

for (const driver of drivers) {
  describe(`hostile requests on ${driver.name}`, TIMEOUT, () => {
    const stage = {} as Stage
    const cleanUps: (() => unknown)[] = []
    const context = { after: (cleanUp: () => unknown) => cleanUps.push(cleanUp) } as unknown as TestContext
    before(async () => {
      // Thousands of unknown tokens from one address are the point here: that they are held up is tested elsewhere.
      const settings = { maxBodyBytes: String(MAX_BODY_BYTES), failedTokenLimit: 'off' } as const
      stage.app = await startTestApp(context, driver, { settings })
      stage.tokens = await tokensOf(stage.app)
      stage.siege = new Siege(fortressOf(stage.app))
      sieges.push(stage.siege)
    })
    after(async () => {
      for (const cleanUp of cleanUps) await cleanUp()
    })

    const survives = async (cases: readonly HostileCase[]) => {
      assert.deepEqual((await stage.siege.play(cases)).slice(0, 20), [])
    }

    /** Draws so many, in batches; fast-check makes a batch that fails smaller. */
    const survivesAny = async <T>(
      t: TestContext,
      arbitrary: fc.Arbitrary<T>,
      count: number,
      toCase: (drawn: T) => HostileCase | null,
    ) => {
      t.diagnostic(`seed ${SEED} (repeat with HOSTILE_SEED=${SEED})`)
      const batch = fc.array(arbitrary, { minLength: 1, maxLength: BATCH, size: 'max' })
      const property = fc.asyncProperty(batch, async (drawn) => {
        await survives(drawn.flatMap((one) => toCase(one) ?? []))
      })
      const until = stage.siege.requests + count
      for (let round = 0; stage.siege.requests < until; round += 1) {
        await fc.assert(property, { ...MAKE_SMALLER, seed: SEED + round, numRuns: 1 })
      }
    }

    // What the store has no part in is sent to one of them.
    if (driver === drivers[0]) {
      test('every part of a request that is amiss, alone', async () => {
        await survives(table(goodRequest(stage.tokens), stage.tokens))
      })

      test('any parts of a request together, in any pieces', async (t) => {
        await survivesAny(t, anyRequest(stage.tokens), 0.5 * REQUESTS, ({ given, cuts }) =>
          caseOf(given, stage.tokens, cuts),
        )
      })

      test('any requests in one write', async (t) => {
        await survivesAny(t, anyPipeline, 0.1 * REQUESTS, (drawn) => pipelineCase(drawn, stage.tokens))
      })

      test('every cursor, path and command with every text', async () => {
        await survives([...TEXTS, ...UNUSABLE].flatMap((text) => edgeCases(stage.tokens, text)))
      })
    }

    test('any body that was JSON once', async (t) => {
      await survivesAny(t, anyBody, 0.1 * REQUESTS, (body) => bodyCase(body, stage.tokens.sender))
    })

    test('every field of a message with every text', async () => {
      const { tokens } = stage
      await survives([
        ...TEXTS.map((text) => messageCase(tokens, text, true)),
        ...[...UNUSABLE, ...LONE].map((text) => messageCase(tokens, text, false)),
        ...[...UNUSABLE, ...LONE].map((text) => fieldsCase(tokens, text)),
      ])
    })

    test('every filter with every text, which finds itself and nothing else', async () => {
      const { app, tokens } = stage
      await app.indexed()
      const ids = new Map<string, number>()
      for (let id = 1, newest = await app.store.events.watermark(); id <= newest; id += 1) {
        const event = await app.store.events.find(id)
        if (event?.sourceRef != null && event.channelRef === event.sourceRef) ids.set(event.sourceRef, id)
      }
      assert.equal(TEXTS.filter((text) => !ids.has(text)).length, 0, 'each text has its message')
      const texts = [...TEXTS, ...UNUSABLE]
      await survives(texts.flatMap((text) => storeCases(tokens, text, ids.get(text) ?? null)))
    })

    test('any query', async (t) => {
      await survivesAny(t, anyQuery, 0.1 * REQUESTS, (pairs) => queryCase(pairs, stage.tokens.processor))
    })

    test('afterwards everything that was stored is indexed and can be read', async () => {
      const { app, tokens } = stage
      await app.indexed()
      const newest = await app.store.events.watermark()
      const unindexed: number[] = []
      for (let id = 1; id <= newest; id += 1) {
        const event = await app.store.events.find(id)
        if (event && (await app.store.events.indexEntry(event))?.unindexed != null) unindexed.push(id)
      }
      assert.deepEqual(unindexed, [])
      for (let path: string | null = '/v1/inbox/events?limit=200'; path !== null; ) {
        const page = await app.send({ path, headers: { Authorization: `Bearer ${tokens.processor}` } })
        assert.equal(page.status, 200)
        path = page.json!.next === null ? null : `/v1/inbox/events?limit=200&cursor=${page.json!.next as string}`
      }
      const errors = app.log.filter(({ level, msg }) => level === 'error' || msg === 'unexpected failure')
      assert.deepEqual(errors, [])
    })
  })
}

test('the oracle for JSON agrees with the verdicts that were written by hand', () => {
  for (const { name, verdict, hasSourceRef = false, make } of BODIES) {
    assert.deepEqual(judgeJson(make(1)), { verdict, hasSourceRef }, name)
  }
})

test('enough of them were sent', (t) => {
  const total = sieges.reduce((sum, { requests }) => sum + requests, 0)
  t.diagnostic(`${total} hostile requests, seed ${SEED}`)
  assert.ok(total >= Math.max(5000, REQUESTS), `only ${total}`)
})
