// The processors of a proof, and what they told: who was handed what, what was worked on, which acks counted.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Inbox } from './inbox.ts'
import type { ProcessorLine } from './processor.ts'
import type { ProofContext } from './proof.ts'
import { until } from './wait.ts'

const PROCESSOR = fileURLToPath(new URL('./processor.ts', import.meta.url))

export interface ProcessorOptions {
  readonly ports: readonly number[]
  readonly token: string
  readonly leaseSeconds: number
  readonly workMs: number
}

export class Processors {
  /** Event → leases it was handed out under. */
  readonly handedOut = new Map<number, Set<string>>()
  /** Event → how often somebody finished the work for it. */
  readonly worked = new Map<number, number>()
  /** Event → leases under which its ack counted. */
  readonly acked = new Map<number, Set<string>>()
  lost = 0
  onLine: (line: ProcessorLine, processor: ChildProcess) => void = () => {}
  readonly #children: ChildProcess[] = []

  constructor(context: Pick<ProofContext, 'onCleanup'>, count: number, options: ProcessorOptions) {
    const { ports, token, leaseSeconds, workMs } = options
    const args = [PROCESSOR, ports.join(','), String(leaseSeconds), String(workMs)]
    for (let n = 0; n < count; n += 1) {
      const child = spawn(process.execPath, args, {
        env: { ...process.env, PROCESSOR_TOKEN: token },
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      this.#children.push(child)
      createInterface({ input: child.stdout }).on('line', (line) => {
        const told = JSON.parse(line) as ProcessorLine
        this.#note(told)
        this.onLine(told, child)
      })
      context.onCleanup(() => {
        child.kill('SIGKILL')
      })
    }
  }

  /** Waits until there is nothing left to do, then ends them. */
  async finish(inbox: Inbox): Promise<void> {
    await until('everything is processed', async () => (await idsIn(inbox, 'pending', 'leased')) === 0, 600_000)
    await Promise.all(
      this.#children.map(async (child) => {
        if (child.exitCode !== null || child.signalCode !== null) return
        const ended = once(child, 'close')
        child.kill('SIGCONT')
        child.kill('SIGTERM')
        await ended
      }),
    )
  }

  /** What must hold whatever was paused or stepped: the acks of every event that count are one. */
  broken(events: readonly number[]): string[] {
    const never = events.filter((id) => !this.acked.has(id)).length
    const again = [...this.acked].filter(([, leases]) => leases.size > 1).length
    return [
      ...(never > 0 ? [`${never} events were never acknowledged by a processor`] : []),
      ...(again > 0 ? [`${again} events have more than one ack that counted`] : []),
    ]
  }

  get workedTwice(): number {
    return [...this.worked.values()].filter((times) => times > 1).length
  }

  get handedOutAgain(): number {
    return [...this.handedOut.values()].filter((leases) => leases.size > 1).length
  }

  #note(line: ProcessorLine): void {
    if (line.what === 'claimed') for (const id of line.ids) addTo(this.handedOut, id, line.lease)
    else if (line.what === 'worked') this.worked.set(line.id, (this.worked.get(line.id) ?? 0) + 1)
    else if (line.result === 'ok') addTo(this.acked, line.id, line.lease)
    else this.lost += 1
  }
}

function addTo(map: Map<number, Set<string>>, id: number, lease: string): void {
  const leases = map.get(id) ?? new Set()
  map.set(id, leases.add(lease))
}

async function idsIn(inbox: Inbox, ...states: readonly string[]): Promise<number> {
  let count = 0
  for (const state of states) {
    const { status, body } = await inbox.ask('GET', `/v1/inbox/events?state=${state}&limit=200`)
    const page = JSON.parse(body.toString()) as { events?: readonly unknown[]; index_lag?: number }
    if (status !== 200 || page.index_lag !== undefined) return 1
    count += page.events?.length ?? 1
  }
  return count
}
