// `prove litestream --litestream <program>`: Litestream replicates the database of a server under load into a folder, while both
// are killed and stopped, and the server checkpoints while Litestream is down. At the end both are lost, and a new server starts on
// the restored replica after `./intray epoch`. A cycle is one new database with all of it.
// Claim: what Litestream reported as replicated is there, byte for byte; lost ids are not given out again; what is sent again is
// stored once.
// Controls: without `epoch` an id must be found to be given out twice; and after a checkpoint that keeps the WAL's file the replica
// must be found damaged.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { addCounts, NO_COUNTS } from '../counts.ts'
import { versionOf } from '../litestream/program.ts'
import { checkRestored, restoreReplica, sendWithoutEpoch } from '../litestream/restored.ts'
import { type Faults, prepare, runTrial, type Trial } from '../litestream/trial.ts'
import type { ControlResult, Counts, Proof, ProofContext } from '../proof.ts'
import { Service } from '../service.ts'

/** Less than a lock is waited for. */
const MAX_STOP_MS = 4000
const CONTROL_MESSAGES = 100

export const litestream: Proof = {
  name: 'litestream',
  about: 'kills of a server and of the Litestream that replicates it; then a restore of the replica',
  needs: 'a program, Litestream 0.5',
  stores: ['sqlite'],
  defaultCycles: 5,
  options: { litestream: 'the program' },
  async run(context) {
    const program = context.given.litestream!
    const version = await versionOf(context.given.litestream)
    const faults: Faults = {
      litestreamKilled: 0,
      litestreamStopped: 0,
      serverKilled: 0,
      serverStopped: 0,
      checkpointed: 0,
    }
    const broken: string[] = []
    const sums = { syncs: 0, replicated: 0, missing: 0, snapshots: [] as string[], maxWalBytes: 0, maxStopMs: 0 }
    let counts: Counts = NO_COUNTS
    let withoutEpoch: boolean | null = null
    for (let cycle = 1; cycle <= context.cycles; cycle += 1) {
      const trial = await runTrial(context, { name: `litestream-${cycle}`, program, faults })
      sums.syncs += trial.syncs
      sums.snapshots.push(...trial.litestream.snapshots)
      sums.maxWalBytes = Math.max(sums.maxWalBytes, trial.maxWalBytes)
      sums.maxStopMs = Math.max(sums.maxStopMs, trial.maxStopMs)
      sums.replicated += trial.acknowledged.filter(({ isReplicated }) => isReplicated).length
      if (trial.busy > 0) broken.push(`${trial.busy} messages were answered storage_unavailable`)
      const path = await restoreReplica(join(context.folder, `restored-${cycle}`), trial)
      if (path === null) {
        broken.push('Litestream refused to restore its replica')
        continue
      }
      withoutEpoch ??= await sendWithoutEpoch(context, path, trial)
      const outcome = await checkRestored(context, path, trial)
      sums.missing += outcome.missing
      broken.push(...outcome.broken)
      counts = addCounts(counts, { ...NO_COUNTS, ...wrongOf(outcome), ...sentOf(trial) })
      context.progress(`${cycle} cycles, ${counts.acknowledged} acknowledged, ${sums.missing} lost after the last sync`)
    }
    if (context.isTimed && sums.maxStopMs > MAX_STOP_MS) broken.push(`a server took ${sums.maxStopMs} ms to stop`)
    const { litestreamKilled, litestreamStopped, serverKilled, serverStopped, checkpointed } = faults
    return {
      counts: { ...counts, faults: litestreamKilled + litestreamStopped + serverKilled + serverStopped + checkpointed },
      notes: [
        `Litestream ${version}: ${litestreamKilled} kills, ${litestreamStopped} stops. Server: ${serverKilled} kills, ${serverStopped} stops. ${checkpointed} checkpoints while no Litestream ran.`,
        `${sums.syncs} syncs reported; ${sums.replicated} messages acknowledged before the last of them, ${sums.missing} after it and not in the replica.`,
        `Copies of the whole database: ${countedBy(sums.snapshots)}.`,
        `Largest WAL ${(sums.maxWalBytes / 1e6).toFixed(0)} MB; longest stop of a server ${sums.maxStopMs.toFixed(0)} ms.`,
      ],
      broken,
      controls: [
        {
          about: 'a restored replica without ./intray epoch',
          failed: withoutEpoch === true,
          detail: 'its first new message got an id that was acknowledged before',
        },
        await keepWalFile(context, program),
      ],
    }
  },
}

function wrongOf(outcome: Awaited<ReturnType<typeof checkRestored>>): Partial<Counts> {
  const { lost, twice, altered, misnumbered, resurrected } = outcome
  return { lost, twice, altered, misnumbered, resurrected }
}

function sentOf({ subject, acknowledged }: Trial): Partial<Counts> {
  const { messages, unknown } = subject.load
  return { sent: messages.count, acknowledged: acknowledged.length, unknown, resent: 2 * acknowledged.length }
}

/** While Litestream is down, another connection checkpoints as SQLite does by default, and the next commit begins the WAL anew. */
async function keepWalFile(context: ProofContext, program: string): Promise<ControlResult> {
  // All frames stay in the WAL until then.
  const name = 'litestream-control'
  const { subject, litestream, database } = await prepare(context, { name, program, checkpointPages: 100_000 })
  const { service, load } = subject
  await service.start()
  await litestream.start()
  await load.run(CONTROL_MESSAGES)
  while (!(await litestream.sync()));
  await litestream.kill()
  await load.run(CONTROL_MESSAGES)
  const salts = walSalts(database)
  // A reader of the server may keep the next commit from it.
  while (walSalts(database) === salts) {
    checkpointAll(database)
    await load.run(1)
  }
  await litestream.start()
  await litestream.kill()
  await service.kill()
  const path = await restoreReplica(join(context.folder, 'restored-control'), { litestream })
  const detail = path === null ? 'Litestream refuses the replica' : await damageIn(context, path)
  return {
    about: 'a checkpoint that keeps the file of the WAL while Litestream is down',
    failed: detail !== null,
    detail: detail ?? 'the replica is whole',
  }
}

function checkpointAll(database: string): void {
  const db = new DatabaseSync(database, { timeout: 5000 })
  try {
    for (;;) {
      const { log, checkpointed } = db.prepare('PRAGMA wal_checkpoint(PASSIVE)').get() ?? {}
      if (log === checkpointed) return
    }
  } finally {
    db.close()
  }
}

/** They change when SQLite begins to write the WAL from its start again. */
function walSalts(database: string): string {
  return readFileSync(`${database}-wal`).subarray(16, 24).toString('hex')
}

async function damageIn(context: ProofContext, path: string): Promise<string | null> {
  const service = new Service(context, { databaseUrl: `sqlite:${path}` })
  const { code, stdout } = await service.command(['doctor'])
  return code === 0 || !stdout.includes('WRONG') ? null : 'doctor finds the replica damaged'
}

function countedBy(reasons: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1)
  return [...counts].map(([reason, count]) => `${count} (${reason})`).join(', ')
}
