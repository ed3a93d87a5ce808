// A command of the command line, and the two ways in which it fails.

/** One action of a command that has several, such as `inbox list`. */
export interface Subcommand {
  /** One line for the list of commands. */
  readonly summary: string
  readonly help: string
  /** Resolves with the exit code. */
  run(args: readonly string[]): Promise<number>
}

export interface Command extends Subcommand {
  readonly name: string
}

export type Subcommands = Readonly<Record<string, Subcommand>>

/** A command that has sub-commands and does nothing without one. */
export interface CommandGroup {
  readonly name: string
  readonly summary: string
  readonly help: string
  readonly subcommands: Subcommands
}

/** The call itself is wrong. Reported with the command's help; exit code 2. */
export class UsageError extends Error {}

/** The command could not do its work. The message says why and what to do; exit code 1. */
export class CommandError extends Error {}

/** `about` is the paragraph between the usage and the list of sub-commands. */
export function commandGroup(name: string, summary: string, about: string, subcommands: Subcommands): CommandGroup {
  const width = Math.max(...Object.keys(subcommands).map((key) => key.length))
  const rows = Object.entries(subcommands).map(([key, { summary: line }]) => `  ${key.padEnd(width)}  ${line}`)
  const help = `Usage: ./intray ${name} SUBCOMMAND [flags]

${about}

${rows.join('\n')}

'./intray ${name} SUBCOMMAND --help' describes one of them.`
  return { name, summary: `${summary}: ${Object.keys(subcommands).join(', ')}.`, help, subcommands }
}
