// Log lines: JSON on stderr for machines, one readable line on a terminal for people. stdout belongs to what a command
// says to its user. Lines are written in the background in larger pieces; `flush` writes what is left.

import { styleText } from 'node:util'
import { type Logger, pino } from 'pino'
import { redactText } from './redact.ts'

export type { Logger } from 'pino'

export interface LogOptions {
  readonly level: string
  readonly format: 'auto' | 'json' | 'pretty'
}

export interface Log {
  readonly logger: Logger
  /** Writes what is left; gives up after a second, since a reader of the log may have stalled. */
  flush(): Promise<void>
}

const FLUSH_EVERY_MS = 250
const BUFFER_BYTES = 65_536
/** Lines that wait for a stalled reader beyond this are dropped. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024
const FLUSH_TIMEOUT_MS = 1000

export function createLog(options: LogOptions): Log {
  const settings = {
    level: options.level,
    base: null,
    timestamp: createTimestamp(),
    formatters: { level: (label: string) => ({ level: label }) },
  }
  const pretty = options.format === 'pretty' || (options.format === 'auto' && process.stderr.isTTY)
  if (pretty) {
    // A reader of our log that goes away must not take the service with it.
    process.stderr.on('error', () => {})
    return {
      logger: pino(settings, { write: (line) => process.stderr.write(prettyLine(line)) }),
      flush: async () => {},
    }
  }
  const destination = pino.destination({
    fd: 2,
    sync: false,
    minLength: BUFFER_BYTES,
    maxWrite: 2 * BUFFER_BYTES,
    maxLength: MAX_WAITING_BYTES,
  })
  const timer = setInterval(() => destination.flush(), FLUSH_EVERY_MS)
  timer.unref()
  destination.on('error', () => {})
  return { logger: pino(settings, destination), flush: () => flushed(destination) }
}

function flushed(destination: ReturnType<typeof pino.destination>): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, FLUSH_TIMEOUT_MS).unref()
    destination.flush(() => resolve())
  })
}

/** Formatting a date costs more than the rest of a short line: one text serves all lines of a millisecond. */
function createTimestamp(): () => string {
  let formattedAt = -1
  let text = ''
  return () => {
    const now = Date.now()
    if (now !== formattedAt) {
      formattedAt = now
      text = `,"time":"${new Date(now).toISOString()}"`
    }
    return text
  }
}

/** What an error says, without anything shaped like a secret. */
export function errorText(error: unknown): string {
  return redactText(error instanceof Error ? error.message : String(error))
}

const COLOURS = { debug: 'gray', info: 'green', warn: 'yellow', error: 'red', fatal: 'red' } as const

function prettyLine(line: string): string {
  const { level, time, msg, ...rest } = JSON.parse(line) as Record<string, unknown>
  const colour = COLOURS[level as keyof typeof COLOURS] ?? 'white'
  const fields = Object.entries(rest)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(
      ([key, value]) => `${styleText('gray', `${key}=`)}${typeof value === 'object' ? JSON.stringify(value) : value}`,
    )
  const clock = String(time).slice(11, 23)
  return `${styleText('gray', clock)} ${styleText(colour, String(level).padEnd(5))} ${msg ?? ''} ${fields.join(' ')}\n`
}
