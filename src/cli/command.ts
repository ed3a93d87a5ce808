// What a command is, and how it says that it cannot be done.

/** One action of a command that has several, such as `inbox list`. */
export interface Subcommand {
  /** One line for the overview. */
  readonly summary: string
  readonly help: string
  /** Resolves with the exit code. */
  run(args: readonly string[]): Promise<number>
}

export interface Command extends Subcommand {
  readonly name: string
  /** For a command with subcommands: the help of the one that the arguments name. */
  helpOf?(args: readonly string[]): string | undefined
}

/** The call itself was wrong: told with a pointer to --help. */
export class UsageError extends Error {}

/** It could not be done: told as it is. */
export class CommandError extends Error {}
