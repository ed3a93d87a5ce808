// What a command is, and how it says that it cannot be done.

export interface Command {
  readonly name: string
  /** One line for the overview. */
  readonly summary: string
  readonly help: string
  /** For a command of several actions: the help of the one that is named, if one is. */
  helpOf?(args: readonly string[]): string | undefined
  run(args: readonly string[]): Promise<number>
}

/** The call itself was wrong: told with a pointer to --help. */
export class UsageError extends Error {}

/** It could not be done: told as it is. */
export class CommandError extends Error {}
