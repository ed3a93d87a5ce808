// One check of `./intray doctor`: its verdict, and what to do.

import type { RowProblem } from './scan.ts'

export type Verdict = 'ok' | 'warning' | 'wrong'

export interface Check {
  readonly name: string
  readonly verdict: Verdict
  readonly summary: string
  /** What to do. */
  readonly advice?: string | undefined
  /** The first events with the problem. */
  readonly events?: readonly RowProblem[] | undefined
}

/** Events or hooks that a check names. */
export const SHOWN = 20

export function ok(name: string, summary: string): Check {
  return { name, verdict: 'ok', summary }
}

export function wrong(name: string, summary: string, advice: string, events?: readonly RowProblem[]): Check {
  return { name, verdict: 'wrong', summary, advice, events: events?.slice(0, SHOWN) }
}

export function warning(name: string, summary: string, advice?: string): Check {
  return { name, verdict: 'warning', summary, advice }
}
