// A proof: a claim of Intray, a fault that could break it, and a control that the same fault must break.
// Promises: a proof holds only if its claim held, faults were injected, and the same check caught the control.

import type { Random } from './random.ts'

export const STORES = ['sqlite', 'postgres'] as const
export type StoreName = (typeof STORES)[number]

export interface Proof {
  readonly name: string
  /** One line: the fault. */
  readonly about: string
  /** What the machine must have, in words; '' for nothing special. */
  readonly needs: string
  /** The stores it runs on. The first is the default. */
  readonly stores: readonly StoreName[]
  readonly defaultCycles: number
  /** The names of its faults, if it has several that can be selected. */
  readonly faults?: readonly string[]
  run(context: ProofContext): Promise<ProofResult>
}

export interface ProofContext {
  /** Printed with the result: the same seed repeats the same choices. */
  readonly seed: number
  readonly random: Random
  readonly cycles: number
  readonly store: StoreName
  /** Only faults whose name contains this; '' for all. */
  readonly only: string
  /** Claims about time count. False on a slow, shared machine: they are only reported. */
  readonly isTimed: boolean
  /** For everything the proof writes; removed afterwards. */
  readonly folder: string
  progress(line: string): void
  /** Undone in reverse order, also after a failure or Ctrl-C. */
  onCleanup(undo: () => void | Promise<void>): void
  /** The URL of a database that did not exist before. */
  newDatabase(): Promise<string>
}

/** Counts of messages, unless noted. */
export interface Counts {
  readonly sent: number
  readonly acknowledged: number
  /** At some time without a conclusive answer; re-sent until acknowledged. */
  readonly unknown: number
  /** Answered "not stored", and never acknowledged. */
  readonly refused: number
  /** Attempts beyond the first. */
  readonly resent: number
  /** Faults that were really injected. */
  readonly faults: number
  /** Acknowledged, but not stored. */
  readonly lost: number
  readonly twice: number
  /** Stored with other bytes, or not readable. */
  readonly altered: number
  /** Refused, but stored all the same. */
  readonly resurrected: number
  /** Stored before a message of its conversation that had been acknowledged when it was first sent. */
  readonly misordered: number
  /** Acknowledged under another id than its own. */
  readonly misnumbered: number
}

export const WRONG = ['lost', 'twice', 'altered', 'resurrected', 'misordered', 'misnumbered'] as const

export interface ControlResult {
  /** What the control does wrong. */
  readonly about: string
  /** The check caught it, as it must. */
  readonly failed: boolean
  /** With counts. */
  readonly detail: string
}

export interface ProofResult {
  readonly counts: Counts
  /** Other counts and measurements, a sentence each. */
  readonly notes: readonly string[]
  /** Claims beyond the counts that did not hold; empty if all did. */
  readonly broken: readonly string[]
  readonly controls: readonly ControlResult[]
  /** Tables in Markdown. */
  readonly appendix?: string
  /** Drawings by name, for docs/internals/reliability/. */
  readonly files?: Readonly<Record<string, string>>
}

/** The machine cannot run the proof; the message says what is missing and how to get it. */
export class Unable extends Error {
  override readonly name = 'Unable'
}
