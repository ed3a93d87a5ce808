// Compares pairs of values, one pair a round, by their ratio.
// Promises: `ratio` is taken inside each round, where both sides saw the same machine; the ratios of medians and of
// means are shown beside it, since they weigh rounds differently and should agree.

import { mean, median, type Summary, summary } from '../stats.ts'

export interface Pair {
  readonly a: number
  readonly b: number
}

export interface Comparison {
  /** Medians over the rounds. */
  readonly a: number
  readonly b: number
  /** A / B of each round. */
  readonly ratio: Summary
  readonly ofMedians: number
  readonly ofMeans: number
}

export function compare(pairs: readonly Pair[]): Comparison {
  const [a, b] = [pairs.map((pair) => pair.a), pairs.map((pair) => pair.b)]
  return {
    a: median(a),
    b: median(b),
    ratio: summary(pairs.map((pair) => pair.a / pair.b)),
    ofMedians: median(a) / median(b),
    ofMeans: mean(a) / mean(b),
  }
}
