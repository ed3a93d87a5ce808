// The examples as their users run them: programs in processes of their own, and what the service has of them.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { TestContext } from 'node:test'
import type { TestApp } from '../../support/app.ts'
import { cleanEnvironment, ROOT } from '../../support/process.ts'
import { until, within } from '../../support/until.ts'

const CLIENT_FROM_SOURCE = join(ROOT, 'test/kits/examples/client-from-source.ts')

/** What runs a program in TypeScript that imports the client. */
export const NODE = [process.execPath, '--import', CLIENT_FROM_SOURCE] as const

export interface Example {
  /** What it printed on both streams. */
  said(): string
  /** The address it listens on. */
  url(): Promise<string>
  /** Resolves with its exit code; null if a signal ended it. */
  stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null>
  readonly ended: Promise<number | null>
}

export interface ExampleOptions {
  readonly env?: Record<string, string>
  readonly cwd?: string
}

export function startExample(
  t: Pick<TestContext, 'after'>,
  command: readonly string[],
  { env = {}, cwd = ROOT }: ExampleOptions = {},
): Example {
  const child = spawn(command[0]!, command.slice(1), {
    env: cleanEnvironment(env),
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.after(() => child.kill('SIGKILL'))
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => (said += chunk))
  const ended = once(child, 'close').then(([code]) => code as number | null)
  let hasEnded = false
  void ended.then(() => (hasEnded = true))
  return {
    said: () => said,
    url: () =>
      until(`${command.at(-1)} listens`, () => {
        if (hasEnded) throw new Error(`it has ended: ${said}`)
        return /listening on (\S+)/.exec(said)?.[1]
      }),
    stop: (signal) => {
      child.kill(signal)
      return within(`the end of ${command.at(-1)}`, ended)
    },
    ended,
  }
}

export function typescriptExample(t: Pick<TestContext, 'after'>, file: string, env: Record<string, string>): Example {
  return startExample(t, [...NODE, join(ROOT, 'kits/examples', file)], { env })
}

/** On a connection of its own: Node's servers end one that waits for 5 s, also while its next request is on the way. */
export function ask(url: string | URL, { headers = {}, ...init }: RequestInit = {}): Promise<Response> {
  return fetch(url, { ...init, headers: { ...(headers as Record<string, string>), Connection: 'close' } })
}

/** The time that a killed sender's claims and the back-off take is over. */
export function makeDue(outbox: string): void {
  const file = new DatabaseSync(outbox)
  file.exec('UPDATE outbox SET claimed_until = 0, next_at = 0 WHERE next_at IS NOT NULL')
  file.close()
}

export interface StoredEvent {
  readonly id: number
  readonly sourceRef: string | null
  readonly channelRef: string | null
  readonly payload: Readonly<Record<string, unknown>>
}

/** The events after an id, without what was only re-sent. */
export async function storedAfter({ store }: TestApp, after: number): Promise<StoredEvent[]> {
  const found: StoredEvent[] = []
  for (let id = after + 1; id <= (await store.events.watermark()); id++) {
    const event = await store.events.find(id)
    if (!event) continue
    const payload = JSON.parse(Buffer.from((await store.events.payload(id))!).toString()) as Record<string, unknown>
    found.push({ id, sourceRef: event.sourceRef, channelRef: event.channelRef, payload })
  }
  return found
}
