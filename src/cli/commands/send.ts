// `./intray send`: posts messages from a file or from stdin to a running service over HTTP.

import { hash, randomBytes } from 'node:crypto'
import { createReadStream, readFileSync, statSync } from 'node:fs'
import { loadConfig } from '../../config.ts'
import { command, CommandError, UsageError } from '../command.ts'
import { type Line, splitLines, wholeText } from '../line-reader.ts'
import { createProgress, print, printable, printJson } from '../output.ts'
import { configuredAddress } from '../server-address.ts'
import { SendClient, type SendResult, type Unsent } from '../send-client.ts'

const INTAKE_PATH = '/v1/inbox/events'
/** The largest value of INTRAY_MAX_BODY_BYTES. */
const MAX_LINE_BYTES = 104_857_600
const READ_BYTES = 262_144
const SHOWN_REFUSALS = 10
const BAR_WIDTH = 24
/** Shorter runs write no progress to a log. */
const QUIET_MS = 5000

const ABOUT = `Sends messages from a file or from stdin to a running service. One JSON object, or one on each line (NDJSON). Bodies are
sent unchanged. A message that the service cannot take at the moment is sent again after Retry-After seconds.

A message without a source_ref gets an Idempotency-Key made from its line number and its bytes, so that neither a retry nor
sending the same file again stores it twice. --new makes new keys each time.

FILE holds the messages; - or nothing reads stdin.`

export const send = command({
  args: '[FILE | -]',
  about: ABOUT,
  flags: {
    ndjson: {
      about:
        'Every line is a message. The default if FILE ends in .ndjson or .jsonl. Without it, the whole input is one message.',
    },
    'token-file': { value: 'FILE', about: 'The file that holds the token. Recommended.' },
    token: {
      value: 'TOKEN',
      about:
        'The token itself. Every user of this machine can see it in the process list. Without --token and --token-file the command asks for it on a terminal.',
    },
    url: {
      value: 'URL',
      about: 'The address of the service [http://127.0.0.1:8080, or as INTRAY_HOST and INTRAY_PORT say].',
    },
    concurrency: { value: 'N', about: 'Messages in flight at once, 1 to 256 [8]. With 1 they are stored in order.' },
    tries: { value: 'N', about: 'How often a message is tried, 1 to 100 [8].' },
    new: { about: 'Store messages without a source_ref even if they were sent before.' },
    json: { about: 'Print the summary as one JSON object.' },
  },
  notes: 'The exit code is 0 if every message is stored, now or before.',
  async run(values, args) {
    const [file = '-', ...rest] = args
    if (rest.length > 0) throw new UsageError('send takes one FILE. Run it once for each file.')
    const concurrency = between(values.concurrency ?? '8', '--concurrency', 256)
    const maxTries = between(values.tries ?? '8', '--tries', 100)
    const url = urlOf(values.url)
    const token = await readToken(values.token, values['token-file'], file)
    const input = openInput(file, values.ndjson ?? /\.(ndjson|jsonl)$/i.test(file))
    const client = new SendClient({ url, token, concurrency, maxTries })
    const salt = values.new ? randomBytes(16).toString('hex') : ''
    const progress = createProgress('send')
    const reportFrom = performance.now() + QUIET_MS
    const tally = new Tally()
    try {
      await sendAll(input.lines, concurrency, tally, async ({ number, bytes }) => {
        if (bytes === null) return TOO_LONG
        const result = await client.send(bytes, `send-${hash('sha256', `${salt}:${number}:${digest(bytes)}`)}`)
        if (process.stderr.isTTY || performance.now() > reportFrom)
          progress.say(`${bar(input.share())}${tally.total} sent, ${tally.text()}`)
        return result
      })
    } finally {
      progress.end()
      client.close()
    }
    if (values.json) printJson(tally.json())
    else print(tally.summary())
    return tally.isAllStored ? 0 : 1
  },
})

const digest = (bytes: Buffer): string => hash('sha256', bytes)

const TOO_LONG: SendResult = {
  outcome: 'refused',
  status: null,
  error: 'too_long',
  message: `The message is longer than ${MAX_LINE_BYTES} bytes and was not sent. Split it.`,
}

/** Sends with bounded concurrency. Stops at a refusal that applies to every message. */
async function sendAll(
  lines: AsyncIterable<Line>,
  concurrency: number,
  tally: Tally,
  sendOne: (line: Line) => Promise<SendResult>,
): Promise<void> {
  const underWay = new Set<Promise<void>>()
  let fatal: CommandError | null = null
  for await (const line of lines) {
    const one = sendOne(line).then((result) => {
      if (result.outcome === 'fatal') fatal ??= new CommandError(`${result.error}: ${printable(result.message)}`)
      else tally.add(line.number, result)
      underWay.delete(one)
    })
    underWay.add(one)
    if (underWay.size >= concurrency) await Promise.race(underWay)
    if (fatal || tally.hasGivenUp) break
  }
  await Promise.all(underWay)
  if (fatal) throw fatal
}

/** Counts the outcomes. */
class Tally {
  readonly #counts = { stored: 0, duplicate: 0, conflict: 0, refused: 0, failed: 0 }
  readonly #refusals: (Omit<Unsent, 'outcome'> & { readonly line: number })[] = []

