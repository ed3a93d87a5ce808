// Finds the command that the arguments name, runs it, and reports a failure as a sentence on stderr and an exit code.
//
//   0  success      1  failure      2  wrong usage, or no database where the command looks

import { ConfigError } from '../config.ts'
import { nearest } from '../runtime/nearest.ts'
import { SecretsKeyMissing } from '../runtime/secrets.ts'
import { VERSION } from '../runtime/version.ts'
import { DatabaseMissing, StoreFailure, StoreRefused } from '../store/contract/failure.ts'
import { type Command, CommandError, type CommandGroup, UsageError } from './command.ts'
import { printable } from './output.ts'
import { runningServers } from './server-notes.ts'

/** Loaded on demand, so that a command does not load the code of the others. */
export const COMMANDS: Readonly<Record<string, () => Promise<Command | CommandGroup>>> = {
  serve: async () => (await import('./commands/serve.ts')).serve,
  init: async () => (await import('./commands/init.ts')).init,
  token: async () => (await import('./commands/token.ts')).token,
  hook: async () => (await import('./commands/hook.ts')).hook,
  operator: async () => (await import('./commands/operator.ts')).operator,
  endpoint: async () => (await import('./commands/endpoint.ts')).endpoint,
  send: async () => (await import('./commands/send.ts')).send,
  inbox: async () => (await import('./commands/inbox.ts')).inbox,
  event: async () => (await import('./commands/event.ts')).event,
  erase: async () => (await import('./commands/erase.ts')).erase,
  retention: async () => (await import('./commands/retention.ts')).retention,
  doctor: async () => (await import('./commands/doctor.ts')).doctor,
  export: async () => (await import('./commands/export.ts')).exportCommand,
  import: async () => (await import('./commands/import.ts')).importCommand,
  verify: async () => (await import('./commands/verify.ts')).verify,
  backup: async () => (await import('./commands/backup.ts')).backup,
  restore: async () => (await import('./commands/restore.ts')).restore,
  epoch: async () => (await import('./commands/epoch.ts')).epoch,
  copy: async () => (await import('./commands/copy.ts')).copy,
  salvage: async () => (await import('./commands/salvage.ts')).salvage,
  reindex: async () => (await import('./commands/reindex.ts')).reindex,
}

const HELP_FLAGS = ['--help', '-h']
const LAUNCHER = './intray'

export async function runCommand(argv: readonly string[]): Promise<number> {
  process.stdout.on('error', onUnwritable)
  // The words that were recognised as a command: an error points to its help.
  const call = { name: LAUNCHER }
  try {
    return await run(argv, call)
  } catch (error) {
    return report(error, call.name)
  }
}

async function run(argv: readonly string[], call: { name: string }): Promise<number> {
  const [first, ...rest] = argv
  if (first === '--version' || first === '-v') {
    process.stdout.write(`intray ${VERSION}\n`)
    return 0
  }
  const asksForHelp = first === undefined || first === 'help' || HELP_FLAGS.includes(first)
  const words = asksForHelp ? rest.filter((word) => !HELP_FLAGS.includes(word)) : argv
  if (words.length === 0) {
    process.stdout.write(await overview())
    return 0
  }
  const { command, args } = await find(words, call)
  if (asksForHelp || args.some((arg) => HELP_FLAGS.includes(arg))) {
    process.stdout.write(`${command.help(call.name)}\n`)
    return 0
  }
  if ('subcommands' in command) throw new UsageError(`${call.name} needs a sub-command.`)
  return command.run(args)
}

interface Found {
  readonly command: Command | CommandGroup
  readonly args: readonly string[]
}

