// The calls that can be made to fail on SQLite: the syncs and writes of the threads that write the journal and the index, by
// strace. Every strike is on a copy of a database that is near a checkpoint.

import { join } from 'node:path'
import type { NearCheckpoint } from './near-checkpoint.ts'
import type { ProofContext } from './proof.ts'
import type { Service } from './service.ts'
import { type Injection, injectedErrors, injectedKill, Strace, SYNCS, WRITES } from './strace.ts'
import type { Fault, Injector, Part, Prepared, Target } from './strike.ts'

export interface SyscallFault extends Fault {
  readonly calls: readonly string[]
  readonly what: string
}

export const SYSCALL_FAULTS: readonly SyscallFault[] = [
  { name: 'kill at a sync', calls: SYNCS, what: 'signal=KILL', must: 'is killed' },
  { name: 'kill at a write', calls: WRITES, what: 'signal=KILL', must: 'is killed' },
  { name: 'EIO at a sync', calls: SYNCS, what: 'error=EIO', must: 'ends by itself' },
  { name: 'EIO at a write', calls: WRITES, what: 'error=EIO', must: 'ends by itself' },
  { name: 'ENOSPC at a write', calls: WRITES, what: 'error=ENOSPC', must: 'goes on' },
]

/** How Node names the threads of its workers: the one that writes the journal and the one that writes the index. */
const WRITERS = 'WorkerThread'

const FILES: Readonly<Record<Part, readonly string[]>> = {
  journal: ['intray.db', 'intray.db-wal'],
  index: ['intray.index.db', 'intray.index.db-wal'],
}

export function sqliteTarget(context: Pick<ProofContext, 'folder'>, template: NearCheckpoint): Target<SyscallFault> {
  const { token, processorToken, env } = template
  return {
    token,
    processorToken,
    env,
    prepare: async (): Promise<Prepared<SyscallFault>> => {
      const folder = join(context.folder, 'struck')
      const databaseUrl = template.copyTo(folder)
      return {
        folder,
        struckUrl: databaseUrl,
        plainUrl: databaseUrl,
        start: (service) => template.startOn(folder, service),
        arm: (service, _load, { fault, nth, part = 'journal' }) => arm(service, folder, fault, nth, part),
        close: async () => {},
      }
    },
  }
}

async function arm(
  service: Service,
  folder: string,
  { calls, what }: SyscallFault,
  nth: number,
  part: Part,
): Promise<Injector> {
  const strace = await Strace.attach({
    pid: service.pid,
    thread: WRITERS,
    files: FILES[part].map((name) => join(folder, name)),
    output: join(folder, 'strace'),
    calls: [...SYNCS, ...WRITES],
    inject: { calls, what, nth },
  })
  return {
    hasStruck: () => strace.read().includes('(INJECTED)'),
    end: async (isOver) => {
      await (isOver ? strace.ended() : strace.end())
      const seen = strace.read()
      const found =
        what === 'signal=KILL' ? [injectedKill(seen, calls, nth)].filter((one) => one !== null) : injectedErrors(seen)
      const atCheckpoint = found.some((one) => isOfCheckpoint(seen, one))
      const place = atCheckpoint ? 'checkpoint' : part === 'index' ? 'index batch' : 'commit'
      return { injected: found.length, place }
    },
  }
}

/** A write to the database file, its sync, or the sync of a WAL to which nothing was written since the last one. */
function isOfCheckpoint(seen: string, { file, line }: Injection): boolean {
  if (file.endsWith('.db')) return true
  let unsynced = 0
  for (const one of seen.split('\n')) {
    const isSync = SYNCS.some((call) => one.includes(`${call}(`))
    if (one === line) return isSync && unsynced === 0
    if (!one.includes('-wal>')) continue
    unsynced = isSync ? 0 : unsynced + 1
  }
  return false
}
