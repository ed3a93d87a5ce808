// The short form of `npm run prove -- disk-full`. It needs root, as the other tests of full disks do.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { diskFull } from '../../prove/faults/disk-full.ts'
import { prove } from '../support/proof.ts'

test('a disk that fills up under load costs nothing that was acknowledged, reads go on, and the service resumes unaided', async (t) => {
  const report = await prove(t, diskFull, 1)
  if (report) assert.equal(report.counts.faults, 1)
})
