// `prove pause`: nodes and processors are stopped where they stand (SIGSTOP) and go on later (SIGCONT), as a swapping or
// migrating machine makes them. A cycle pauses one node for longer than senders wait, and one processor for longer than
// its lease.
// Claim: nothing is lost, doubled or misordered; what a paused processor held is handed to another, and its own late ack
// does not count: every event has exactly one ack that does.
// Control: a processor that does not look at the answer to its ack must be found to have done work twice.

import type { ChildProcess } from 'node:child_process'
import { Processors } from '../processors.ts'
import type { Proof, ProofContext } from '../proof.ts'
import { Service } from '../service.ts'
import { brokenIn, newSubject } from '../subject.ts'
import { waitFor } from '../wait.ts'

const LEASE_S = 2
const SENDERS_WAIT_MS = 700
const ACKNOWLEDGEMENTS = 40

export const pause: Proof = {
  name: 'pause',
  about: 'SIGSTOP of nodes and processors, for longer than senders wait and leases last',
  needs: '',
  stores: ['sqlite', 'postgres'],
  defaultCycles: 20,
  async run(context) {
    const nodes: Service[] = []
    const env = { INTRAY_MAX_ATTEMPTS: '1000' }
    let cutOff = 0
    const subject = await newSubject(context, {
      name: 'pause',
      service: { env },
      load: {
        onTrouble: 'resend',
        connections: 8,
        timeoutMs: SENDERS_WAIT_MS,
        port: (sender) => nodes[(sender + cutOff) % nodes.length]!.port,
        onAnswer: ({ status }) => {
          // A sender that waited in vain goes to the other node.
          if (status === 0) cutOff += 1
        },
      },
    })
    const { load, inbox, processorToken } = subject
    nodes.push(subject.service)
    if (context.store === 'postgres') nodes.push(new Service(context, subject.service.options))
    for (const node of nodes) await node.start()
    const ports = nodes.map(({ port }) => port)
    const processors = new Processors(context, 3, { ports, token: processorToken, leaseSeconds: LEASE_S, workMs: 3 })
    const pauser = new ProcessorPauser(processors)
    let nodePauses = 0
    for (let cycle = 1; cycle <= context.cycles; cycle += 1) {
      const running = load.run()
      await sendMore()
      await pauseNode(context, context.random.pick(nodes), () => cutOff)
      nodePauses += 1
      await sendMore()
      await load.stop()
      await running
      await pauser.pauseOne(() => load.run(4))
      if (cycle % 5 === 0)
        context.progress(`${cycle} cycles, ${load.acknowledged} acknowledged, ${pauser.pauses} takeovers`)
    }
    await load.settle()
    context.progress('waiting for the processors')
    await processors.finish(inbox)
    const findings = await subject.check()
    const events = (await inbox.rows()).filter(({ kind }) => kind === 'event').map(({ id }) => id)
    for (const node of nodes) await node.stop()
    return {
      counts: { ...findings.counts, faults: nodePauses + pauser.pauses },
      notes: [
        `${nodePauses} pauses of a node (of ${nodes.length}), ${cutOff} requests waited in vain; ${pauser.pauses} pauses of a processor outlasted its lease.`,
        `${processors.acked.size} events processed, ${processors.handedOutAgain} handed out again, ${processors.lost} late acks refused.`,
      ],
      broken: [
        ...brokenIn(findings),
        ...processors.broken(events),
        ...(cutOff > 0 ? [] : ['no pause of a node made a sender wait in vain']),
        ...(pauser.pauses > 0 ? [] : ['no pause of a processor outlasted its lease']),
        ...(processors.lost > 0 ? [] : ['no late ack was refused']),
      ],
      controls: [
        {
          about: 'a processor that does not look at the answer to its ack',
          failed: processors.workedTwice > 0,
          detail: `${processors.workedTwice} events worked on twice`,
        },
      ],
    }

    async function sendMore(): Promise<void> {
      const goal = load.acknowledged + ACKNOWLEDGEMENTS
      await waitFor('messages to be acknowledged', () => load.acknowledged >= goal)
    }
  },
}

/** Stops a node until senders have given up on it. */
async function pauseNode({ random }: ProofContext, node: Service, cutOff: () => number): Promise<void> {
  const goal = cutOff() + 1 + random.below(3)
  node.pause()
  try {
    await waitFor('senders to give up', () => cutOff() >= goal)
  } finally {
    node.resume()
  }
}

class ProcessorPauser {
  /** Pauses in which somebody else was handed what the paused one held. */
  pauses = 0
  readonly #processors: Processors

  constructor(processors: Processors) {
    this.#processors = processors
  }

  /** Stops the next processor that claims something, until another was handed one of its events. `feed` brings events. */
  async pauseOne(feed: () => Promise<void>): Promise<void> {
    const { handedOut } = this.#processors
    const caught = Promise.withResolvers<{ child: ChildProcess; lease: string; ids: readonly number[] }>()
    let isCaught = false
    this.#processors.onLine = (line, child) => {
      if (line.what !== 'claimed') return
      this.#processors.onLine = () => {}
      child.kill('SIGSTOP')
      isCaught = true
      caught.resolve({ child, lease: line.lease, ids: line.ids })
    }
    while (!isCaught) await feed()
    const { child, lease, ids } = await caught.promise
    const isTaken = () => ids.some((id) => [...(handedOut.get(id) ?? [])].some((other) => other !== lease))
    try {
      // Where it had acknowledged everything before the signal came, nobody takes anything over.
      await waitFor('the lease to pass on', isTaken, 15_000 + LEASE_S * 1000)
      this.pauses += 1
    } catch {
      // Not counted.
    } finally {
      child.kill('SIGCONT')
    }
  }
}
