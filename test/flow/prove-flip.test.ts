// The short form of `npm run prove -- flip`.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { flip } from '../../prove/faults/flip.ts'
import { STORES } from '../../prove/proof.ts'
import { prove } from '../support/proof.ts'

for (const store of STORES) {
  test(`flipped bytes are served by no read on ${store}, and doctor names them; a reader without digests serves them`, async (t) => {
    const report = await prove(t, flip, 4, store)
    assert.ok(report!.counts.faults > 4)
  })
}
