// `prove slowloris`: 2,000 connections that send their headers or their bodies a byte at a time and come back whenever they
// are cut off, beside clients that behave. A cycle is a stretch without them and one with them.
// Claim: the good clients' p99 with them is at most twice that without them, every message of theirs is acknowledged, and the
// slow ones are cut off in time.
// Control: the same service without time limits and with fewer places than there are slow ones must be found to shut the good
// out.

import { type ChildProcess, fork } from 'node:child_process'
import { constants, setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import { type Figures, openLoop } from '../pace.ts'
import type { ControlResult, Proof, ProofContext } from '../proof.ts'
import { Service } from '../service.ts'
import { waitFor } from '../wait.ts'

const SLOW = 2000
const RATE = 200
/** Longer than headers may take: those whose headers never end are cut off within it, and come back. */
const STRETCH_S = 20
const SETTLE_S = 3
const PATIENCE_MS = 5000
const GOOD_CONNECTIONS = 256
const PROGRAM = fileURLToPath(new URL('../slow-ones.ts', import.meta.url))

export const slowloris: Proof = {
  name: 'slowloris',
  about: `${SLOW} connections that send a byte at a time, beside clients that behave`,
  needs: '',
  stores: ['sqlite', 'postgres'],
  defaultCycles: 3,
  async run(context) {
    const service = new Service(context, { databaseUrl: await context.newDatabase() })
    const token = await service.mint('cf')
    await service.start()
    const pace = { port: service.port, token, seconds: STRETCH_S, patienceMs: PATIENCE_MS, readyConnections: 0 }
    const without: Figures[] = []
    const beside: Figures[] = []
    let opened = 0
    let cutOff = 0
    for (let cycle = 1; cycle <= context.cycles; cycle += 1) {
      // Not counted: the service warms up, and has done with the slow ones of the stretch before.
      await openLoop({ ...pace, seconds: SETTLE_S }, RATE, GOOD_CONNECTIONS)
      without.push(await openLoop(pace, RATE, GOOD_CONNECTIONS))
      const slow = new SlowOnes(context, service.port, token)
      await waitFor('the slow ones to be there', () => slow.told.open >= SLOW)
      beside.push(await openLoop(pace, RATE, GOOD_CONNECTIONS))
      slow.stop()
      opened += slow.told.opened
      cutOff += slow.told.cutOff
      context.progress(
        `p99 ${without.at(-1)!.p99Ms.toFixed(1)} ms without, ${beside.at(-1)!.p99Ms.toFixed(1)} ms beside`,
      )
    }
    await service.stop()
    const control = await withoutLimits(context)
    const [calmMs, besideMs] = [without, beside].map((all) => median(all.map(({ p99Ms }) => p99Ms))) as [number, number]
    const all = [...without, ...beside]
    const sum = (of: (figures: Figures) => number) => all.reduce((total, one) => total + of(one), 0)
    const missed = sum((one) => one.offered - one.acknowledged)
    return {
      counts: {
        ...{ sent: sum((one) => one.sent), acknowledged: sum((one) => one.acknowledged), resent: 0 },
        ...{ unknown: sum((one) => one.unanswered), refused: sum((one) => one.refused), faults: opened },
        ...{ lost: 0, twice: 0, altered: 0, resurrected: 0, misordered: 0, misnumbered: 0 },
      },
      notes: [
        `p99 of the good clients (${RATE}/s, open loop): ${calmMs.toFixed(1)} ms without, ${besideMs.toFixed(1)} ms beside ${SLOW} slow connections (${(besideMs / calmMs).toFixed(2)} ×); medians of ${context.cycles} stretches of ${STRETCH_S} s each, in turn.`,
        `${opened} slow connections, ${cutOff} of them cut off by the service, which lets headers take 10 s.`,
      ],
      broken: [
        ...(missed > 0 ? [`${missed} good messages were not acknowledged`] : []),
        ...(cutOff > 0 ? [] : ['no slow connection was cut off']),
        ...(context.isTimed && besideMs > 2 * calmMs
          ? [`p99 was ${(besideMs / calmMs).toFixed(2)} × of that without`]
          : []),
      ],
      controls: [control],
    }
  },
}

interface Told {
  readonly open: number
  readonly opened: number
  readonly cutOff: number
}

class SlowOnes {
  readonly #child: ChildProcess
  told: Told = { open: 0, opened: 0, cutOff: 0 }

  constructor(context: ProofContext, port: number, token: string) {
    // Some are always on their way back.
    const args = [String(port), token, String(Math.round(1.2 * SLOW))]
    this.#child = fork(PROGRAM, args, { execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    // They would come from other machines: what they cost their own is not to be taken from the service.
    if (this.#child.pid !== undefined) setPriority(this.#child.pid, constants.priority.PRIORITY_LOW)
    this.#child.on('message', (told: Told) => (this.told = told))
    context.onCleanup(() => this.stop())
  }

  stop(): void {
    this.#child.kill('SIGKILL')
  }
}

async function withoutLimits(context: ProofContext): Promise<ControlResult> {
  const env = { INTRAY_HEADERS_TIMEOUT: '1h', INTRAY_REQUEST_TIMEOUT: '1h', INTRAY_MAX_CONNECTIONS: String(SLOW / 2) }
  const service = new Service(context, { databaseUrl: await context.newDatabase(), env })
  const token = await service.mint('cf')
  await service.start()
  const slow = new SlowOnes(context, service.port, token)
  await waitFor('the slow ones to be there', () => slow.told.open >= SLOW / 2)
  const pace = { port: service.port, token, seconds: 2, patienceMs: PATIENCE_MS, readyConnections: 0 }
  const figures = await openLoop(pace, RATE, GOOD_CONNECTIONS)
  slow.stop()
  await service.kill()
  return {
    about: 'the same without time limits, and with fewer places than there are slow ones',
    failed: figures.good < figures.offered / 2,
    detail: `${figures.good} of ${figures.offered} good messages acknowledged`,
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}
