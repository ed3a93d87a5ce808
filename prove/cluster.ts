// A real PostgreSQL cluster of three nodes that fails over by itself: Patroni and etcd as Debian packages them. A node is
// a network namespace with an etcd member, Patroni and PostgreSQL in it, so that a fault hits it whole, as it hits a machine.
// Promises: the machine's own network and firewall rules are left as they are, but for one bridge that is removed again;
// nothing of it runs as root; all of it is ended by process id.

import { execFileSync, spawn } from 'node:child_process'
import { appendFileSync, chmodSync, chownSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hasProgram, postgresBin, requirePackages, requireRoot } from './debian.ts'

const NOBODY = 65534
const PACKAGES = ['postgresql', 'patroni', 'python3-etcd', 'etcd-server', 'iptables', 'iproute2', 'util-linux'] as const
const LOOK_EVERY_MS = 100
/** The least that Patroni takes. A leader that is gone is replaced after this long. */
const TTL_SECONDS = 20

export interface ClusterOptions {
  readonly folder: string
  /** false: a standby may lag, so that a failover may lose what was acknowledged. For the control. */
  readonly synchronous: boolean
}

interface Member {
  readonly name: string
  readonly role: string
  readonly state: string
  readonly timeline?: number
}

export class ClusterNode {
  readonly name: string
  readonly address: string
  readonly namespace: string

  constructor(name: string, address: string, namespace: string) {
    this.name = name
    this.address = address
    this.namespace = namespace
  }

  /** Every process on it, as the kernel knows them. */
  pids(): number[] {
    return run('ip', ['netns', 'pids', this.namespace]).split('\n').filter(Boolean).map(Number)
  }

  signal(signal: NodeJS.Signals): number {
    const pids = this.pids()
    for (const pid of pids) {
      try {
        process.kill(pid, signal)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
      }
    }
    return pids.length
  }
}

export function requireCluster(proof: string, progress: (line: string) => void): void {
  requireRoot(proof, 'for network namespaces')
  const isThere = () =>
    postgresBin() !== null && ['patroni', 'etcd', 'iptables', 'ip', 'nsenter', 'setpriv'].every(hasProgram)
  requirePackages({ proof, packages: PACKAGES, isThere }, progress)
}

export class Cluster {
  readonly nodes: readonly ClusterNode[]
  readonly #options: ClusterOptions
  readonly #bridge: string

  constructor(options: ClusterOptions) {
    this.#options = options
    const id = process.pid % 10_000
    const subnet = `10.213.${process.pid % 250}`
    this.#bridge = `itr${id}`
    this.nodes = [1, 2, 3].map((n) => new ClusterNode(`n${n}`, `${subnet}.1${n}`, `itr${id}n${n}`))
    this.#createNetwork(`${subnet}.1`)
  }

  url(database: string): string {
    return `postgres://postgres:secret@${this.nodes.map(({ address }) => `${address}:5432`).join(',')}/${database}`
  }

  /** Resolves when there is a leader, and two that follow it. */
  async start(): Promise<void> {
    for (const node of this.nodes) this.startNode(node)
    await this.untilWhole()
  }

