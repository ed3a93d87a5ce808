// The short form of `npm run prove -- kill`.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kill } from '../../prove/faults/kill.ts'
import { STORES } from '../../prove/proof.ts'
import { prove } from '../support/proof.ts'

for (const store of STORES) {
  test(`kills under load lose, double, alter and misorder nothing on ${store}; a server that acknowledges too early is found out`, async (t) => {
    const report = await prove(t, kill, 3, store)
    assert.equal(report?.counts.faults, 3)
  })
}
