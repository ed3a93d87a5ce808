// A real PostgreSQL server for tests: data in a temporary folder, a free port on 127.0.0.1, gone with the process that
// started it, however that ends (its shell waits for the end of its own standard input).

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { childrenOf } from '../children.ts'
import { removeFolder, tempFolder } from '../temp.ts'
import { DEADLINE_MS, until } from '../until.ts'
import { type Binaries, isRoot, NOBODY, prepareBinaries } from './binaries.ts'

const run = promisify(execFile)
const identity = isRoot ? { uid: NOBODY, gid: NOBODY } : {}

/** Without syncs: what these tests prove does not hang on the disk. A test of durability sets them on again. */
const QUICK: Settings = { fsync: 'off', full_page_writes: 'off', max_wal_senders: '0', wal_level: 'minimal' }
const COMMON: Settings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '200',
  shared_buffers: '64MB',
  autovacuum_naptime: '1h',
  log_min_messages: 'fatal',
  // In its data folder, and gone with it: a server that is killed would leave it behind in /dev/shm.
  dynamic_shared_memory_type: 'mmap',
}

/** The folder of the cluster that the global set-up made for all test files to copy. */
export const TEMPLATE_VARIABLE = 'TEST_POSTGRES_TEMPLATE'

export type Settings = Readonly<Record<string, string>>

export interface PostgresServer {
  readonly port: number
  /** The process id of the postmaster. */
  readonly pid: number
  readonly dataFolder: string
  /** The URL of a database of this server. */
  url(database: string): string
  /** What the server wrote to its log. */
  log(): string
  /** Ends it at once, without a shutdown. */
  kill(): Promise<void>
  /** Shuts it down as an operator would: connections are closed, everything is written. */
  stop(): Promise<void>
  /** SIGKILL to every process of it, so that none does anything more: what a power cut leaves of a machine. */
  crash(): Promise<void>
}

/** Writes a new cluster into a folder and returns it: a server, or a copy of one, starts from there. */
export async function createCluster(folder = tempFolder('postgres')): Promise<string> {
  chmodSync(folder, 0o755)
  const binaries = prepareBinaries(folder)
  const data = join(folder, 'data')
  mkdirSync(data, { mode: 0o700 })
  if (isRoot) chownSync(data, NOBODY, NOBODY)
  const locale = ['-E', 'UTF8', ...binaries.locale]
  await run(binaries.initdb, ['-D', data, '-U', 'intray', '-A', 'trust', '--no-sync', ...locale], {
    env: binaries.env,
    cwd: '/',
    ...identity,
  })
  return folder
}

/** A copy of a cluster whose server does not run. */
export async function copyCluster(folder: string): Promise<string> {
  const copy = tempFolder('postgres')
  chmodSync(copy, 0o755)
  // cp keeps the owner, which PostgreSQL checks; on file systems that can, the copy shares its blocks with the original.
  await run('cp', ['-a', join(folder, 'data'), copy])
  return copy
}

/** A cluster for a test: a copy of the run's template (about 40 ms), or a new one where a file runs without one. */
export async function newCluster(): Promise<string> {
  const template = process.env[TEMPLATE_VARIABLE]
  return template === undefined ? createCluster() : copyCluster(template)
}

/** Starts a server on a cluster and waits until it takes connections: on a free port, or on one it had before. */
export async function startPostgres(
  folder: string,
  settings: Settings = QUICK,
  port?: number,
): Promise<PostgresServer> {
  const binaries = prepareBinaries(process.env[TEMPLATE_VARIABLE] ?? folder)
  if (port !== undefined) return startOn(port, folder, binaries, settings)
  // Another process may take the port between our look and the start.
  for (let attempt = 0; ; attempt++) {
    try {
      return await startOn(await freePort(), folder, binaries, settings)
    } catch (error) {
      if (attempt === 4) throw error
    }
  }
}

/** A cluster and its server in one. */
export async function newPostgres(settings?: Settings): Promise<PostgresServer> {
  return startPostgres(await newCluster(), settings)
}

