// `prove power`: the power of the disk is cut under load, again and again on one database, on ext4 and on XFS. A cycle is
// one cut; each file system gets as many as asked for. After each cut the file system's journal is recovered, the service is
// started, what is unknown is sent again, and everything acknowledged in all cycles is read back.
// The service is stopped (SIGSTOP) in the same moment, as the processor would be (see loop-disk.ts).
// Claim: nothing acknowledged is lost, doubled or altered.
// Controls: the same service with less syncing must be found to have lost messages (SQLite: PRAGMA synchronous NORMAL
// and OFF; PostgreSQL: fsync=off).

import { setImmediate } from 'node:timers/promises'
import type { Findings } from '../check.ts'
import { FILE_SYSTEMS, type FileSystem, LoopDisk, requireLoopDisks } from '../loop-disk.ts'
import { addCounts, NO_COUNTS } from '../counts.ts'
import type { ControlResult, Counts, Proof, ProofContext } from '../proof.ts'
import { brokenIn, inWords, newSubject, type Subject } from '../subject.ts'
import { databaseOn, WEAKER, type Weakness } from '../disk-database.ts'

/** A control that lost nothing after so many cuts was not found out. */
const CONTROL_CUTS = 40
const LEAST_ACKNOWLEDGED = 100
const MAX_TURNS = 10_000

export const power: Proof = {
  name: 'power',
  about: 'power cut of the disk under load, on ext4 and XFS',
  needs: 'root; xfsprogs and e2fsprogs, which it installs',
  stores: ['sqlite', 'postgres'],
  defaultCycles: 40,
  async run(context) {
    requireLoopDisks('power', context.progress)
    let counts: Counts = NO_COUNTS
    const notes: string[] = []
    const broken: string[] = []
    const controls: ControlResult[] = []
    for (const fileSystem of FILE_SYSTEMS) {
      const outcome = await cutOften(context, fileSystem)
      counts = addCounts(counts, outcome.counts)
      notes.push(outcome.note)
      broken.push(...outcome.broken)
      for (const weakness of WEAKER[context.store]) controls.push(await control(context, fileSystem, weakness))
    }
    return { counts, notes, broken, controls }
  },
}

async function cutOften(context: ProofContext, fileSystem: FileSystem) {
  const rig = await newRig(context, fileSystem, null)
  const { disk, load } = rig
  let findings = await rig.recover()
  const broken: string[] = []
  for (let cycle = 1; cycle <= context.cycles && broken.length === 0; cycle += 1) {
    await rig.cutUnderLoad()
    findings = await rig.recover()
    broken.push(...brokenIn(findings))
    if (cycle % 5 === 0) context.progress(`${fileSystem}: ${cycle} cuts, ${inWords(findings)}`)
  }
  await rig.end()
  if (rig.inFlightCuts === 0) broken.push(`no cut on ${fileSystem} fell on a request in flight`)
  return {
    counts: { ...findings.counts, faults: disk.cuts },
    note: `${fileSystem}: ${disk.cuts} cuts, ${rig.inFlightCuts} of them with requests in flight; ${load.acknowledged} answers of 2xx, ${findings.counts.acknowledged} messages acknowledged, all of them read back after each cut.`,
    broken,
  }
}

async function control(context: ProofContext, fileSystem: FileSystem, weakness: Weakness): Promise<ControlResult> {
  const about = `${weakness.about} on ${fileSystem}`
  const rig = await newRig(context, fileSystem, weakness)
  let found = ''
  let failed = false
  await rig.recover()
  while (!failed && rig.disk.cuts < CONTROL_CUTS) {
    await rig.cutUnderLoad()
    try {
      const findings = await rig.recover(false)
      failed = findings.counts.lost > 0
      found = inWords(findings)
    } catch (error) {
      // What it had was damaged so that it does not even start.
      failed = true
      found = `it does not start any more: ${firstLine(error)}`
    }
  }
  await rig.end()
  context.progress(`control, ${about}: ${found}`)
  return { about, failed, detail: `${rig.disk.cuts} cuts, ${found}` }
}

interface Rig {
  readonly disk: LoopDisk
  readonly load: Subject['load']
  readonly inFlightCuts: number
  cutUnderLoad(): Promise<void>
  /** Power back on: mounts, starts, sends again what is unknown, reads everything. */
  recover(settle?: boolean): Promise<Findings>
  end(): Promise<void>
}

async function newRig(context: ProofContext, fileSystem: FileSystem, weakness: Weakness | null): Promise<Rig> {
  const name = `${fileSystem}${weakness ? `-${weakness.name}` : ''}`
  const disk = await LoopDisk.create(context, fileSystem, name)
  const database = await databaseOn(disk.folder, context, weakness)
  let onAcknowledged = () => {}
  const subject = await newSubject(context, {
    name,
    service: { databaseUrl: database.url, env: database.env },
    load: { onTrouble: 'end', onAcknowledged: () => onAcknowledged() },
  })
  const { service, load } = subject
  // The tokens are there after every cut, of a control too: what it loses are messages.
  await disk.sync()
  let isOff = false
  let inFlightCuts = 0
  return {
    disk,
    load,
    get inFlightCuts() {
      return inFlightCuts
    },
    async cutUnderLoad() {
      let left = LEAST_ACKNOWLEDGED + context.random.below(400)
      const reached = Promise.withResolvers<void>()
      onAcknowledged = () => {
        left -= 1
        if (left === 0) reached.resolve()
      }
      const cut = await disk.armCut()
      const running = load.run()
      await Promise.race([reached.promise, running.then(() => endedEarly(service.log))])
      // Some turns later, so that not every cut falls on the same point of a commit; and on requests in flight.
      for (let turns = context.random.below(12); turns > 0 || load.inFlight === 0; turns -= 1) {
        if (turns < -MAX_TURNS) break
        await setImmediate()
      }
      if (load.inFlight > 0) inFlightCuts += 1
      service.pause()
      await cut()
      isOff = true
      await Promise.all([service.kill(), database.kill()])
      await running
    },
    async recover(settle = true) {
      if (isOff) await disk.restart()
      isOff = false
      await database.start()
      if (!service.isRunning) await service.start()
      if (settle) await load.settle()
      return subject.check()
    },
    async end() {
      await service.kill()
      await database.kill()
      await disk.unmount()
    },
  }
}

function endedEarly(log: string): never {
  throw new Error(`the senders ended before the cut: ${log.slice(-1000)}`)
}

function firstLine(error: unknown): string {
  return String(error instanceof Error ? error.message : error)
    .trim()
    .split('\n')[0]!
    .slice(0, 200)
}
