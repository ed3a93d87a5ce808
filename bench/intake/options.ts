// The options of `bench intake`: parsed once, at the edge, into a readonly record.
// Promises: anything out of range or unknown is a UsageError that names the option.

import { tmpdir } from 'node:os'
import { parseArgs } from 'node:util'
import { CONTESTANTS } from '../contestants/contestant.ts'
import { STORES, type StoreName, storeNamed } from '../contestants/databases.ts'
import { numberIn, wholeIn } from '../option-values.ts'
import { UsageError } from '../usage-error.ts'

const SKIPPABLE = [...CONTESTANTS, 'latency', 'drain'] as const
export type Skippable = (typeof SKIPPABLE)[number]

export interface IntakeOptions {
  readonly store: StoreName
  readonly rounds: number
  readonly seconds: number
  readonly warmSeconds: number
  /** Longest wait before a round for other processes to be quiet. */
  readonly idleWaitSeconds: number
  readonly connections: number
  /** Stored events to reach before the second set of rates; 0 = no fill. */
  readonly fill: number
  readonly skip: ReadonlySet<Skippable>
  readonly folder: string
  readonly profile: string | null
  readonly maxMinutes: number
  readonly strict: boolean
}

export const INTAKE_HELP = `Usage: npm run bench -- intake [options]

  --store <name>      what is measured: ${STORES.join(', ')} (sqlite)
  --rounds <n>        rounds per set, each contestant once a round (15)
  --seconds <n>       measured seconds per contestant and round (3)
  --warm <n>          warm-up seconds per contestant and set (3)
  --wait-idle <n>     wait at most this long before each round for other processes to be quiet (60)
  --connections <n>   keep-alive connections of the throughput set (64)
  --fill <n>          then fill a fresh Intray to n events and measure again, e.g. 2000000 (0 = off)
  --skip <name>       leave out ${SKIPPABLE.join(', ')}; may be repeated
  --quick             3 rounds of 2 s, warm-up 1 s: about a minute, for a first look
  --folder <path>     where the temporary folder is made; must be a real disk (${tmpdir()})
  --profile <path>    write V8 CPU profiles of Intray there (slows it down)
  --max-minutes <n>   end the run after this long (60)
  --strict            exit 1 when a bound is missed
  --help`

const FLAGS = {
  store: { type: 'string' },
  rounds: { type: 'string' },
  seconds: { type: 'string' },
  warm: { type: 'string' },
  'wait-idle': { type: 'string' },
  connections: { type: 'string' },
  fill: { type: 'string' },
  skip: { type: 'string', multiple: true },
  quick: { type: 'boolean' },
  folder: { type: 'string' },
  profile: { type: 'string' },
  'max-minutes': { type: 'string' },
  strict: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

function parse(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options: FLAGS, strict: true, allowPositionals: false }).values
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\n\n${INTAKE_HELP}`)
  }
}

function skipped(names: readonly string[]): ReadonlySet<Skippable> {
  const all = names.flatMap((name) => name.split(','))
  const unknown = all.find((name) => !(SKIPPABLE as readonly string[]).includes(name))
  if (unknown !== undefined) {
    throw new UsageError(`--skip knows ${SKIPPABLE.join(', ')}, not "${unknown}".`)
  }
  const skip = new Set(all as Skippable[])
  if (CONTESTANTS.every((name) => skip.has(name))) throw new UsageError('--skip leaves no contestant.')
  return skip
}

/** Null if help was requested. */
export function parseIntakeOptions(argv: readonly string[]): IntakeOptions | null {
  const flags = parse(argv)
  if (flags.help) return null
  const quick = flags.quick === true
  const options: IntakeOptions = {
    store: storeNamed(flags.store),
    rounds: wholeIn('rounds', flags.rounds, quick ? 3 : 15, 1, 100),
    seconds: numberIn('seconds', flags.seconds, quick ? 2 : 3, 0.5, 300),
    warmSeconds: numberIn('warm', flags.warm, quick ? 1 : 3, 0.5, 300),
    idleWaitSeconds: numberIn('wait-idle', flags['wait-idle'], 60, 0, 600),
    connections: wholeIn('connections', flags.connections, 64, 1, 1000),
    fill: wholeIn('fill', flags.fill, 0, 0, 20_000_000),
    skip: skipped(flags.skip ?? []),
    folder: flags.folder ?? tmpdir(),
    profile: flags.profile ?? null,
    maxMinutes: numberIn('max-minutes', flags['max-minutes'], 60, 1, 600),
    strict: flags.strict === true,
  }
  if (options.fill > 0 && options.skip.has('intray')) throw new UsageError('--fill needs intray: do not skip it.')
  return options
}
