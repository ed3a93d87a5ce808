// Formats the report of a proof: a table for the terminal, and lines for docs/reliability.md.

import { WRONG } from './proof.ts'
import type { ProofReport } from './run.ts'

const COUNTED = ['sent', 'acknowledged', 'unknown', 'refused', 'resent'] as const

export function formatReport(report: ProofReport): string {
  const { counts, fsync, notes, controls, problems } = report
  const rows: [string, string][] = [
    ...COUNTED.map((name): [string, string] => [name === 'resent' ? 're-sent' : name, grouped(counts[name])]),
    ['faults injected', grouped(counts.faults)],
    ...WRONG.map((name): [string, string] => [name, grouped(counts[name])]),
    ['fsync here', `p50 ${fsync.p50Ms.toFixed(3)} ms, p99 ${fsync.p99Ms.toFixed(3)} ms`],
  ]
  return [
    '',
    `prove ${report.name}, ${report.store}, ${report.cycles} cycles, seed ${report.seed}, ${report.date}, ${report.tookSeconds.toFixed(0)} s`,
    ...rows.map(([name, value]) => `  ${name.padEnd(16)} ${value}`),
    ...notes.map((note) => `  ${note}`),
    ...controls.map(
      ({ about, failed, detail }) => `  control, ${about}: ${failed ? 'found out' : 'NOT FOUND OUT'} (${detail})`,
    ),
    ...(report.appendix === undefined ? [] : ['', report.appendix, '']),
    problems.length === 0 ? 'HELD' : `DID NOT HOLD: ${problems.join('; ')}`,
  ].join('\n')
}

/** A row for the table of a section of docs/reliability.md, and the notes under it. */
export function formatMarkdown(report: ProofReport): string {
  const { counts, fsync, notes, controls } = report
  const cells = [
    `${report.date.slice(0, 10)}, seed ${report.seed}`,
    `${report.store}`,
    ...COUNTED.map((name) => grouped(counts[name])),
    grouped(counts.faults),
    ...WRONG.map((name) => grouped(counts[name])),
    `${fsync.p50Ms.toFixed(2)} ms`,
  ]
  return [
    `| ${cells.join(' | ')} |`,
    '',
    ...(report.appendix === undefined ? [] : [report.appendix, '']),
    ...notes.map((note) => `- ${note}`),
    ...controls.map(({ about, detail }) => `- Control, ${about}: ${detail}.`),
  ].join('\n')
}

function grouped(count: number): string {
  return count.toLocaleString('en')
}
