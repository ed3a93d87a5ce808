// The limits that a victim and the service must keep under attack, and the report of what was measured.

import { PATIENCE_MS, type Activity, type Figures } from './victim.ts'
import type { Turn } from './probed-service.ts'
import type { Trial } from './trial.ts'

const SLOWER = 10
const MAX_P50_MS: Readonly<Record<Activity, number>> = { send: 50, read: 50, large: 50, claimable: 2000 }
export const MAX_TURN_MS = 50
/** Bodies that arrive may take 256 MiB, messages that wait for their commit 64 MiB. */
export const MAX_MIB = 640

/** Which limits were exceeded. Without `isTimed` only those that do not depend on the speed of the machine. */
export function brokenBy(
  { attack, counts, alone, attacked, mostMiB, longestTurn, ended }: Trial,
  isTimed: boolean,
): string[] {
  const activities = Object.entries(attacked) as [Activity, Figures][]
  const slow = activities.flatMap(([activity, { p50Ms }]) => {
    const most = Math.max(SLOWER * (alone[activity]?.p50Ms ?? 0), MAX_P50_MS[activity])
    return Number.isNaN(p50Ms) || p50Ms <= most
      ? []
      : [`${activity} p50 ${p50Ms.toFixed(0)} ms, more than ${most.toFixed(0)} ms`]
  })
  const unserved = activities.flatMap(([activity, { due, refused, unanswered }]) => [
    ...(refused > 0 ? [`${refused} of ${due} ${activity} refused`] : []),
    ...(unanswered > 0 ? [`${unanswered} of ${due} ${activity} not within ${PATIENCE_MS / 1000} s`] : []),
  ])
  const turn = longestTurn && longestTurn.ms > MAX_TURN_MS ? [`a turn of ${longestTurn.ms.toFixed(0)} ms`] : []
  return [
    ...(counts.sent > 0 ? [] : ['nothing was sent']),
    ...(ended === null ? [] : [ended]),
    ...(activities.every(([, { answered }]) => answered > 0) ? [] : ['a victim was not served at all']),
    ...(isTimed ? [...unserved, ...slow, ...turn] : []),
    ...(mostMiB > MAX_MIB ? [`memory grew to ${mostMiB.toFixed(0)} MiB`] : []),
  ].map((what) => `${attack.name}: ${what}`)
}

export function tableOf(trials: readonly Trial[], isTimed: boolean): string {
  const cells = (figures: Figures | undefined, before: Figures | undefined) =>
    figures === undefined
      ? '–'
      : `${ms(before?.p50Ms)} → ${ms(figures.p50Ms)}, ${ms(figures.worstMs)}${notServed(figures)}`
  return [
    '| attack | by | requests sent, answers | send: p50 alone → attacked, worst | read | claimable | large | MiB | longest turn | |',
    '|---|---|---|---|---|---|---|---|---|---|',
    ...trials.map((trial) => {
      const { attack, alone, attacked, mostMiB, longestTurn } = trial
      const figures = (['send', 'read', 'claimable', 'large'] as const).map((one) => cells(attacked[one], alone[one]))
      const verdict = brokenBy(trial, isTimed).length === 0 ? 'held' : 'did not hold'
      return `| ${[attack.name, attack.by, sentBy(trial), ...figures, mostMiB.toFixed(0), turnText(longestTurn), verdict].join(' | ')} |`
    }),
  ].join('\n')
}

export function lineOf(trial: Trial): string {
  const { attack, alone, attacked, mostMiB, longestTurn } = trial
  const each = (['send', 'read', 'claimable', 'large'] as const).flatMap((activity) => {
    const figures = attacked[activity]
    return figures === undefined
      ? []
      : [
          `${activity} ${ms(alone[activity]?.p50Ms)} → ${ms(figures.p50Ms)} (worst ${ms(figures.worstMs)})${notServed(figures)}`,
        ]
  })
  return `${attack.name}: ${sentBy(trial)}; ${each.join(', ')}; ${mostMiB.toFixed(0)} MiB, turn ${turnText(longestTurn)}`
}

function sentBy({ counts: { sent, cut, statuses } }: Trial): string {
  const answers = Object.entries(statuses).map(([status, count]) => `${count} × ${status}`)
  return [`${sent} sent`, ...answers, ...(cut > 0 ? [`${cut} cut off`] : [])].join(', ')
}

function turnText(turn: Turn | null): string {
  if (turn === null) return '< 10 ms'
  const { ms: tookMs, computedMs = tookMs, cause } = turn
  // Otherwise it waited, or the machine had given its processor away.
  const computing = computedMs < tookMs / 2 ? ` (${computedMs.toFixed(0)} computing)` : ''
  return `${tookMs.toFixed(0)} ms${computing}${cause === undefined ? '' : ` ${cause}`}`
}

function ms(value: number | undefined): string {
  return value === undefined || Number.isNaN(value) ? '–' : value < 10 ? value.toFixed(1) : value.toFixed(0)
}

function notServed({ refused, unanswered }: Figures): string {
  return `${refused > 0 ? `, ${refused} refused` : ''}${unanswered > 0 ? `, ${unanswered} unanswered` : ''}`
}
