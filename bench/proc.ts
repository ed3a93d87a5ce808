// Process and machine statistics from /proc.
// Promises: null where there is no /proc (macOS) or the process is gone; never throws.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

/** USER_HZ: fixed at 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100

function read(path: string): string | null {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return null
  }
}

function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      (read(`/proc/${pid}/task/${thread}/children`) ?? '').split(' ').filter(Boolean).map(Number),
    )
  } catch {
    return []
  }
}

/** CPU seconds of a process and its descendants, all threads, user and system. */
function cpuSeconds(pid: number): number | null {
  const stat = read(`/proc/${pid}/stat`)
  if (stat === null) return null
  // The second field is the command in parentheses and may contain spaces: fields are counted from behind it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const own = (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
  return childrenOf(pid).reduce((sum, child) => sum + (cpuSeconds(child) ?? 0), own)
}

/** Of several processes; null if one of them is gone. */
export function cpuSecondsOf(pids: readonly number[]): number | null {
  const all = pids.map(cpuSeconds)
  return all.includes(null) ? null : all.reduce<number>((sum, one) => sum + (one ?? 0), 0)
}

/** Resident memory of a process in MiB. */
export function residentMiB(pid: number): number | null {
  const kib = /^VmRSS:\s+(\d+) kB/m.exec(read(`/proc/${pid}/status`) ?? '')?.[1]
  return kib === undefined ? null : Number(kib) / 1024
}

/**
 * Sum of the peak resident memory of a process and each of its descendants, in MiB, since their start or
 * `resetPeakResident`.
 */
export function peakResidentMiB(pid: number): number | null {
  const kib = /^VmHWM:\s+(\d+) kB/m.exec(read(`/proc/${pid}/status`) ?? '')?.[1]
  if (kib === undefined) return null
  return childrenOf(pid).reduce((sum, child) => sum + (peakResidentMiB(child) ?? 0), Number(kib) / 1024)
}

/** Sets the peak of a process and its descendants to their current use, where the kernel allows it. */
export function resetPeakResident(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5')
  } catch {
    // The peak then counts from the start of the process.
  }
  for (const child of childrenOf(pid)) resetPeakResident(child)
}

export interface MachineTicks {
  readonly all: number
  readonly idle: number
  readonly steal: number
}

/** Ticks of all cores since boot; `steal` is time that the hypervisor gave to other guests. */
export function machineTicks(): MachineTicks | null {
  const line = read('/proc/stat')?.split('\n', 1)[0]
  if (line === undefined) return null
  const ticks = line.trim().split(/\s+/).slice(1, 9).map(Number)
  const [, , , idle = 0, ioWait = 0, , , steal = 0] = ticks
  return { all: ticks.reduce((sum, tick) => sum + tick, 0), idle: idle + ioWait, steal }
}

/** The share of the machine's time that was stolen between two readings. */
export function stealShare(before: MachineTicks | null, after: MachineTicks | null): number | null {
  if (!before || !after || after.all === before.all) return null
  return (after.steal - before.steal) / (after.all - before.all)
}

/**
 * If more than this share of the time is stolen, a rate shows the machine's neighbours: it is measured again, whatever
 * it was.
 */
export const MAX_STEAL_SHARE = 0.05

export function isDisturbed({ stealShare }: { readonly stealShare: number | null }): boolean {
  return (stealShare ?? 0) > MAX_STEAL_SHARE
}

/** CPU seconds that this machine's own processes used between two readings. */
export function busySeconds(before: MachineTicks | null, after: MachineTicks | null): number | null {
  if (!before || !after) return null
  const notBusy = after.idle - before.idle + after.steal - before.steal
  return (after.all - before.all - notBusy) / TICKS_PER_SECOND
}
