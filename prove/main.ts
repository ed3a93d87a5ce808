// Entry of `npm run prove -- <name> [options]`: finds the proof, runs it, tells it, turns its outcome into an exit code.
// Promises: 0 = the claim held, its controls were found out and faults were injected; 1 = not so, or it could not be run;
// 2 = bad usage. Whatever it did to the machine is undone, after Ctrl-C and --max-minutes too.

import { randomInt } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { PROOFS } from './proofs.ts'
import { UsageError } from '../bench/usage-error.ts'
import { type Proof, type StoreName, STORES } from './proof.ts'
import { formatMarkdown, formatReport } from './report.ts'
import { ProofRun } from './run.ts'

const DRAWINGS = new URL('../docs/internals/reliability/', import.meta.url)
const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const
const MAX_MINUTES = 60
/** Of all proofs. */
const OWN_OPTIONS = Object.fromEntries(
  PROOFS.flatMap(({ options = {} }) => Object.keys(options)).map((name) => [name, { type: 'string' }] as const),
)

function help(): string {
  const rows = PROOFS.map(({ name, about, defaultCycles, stores, needs, options = {} }) => [
    `  ${name.padEnd(10)} ${about}`,
    `  ${''.padEnd(10)} ${defaultCycles} cycles; ${stores.join(', ')}${needs === '' ? '' : `; needs ${needs}`}`,
    ...Object.entries(options).map(([option, what]) => `  ${''.padEnd(10)} --${option}: ${what}`),
  ])
  return [
    'Usage: npm run prove -- <name> [--cycles N] [--seed S] [--store sqlite|postgres] [--markdown]',
    '',
    ...rows.flat(),
    '',
    '  --cycles N       how often; what a cycle is depends on the proof',
    '  --seed S         play the choices of an earlier run again',
    '  --store          the store under test',
    '  --only TEXT      of several faults (nth, failover) those whose name has this in it; the choices of a seed are then others',
    '  --list           lists these faults and exits',
    '  --folder F       where databases are kept meanwhile (the system’s temporary folder)',
    `  --max-minutes M  ends it after so long (${MAX_MINUTES})`,
    '  --markdown       also print the cells for docs/internals/reliability.md, and write its drawings',
  ].join('\n')
}

function whole(text: string | undefined, fallback: number, name: string, min: number): number {
  if (text === undefined) return fallback
  const number = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
  if (!(number >= min)) throw new UsageError(`--${name} must be a whole number from ${min} on.`)
  return number
}

function storeOf(proof: Proof, text: string | undefined): StoreName {
  if (text === undefined) return proof.stores[0]!
  const store = STORES.find((one) => one === text)
  if (!store) throw new UsageError(`--store must be one of ${STORES.join(', ')}.`)
  if (!proof.stores.includes(store)) throw new UsageError(`${proof.name} runs on ${proof.stores.join(', ')} only.`)
  return store
}

function onlyOf({ name, faults }: Proof, text: string | undefined): string {
  if (text === undefined) return ''
  if (!faults) throw new UsageError(`${name} has one fault: --only is for those that have several.`)
  if (!faults.some((fault) => fault.includes(text)))
    throw new UsageError(`--only must be a part of one of: ${faults.join(', ')}.`)
  return text
}

/** The values of the proof's own options. Those of another proof are a mistake. */
function givenOf({ name, options = {} }: Proof, values: Readonly<Record<string, unknown>>): Record<string, string> {
  const given = Object.keys(OWN_OPTIONS).filter((option) => values[option] !== undefined)
  const foreign = given.find((option) => !Object.hasOwn(options, option))
  if (foreign !== undefined) throw new UsageError(`${name} has no --${foreign}.`)
  return Object.fromEntries(given.map((option) => [option, String(values[option])]))
}

async function main(argv: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      cycles: { type: 'string' },
      seed: { type: 'string' },
      store: { type: 'string' },
      only: { type: 'string' },
      folder: { type: 'string' },
      list: { type: 'boolean' },
      ...OWN_OPTIONS,
      'max-minutes': { type: 'string' },
      markdown: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help || positionals[0] === 'help') {
    console.log(help())
    return 0
  }
  const [name, ...more] = positionals
  if (name === undefined || more.length > 0) throw new UsageError(`Name one proof.\n\n${help()}`)
  const proof = PROOFS.find((one) => one.name === name)
  if (!proof)
    throw new UsageError(`There is no proof "${name}"; there is: ${PROOFS.map((one) => one.name).join(', ')}.`)
  if (values.list) {
    const faults = proof.faults ?? [proof.name]
    console.log(faults.map((fault) => `${fault.padEnd(20)} ${proof.faultsAbout?.[fault] ?? ''}`.trimEnd()).join('\n'))
    return 0
  }
  const options = {
    seed: whole(values.seed, randomInt(1, 2 ** 31), 'seed', 0),
    cycles: whole(values.cycles, proof.defaultCycles, 'cycles', 1),
    store: storeOf(proof, values.store),
    progress: say,
    isTimed: true,
    only: onlyOf(proof, values.only),
    given: givenOf(proof, values),
    ...(values.folder === undefined ? {} : { parentFolder: values.folder }),
  }
  say(`${name}: ${options.cycles} cycles on ${options.store}, --seed ${options.seed}`)
  const run = new ProofRun(proof, options)
  endInTime(run, whole(values['max-minutes'], MAX_MINUTES, 'max-minutes', 1))
  const report = await run.run()
  console.log(formatReport(report))
  if (values.markdown) {
    console.log(`\n${formatMarkdown(report)}`)
    for (const [file, text] of Object.entries(report.files ?? {})) {
      mkdirSync(DRAWINGS, { recursive: true })
      writeFileSync(new URL(file, DRAWINGS), text)
      say(`drawn: docs/internals/reliability/${file}`)
    }
  }
  return report.problems.length === 0 ? 0 : 1
}

/** A signal, or too long a run, undoes what was done and ends. */
function endInTime(run: ProofRun, maxMinutes: number): void {
  const end = (why: string, code: number) => {
    say(`${why}: cleaning up`)
    void run.close().finally(() => process.exit(code))
  }
  for (const [signal, number] of Object.entries(SIGNALS)) process.once(signal, () => end(signal, 128 + number))
  setTimeout(() => end(`--max-minutes ${maxMinutes} is over`, 1), maxMinutes * 60_000).unref()
}

function say(line: string): void {
  process.stderr.write(`prove: ${line}\n`)
}

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  const isUsage = error instanceof UsageError || String((error as { code?: unknown }).code).startsWith('ERR_PARSE_ARGS')
  console.error(`prove: ${error instanceof Error ? error.message : String(error)}`)
  if (!isUsage && error instanceof Error && error.name !== 'Unable') console.error(error.stack)
  process.exitCode = isUsage ? 2 : 1
}
// What was stopped in the middle may hold a socket open.
process.exit()
