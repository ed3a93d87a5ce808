// The short form of a proof: the same code as `npm run prove`, with few cycles and a fixed seed, and its whole report held
// to what it promises. A claim about time is told and not judged: machines that run tests are slow and shared.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { type Proof, type StoreName, Unable } from '../../prove/proof.ts'
import { formatReport } from '../../prove/report.ts'
import { type ProofReport, ProofRun } from '../../prove/run.ts'
import { serverUrl } from './postgres/databases.ts'

const SEED = 20261115

/** Null, with the test reported as skipped, where the machine cannot run it. */
export async function prove(
  t: TestContext,
  proof: Proof,
  cycles: number,
  store: StoreName = 'sqlite',
  given: Readonly<Record<string, string>> = {},
): Promise<ProofReport | null> {
  const run = new ProofRun(proof, {
    seed: SEED,
    cycles,
    store,
    isTimed: false,
    given,
    progress: (line) => t.diagnostic(line),
    ...(process.env.TEST_ROOT === undefined ? {} : { parentFolder: process.env.TEST_ROOT }),
    ...(store === 'postgres' ? { postgresUrl: await serverUrl() } : {}),
  })
  t.after(() => run.close())
  let report: ProofReport
  try {
    report = await run.run()
  } catch (error) {
    if (!(error instanceof Unable)) throw error
    t.skip(`not run: ${error.message}`)
    return null
  }
  t.diagnostic(formatReport(report))
  assert.deepEqual(report.problems, [])
  return report
}
