// The short form of `npm run prove -- cut`.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cut } from '../../prove/faults/cut.ts'
import { STORES } from '../../prove/proof.ts'
import { prove } from '../support/proof.ts'

for (const store of STORES) {
  test(`answers lost after the commit double nothing on ${store}; a sender that names its messages by nothing is found out`, async (t) => {
    const report = await prove(t, cut, 60, store)
    assert.ok(report!.counts.faults >= 60)
  })
}