async function find([name = '', ...args]: readonly string[], call: { name: string }): Promise<Found> {
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (!load) throw unknownCommand('', name, Object.keys(COMMANDS))
  const command = await load()
  call.name = `${LAUNCHER} ${name}`
  const [subname, ...rest] = args
  if (!('subcommands' in command) || subname === undefined || subname.startsWith('-')) return { command, args }
  const subcommand = Object.hasOwn(command.subcommands, subname) ? command.subcommands[subname] : undefined
  if (!subcommand) throw unknownCommand(`${name} `, subname, Object.keys(command.subcommands))
  call.name = `${LAUNCHER} ${name} ${subname}`
  return { command: subcommand, args: rest }
}

function unknownCommand(group: string, name: string, known: readonly string[]): UsageError {
  const near = nearest(name, known)
  const suggestion = near === null ? '' : ` Did you mean "${group}${near}"?`
  return new UsageError(`There is no command "${group}${printable(name)}".${suggestion}`)
}

/** If the reader closed the pipe, as in `… | head`, the command still finishes its work. On a full disk it ends. */
function onUnwritable(error: Error & { code?: string }): void {
  if (error.code === 'EPIPE') return
  process.stderr.write(`intray: stdout cannot be written: ${error.message}.\n`)
  process.exit(1)
}

async function overview(): Promise<string> {
  const rows: string[] = []
  for (const [name, load] of Object.entries(COMMANDS)) {
    const { summary } = await load()
    rows.push(`  ${name.padEnd(10)} ${summary}`)
  }
  return `Intray stores inbound messages exactly as sent, once, and hands them out for processing.

Usage: ${LAUNCHER} COMMAND [flags]

${rows.join('\n')}

'${LAUNCHER} COMMAND --help' or '${LAUNCHER} help COMMAND' describes one command, '${LAUNCHER} --version' prints the version.
'${LAUNCHER} serve --help' lists all settings, '${LAUNCHER} serve --print-config' those in effect.
`
}

function report(error: unknown, call: string): number {
  if (error instanceof UsageError) {
    process.stderr.write(`intray: ${error.message}\nHelp: ${call} --help\n`)
    return 2
  }
  if (error instanceof ConfigError) {
    for (const problem of error.problems) process.stderr.write(`intray: ${problem}\n`)
    process.stderr.write(`Help: ${LAUNCHER} serve --help lists all settings.\n`)
    return 2
  }
  process.stderr.write(`intray: ${failureText(error)}\n`)
  if (!(error instanceof DatabaseMissing)) return 1
  process.stderr.write(whereDatabasesAre())
  return 2
}

/** A command is often started in another folder than the server. */
function whereDatabasesAre(): string {
  const servers = runningServers().map(({ address, database }) => {
    const secret = database.includes('://') ? ' (with its password and parameters, which are left out here)' : ''
    return `The server on ${address} uses another database. For that one: INTRAY_DATABASE_URL=${database}${secret}`
  })
  if (servers.length === 0) servers.push(`No server of this user runs here. For a new database: ${LAUNCHER} init`)
  return servers.map((line) => `${printable(line)}\n`).join('')
}

/** Of a file or folder that a command was given. */
const FILE_FAILURES: Readonly<Record<string, string>> = {
  EACCES: 'this user may not read or write it. Change its permissions, or run the command as the user of the service.',
  EPERM: 'the system does not permit this user to change it.',
  ENOENT: 'there is no such file or folder. Create it first.',
  ENOTDIR: 'a part of this path is no folder.',
  EISDIR: 'this is a folder, and a file is needed.',
  EROFS: 'it is on a file system that is read-only.',
  ENOSPC: 'the disk is full.',
}

function failureText(error: unknown): string {
  if (error instanceof CommandError || error instanceof StoreRefused || error instanceof SecretsKeyMissing)
    return error.message
  if (error instanceof StoreFailure) return `The database reported a failure: ${error.message}.`
  const { code, path } = error as NodeJS.ErrnoException
  const reason = code === undefined || path === undefined ? undefined : FILE_FAILURES[code]
  if (reason !== undefined) return `${path}: ${reason}`
  return `unexpected failure\n${error instanceof Error ? error.stack : error}`
}