  startNode(node: ClusterNode): void {
    const folder = join(this.#options.folder, node.name)
    const isNew = !existsSync(folder)
    if (isNew) {
      mkdirSync(join(folder, 'etcd'), { recursive: true, mode: 0o700 })
      mkdirSync(join(folder, 'run'), { mode: 0o700 })
      writeFileSync(join(folder, 'patroni.json'), JSON.stringify(this.#patroniSettings(node, folder)))
      for (const name of ['.', 'etcd', 'run', 'patroni.json']) chownSync(join(folder, name), NOBODY, NOBODY)
      // The user of the node must be able to enter the folder.
      chmodSync(this.#options.folder, 0o711)
    }
    this.#spawn(node, folder, 'etcd', this.#etcdArguments(node, folder))
    this.#spawn(node, folder, 'patroni', [join(folder, 'patroni.json')])
  }

  /** The node that holds the leader's key, as itself says. */
  async leader(among: readonly ClusterNode[] = this.nodes): Promise<ClusterNode | null> {
    const answers = await Promise.all(among.map((node) => ask(node, '/leader')))
    return among.find((_, index) => answers[index]?.ok) ?? null
  }

  async untilLeader(among: readonly ClusterNode[], deadlineMs = 120_000): Promise<ClusterNode> {
    return until('another node leads', () => this.leader(among), deadlineMs)
  }

  async untilWhole(deadlineMs = 180_000): Promise<void> {
    await until('the cluster is whole', () => this.#isWhole(), deadlineMs)
  }

  /** The two that follow have what the leader has. Where no commit waits for them, they may begin with it late. */
  async untilStreaming(deadlineMs = 60_000): Promise<void> {
    const count = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"
    const isStreaming = async (): Promise<boolean> => {
      const leader = await this.leader()
      const url = `postgres://postgres:secret@${leader?.address}:5432/postgres`
      return leader !== null && run('psql', [url, '-Atc', count]).trim() === '2'
    }
    await until('two nodes stream from the leader', isStreaming, deadlineMs)
  }

  /** Blocks all traffic between this node and the two others; clients still reach all three. */
  partition(node: ClusterNode): void {
    for (const { address } of this.nodes.filter((other) => other !== node)) {
      inside(node, ['iptables', '-w', '-A', 'INPUT', '-s', address, '-j', 'DROP'])
      inside(node, ['iptables', '-w', '-A', 'OUTPUT', '-d', address, '-j', 'DROP'])
    }
  }

  /** How many packets the partition swallowed. */
  droppedPackets(node: ClusterNode): number {
    return inside(node, ['iptables', '-w', '-nvxL'])
      .split('\n')
      .filter((line) => line.includes('DROP'))
      .reduce((sum, line) => sum + Number(/^\s*(\d+)/.exec(line)?.[1] ?? 0), 0)
  }

  heal(node: ClusterNode): void {
    inside(node, ['iptables', '-w', '-F'])
  }

  /** Ends everything and takes the network away. Calling it again is fine. */
  async stop(): Promise<void> {
    for (const node of this.nodes) {
      if (!namespaceExists(node)) continue
      // A process may be starting another one at this moment.
      await until('the node is empty', () => node.signal('SIGKILL') === 0, 30_000)
      run('ip', ['netns', 'delete', node.namespace])
    }
    // By themselves the links would go only when the last half-closed connection of a node has timed out.
    const links = run('ip', ['-o', 'link']).matchAll(/^\d+: ([^:@]+)/gm)
    const own = [...links].map(([, name]) => name!).filter((name) => this.#isOwnLink(name))
    for (const name of own) run('ip', ['link', 'delete', name])
  }

  #isOwnLink(name: string): boolean {
    return name === this.#bridge || this.nodes.some(({ namespace }) => name === `${namespace}v`)
  }

  async #isWhole(): Promise<boolean> {
    const leader = await this.leader()
    const answer = leader && (await ask(leader, '/cluster'))
    if (!answer) return false
    const { members } = JSON.parse(answer.text) as { members: Member[] }
    const leading = members.find(({ role }) => role === 'leader')
    const following = members.filter(({ role, state }) => role !== 'leader' && /^(running|streaming)$/.test(state))
    const isCurrent = following.every(({ timeline }) => timeline === leading?.timeline)
    const hasStandby = !this.#options.synchronous || members.some(({ role }) => role === 'sync_standby')
    return leading?.state === 'running' && following.length === 2 && isCurrent && hasStandby
  }

  #createNetwork(address: string): void {
    run('ip', ['link', 'add', this.#bridge, 'type', 'bridge'])
    run('ip', ['address', 'add', `${address}/24`, 'dev', this.#bridge])
    run('ip', ['link', 'set', this.#bridge, 'up'])
    for (const node of this.nodes) {
      const link = `${node.namespace}v`
      run('ip', ['netns', 'add', node.namespace])
      run('ip', ['link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', node.namespace])
      run('ip', ['link', 'set', link, 'master', this.#bridge, 'up'])
      inside(node, ['ip', 'address', 'add', `${node.address}/24`, 'dev', 'eth0'])
      for (const device of ['lo', 'eth0']) inside(node, ['ip', 'link', 'set', device, 'up'])
    }
  }

  #spawn(node: ClusterNode, folder: string, program: string, args: readonly string[]): void {
    const asNobody = ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups', program, ...args]
    const child = spawn('nsenter', [`--net=/run/netns/${node.namespace}`, ...asNobody], {
      cwd: '/',
      env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8', HOME: folder, ETCD_UNSUPPORTED_ARCH: process.arch },
      // A session of its own: a Ctrl-C is for the harness, which then ends it.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) =>
        appendFileSync(join(this.#options.folder, `${node.name}.${program}.log`), chunk),
      )
    }
    child.on('error', () => {})
    child.unref()
  }

  #etcdArguments(node: ClusterNode, folder: string): string[] {
    const peers = this.nodes.map(({ name, address }) => `${name}=http://${address}:2380`).join(',')
    return Object.entries({
      name: node.name,
      'data-dir': join(folder, 'etcd'),
      'listen-peer-urls': `http://${node.address}:2380`,
      'initial-advertise-peer-urls': `http://${node.address}:2380`,
      'listen-client-urls': `http://${node.address}:2379`,
      'advertise-client-urls': `http://${node.address}:2379`,
      'initial-cluster': peers,
      // Patroni 3.0.2 writes the leader's key without a compare through the v3 interface, and so lets a leader that was paused
      // overwrite its successor: 10,026 of 24,610 acknowledged rows were lost that way. Through v2 it compares.
      'enable-v2': 'true',
    }).map(([name, value]) => `--${name}=${value}`)
  }

  #patroniSettings({ name, address }: ClusterNode, folder: string): object {
    const { synchronous } = this.#options
    const superuser = { username: 'postgres', password: 'secret' }
    return {
      scope: 'intray',
      name,
      restapi: { listen: `${address}:8008`, connect_address: `${address}:8008` },
      etcd: { hosts: this.nodes.map((node) => `${node.address}:2379`) },
      bootstrap: {
        dcs: {
          ttl: TTL_SECONDS,
          loop_wait: 2,
          retry_timeout: 5,
          maximum_lag_on_failover: 1_073_741_824,
          synchronous_mode: synchronous,
          synchronous_mode_strict: synchronous,
          postgresql: { use_pg_rewind: true, parameters: { wal_log_hints: 'on', wal_keep_size: '512MB' } },
        },
        initdb: [{ encoding: 'UTF8' }, { locale: 'C' }],
        pg_hba: ['host all all 0.0.0.0/0 trust', 'host replication all 0.0.0.0/0 trust', 'local all all trust'],
      },
      postgresql: {
        listen: `${address}:5432`,
        connect_address: `${address}:5432`,
        data_dir: join(folder, 'data'),
        bin_dir: postgresBin(),
        pgpass: join(folder, 'pgpass'),
        authentication: { superuser, replication: { username: 'replicator', password: 'secret' }, rewind: superuser },
        parameters: { unix_socket_directories: join(folder, 'run'), shared_buffers: '32MB' },
      },
      tags: { nofailover: false },
    }
  }
}

async function ask({ address }: ClusterNode, path: string): Promise<{ ok: boolean; text: string } | null> {
  try {
    const answer = await fetch(`http://${address}:8008${path}`, { signal: AbortSignal.timeout(2000) })
    return { ok: answer.ok, text: await answer.text() }
  } catch {
    return null
  }
}

async function until<T>(what: string, look: () => T | Promise<T>, deadlineMs: number): Promise<NonNullable<T>> {
  const deadline = Date.now() + deadlineMs
  for (;;) {
    const found = await look()
    if (found) return found
    if (Date.now() > deadline) throw new Error(`waited ${deadlineMs / 1000} s in vain until ${what}`)
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
  }
}

function inside(node: ClusterNode, command: readonly string[]): string {
  return run('nsenter', [`--net=/run/netns/${node.namespace}`, ...command])
}

function namespaceExists(node: ClusterNode): boolean {
  return existsSync(join('/run/netns', node.namespace))
}

function run(command: string, args: readonly string[]): string {
  return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}
