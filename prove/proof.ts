// What a proof is: a claim of Intray, a fault that could break it, and a control that the same fault must break.
// Promises: a proof holds only if its claim held, faults were injected, and the control was found out by the same check.

import type { Random } from './random.ts'

export const STORES = ['sqlite', 'postgres'] as const
export type StoreName = (typeof STORES)[number]

export interface Proof {
  readonly name: string
  /** One line: what is done to the service. */
  readonly about: string
  /** What the machine must have, in words; '' for nothing special. */
  readonly needs: string
  /** Where it makes sense. The first is the default. */
  readonly stores: readonly StoreName[]
  readonly defaultCycles: number
  /** Where it has several faults, of which some can be asked for: their names. */
  readonly faults?: readonly string[]
  /** One line about each of them, where the name does not say it. */
  readonly faultsAbout?: Readonly<Record<string, string>>
  /** Options of its own on the command line, all with a value, and what they mean. */
  readonly options?: Readonly<Record<string, string>>
  run(context: ProofContext): Promise<ProofResult>
}

export interface ProofContext {
  /** Printed with the result: the same seed plays the same choices again. */
  readonly seed: number
  readonly random: Random
  readonly cycles: number
  readonly store: StoreName
  /** Of several faults those whose name has this in it; '' for all. */
  readonly only: string
  /** Values of the proof's own options. */
  readonly given: Readonly<Record<string, string>>
  /** Whether a missed time limit fails the proof. False on a shared, slow machine: the time is then only reported. */
  readonly isTimed: boolean
  /** For everything the proof writes; gone afterwards. */
  readonly folder: string
  progress(line: string): void
  /** Undone in reverse order, also after a failure or Ctrl-C. */
  onCleanup(undo: () => void | Promise<void>): void
  /** The URL of a database that did not exist before. */
  newDatabase(): Promise<string>
}

/** Messages, unless it says otherwise. */
export interface Counts {
  readonly sent: number
  readonly acknowledged: number
  /** At some time without an answer that tells; re-sent until acknowledged. */
  readonly unknown: number
  /** Answered "not stored", and never acknowledged. */
  readonly refused: number
  /** Attempts beyond the first. */
  readonly resent: number
  /** Faults that were really injected. */
  readonly faults: number
  /** Acknowledged, and not there. */
  readonly lost: number
  readonly twice: number
  /** There with other bytes, or not readable. */
  readonly altered: number
  /** Refused, and there all the same. */
  readonly resurrected: number
  /** Before one of its conversation that had been acknowledged when it was first sent. */
  readonly misordered: number
  /** Acknowledged under another id than the one it has. */
  readonly misnumbered: number
}

export const WRONG = ['lost', 'twice', 'altered', 'resurrected', 'misordered', 'misnumbered'] as const

export interface ControlResult {
  /** What it does wrongly. */
  readonly about: string
  /** The check found it out, as it must. */
  readonly failed: boolean
  /** With counts. */
  readonly detail: string
}

export interface ProofResult {
  readonly counts: Counts
  /** What else was counted or measured, a sentence each. */
  readonly notes: readonly string[]
  /** Claims beyond the counts that did not hold; empty if all did. */
  readonly broken: readonly string[]
  readonly controls: readonly ControlResult[]
  /** Tables, as they go into a document. */
  readonly appendix?: string
  /** Drawings by name, for docs/internals/reliability/. */
  readonly files?: Readonly<Record<string, string>>
}

/** The machine cannot run it: says what is missing and how to get it. */
export class Unable extends Error {
  override readonly name = 'Unable'
}
