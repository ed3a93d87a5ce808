// A command of the command line: its flags are a table, from which its help is made and its arguments are parsed. Also the two
// ways in which a command fails.

import { parseArgs, type ParseArgsConfig } from 'node:util'
import { nearest } from '../runtime/nearest.ts'
import { printable, wrapped } from './output.ts'
import { outputIsForProgram } from './used-database.ts'

export interface Flag {
  /** The name of its value in the help; a flag without it is a switch. */
  readonly value?: string
  readonly about: string
  /** Shown in the usage line. The command checks it. */
  readonly isRequired?: true
  readonly multiple?: true
}

export type Flags = Readonly<Record<string, Flag>>

export type FlagValues<F extends Flags> = {
  readonly [N in keyof F]?: F[N] extends { readonly multiple: true }
    ? readonly string[]
    : F[N] extends { readonly value: string }
      ? string
      : boolean
}

export interface Command {
  /** One line for the list of commands. */
  readonly summary: string
  /** `call`: the words that name the command, such as `./intray inbox list`. */
  help(call: string): string
  /** Resolves with the exit code. */
  run(args: readonly string[]): Promise<number>
}

export type Subcommands = Readonly<Record<string, Command>>

/** A command that has sub-commands and does nothing without one. */
export interface CommandGroup extends Pick<Command, 'summary' | 'help'> {
  readonly subcommands: Subcommands
}

/** The call itself is wrong. Reported with the command's help; exit code 2. */
export class UsageError extends Error {}

/** The command could not do its work. The message says why and what to do; exit code 1. */
export class CommandError extends Error {}

export interface CommandOptions<F extends Flags> {
  /** The arguments beside flags: one that is required (`ID`), or in brackets those that the command checks by itself. */
  readonly args?: string
  /** Describes the command. Its first sentence stands in the list of commands. */
  readonly about: string
  readonly flags: F
  /** The end of the help. */
  readonly notes?: string
  /** Resolves with the exit code; with nothing for 0. */
  run(values: FlagValues<F>, args: readonly string[]): Promise<number> | Promise<void>
}

export function command<const F extends Flags>(options: CommandOptions<F>): Command {
  const { args: argsText, about, flags, notes } = options
  return {
    summary: /^.*?\.(?=\s|$)/s.exec(about)![0].replaceAll('\n', ' '),
    help: (call) => {
      const required = Object.entries(flags).filter(([, { isRequired }]) => isRequired)
      const usage = [call, ...(argsText ? [argsText] : []), ...required.map(flagText), '[flags]'].join(' ')
      return [`Usage: ${usage}`, about, flagRows(flags), ...(notes ? [notes] : [])].join('\n\n')
    },
    run: async (args) => {
      const { values, positionals } = parse(args, flags)
      if (!argsText?.startsWith('[')) requireArguments(positionals, argsText ? [argsText] : [])
      if ('json' in values || 'raw' in values) outputIsForProgram()
      return (await options.run(values as FlagValues<F>, positionals)) ?? 0
    },
  }
}

/** `about` is the paragraph between the usage and the list of sub-commands. */
export function commandGroup(summary: string, about: string, subcommands: Subcommands): CommandGroup {
  const width = Math.max(...Object.keys(subcommands).map((key) => key.length))
  const rows = Object.entries(subcommands).map(([key, { summary: line }]) => `  ${key.padEnd(width)}  ${line}`)
  return {
    summary: `${summary}: ${Object.keys(subcommands).join(', ')}.`,
    help: (call) =>
      `Usage: ${call} SUBCOMMAND [flags]\n\n${about}\n\n${rows.join('\n')}\n\n'${call} SUBCOMMAND --help' describes one of them.`,
    subcommands,
  }
}

function flagText([name, { value }]: readonly [string, Flag]): string {
  return value ? `--${name} ${value}` : `--${name}`
}

function flagRows(flags: Flags): string {
  const entries = Object.entries(flags)
  const width = 4 + Math.max(...entries.map((entry) => flagText(entry).length))
  return entries.map((entry) => `  ${flagText(entry)}`.padEnd(width) + wrapped(entry[1].about, width)).join('\n')
}

function parse(args: readonly string[], flags: Flags) {
  const types = Object.entries(flags).map(([name, { value, multiple = false }]) => {
    return [name, { type: value === undefined ? 'boolean' : 'string', multiple }] as const
  })
  const options: NonNullable<ParseArgsConfig['options']> = Object.fromEntries(types)
  try {
    return parseArgs({ args: [...args], allowPositionals: true, options })
  } catch (error) {
    throw flagError(error, Object.keys(flags))
  }
}

function requireArguments(given: readonly string[], names: readonly string[]): void {
  if (given.length > names.length) throw new UsageError(`Unexpected argument "${printable(given[names.length]!)}".`)
  if (given.length < names.length) throw new UsageError(`${names[given.length]} is missing.`)
}

/** Node's own sentences explain its parser; these name the flag. */
function flagError(error: unknown, known: readonly string[]): unknown {
  const { code = '', message = '' } = error as { code?: string; message?: string }
  if (!code.startsWith('ERR_PARSE_ARGS')) return error
  const [, flag = ''] = /'(-[^\s'=]*)/.exec(message) ?? []
  if (code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
    const near = flag.startsWith('--') ? nearest(flag.slice(2), known) : null
    return new UsageError(`There is no flag ${printable(flag)}.${near === null ? '' : ` Did you mean --${near}?`}`)
  }
  const takesNone = message.includes('does not take an argument')
  return new UsageError(`${printable(flag)} ${takesNone ? 'takes no value' : 'needs a value'}.`)
}
