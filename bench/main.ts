// Entry point of `npm run bench -- <name> [options]`: finds the benchmark, runs it, returns its exit code.
// Promises: 0 = ran (and, with --strict, every bound held), 1 = a bound was missed or the run failed, 2 = bad usage.

import { runAb } from './ab.ts'
import { runIdle } from './idle.ts'
import { runInbox } from './inbox.ts'
import { runIntake } from './intake.ts'
import { runProfile } from './profile.ts'
import { runPush } from './push.ts'
import { runRetention } from './retention.ts'
import { runSustained } from './sustained.ts'
import { UsageError } from './usage-error.ts'

interface Benchmark {
  readonly summary: string
  readonly run: (argv: readonly string[]) => Promise<number>
}

const BENCHMARKS: Readonly<Record<string, Benchmark>> = {
  intake: {
    summary: 'messages per second and latency against bare node:http and Express with the same database',
    run: runIntake,
  },
  ab: { summary: 'this working tree against another commit, in interleaved rounds', run: runAb },
  inbox: { summary: 'reading and processing: rates, and whether the cost stays as the store grows', run: runInbox },
  sustained: { summary: 'a steady load for minutes on a filled store: does the index keep up?', run: runSustained },
  idle: { summary: 'what a thousand open streams and waiting claims cost while nothing comes in', run: runIdle },
  push: { summary: 'events per second that are delivered to endpoints, and intake beside', run: runPush },
  retention: {
    summary: 'deleting old messages in slices against dropping a partition, on PostgreSQL',
    run: runRetention,
  },
  profile: { summary: 'top functions of the CPU profiles that `intake --profile <folder>` wrote', run: runProfile },
}

function help(): string {
  const rows = Object.entries(BENCHMARKS).map(([name, { summary }]) => `  ${name.padEnd(10)}${summary}`)
  return [
    'Usage: npm run bench -- <name> [options]',
    '',
    ...rows,
    '',
    'Options of one: npm run bench -- <name> --help',
  ].join('\n')
}

async function main(argv: readonly string[]): Promise<number> {
  const [name, ...rest] = argv
  if (name === '--help' || name === '-h' || name === 'help') {
    console.log(help())
    return 0
  }
  if (name === undefined) throw new UsageError(`Name a benchmark.\n\n${help()}`)
  const benchmark = Object.hasOwn(BENCHMARKS, name) ? BENCHMARKS[name] : undefined
  if (!benchmark) {
    throw new UsageError(`There is no benchmark "${name}". Choose one of: ${Object.keys(BENCHMARKS).join(', ')}.`)
  }
  return benchmark.run(rest)
}

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  const usage = error instanceof UsageError
  console.error(`bench: ${error instanceof Error ? error.message : String(error)}`)
  if (!usage && process.env.BENCH_DEBUG && error instanceof Error) console.error(error.stack)
  process.exitCode = usage ? 2 : 1
}
