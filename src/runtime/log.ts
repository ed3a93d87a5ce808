// The log: JSON lines on stderr, or readable lines on a terminal. stdout is left to the output of commands.

import { setTimeout } from 'node:timers/promises'
import { styleText } from 'node:util'
import { LineSink } from './line-sink.ts'
import { redactText } from './redact.ts'

const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

type Level = Exclude<(typeof LOG_LEVELS)[number], 'silent'>
type LogFields = Readonly<Record<string, unknown>>

export interface Logger {
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
  fatal(message: string, fields?: LogFields): void
  isEnabled(level: Level): boolean
  /** A line whose fields are already JSON, without the braces: for the access log, where serializing costs too much. */
  composed(level: Level, fields: string): void
}

export interface LogOptions {
  readonly level: string
  readonly format: 'auto' | 'json' | 'pretty'
}

export interface Log {
  readonly logger: Logger
  /** Writes the remaining lines; gives up after a second, because a reader may have stalled. */
  flush(): Promise<void>
}

const FLUSH_TIMEOUT_MS = 1000

export function createLog({ level, format }: LogOptions): Log {
  if (format === 'pretty' || (format === 'auto' && process.stderr.isTTY)) {
    // A closed terminal must not end the service.
    process.stderr.on('error', () => {})
    return { logger: createLogger(level, (line) => process.stderr.write(prettyLine(line))), flush: async () => {} }
  }
  const sink = new LineSink(2)
  return {
    logger: createLogger(level, (line) => sink.write(line)),
    flush: async () => {
      const limit = new AbortController()
      const waited = setTimeout(FLUSH_TIMEOUT_MS, undefined, { signal: limit.signal }).catch(() => {})
      await Promise.race([sink.flush(), waited])
      limit.abort()
    },
  }
}

export function createLogger(lowest: string, write: (line: string) => void): Logger {
  const prefix = createLinePrefix()
  const enabled = new Set<string>(LOG_LEVELS.slice(LOG_LEVELS.indexOf(lowest as Level)))
  const isEnabled = (level: Level) => enabled.has(level)
  const composed = (level: Level, fields: string) => {
    if (isEnabled(level)) write(`${prefix(level)}${fields}}\n`)
  }
  const at = (level: Level) => (message: string, fields?: LogFields) =>
    composed(level, JSON.stringify({ msg: message, ...fields }).slice(1, -1))
  return { info: at('info'), warn: at('warn'), error: at('error'), fatal: at('fatal'), isEnabled, composed }
}

/** Level and time, cached for a millisecond, because formatting a date costs more than the rest of a short line. */
function createLinePrefix(): (level: Level) => string {
  let [formattedAt, formattedFor, text] = [-1, '', '']
  return (level) => {
    const now = Date.now()
    if (now !== formattedAt || level !== formattedFor) {
      formattedAt = now
      formattedFor = level
      text = `{"level":"${level}","time":"${new Date(now).toISOString()}",`
    }
    return text
  }
}

/** The message of an error, without token-shaped text. */
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
