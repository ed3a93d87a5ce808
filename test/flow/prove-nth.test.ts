// The short form of `npm run prove -- nth`: of each fault one n in the commit of a group and one behind it (on SQLite in a checkpoint,
// as a rule), and a control that must be found out.

import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { UNSAFE_SERVER } from '../../prove/faults/nth.ts'
import { FEW } from '../../prove/group-commit.ts'
import { NearCheckpoint } from '../../prove/near-checkpoint.ts'
import { postgresTarget, WIRE_FAULTS } from '../../prove/postgres-target.ts'
import { WRONG } from '../../prove/proof.ts'
import { seededRandom } from '../../prove/random.ts'
import { sqliteTarget, SYSCALL_FAULTS } from '../../prove/sqlite-target.ts'
import { hasStrace } from '../../prove/strace.ts'
import { type Fault, type Struck, strike, type Target } from '../../prove/strike.ts'
import { brokenIn, inWords } from '../../prove/subject.ts'
import { newPostgresDatabase } from '../support/postgres/databases.ts'
import { tempFolder } from '../support/temp.ts'

const skip = hasStrace() ? false : 'not run: strace is not installed'
const SEED = 20261115
const CONTROL_TRIES = 10
const GROUP_TRIES = 4

const undo: (() => void | Promise<void>)[] = []
after(async () => {
  for (const one of undo.reverse()) await one()
})

const root = tempFolder('prove-nth')
function contextIn(name: string) {
  const folder = join(root, name)
  mkdirSync(folder)
  return {
    folder,
    random: seededRandom(SEED),
    onCleanup: (one: () => void | Promise<void>) => void undo.push(one),
    newDatabase: newPostgresDatabase,
  }
}

function wrongIn({ findings, broken }: Struck): string[] {
  const counted = WRONG.filter((what) => findings.counts[what] > 0).map((what) => `${findings.counts[what]} ${what}`)
  return [...counted, ...brokenIn(findings), ...broken]
}

/** The first of the places is in the commit of the first group, whose messages a busy machine may bring one by one. */
async function strikeAt<F extends Fault>(
  t: TestContext,
  target: Target<F>,
  fault: F,
  places: readonly number[],
): Promise<void> {
  let shared = 0
  for (const nth of [...places, ...Array<number>(GROUP_TRIES).fill(places[0]!)]) {
    if (nth === places[0] && shared > FEW) continue
    const struck = await strike(context, target, { fault, nth })
    const { place, inFlight, findings, exitCode } = struck
    t.diagnostic(`n = ${nth}, at a ${place}: ${inFlight} in flight, ${inWords(findings)}, exit ${exitCode}`)
    if (nth === places[0]) shared = Math.max(shared, inFlight)
    assert.equal(struck.injected, 1, 'the fault was injected')
    assert.deepEqual(wrongIn(struck), [])
  }
  assert.ok(shared > FEW, `only ${shared} messages shared a commit that was struck`)
}

async function findOut<F extends Fault>(t: TestContext, target: Target<F>, fault: F): Promise<void> {
  const command = [process.execPath, UNSAFE_SERVER]
  for (let nth = 1; nth <= CONTROL_TRIES; nth += 1) {
    const { findings, injected } = await strike(context, target, { fault, nth, command })
    t.diagnostic(`n = ${nth}: ${inWords(findings)}`)
    if (injected > 0 && findings.counts.lost > 0) return
  }
  assert.fail('it lost nothing, so the check shows nothing')
}

const context = contextIn('strikes')
const sqlite = skip ? null : sqliteTarget(contextIn('sqlite'), await NearCheckpoint.create(contextIn('template')))

for (const fault of SYSCALL_FAULTS) {
  // The first sync, and the first writes, are those of the first group.
  const places = fault.name.endsWith('sync') ? [1, 5] : [5, 50]
  test(
    `${fault.name}: nothing acknowledged is lost, doubled or altered, and the service ${fault.must}`,
    {
      skip,
    },
    (t) => strikeAt(t, sqlite!, fault, places),
  )
}

test('a server that acknowledges before it commits is found out by a kill at a sync', { skip }, (t) =>
  findOut(t, sqlite!, SYSCALL_FAULTS[0]!),
)

const postgres = await postgresTarget(contextIn('postgres'))

for (const fault of WIRE_FAULTS) {
  test(`${fault.name} of PostgreSQL: nothing acknowledged is lost, doubled or altered, and the service ${fault.must}`, (t) =>
    strikeAt(t, postgres, fault, [1, 4]))
}

test('a server that acknowledges before PostgreSQL has committed is found out by a kill before a statement', (t) =>
  findOut(t, postgres, WIRE_FAULTS[0]!))
