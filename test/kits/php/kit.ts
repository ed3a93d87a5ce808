// The PHP kit as a site uses it: scripts in processes of their own, with settings from their environment.

import { join } from 'node:path'
import { readJournal } from '../../support/journal.ts'
import { runPhp } from '../../support/php.ts'
import { ROOT } from '../../support/process.ts'

export const KIT = join(ROOT, 'kits/php/Intray.php')

export interface Settings {
  readonly url: string
  readonly token: string
  readonly outbox: string
  readonly user?: string
}

export interface PhpResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs a script in which `$intray` is the kit. Null as its code: it was killed. */
export async function runKit(
  { url, token, outbox, user = '' }: Settings,
  script: string,
  env: Record<string, string> = {},
): Promise<PhpResult> {
  const { code, stdout, stderr } = await runPhp(`require getenv('KIT'); $intray = new Intray\\Intray(); ${script}`, {
    KIT,
    INTRAY_URL: url,
    INTRAY_TOKEN: token,
    INTRAY_OUTBOX: outbox,
    INTRAY_OUTBOX_USER: user,
    ...env,
  })
  return { code, stdout: stdout.toString(), stderr }
}

/** What a script printed as JSON. */
export async function jsonOf<T>(settings: Settings, script: string, env?: Record<string, string>): Promise<T> {
  const { code, stdout, stderr } = await runKit(
    settings,
    `echo json_encode((function ($intray) { ${script} })($intray));`,
    env,
  )
  if (code !== 0 || stderr !== '') throw new Error(`PHP ended with ${code}: ${stdout} ${stderr}`)
  return JSON.parse(stdout) as T
}

export interface Flushed {
  readonly sent: number
  readonly refused: number
  readonly problem: string | null
}

/** One run of cron, with everything that waits due: nobody waits for a back-off here. */
export function flush(settings: Settings): Promise<Flushed> {
  return jsonOf(settings, '$intray->outbox()->create(); $intray->outbox()->retryNow(); return $intray->flush();')
}

export interface State {
  readonly waiting: number
  readonly refused: number
}

export function stateOf(settings: Settings): Promise<State> {
  return jsonOf(settings, 'return $intray->outbox()->state();')
}

/** A message is committed, and its process is killed before it does anything else. */
export async function sendAndDie(settings: Settings, message: object): Promise<void> {
  const script = `$intray->send(json_decode(getenv('MESSAGE'), true)); echo 'kept'; posix_kill(getmypid(), SIGKILL);`
  const { code, stdout, stderr } = await runKit(settings, script, { MESSAGE: JSON.stringify(message) })
  if (code !== null || stdout !== 'kept')
    throw new Error(`PHP was not killed after send(): ${code} ${stdout} ${stderr}`)
}

export interface Arrivals {
  /** Accepted by send(), and not stored. */
  readonly lost: readonly string[]
  readonly twice: readonly string[]
}

export const ALL_ONCE: Arrivals = { lost: [], twice: [] }

/** Holds what is stored against what was accepted. */
export async function arrivals(databaseUrl: string, accepted: readonly string[]): Promise<Arrivals> {
  const stored = (await readJournal(databaseUrl)).map(({ event }) => event.sourceRef)
  return {
    lost: accepted.filter((ref) => !stored.includes(ref)),
    twice: accepted.filter((ref) => stored.filter((one) => one === ref).length > 1),
  }
}
