// The short form of `npm run prove -- neighbours`: that attacks are carried out, that the service outlives them with memory in
// its bounds, and that the probe sees a main thread that stalls. Times are not judged here.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { neighbours } from '../../prove/neighbours/neighbours.ts'
import { STORES } from '../../prove/proof.ts'
import { prove } from '../support/proof.ts'

const SHORT = { attacks: 'empty-filters', seconds: '1', events: '200' }

for (const store of STORES) {
  test(`attacks beside a customer end neither the service nor its bounds on ${store}; a stalling main thread is found out`, async (t) => {
    const report = await prove(t, neighbours, 1, store, SHORT)
    assert.ok(report!.counts.acknowledged > 0)
    assert.equal(report!.controls.length, 1)
  })
}
