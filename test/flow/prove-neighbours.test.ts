// The short form of `npm run prove -- neighbours`: that attacks are carried out, that the service outlives them with memory in
// its bounds, and that the probe sees a main thread that stalls. Times are not judged here.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Attack } from '../../prove/neighbours/attack.ts'
import { ATTACKS } from '../../prove/neighbours/attacks.ts'
import { neighbours } from '../../prove/neighbours/neighbours.ts'
import type { Trial } from '../../prove/neighbours/trial.ts'
import { causeOf } from '../../prove/neighbours/turn-cause.ts'
import { brokenBy, MAX_MIB } from '../../prove/neighbours/verdict.ts'
import type { Figures } from '../../prove/neighbours/victim.ts'
import { prove } from '../support/proof.ts'

const SHORT = { attacks: 'empty-filters', seconds: '1', events: '200' }

test('an attack beside a customer ends neither the service nor its bounds; a stalling main thread is found out', async (t) => {
  const report = await prove(t, neighbours, 1, 'sqlite', SHORT)
  assert.ok(report!.counts.acknowledged > 0)
  assert.equal(report!.controls.length, 1)
})

const served: Figures = { due: 20, answered: 20, refused: 0, unanswered: 0, p50Ms: 2, worstMs: 4 }
const attack: Attack = { name: 'a', about: '', by: 'stranger', connections: 1, prepare: () => async () => {} }
const held: Trial = {
  attack,
  counts: { sent: 1, cut: 0, statuses: {} },
  alone: { send: served, claimable: served },
  attacked: { send: served, claimable: served },
  mostMiB: MAX_MIB,
  longestTurn: { at: 0, ms: 50 },
  ended: null,
}
const attacked = (figures: Partial<Figures>): Partial<Trial> => ({ attacked: { send: { ...served, ...figures } } })

const BROKEN: Record<string, [trial: Partial<Trial>, complaint: string]> = {
  'an attacker that sent nothing': [{ counts: { ...held.counts, sent: 0 } }, 'a: nothing was sent'],
  'a service that ended': [{ ended: 'it ended' }, 'a: it ended'],
  'a long turn': [{ longestTurn: { at: 0, ms: 51 } }, 'a: a turn of 51 ms'],
  'too much memory': [{ mostMiB: MAX_MIB + 1 }, `a: memory grew to ${MAX_MIB + 1} MiB`],
  'a slow answer': [attacked({ p50Ms: 51 }), 'a: send p50 51 ms, more than 50 ms'],
  'a refused request': [attacked({ refused: 1 }), 'a: 1 of 20 send refused'],
  'a request without an answer': [attacked({ unanswered: 1 }), 'a: 1 of 20 send not within 5 s'],
}
for (const [name, [trial, complaint]] of Object.entries(BROKEN)) {
  test(`${name} breaks the claim`, () => {
    assert.deepEqual(brokenBy(held, true), [])
    assert.deepEqual(brokenBy({ ...held, ...trial }, true), [complaint])
  })
}

test('ten times what it takes alone is not slow', () => {
  const alone = { send: { ...served, p50Ms: 6 } }
  assert.deepEqual(brokenBy({ ...held, alone, ...attacked({ p50Ms: 60 }) }, true), [])
  assert.equal(brokenBy({ ...held, alone, ...attacked({ p50Ms: 61 }) }, true).length, 1)
})

test('a customer who is not served at all is seen where times are not judged', () => {
  assert.deepEqual(brokenBy({ ...held, ...attacked({ answered: 0, unanswered: 20 }) }, false), [
    'a: a victim was not served at all',
  ])
})

test('names of attacks are distinct', () => {
  const names = ATTACKS.map(({ name }) => name)
  assert.equal(new Set(names).size, names.length)
})

test('the cause of a turn is our function that most of its last samples were in, and nothing from before it', () => {
  const frame = (functionName: string, url: string) => ({ functionName, url, lineNumber: 8 })
  const profile = {
    nodes: [
      { id: 1, callFrame: frame('before', 'file:///x/src/before.ts'), children: [] },
      { id: 2, callFrame: frame('ours', 'file:///x/src/ours.ts'), children: [3] },
      { id: 3, callFrame: frame('parse', 'node:internal'), children: [] },
      { id: 4, callFrame: frame('(garbage collector)', ''), children: [] },
      { id: 5, callFrame: frame('(idle)', ''), children: [] },
    ],
    samples: [1, 1, 1, 1, 3, 3, 2, 4, 5],
    timeDeltas: [10, 10, 10, 10, 10, 10, 10, 10, 10],
  }
  assert.equal(causeOf(profile, 50), '75 % ours (src/ours.ts:9), 25 % (garbage collector)')
})
