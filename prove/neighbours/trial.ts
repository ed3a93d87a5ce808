// One attack on one service: a victim is measured alone, then while the attack goes on.

import { type ChildProcess, fork } from 'node:child_process'
import { constants, setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import { residentMiB } from '../../bench/proc.ts'
import type { ProofContext } from '../proof.ts'
import { waitFor } from '../wait.ts'
import { type Attack, type AttackCounts, pause, type Target } from './attack.ts'
import { type ProbedOptions, ProbedService, type Turn } from './probed-service.ts'
import { PATIENCE_MS, Victim, type VictimFigures } from './victim.ts'

const PROGRAM = fileURLToPath(new URL('./attacker.ts', import.meta.url))
const WARM_UP_S = 0.5
const ALONE_SHARE = 0.4
const WATCH_MS = 50

export interface Trial {
  readonly attack: Attack
  readonly counts: AttackCounts
  readonly alone: VictimFigures
  readonly attacked: VictimFigures
  readonly mostMiB: number
  /** Null: none took 10 ms. */
  readonly longestTurn: Turn | null
  /** How the service ended by itself, if it did. */
  readonly ended: string | null
}

export interface TrialOptions extends ProbedOptions {
  readonly seconds: number
  /** Of the victim, instead of its own. */
  readonly patienceMs?: number
}

export async function tryAttack(context: ProofContext, attack: Attack, options: TrialOptions): Promise<Trial> {
  const { database, seconds } = options
  const attacker = new Attacker(context, attack)
  const probed = await ProbedService.start(context, options)
  const { service } = probed
  const { port } = service
  const { patienceMs = PATIENCE_MS } = options
  const victim = new Victim({ port, ...database.victim, hasLarge: attack.hasLargeVictim === true, patienceMs })
  await attacker.setTarget({ ...database.attacker, port })
  let mostMiB = 0
  const watch = setInterval(() => (mostMiB = Math.max(mostMiB, residentMiB(service.pid) ?? 0)), WATCH_MS)
  try {
    await victim.work(WARM_UP_S)
    const alone = await victim.work(ALONE_SHARE * seconds)
    const from = Date.now()
    attacker.go()
    // On a busy machine its process may get no time for a while; the victim is measured while there is an attack.
    await waitFor('the first request of the attack', () => attacker.counts.sent > 0 || attacker.hasFailed)
    await pause(1000 * (attack.leadSeconds ?? 0))
    setTimeout(() => attacker.stop(), seconds * 1000)
    const attacked = await victim.work(seconds)
    await attacker.stopped
    if (attacker.hasFailed) throw new Error(`the attacker of ${attack.name} ended by itself`)
    const current = probed.currentTurn()
    const turns = [...probed.turns(), ...(current === null ? [] : [current])]
    return {
      attack,
      counts: attacker.counts,
      alone,
      attacked,
      mostMiB,
      longestTurn: longestOf(turns, from),
      ended: service.isRunning
        ? null
        : `the service ended: ${/FATAL.*/.exec(service.log)?.[0] ?? service.log.slice(-200)}`,
    }
  } finally {
    clearInterval(watch)
    victim.close()
    attacker.stop()
    await probed.end()
  }
}

/** The longest that ended after that time. If its own cause is unknown, that of the longest turn with a known cause. */
function longestOf(turns: readonly Turn[], from: number): Turn | null {
  const sorted = turns.filter(({ at }) => at > from).toSorted((a, b) => b.ms - a.ms)
  const cause = sorted.find((turn) => turn.cause !== undefined)?.cause
  return sorted[0] ? { ...sorted[0], ...(cause === undefined ? {} : { cause }) } : null
}

class Attacker {
  readonly #child: ChildProcess
  counts: AttackCounts = { sent: 0, cut: 0, statuses: {} }
  readonly stopped: Promise<void>
  #isKilled = false
  hasFailed = false

  constructor(context: ProofContext, attack: Attack) {
    const child = fork(PROGRAM, [attack.name], { execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    // A real attacker has a machine of its own: this one yields the processor to the service.
    if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_BELOW_NORMAL)
    this.#child = child
    this.stopped = new Promise((resolve) =>
      child.once('exit', () => {
        this.hasFailed = !this.#isKilled
        resolve()
      }),
    )
    context.onCleanup(() => this.stop())
  }

  /** Resolves when it is ready. */
  async setTarget(target: Target): Promise<void> {
    let isReady = false
    this.#child.on('message', (message: AttackCounts | 'ready') => {
      if (message === 'ready') isReady = true
      else this.counts = message
    })
    this.#child.send(target)
    await waitFor('the attacker to be ready', () => isReady)
  }

  go(): void {
    this.#child.send('go')
  }

  stop(): void {
    this.#isKilled = true
    this.#child.kill('SIGKILL')
  }
}
