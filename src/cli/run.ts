// The commands, one file each, and how a failure is told: a sentence on stderr, a code for scripts.
//
//   0  done      1  could not be done      2  the call itself was wrong

import { ConfigError } from '../config.ts'
import { nearest } from '../runtime/nearest.ts'
import { StoreFailure, StoreRefused } from '../store/contract/failure.ts'
import { type Command, CommandError, UsageError } from './command.ts'

const COMMANDS: Record<string, () => Promise<Command>> = {
  serve: async () => (await import('./commands/serve.ts')).serve,
  token: async () => (await import('./commands/token.ts')).token,
  operator: async () => (await import('./commands/operator.ts')).operator,
  send: async () => (await import('./commands/send.ts')).send,
  inbox: async () => (await import('./commands/inbox.ts')).inbox,
  event: async () => (await import('./commands/event.ts')).event,
  doctor: async () => (await import('./commands/doctor.ts')).doctor,
  copy: async () => (await import('./commands/copy.ts')).copy,
  reindex: async () => (await import('./commands/reindex.ts')).reindex,
}

export async function runCommand(argv: readonly string[]): Promise<number> {
  const [name, ...args] = argv
  process.stdout.on('error', leaveReaderAlone)
  try {
    if (name === undefined || name === '--help' || name === '-h' || name === 'help') return await overview()
    const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
    if (!load)
      throw new UsageError(`There is no command "${name}". Did you mean "${nearest(name, Object.keys(COMMANDS))}"?`)
    const command = await load()
    if (args.includes('--help') || args.includes('-h')) {
      process.stdout.write(`${(command.helpOf?.(args) ?? command.help).trim()}\n`)
      return 0
    }
    return await command.run(args)
  } catch (error) {
    return report(error)
  }
}

/** Whoever reads us has enough, as in `… | head`. What was begun is done all the same. */
function leaveReaderAlone(error: Error & { code?: string }): void {
  if (error.code !== 'EPIPE') throw error
}

async function overview(): Promise<number> {
  const lines = [
    'Intray keeps inbound messages exactly as sent, once, and hands them out for processing.',
    '',
    'Commands:',
  ]
  for (const load of Object.values(COMMANDS)) {
    const { name, summary } = await load()
    lines.push(`  ${name.padEnd(10)} ${summary}`)
  }
  lines.push(
    '',
    "'./intray <command> --help' tells more. Settings: docs/operating/configuration.md, or './intray serve --print-config'.",
  )
  process.stdout.write(`${lines.join('\n')}\n`)
  return 0
}

function report(error: unknown): number {
  if (error instanceof UsageError || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS')) {
    process.stderr.write(`intray: ${(error as Error).message}\nRun './intray --help' for what there is.\n`)
    return 2
  }
  if (error instanceof ConfigError) {
    for (const problem of error.problems) process.stderr.write(`intray: ${problem}\n`)
    process.stderr.write('All settings: docs/operating/configuration.md\n')
    return 2
  }
  if (error instanceof CommandError || error instanceof StoreRefused) {
    process.stderr.write(`intray: ${error.message}\n`)
    return 1
  }
  if (error instanceof StoreFailure) {
    process.stderr.write(`intray: the database did not do it: ${error.message}.\n`)
    return 1
  }
  process.stderr.write(`intray: unexpected failure\n${error instanceof Error ? error.stack : error}\n`)
  return 1
}
