// Reports a proof: lines of progress, a table at the end, and the cells that go into docs/internals/reliability.md.

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

/** The measured cells of a row of docs/internals/reliability.md: command, faults injected, result, control. The notes follow it. */
export function formatMarkdown(report: ProofReport): string {
  const { name, store, cycles, seed, counts, notes, controls } = report
  const wrong = WRONG.filter((kind) => counts[kind] > 0).map((kind) => `${grouped(counts[kind])} ${kind}`)
  const cells = [
    `\`prove ${name} --store ${store} --cycles ${cycles} --seed ${seed}\``,
    grouped(counts.faults),
    `${grouped(counts.acknowledged)} acknowledged, ${wrong.length === 0 ? '0 wrong' : wrong.join(', ')}`,
    controls.map(({ about, detail }) => `${about}: ${detail}`).join('; '),
  ]
  return [
    `| ${cells.join(' | ')} |`,
    '',
    ...(report.appendix === undefined ? [] : [report.appendix, '']),
    ...notes.map((note) => `- ${note}`),
  ].join('\n')
}

function grouped(count: number): string {
  return count.toLocaleString('en')
}
