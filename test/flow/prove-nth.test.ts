// The short form of `npm run prove -- nth`: of each fault one n in the commit of a group and one behind it, in a checkpoint as a
// rule, and the control that each must find out.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { UNSAFE_SERVER } from '../../prove/faults/nth.ts'
import { FEW } from '../../prove/group-commit.ts'
import { NearCheckpoint } from '../../prove/near-checkpoint.ts'
import { seededRandom } from '../../prove/random.ts'
import { hasStrace } from '../../prove/strace.ts'
import { FAULTS, type FaultRun, runWithFault } from '../../prove/fault-run.ts'
import { brokenIn, inWords } from '../../prove/system-under-test.ts'
import { WRONG } from '../../prove/proof.ts'
import { tempFolder } from '../support/temp.ts'

const skip = hasStrace() ? false : 'not run: strace is not installed'
const SEED = 20261115
const CONTROL_TRIES = 10

const undo: (() => void | Promise<void>)[] = []
const context = {
  folder: tempFolder('prove-nth'),
  random: seededRandom(SEED),
  onCleanup: (one: () => void | Promise<void>) => void undo.push(one),
}
let template: NearCheckpoint

before(async () => {
  if (!skip) template = await NearCheckpoint.create(context)
})
after(async () => {
  for (const one of undo.reverse()) await one()
})

function wrongIn({ findings, broken }: FaultRun): string[] {
  const counted = WRONG.filter((what) => findings.counts[what] > 0).map((what) => `${findings.counts[what]} ${what}`)
  return [...counted, ...brokenIn(findings), ...broken]
}

for (const fault of FAULTS) {
  // The first sync, and the first writes, are those of the first group.
  const places = fault.name.endsWith('sync') ? [1, 5] : [5, 50]
  test(`${fault.name}: nothing acknowledged is lost, doubled or altered, and the service ${fault.must}`, {
    skip,
  }, async (t) => {
    for (const nth of places) {
      const run = await runWithFault(context, template, { fault, nth })
      const { place, inFlight, findings, exitCode } = run
      t.diagnostic(`n = ${nth}, in a ${place}: ${inFlight} in flight, ${inWords(findings)}, exit ${exitCode}`)
      if (nth === places[0]) assert.ok(inFlight > FEW, `only ${inFlight} messages shared the faulted commit`)
      assert.equal(run.injected, 1, 'the fault was injected')
      assert.deepEqual(wrongIn(run), [])
    }
  })
}

test('a server that acknowledges before it commits is found out by a kill at a sync', { skip }, async (t) => {
  const fault = FAULTS[0]!
  for (let nth = 1; nth <= CONTROL_TRIES; nth += 1) {
    const { findings, injected } = await runWithFault(context, template, {
      fault,
      nth,
      command: [process.execPath, UNSAFE_SERVER],
    })
    t.diagnostic(`n = ${nth}: ${inWords(findings)}`)
    if (injected > 0 && findings.counts.lost > 0) return
  }
  assert.fail('it lost nothing, so the check shows nothing')
})
