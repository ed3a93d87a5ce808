// `prove failover`: the leader of a real three-node PostgreSQL cluster (Patroni, etcd) is killed, paused and resumed, or cut
// off from the two others, while two Intray nodes store groups of messages. A cycle is one of each.
// Claim: nothing acknowledged is lost, doubled or altered, and the same processes go on with the new leader by themselves.
// Control: the same cluster without synchronous replication, its leader cut off, must be found to have lost messages.

import { chmodSync } from 'node:fs'
import { Cluster, type ClusterNode, requireCluster } from '../cluster.ts'
import { FEW, GROUP_CONNECTIONS, readAppends, sendInGroups, Strikes, untilGroupInFlight } from '../group-commit.ts'
import type { ControlResult, Proof, ProofContext } from '../proof.ts'
import type { Random } from '../random.ts'
import { Service } from '../service.ts'
import { brokenIn, inWords, newSubject, type Subject } from '../subject.ts'

const KINDS = ['killed', 'paused', 'partitioned'] as const
type Kind = (typeof KINDS)[number]

const NODES = 2
/** Between two groups: the nodes take messages faster than they can be read back one by one. */
const PAUSE_MS = 100
/** Messages that the new leader must take before a round counts as over. */
const AFTERWARDS = 200
const BEFORE = 200
const ROUND_LIMIT_MS = 240_000
/** So many messages a leader that was cut off and does not know it takes in the control. */
const CONTROL_MESSAGES = 100

export const failover: Proof = {
  name: 'failover',
  about: 'leader of a three-node PostgreSQL cluster killed, paused, partitioned',
  needs: 'root; postgresql, patroni and etcd-server of Debian, which it installs',
  stores: ['postgres'],
  defaultCycles: 3,
  faults: KINDS,
  async run(context) {
    requireCluster('failover', context.progress)
    const rig = await newRig(context, true)
    const notes: string[] = []
    const broken: string[] = []
    const strikes = new Strikes('a strike, for each node')
    let faults = 0
    rig.startSending()
    for (let cycle = 1; cycle <= context.cycles; cycle += 1) {
      for (const kind of KINDS.filter((name) => name.includes(context.only))) {
        const round = await failOver(rig, kind, strikes, context.random)
        faults += 1
        notes.push(`${kind} ${cycle}: ${round}`)
        context.progress(`${kind} ${cycle}: ${round}; ${rig.load.acknowledged} answers of 2xx`)
      }
    }
    await rig.stopSending()
    context.progress('reading everything back')
    const findings = await rig.check()
    broken.push(...brokenIn(findings), ...rig.ended())
    for (const text of await rig.metrics()) strikes.appended(readAppends(text))
    notes.push(...strikes.notes())
    broken.push(...strikes.problems())
    await rig.stop()
    return { counts: { ...findings.counts, faults }, notes, broken, controls: [await control(context)] }
  },
}

interface Rig {
  readonly cluster: Cluster
  readonly load: Subject['load']
  check: Subject['check']
  /** Starts the senders; they send the same message again until it is acknowledged. */
  startSending(): void
  /** Resolves when everything that was sent is acknowledged. */
  stopSending(): Promise<void>
  /** Of each service that runs. */
  metrics(): Promise<string[]>
  /** Which services have ended meanwhile. */
  ended(): string[]
  stop(): Promise<void>
}

