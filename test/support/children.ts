// The processes that a process started, as the system knows them.

import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'

/** The process ids of the children of a process; those that have ended and were not yet collected are left out. */
export function childrenOf(parent: number): number[] {
  return processes()
    .filter(({ parentPid, state }) => parentPid === parent && state !== 'Z')
    .map(({ pid }) => pid)
}

/** Whether a process is there and has not ended. */
export function isRunning(pid: number): boolean {
  return processes().some((one) => one.pid === pid && one.state !== 'Z')
}

/** Whether SIGSTOP has taken effect. */
export function isStopped(pid: number): boolean {
  return processes().some((one) => one.pid === pid && one.state === 'T')
}

interface Process {
  readonly pid: number
  readonly parentPid: number
  /** One letter: Z has ended, T is stopped. */
  readonly state: string
}

function processes(): Process[] {
  if (!existsSync('/proc/self/stat')) return listed()
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        // pid (name of the program, with whatever characters it has) state parent …
        const text = readFileSync(`/proc/${name}/stat`, 'latin1')
        const [state, parentPid] = text.slice(text.lastIndexOf(')') + 2).split(' ')
        return [{ pid: Number(name), parentPid: Number(parentPid), state: state! }]
      } catch {
        return [] // It ended while we looked.
      }
    })
}

/** Where there is no /proc. */
function listed(): Process[] {
  return execFileSync('ps', ['-A', '-o', 'pid=,ppid=,stat='], { encoding: 'latin1' })
    .trim()
    .split('\n')
    .map((line) => {
      const [pid, parentPid, state] = line.trim().split(/\s+/)
      return { pid: Number(pid), parentPid: Number(parentPid), state: state![0]! }
    })
}
