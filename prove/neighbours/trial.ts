// One attack on one service: a victim is measured alone, then while the attack goes on.

import { type ChildProcess, fork } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { residentMiB } from '../../bench/proc.ts'
import type { ProofContext } from '../proof.ts'
import { Service } from '../service.ts'
import { waitFor } from '../wait.ts'
import { type Attack, type AttackCounts, pause, type Target } from './attack.ts'
import type { FilledDatabase } from './filled-database.ts'
import { Victim, type VictimFigures } from './victim.ts'

const PROGRAM = fileURLToPath(new URL('./attacker.ts', import.meta.url))
const PROBE = fileURLToPath(new URL('./turn-probe.ts', import.meta.url))
const WARM_UP_S = 0.5
const ALONE_SHARE = 0.4
const WATCH_MS = 50
const UNFINISHED_MS = 1000

export interface Turn {
  /** When it ended. */
  readonly at: number
  readonly ms: number
  /** Of these, how long the thread had a processor. */
  readonly computedMs?: number
  readonly cause?: string
}

export interface Trial {
  readonly attack: Attack
  readonly counts: AttackCounts
  readonly alone: VictimFigures
  readonly attacked: VictimFigures
  readonly mostMiB: number
  /** Null: none took 10 ms. */
  readonly longestTurn: Turn | null
  /** Before the attack. */
  readonly longestTurnAlone: Turn | null
  /** How the service ended by itself, if it did. */
  readonly ended: string | null
}

export interface TrialOptions {
  readonly database: FilledDatabase
  readonly launcher: string
  readonly seconds: number
  readonly env?: Readonly<Record<string, string>>
}

export async function tryAttack(context: ProofContext, attack: Attack, options: TrialOptions): Promise<Trial> {
  const { database, launcher, seconds } = options
  const { url, drop } = await database.copy()
  const turnsFile = join(mkdtempSync(join(context.folder, 'turns-')), 'turns')
  const nodeOptions = ['--import', PROBE, options.env?.NODE_OPTIONS ?? ''].join(' ').trim()
  const env = { ...database.env, ...options.env, NODE_OPTIONS: nodeOptions, PROVE_TURNS: turnsFile }
  const service = new Service(context, { databaseUrl: url, env: database.env, launcher })
  const attacker = new Attacker(context, attack)
  await service.start(env)
  const { port } = service
  const victim = new Victim({ port, ...database.victim, hasLarge: attack.hasLargeVictim === true })
  await attacker.setTarget({ ...database.attacker, port })
  let mostMiB = 0
  const watch = setInterval(() => (mostMiB = Math.max(mostMiB, residentMiB(service.pid) ?? 0)), WATCH_MS)
  try {
    await victim.work(WARM_UP_S)
    const begin = Date.now()
    const alone = await victim.work(ALONE_SHARE * seconds)
    const from = Date.now()
    attacker.go()
    await pause(1000 * (attack.leadSeconds ?? 0))
    setTimeout(() => attacker.stop(), seconds * 1000)
    const attacked = await victim.work(seconds)
    await attacker.stopped
    if (attacker.hasFailed) throw new Error(`the attacker of ${attack.name} ended by itself`)
    const to = Date.now()
    const unfinished = unfinishedTurn(`${turnsFile}.beat`, to)
    const ended = service.isRunning
      ? null
      : `the service ended: ${/FATAL.*/.exec(service.log)?.[0] ?? service.log.slice(-200)}`
    const turns = [...readTurns(turnsFile), ...unfinished]
    return {
      attack,
      counts: attacker.counts,
      alone,
      attacked,
      mostMiB,
      longestTurn: longestOf(turns, from, to),
      longestTurnAlone: longestOf(turns, begin, from),
      ended,
    }
  } finally {
    clearInterval(watch)
    victim.close()
    attacker.stop()
    await service.kill()
    await drop()
  }
}

function readTurns(file: string): Turn[] {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean)
  return lines.map((line) => JSON.parse(line) as Turn)
}

/** Includes the time in which other processes had the processor, so a short one means nothing. */
function unfinishedTurn(beatFile: string, at: number): Turn[] {
  const ms = at - Number(readFileSync(beatFile, 'latin1'))
  return ms < UNFINISHED_MS ? [] : [{ at, ms, cause: 'and not over' }]
}

/** The longest that ended in that time. If its own cause is unknown, that of the longest turn with a known cause. */
function longestOf(turns: readonly Turn[], from: number, to: number): Turn | null {
  const sorted = turns.filter(({ at }) => at > from && at <= to).toSorted((a, b) => b.ms - a.ms)
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