/** Ends the server and removes its cluster when this process exits. */
export function removeOnExit({ pid, dataFolder }: PostgresServer): void {
  process.prependOnceListener('exit', () => {
    signalAll([pid], 'SIGQUIT')
    removeFolder(dirname(dataFolder))
  })
}

// The server dies with us: `cat` ends when our end of the pipe is gone, whoever killed us.
const SHELL = '"$@" </dev/null & p=$!; echo "pid $p"; cat >/dev/null; kill -QUIT $p; wait $p'

async function startOn(port: number, folder: string, binaries: Binaries, settings: Settings): Promise<PostgresServer> {
  const dataFolder = join(folder, 'data')
  const options = Object.entries({ ...COMMON, ...settings, port: String(port) }).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ])
  const child = spawn('sh', ['-c', SHELL, 'sh', binaries.postgres, '-D', dataFolder, ...options], {
    env: binaries.env,
    cwd: '/',
    stdio: ['pipe', 'pipe', 'pipe'],
    ...identity,
  })
  let log = ''
  const pid = Promise.withResolvers<number>()
  child.stdout.on('data', (chunk: Buffer) => pid.resolve(Number(/pid (\d+)/.exec(chunk.toString())?.[1])))
  child.stderr.on('data', (chunk: Buffer) => (log = `${log}${chunk}`.slice(-100_000)))
  const ended = once(child, 'close')
  const postmaster = await pid.promise
  const streams = [child.stdin, child.stdout, child.stderr] as unknown as readonly net.Socket[]
  const kill = async () => {
    // Otherwise a process that waits for nothing else would end before this does.
    for (const handle of [child, ...streams]) handle.ref()
    child.stdin.end()
    await ended
  }
  const server: PostgresServer = {
    port,
    pid: postmaster,
    dataFolder,
    url: (database) => `postgres://intray@127.0.0.1:${port}/${database}`,
    log: () => log,
    kill,
    stop: async () => {
      process.kill(postmaster, 'SIGINT')
      await until('PostgreSQL has shut down', () => !existsSync(join(dataFolder, 'postmaster.pid')))
      await kill()
    },
    crash: async () => {
      // Stopped first, so that it starts no further process while we count them.
      process.kill(postmaster, 'SIGSTOP')
      signalAll(childrenOf(postmaster), 'SIGKILL')
      process.kill(postmaster, 'SIGKILL')
      await kill()
    },
  }
  child.stdin.on('error', () => {})
  await untilListening(server, child)
  // Nothing here keeps a test process from ending: its end is what stops the server.
  for (const handle of [child, ...streams]) handle.unref()
  return server
}

function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal)
    } catch (error) {
      // A backend may end by itself meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}

async function untilListening(server: PostgresServer, child: ChildProcess): Promise<void> {
  const deadline = Date.now() + DEADLINE_MS
  while (!takesConnections(server)) {
    if (child.exitCode !== null || !isAlive(server.pid) || Date.now() > deadline) {
      await server.kill()
      throw new Error(`PostgreSQL did not start: ${server.log()}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/**
 * What the server says of itself in its lock file, which is what pg_ctl waits for. A connection to the port would not do:
 * another file's server may have taken the port first.
 */
function takesConnections({ pid, dataFolder }: PostgresServer): boolean {
  try {
    const lines = readFileSync(join(dataFolder, 'postmaster.pid'), 'latin1').split('\n')
    return Number(lines[0]) === pid && ['ready', 'standby'].includes(lines[7]?.trim() ?? '')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return false
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = net.createServer()
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as net.AddressInfo
      probe.close(() => resolve(port))
    })
  })
}

/** Makes the folder of a cluster a standby of another server. */
export function makeStandby(folder: string, conninfo: string): void {
  const data = join(folder, 'data')
  for (const [name, text] of [
    ['standby.signal', ''],
    ['postgresql.auto.conf', `primary_conninfo = '${conninfo}'\n`],
  ] as const) {
    writeFileSync(join(data, name), text)
    if (isRoot) chownSync(join(data, name), NOBODY, NOBODY)
  }
}
