// Sums of counts, for proofs that run on more than one database.

import type { Counts } from './proof.ts'

export const NO_COUNTS: Counts = {
  sent: 0,
  acknowledged: 0,
  unknown: 0,
  refused: 0,
  resent: 0,
  faults: 0,
  lost: 0,
  twice: 0,
  altered: 0,
  resurrected: 0,
  misordered: 0,
  misnumbered: 0,
}

export function addCounts(a: Counts, b: Counts): Counts {
  const names = Object.keys(NO_COUNTS) as (keyof Counts)[]
  return Object.fromEntries(names.map((name) => [name, a[name] + b[name]])) as unknown as Counts
}
