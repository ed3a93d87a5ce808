// Messages between the main thread and the store threads: jobs, and one answer for each.

import { storeFailure } from '../connection.ts'

export interface Job<N extends string = string> {
  readonly seq: number
  readonly name: N
  readonly args: readonly unknown[]
  /** For a thread that serves holders in turn. */
  readonly holder?: string | undefined
}

export type ToThread<N extends string = string> = Job<N> | { readonly close: true } | { readonly cancel: number }

export type ThreadAnswer =
  | { readonly seq: number; readonly result: unknown }
  | { readonly seq: number; readonly failure: { readonly kind: string; readonly message: string } }

export type FromThread = 'ready' | 'closed' | readonly ThreadAnswer[]

/** The answers to jobs that failed together. */
export function failureAnswers(jobs: readonly Job[], error: unknown): ThreadAnswer[] {
  const { kind, message } = storeFailure(error)
  return jobs.map(({ seq }) => ({ seq, failure: { kind, message } }))
}