async function newRig(context: ProofContext, synchronous: boolean): Promise<Rig> {
  const name = synchronous ? 'failover' : 'control'
  // The cluster runs as another user, who has to get to its folder.
  chmodSync(context.folder, 0o711)
  const cluster = new Cluster({ folder: `${context.folder}/${name}`, synchronous })
  context.onCleanup(() => cluster.stop())
  context.progress('starting three nodes')
  await cluster.start()
  const databaseUrl = cluster.url('postgres')
  const services: Service[] = []
  const subject = await newSubject(context, {
    name,
    service: { databaseUrl, hasMetrics: true },
    load: {
      onTrouble: 'resend',
      connections: GROUP_CONNECTIONS,
      port: (sender) => services[sender % services.length]!.port,
      onAcknowledged: () => {},
    },
  })
  services.push(subject.service)
  while (services.length < NODES) services.push(new Service(context, { databaseUrl, hasMetrics: true }))
  for (const service of services) await service.start()
  let isOver = false
  let sending = Promise.resolve()
  return {
    cluster,
    load: subject.load,
    check: subject.check,
    startSending: () => {
      sending = sendInGroups(subject.load, () => isOver, PAUSE_MS)
    },
    stopSending: async () => {
      isOver = true
      await sending
      await subject.load.settle()
    },
    metrics: () => Promise.all(services.filter(({ isRunning }) => isRunning).map((service) => service.metrics())),
    ended: () => services.filter(({ isRunning }) => !isRunning).map(({ log }) => `a node ended: ${log.slice(-300)}`),
    stop: async () => {
      for (const service of services) await service.kill()
      await cluster.stop()
    },
  }
}

/** One fault, from a whole cluster to a whole cluster. Returns what happened, in words. */
async function failOver({ cluster, load }: Rig, kind: Kind, strikes: Strikes, random: Random): Promise<string> {
  await acknowledged(load, BEFORE)
  const leader = (await cluster.leader())!
  const others = cluster.nodes.filter((node) => node !== leader)
  // More than a few at one node, however they are shared out.
  await untilGroupInFlight(load, random, NODES * FEW)
  strikes.struck(Math.ceil(load.inFlight / NODES))
  const startedAt = performance.now()
  const hit = strike(cluster, leader, kind)
  const next = await cluster.untilLeader(others)
  const tookSeconds = (performance.now() - startedAt) / 1000
  // The old leader comes back, or learns that it is none any more, while messages go to the new one.
  await acknowledged(load, AFTERWARDS)
  const seen = restore(cluster, leader, kind)
  await acknowledged(load, AFTERWARDS)
  await cluster.untilWhole()
  return `${leader.name} → ${next.name} after ${tookSeconds.toFixed(1)} s (${hit}${seen})`
}

function strike(cluster: Cluster, leader: ClusterNode, kind: Kind): string {
  if (kind === 'partitioned') {
    cluster.partition(leader)
    return 'cut off'
  }
  const processes = leader.signal(kind === 'killed' ? 'SIGKILL' : 'SIGSTOP')
  if (processes === 0) throw new Error(`there was nothing on ${leader.name} to be ${kind}`)
  return `${processes} processes ${kind}`
}

function restore(cluster: Cluster, leader: ClusterNode, kind: Kind): string {
  if (kind === 'killed') cluster.startNode(leader)
  if (kind === 'paused') leader.signal('SIGCONT')
  if (kind !== 'partitioned') return ''
  const dropped = cluster.droppedPackets(leader)
  if (dropped === 0) throw new Error(`nothing was dropped between ${leader.name} and the others`)
  cluster.heal(leader)
  return `, ${dropped} packets dropped`
}

/** So many more answers of 2xx. */
async function acknowledged(load: Subject['load'], more: number): Promise<void> {
  const goal = load.acknowledged + more
  const deadline = Date.now() + ROUND_LIMIT_MS
  while (load.acknowledged < goal) {
    if (Date.now() > deadline) throw new Error(`not acknowledged within ${ROUND_LIMIT_MS / 1000} s`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

async function control(context: ProofContext): Promise<ControlResult> {
  const about = 'the same cluster without synchronous replication, partitioned'
  const rig = await newRig(context, false)
  const { cluster, load } = rig
  rig.startSending()
  await acknowledged(load, BEFORE)
  // Else the tables may be lost as well, and there is nothing to go on with.
  await cluster.untilStreaming()
  const leader = (await cluster.leader())!
  cluster.partition(leader)
  await acknowledged(load, CONTROL_MESSAGES)
  await cluster.untilLeader(cluster.nodes.filter((node) => node !== leader))
  cluster.heal(leader)
  await cluster.untilWhole()
  await acknowledged(load, AFTERWARDS)
  await rig.stopSending()
  const findings = await rig.check()
  await rig.stop()
  const detail = `1 failover, ${inWords(findings)}`
  context.progress(`control, ${about}: ${detail}`)
  return { about, failed: findings.counts.lost > 0, detail }
}
