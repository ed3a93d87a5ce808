// The options of `bench ab`: parsed once, at the edge, into a readonly record.
// Promises: anything out of range or unknown is a UsageError that names the option.

import { tmpdir } from 'node:os'
import { parseArgs } from 'node:util'
import { STORES, type StoreName, storeNamed } from '../contestants/databases.ts'
import { BESIDE_NAMES, type BesideName } from './beside.ts'
import { numberIn, wholeIn } from '../option-values.ts'
import { UsageError } from '../usage-error.ts'

export const SCENARIOS = ['burst', 'two', 'sustained'] as const
export type ScenarioName = (typeof SCENARIOS)[number]

export interface AbOptions {
  /** As given: a branch, a tag, a hash, HEAD~5. */
  readonly against: string
  readonly store: StoreName
  readonly scenarios: readonly ScenarioName[]
  readonly rounds: number
  /** Length of a burst. */
  readonly seconds: number
  /** Number of messages of a sustained load. */
  readonly messages: number
  readonly connections: number
  /** What runs in a loop on A while it is measured. */
  readonly beside: readonly BesideName[]
  readonly folder: string
  readonly json: string | null
  readonly maxMinutes: number
}

export const AB_HELP = `Usage: npm run bench -- ab --against <commit> [options]

Measures this working tree (A) and another commit (B) in interleaved rounds.

  --against <commit>  the commit that is B; it is checked out into a temporary folder
  --store <name>      ${STORES.join(', ')} (sqlite)
  --only <scenario>   burst: messages/s in short loads
                      two: the same with two processes; PostgreSQL only
                      sustained: messages/s until everything sent is stored and indexed
                      may be repeated; all scenarios of the store if left out
  --rounds <n>        rounds per scenario, A and B once each (8)
  --seconds <n>       length of a burst (2)
  --messages <n>      messages of a sustained load; far more than one step of the index takes (150000)
  --connections <n>   keep-alive connections (64)
  --beside <what>     while A is measured, run this on its database, again and again: ${BESIDE_NAMES.join(', ')};
                      may be repeated
  --folder <path>     where the temporary folder is made; must be a real disk (${tmpdir()})
  --json <file>       write every measurement there
  --max-minutes <n>   end the run after this long (30)
  --help`

const FLAGS = {
  against: { type: 'string' },
  store: { type: 'string' },
  only: { type: 'string', multiple: true },
  rounds: { type: 'string' },
  seconds: { type: 'string' },
  messages: { type: 'string' },
  connections: { type: 'string' },
  beside: { type: 'string', multiple: true },
  folder: { type: 'string' },
  json: { type: 'string' },
  'max-minutes': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const

function parse(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options: FLAGS, strict: true, allowPositionals: false }).values
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\n\n${AB_HELP}`)
  }
}

function scenariosOf(store: StoreName, only: readonly string[]): ScenarioName[] {
  const names = only.flatMap((name) => name.split(','))
  const unknown = names.find((name) => !(SCENARIOS as readonly string[]).includes(name))
  if (unknown !== undefined) throw new UsageError(`--only knows ${SCENARIOS.join(', ')}, not "${unknown}".`)
  if (store === 'sqlite' && names.includes('two')) {
    throw new UsageError('--only two needs --store postgres: a database in a file has one writer.')
  }
  return SCENARIOS.filter((name) =>
    names.length === 0 ? name !== 'two' || store === 'postgres' : names.includes(name),
  )
}

function besideOf(names: readonly string[]): BesideName[] {
  const unknown = names.find((name) => !(BESIDE_NAMES as readonly string[]).includes(name))
  if (unknown !== undefined) throw new UsageError(`--beside knows ${BESIDE_NAMES.join(', ')}, not "${unknown}".`)
  return BESIDE_NAMES.filter((name) => names.includes(name))
}

/** Null if help was requested. */
export function parseAbOptions(argv: readonly string[]): AbOptions | null {
  const flags = parse(argv)
  if (flags.help) return null
  if (flags.against === undefined || flags.against === '') {
    throw new UsageError(`Name the commit to compare with: --against <commit>.\n\n${AB_HELP}`)
  }
  const store = storeNamed(flags.store)
  return {
    against: flags.against,
    store,
    scenarios: scenariosOf(store, flags.only ?? []),
    rounds: wholeIn('rounds', flags.rounds, 8, 1, 100),
    seconds: numberIn('seconds', flags.seconds, 2, 0.5, 300),
    messages: wholeIn('messages', flags.messages, 150_000, 1000, 20_000_000),
    connections: wholeIn('connections', flags.connections, 64, 1, 1000),
    beside: besideOf(flags.beside ?? []),
    folder: flags.folder ?? tmpdir(),
    json: flags.json ?? null,
    maxMinutes: numberIn('max-minutes', flags['max-minutes'], 30, 1, 600),
  }
}
