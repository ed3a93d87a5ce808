// `prove neighbours`: a victim sends, reads and claims while another tenant or a stranger attacks. Each attack has a service and
// a database of its own. A cycle is every attack once.
// Claim: the victim's p50 stays within 10 times its p50 just before, or 50 ms; every request is answered within 5 s and none is
// refused; messages become claimable within 2 s; memory is bounded; no turn of the main thread takes over 50 ms.
// Controls: a service whose main thread stalls; with `--against`, another commit that must fail under the control attacks.

import { availableParallelism, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { UsageError } from '../../bench/usage-error.ts'
import type { ControlResult, Proof, ProofContext } from '../proof.ts'
import { LAUNCHER } from '../service.ts'
import { waitFor } from '../wait.ts'
import type { Attack } from './attack.ts'
import { ATTACKS } from './attacks.ts'
import { fillDatabase, type FilledDatabase } from './filled-database.ts'
import { checkOut } from './other-commit.ts'
import { ProbedService } from './probed-service.ts'
import { type Trial, tryAttack, type TrialOptions } from './trial.ts'
import { brokenBy, lineOf, MAX_TURN_MS, tableOf } from './verdict.ts'

const EVENTS = 20_000
const SECONDS = 3
const STALL_LIMIT_MS = 60_000
const UNTIMED_PATIENCE_MS = 60_000
const STALL = fileURLToPath(new URL('./stall.ts', import.meta.url))
const NAMES = ATTACKS.map(({ name }) => name)

export const neighbours: Proof = {
  name: 'neighbours',
  about: `${ATTACKS.length} ways in which another tenant or a stranger keeps the service busy`,
  needs: 'git for --against',
  stores: ['sqlite', 'postgres'],
  defaultCycles: 1,
  faults: NAMES,
  faultsAbout: Object.fromEntries(ATTACKS.map(({ name, by, about }) => [name, `${by}: ${about}`])),
  options: {
    attacks: 'names of attacks, separated by commas (all)',
    seconds: `length of an attack (${SECONDS})`,
    events: `stored events of the attacking tenant (${EVENTS})`,
    against: 'a commit that must fail under the control attacks (none)',
  },
  async run(context) {
    const [load = 0] = loadavg()
    const seconds = numberOf(context, 'seconds', SECONDS)
    const events = numberOf(context, 'events', EVENTS)
    const attacks = attacksOf(context)
    const database = await fillDatabase(context, LAUNCHER, events)
    const trials: Trial[] = []
    for (let cycle = 1; cycle <= context.cycles; cycle += 1) {
      for (const attack of attacks) trials.push(await tried(context, attack, { database, launcher: LAUNCHER, seconds }))
    }
    const stalled = await stalls(context, database)
    const other = await otherCommit(context, attacks, events, seconds)
    const sum = (of: (trial: Trial) => number) => trials.reduce((total, one) => total + of(one), 0)
    const ofVictims = (what: 'due' | 'answered' | 'refused' | 'unanswered') =>
      sum(({ alone, attacked }) =>
        [alone, attacked].reduce((total, { send, large }) => total + (send?.[what] ?? 0) + (large?.[what] ?? 0), 0),
      )
    return {
      counts: {
        ...{ sent: ofVictims('due'), acknowledged: ofVictims('answered'), resent: 0 },
        ...{
          unknown: ofVictims('unanswered'),
          refused: ofVictims('refused'),
          faults: sum(({ counts }) => counts.sent),
        },
        ...{ lost: 0, twice: 0, altered: 0, resurrected: 0, misordered: 0, misnumbered: 0 },
      },
      notes: [
        `The load average was ${load.toFixed(1)} on ${availableParallelism()} cores before; limits of time assume an idle machine.`,
        `${trials.length} attacks of ${seconds} s, with ${events.toLocaleString('en')} events of the attacker stored.`,
        ...(context.isTimed ? [] : ['Time limits were not judged.']),
      ],
      broken: trials.flatMap((trial) => brokenBy(trial, context.isTimed)),
      controls: [stalled, ...other.controls],
      appendix: [tableOf(trials, context.isTimed), ...other.tables].join('\n'),
    }
  },
}

async function tried(context: ProofContext, attack: Attack, options: TrialOptions): Promise<Trial> {
  // Where times are not judged, a service that stands still for some seconds is not one that serves nobody.
  const patience = context.isTimed ? {} : { patienceMs: UNTIMED_PATIENCE_MS }
  const trial = await tryAttack(context, attack, { ...options, ...patience })
  context.progress(lineOf(trial))
  return trial
}

/** The probe must detect turns that are known to be long. */
async function stalls(context: ProofContext, database: FilledDatabase): Promise<ControlResult> {
  const probed = await ProbedService.start(context, { database, launcher: LAUNCHER, imports: [STALL] })
  const longest = () => Math.max(0, ...probed.turns().map(({ ms }) => ms))
  await waitFor('a long turn', () => longest() > MAX_TURN_MS, STALL_LIMIT_MS).catch((error: unknown) =>
    context.progress(String(error)),
  )
  await probed.end()
  return {
    about: 'a service whose main thread stalls for 200 ms twice a second',
    failed: longest() > MAX_TURN_MS,
    detail: `a turn of ${longest().toFixed(0)} ms`,
  }
}

async function otherCommit(context: ProofContext, attacks: readonly Attack[], events: number, seconds: number) {
  const name = context.given.against
  const chosen = attacks.filter(({ isControl }) => isControl)
  if (name === undefined || chosen.length === 0) return { controls: [], tables: [] }
  const { about, launcher } = await checkOut(context, name)
  context.progress(`control: ${about}`)
  const database = await fillDatabase(context, launcher, events)
  const trials: Trial[] = []
  for (const attack of chosen) trials.push(await tried(context, attack, { database, launcher, seconds }))
  const controls = trials.map((trial): ControlResult => {
    const broken = brokenBy(trial, true)
    return {
      about: `${trial.attack.name} on ${about}`,
      // An attack that was not carried out detects nothing.
      failed: trial.counts.sent > 0 && broken.length > 0,
      detail: broken.join('; ') || 'it held',
    }
  })
  return { controls, tables: ['', `Control, ${about}:`, '', tableOf(trials, true)] }
}

function attacksOf({ given, only }: ProofContext): readonly Attack[] {
  const names = given.attacks?.split(',') ?? NAMES.filter((name) => name.includes(only))
  const unknown = names.find((name) => !NAMES.includes(name))
  if (unknown !== undefined) throw new UsageError(`--attacks has "${unknown}"; there is: ${NAMES.join(', ')}.`)
  return ATTACKS.filter(({ name }) => names.includes(name))
}

function numberOf({ given }: ProofContext, name: string, fallback: number): number {
  const text = given[name]
  if (text === undefined) return fallback
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new UsageError(`--${name} must be a whole number from 1 on.`)
  return Number(text)
}