  add(line: number, result: SendResult): void {
    if (result.outcome === 'fatal') return
    this.#counts[result.outcome] += 1
    if ('error' in result && this.#refusals.length < SHOWN_REFUSALS) {
      const { outcome: _outcome, ...refusal } = result
      this.#refusals.push({ line, ...refusal })
    }
  }

  get total(): number {
    return Object.values(this.#counts).reduce((sum, count) => sum + count, 0)
  }

  /** True once a message failed after all its tries: the service is unreachable, and the other messages would fail too. */
  get hasGivenUp(): boolean {
    return this.#counts.failed > 0
  }

  get isAllStored(): boolean {
    return this.#counts.refused === 0 && this.#counts.failed === 0
  }

  text(): string {
    const { stored, duplicate, conflict, refused, failed } = this.#counts
    return [
      `${stored} stored`,
      `${duplicate} stored before`,
      ...(conflict > 0 ? [`${conflict} stored as revisions`] : []),
      `${refused} refused`,
      ...(failed > 0 ? [`${failed} failed`] : []),
    ].join(', ')
  }

  summary(): string {
    const lines = [`${this.total} sent: ${this.text()}.`]
    for (const { line, status, error, message, fields = [] } of this.#refusals) {
      const what = `  line ${line}: ${status === null ? '' : `${status} `}${printable(error)}`
      if (fields.length === 0) lines.push(`${what}: ${printable(message)}`)
      else lines.push(what, ...fields.map((field) => `    ${printable(field.path)}: ${printable(field.message)}`))
    }
    const hidden = this.#counts.refused + this.#counts.failed - this.#refusals.length
    if (hidden > 0) lines.push(`  and ${hidden} more`)
    if (this.hasGivenUp) lines.push('The rest was not sent. Run the same command again when the service is back.')
    return `${lines.join('\n')}\n`
  }

  json() {
    return { sent: this.total, ...this.#counts, refusals: this.#refusals }
  }
}

function openInput(file: string, isLines: boolean): { lines: AsyncIterable<Line>; share(): number | null } {
  const cut = isLines ? splitLines : wholeText
  if (file === '-') return { lines: cut(process.stdin, MAX_LINE_BYTES), share: () => null }
  let size: number
  try {
    const found = statSync(file)
    if (found.isDirectory()) throw new Error('it is a directory')
    size = found.size
  } catch (error) {
    throw new CommandError(`${file} cannot be read: ${(error as Error).message}.`)
  }
  const stream = createReadStream(file, { highWaterMark: READ_BYTES })
  return { lines: cut(stream, MAX_LINE_BYTES), share: () => (size > 0 ? Math.min(1, stream.bytesRead / size) : null) }
}

/** `[####----]  50 %  `, if the size of the input is known. */
function bar(share: number | null): string {
  if (share === null) return ''
  const full = Math.round(share * BAR_WIDTH)
  return `[${'#'.repeat(full)}${'-'.repeat(BAR_WIDTH - full)}] ${String(Math.floor(share * 100)).padStart(3)} %  `
}

function urlOf(given: string | undefined): URL {
  const url = URL.parse(given ?? configuredAddress(loadConfig(process.env)))
  if (!url || !/^https?:$/.test(url.protocol))
    throw new UsageError('--url takes an address such as https://intray.example.')
  if (url.username !== '' || url.password !== '') throw new UsageError('--url takes no user and no password.')
  // An address without a path means the recommended path.
  if (url.pathname === '/') url.pathname = INTAKE_PATH
  return url
}

async function readToken(token: string | undefined, file: string | undefined, input: string): Promise<string> {
  if (token !== undefined && file !== undefined) throw new UsageError('Give --token-file or --token, not both.')
  const found = (token ?? (file === undefined ? await askForToken(input) : readTokenFile(file))).trim()
  if (!/^[\x21-\x7e]+$/.test(found))
    throw new UsageError('The token is empty or has characters that no token has. Check --token-file.')
  return found
}

function readTokenFile(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new CommandError(`The token cannot be read from ${file}: ${(error as Error).message}.`)
  }
}

/** Asks on the terminal, without echo. Not possible if the messages come from stdin. */
async function askForToken(input: string): Promise<string> {
  const { stdin, stderr } = process
  if (input === '-' || !stdin.isTTY || !stderr.isTTY)
    throw new UsageError('The token is missing. Give --token-file FILE.')
  stderr.write('Token: ')
  stdin.setRawMode(true)
  stdin.setEncoding('utf8')
  let typed = ''
  try {
    for await (const chunk of stdin as AsyncIterable<string>) {
      for (const character of chunk) {
        if (character === '\r' || character === '\n') return typed
        if (character === '\u0003' || character === '\u0004') throw new CommandError('No token was given.')
        typed = character === '\u007f' ? typed.slice(0, -1) : typed + character
      }
    }
    return typed
  } finally {
    stdin.setRawMode(false)
    stderr.write('\n')
  }
}

function between(text: string, flag: string, max: number): number {
  const number = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (number < 1 || number > max) throw new UsageError(`${flag} takes a whole number from 1 to ${max}.`)
  return number
}
