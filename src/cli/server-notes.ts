// Notes that running servers leave for commands of the same user: where a server listens and which database it uses. A command that finds
// no database says which servers run; it never takes another database by itself, since it might change the wrong one.
//
// A note is $XDG_STATE_HOME/intray/servers/<pid>.json (~/.local/state without the variable), readable by its user only and without a
// password. It holds when the process started, so that the note of a server that was killed is not taken for one of a later process with
// the same pid.

import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import type { Config } from '../config.ts'
import { errorText, type Logger } from '../runtime/log.ts'
import { publicUrl } from '../store/open.ts'

export interface RunningServer {
  readonly pid: number
  readonly address: string
  /** Its URL without a password. */
  readonly database: string
}

interface Note extends RunningServer {
  /** When the process started, as the system tells it. */
  readonly started: string
}

/** Leaves the note of this server, until its process exits. Without it the server works as well, for instance where no folder of the user is. */
export function leaveServerNote(address: string, { databaseUrl }: Pick<Config, 'databaseUrl'>, logger: Logger): void {
  try {
    writeNote(address, databaseUrl)
  } catch (error) {
    logger.info('this server leaves no note for commands in other folders: the note cannot be written', {
      error: errorText(error),
    })
  }
}

function writeNote(address: string, databaseUrl: string): void {
  const folder = notesFolder()
  const { pid } = process
  const path = join(folder, `${pid}.json`)
  const note: Note = { pid, address, database: publicUrl(databaseUrl), started: startOf(pid) }
  makeFolder(folder)
  removeStaleNotes(folder)
  // Written aside and renamed: a command never reads half of it.
  writeFileSync(`${path}.part`, `${JSON.stringify(note)}\n`, { mode: 0o600 })
  renameSync(`${path}.part`, path)
  process.once('exit', () => removeNote(path))
}

/** Servers of this user that run now. */
export function runningServers(): RunningServer[] {
  try {
    const folder = notesFolder()
    return namesIn(folder).flatMap((name) => readNote(join(folder, name)) ?? [])
  } catch {
    // This user has no home folder.
    return []
  }
}

/** A server of this user that runs on the database now. */
export function serverOf(databaseUrl: string): RunningServer | null {
  const database = publicUrl(databaseUrl)
  return runningServers().find((server) => server.database === database) ?? null
}

function notesFolder(): string {
  const given = process.env.XDG_STATE_HOME
  const state = given !== undefined && isAbsolute(given) ? given : join(homedir(), '.local', 'state')
  return join(state, 'intray', 'servers')
}

function removeStaleNotes(folder: string): void {
  for (const name of namesIn(folder)) {
    if (readNote(join(folder, name)) === null) removeNote(join(folder, name))
  }
}

/** Not `recursive`: with that, Node never returns where the system answers ENOENT although the parent is there, as in /proc. */
function makeFolder(path: string): void {
  if (existsSync(path)) return
  makeFolder(dirname(path))
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    // Another server may start now.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** A note that stays does no harm, and must not change how the server ends. */
function removeNote(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {
    // The folder is not writable any more.
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => /^\d+\.json$/.test(name))
  } catch {
    return []
  }
}

/** Null for a note that cannot be read or whose server is gone. */
function readNote(path: string): RunningServer | null {
  try {
    const { pid, address, database, started } = JSON.parse(readFileSync(path, 'utf8')) as Note
    const isComplete = typeof address === 'string' && typeof database === 'string'
    return isComplete && startOf(pid) === started ? { pid, address, database } : null
  } catch {
    return null
  }
}

/** Throws if there is no such process. */
function startOf(pid: number): string {
  if (process.platform !== 'linux') {
    // `ps` ends with 1 if there is no such process.
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim()
  }
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The 22nd field, in ticks since the boot. The second one is the program's name in brackets, which may hold spaces.
  const ticks = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${ticks}`
}
