// `prove nth`: the n-th call of the store fails, or the process is killed there. On SQLite that is the n-th sync or write of its
// writer: every n around the commit of a group and a checkpoint of the journal, and some among the writes of the index. On
// PostgreSQL it is the n-th statement or answer on the wire while messages are in flight. A cycle is one n of each fault.
// Claim: nothing acknowledged is lost, doubled or altered; an I/O error ends the process by itself with a non-zero code; a full
// disk is answered 503, and the same process goes on.
// Controls: a server that acknowledges before it commits must be found out by each fault; and a sender who takes 503
// "unknown" for "not stored" must be wrong at least once.

import { fileURLToPath } from 'node:url'
import { addCounts, NO_COUNTS } from '../counts.ts'
import { Strikes } from '../group-commit.ts'
import { NearCheckpoint } from '../near-checkpoint.ts'
import type { ControlResult, Counts, Proof, ProofContext, ProofResult } from '../proof.ts'
import type { Random } from '../random.ts'
import { postgresTarget, WIRE_FAULTS } from '../postgres-target.ts'
import { sqliteTarget, SYSCALL_FAULTS } from '../sqlite-target.ts'
import { requireStrace, WRITES } from '../strace.ts'
import { type Fault, type Part, type Place, type Struck, strike, type Target } from '../strike.ts'
import { brokenIn, inWords } from '../subject.ts'

export const UNSAFE_SERVER = fileURLToPath(new URL('../../test/support/unsafe-server.ts', import.meta.url))
const LAST = 60
const CONTROL_TRIES = 10

export const nth: Proof = {
  name: 'nth',
  about: 'a fault at the n-th call of the store, n = 1 to 60; sync, write or statement',
  needs: 'on SQLite strace, which it installs as root',
  stores: ['sqlite', 'postgres'],
  defaultCycles: LAST,
  faults: [...SYSCALL_FAULTS, ...WIRE_FAULTS].map(({ name }) => name),
  async run(context) {
    if (context.store === 'postgres') return strikeEach(context, await postgresTarget(context), WIRE_FAULTS)
    requireStrace('nth', context.progress)
    return strikeEach(context, sqliteTarget(context, await NearCheckpoint.create(context)), SYSCALL_FAULTS)
  },
}

async function strikeEach<F extends Fault>(
  context: ProofContext,
  target: Target<F>,
  faults: readonly F[],
): Promise<ProofResult> {
  let counts: Counts = NO_COUNTS
  const notes: string[] = []
  const broken: string[] = []
  const controls: ControlResult[] = []
  let misled = 0
  for (const fault of faults.filter(({ name }) => name.includes(context.only))) {
    const tally = new Tally(fault)
    for (const { nth, part } of strikesOf(context, fault)) {
      const struck = await strike(context, target, { fault, nth, part })
      tally.add(nth, struck)
      counts = addCounts(counts, { ...struck.findings.counts, faults: struck.injected })
      if (tally.runs % 10 === 0) context.progress(tally.inWords())
    }
    misled += tally.storedUnknown
    notes.push(tally.inWords(), ...tally.strikes.notes())
    broken.push(...tally.broken, ...tally.strikes.problems())
    controls.push(await control(context, target, fault))
  }
  // A full disk misleads nobody: where only that was asked for, there is nothing to be found out.
  if (misled > 0 || context.only === '') {
    controls.push({
      about: 'a sender that takes "unknown" for "not stored"',
      failed: misled > 0,
      detail: `wrong for ${misled} messages, which were stored all the same`,
    })
  }
  return { counts, notes, broken, controls }
}

/** Every n from 1 on; of fewer than 60 one in each equal part, as the seed has it. */
export function placesOf({ cycles, random }: { readonly cycles: number; readonly random: Random }): number[] {
  return Array.from({ length: cycles }, (_, index) => {
    if (cycles >= LAST) return index + 1
    const from = Math.floor((index * LAST) / cycles)
    const to = Math.floor(((index + 1) * LAST) / cycles)
    return 1 + from + random.below(to - from)
  })
}

/**
 * Every n of the journal, where commits and checkpoints are. The index has a file of its own, whose commits are not synced: its
 * writes are struck for a third as many n, which is a batch and a little more.
 */
function strikesOf(context: ProofContext, fault: Fault): { nth: number; part: Part }[] {
  const places = placesOf(context)
  const ofIndex = SYSCALL_FAULTS.some((one) => one === fault && one.calls === WRITES)
    ? Array.from({ length: Math.ceil(places.length / 3) }, (_, at) => at + 1)
    : []
  return [
    ...places.map((nth) => ({ nth, part: 'journal' as const })),
    ...ofIndex.map((nth) => ({ nth, part: 'index' as const })),
  ]
}

class Tally {
  runs = 0
  storedUnknown = 0
  readonly broken: string[] = []
  /** Those that fell on a commit. */
  readonly strikes: Strikes
  readonly #fault: Fault
  readonly #places: Partial<Record<Place, number>> = {}
  #injected = 0
  #wentOn = 0
  #acknowledged = 0

  constructor(fault: Fault) {
    this.#fault = fault
    this.strikes = new Strikes(`“${fault.name}”`)
  }

  add(n: number, struck: Struck): void {
    const { injected, place, inFlight, exitCode, storedUnknown, findings, broken } = struck
    this.runs += 1
    if (injected > 0 && place === 'commit') this.strikes.struck(inFlight)
    this.#injected += injected
    this.#places[place] = (this.#places[place] ?? 0) + 1
    if (exitCode === null) this.#wentOn += 1
    this.#acknowledged += findings.counts.acknowledged
    this.storedUnknown += storedUnknown
    const wrong = [...brokenIn(findings), ...broken]
    if (injected !== 1) wrong.push(`${this.#fault.name}: injected ${injected} times`)
    this.broken.push(...wrong.map((one) => `n = ${n}: ${one}`))
  }

  inWords(): string {
    const places = Object.entries(this.#places).map(([place, count]) => `${place} ${count}`)
    return (
      `${this.#fault.name}: ${this.#injected} of ${this.runs} struck (${places.join(', ') || 'none'}); the process went on after ${this.#wentOn}; ` +
      `${this.#acknowledged} acknowledged, ${this.storedUnknown} answered "unknown" and stored; ${this.broken.length} complaints.`
    )
  }
}

async function control<F extends Fault>(context: ProofContext, target: Target<F>, fault: F): Promise<ControlResult> {
  const about = `a server that acknowledges before it commits, ${fault.name}`
  let detail = 'never struck'
  for (let tries = 1; tries <= CONTROL_TRIES; tries += 1) {
    const command = [process.execPath, UNSAFE_SERVER]
    const { injected, findings } = await strike(context, target, { fault, nth: tries, command })
    detail = `${tries} runs, ${inWords(findings)}`
    if (injected > 0 && findings.counts.lost > 0) {
      context.progress(`control, ${about}: ${detail}`)
      return { about, failed: true, detail }
    }
  }
  return { about, failed: false, detail }
}
