// Runs PostgreSQL's own programs, pg_dump and pg_restore, from the PATH. Where one is missing or does not fit, the message
// holds the command to run elsewhere.

import { spawn } from 'node:child_process'
import { StoreRefused } from '../../contract/failure.ts'

const SHOWN_CHARACTERS = 1000

export interface ProgramCall {
  readonly name: 'pg_dump' | 'pg_restore'
  readonly args: readonly string[]
  /** Given in the environment. */
  readonly password: string | null
}

/** The major version of the program; null if it is not on the PATH. */
export async function majorOf(name: ProgramCall['name']): Promise<number | null> {
  try {
    const { output } = await run({ name, args: ['--version'], password: null })
    return Number(/\(PostgreSQL\) (\d+)/.exec(output)?.[1] ?? 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

export async function runProgram(call: ProgramCall): Promise<void> {
  const { code, output } = await run(call)
  if (code !== 0) throw new StoreRefused(`${call.name} failed: ${output.trim().slice(0, SHOWN_CHARACTERS)}`)
}

/** The call as a line for a shell. */
export function shellLine({ name, args, password }: ProgramCall): string {
  const words = [name, ...args].map((word) =>
    /^[\w./:@=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`,
  )
  return `${password === null ? '' : 'PGPASSWORD=... '}${words.join(' ')}`
}

/** Resolves with all that the program printed, at its end. */
function run({ name, args, password }: ProgramCall): Promise<{ code: number | null; output: string }> {
  const env = password === null ? process.env : { ...process.env, PGPASSWORD: password }
  const child = spawn(name, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  const note = (text: Buffer) => {
    if (output.length < 10_000) output += text
  }
  child.stdout.on('data', note)
  child.stderr.on('data', note)
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, output }))
  })
}
