// `./intray send`: posts messages from a file or from stdin to a running service, over HTTP like every other sender.

import { hash, randomBytes } from 'node:crypto'
import { createReadStream, readFileSync, statSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { loadConfig } from '../../config.ts'
import { type Command, CommandError, UsageError } from '../command.ts'
import { type Line, splitLines, wholeText } from '../line-reader.ts'
import { createProgress, print, printable, printJson } from '../output.ts'
import { SendClient, type SendResult, type Unsent } from '../send-client.ts'

const INTAKE_PATH = '/v1/inbox/events'
/** The most that the service can be set to take. */
const MAX_LINE_BYTES = 104_857_600
const READ_BYTES = 262_144
const SHOWN_REFUSALS = 10
const BAR_WIDTH = 24
/** What is done in this time needs no progress in a log. */
const QUIET_MS = 5000

const HELP = `
Usage: ./intray send [FILE | -] --token-file FILE [--url URL] [--ndjson] [--concurrency N] [--json]

Sends messages to a running service: one JSON object, or one on each line (NDJSON), from a file or from stdin. Bodies are
sent as they are. What the service cannot take just now is sent again, after the time it asks for.

A message without a source_ref gets an Idempotency-Key made from its line number and its bytes, so that neither a second
try nor sending the same file once more stores it twice. --new makes other keys each time.

  FILE             The messages; - or nothing: stdin. A name that ends in .ndjson or .jsonl is taken as --ndjson.
  --ndjson         Every line is a message. Without it, everything is one message.
  --token-file F   The file that holds the token. Best: nobody sees it.
  --token TOKEN    The token itself. Everybody on this machine can see it in the list of processes.
                   With neither, you are asked for it if there is a terminal.
  --url URL        Where the service is [http://127.0.0.1:8080, or what INTRAY_HOST and INTRAY_PORT say].
  --concurrency N  Messages under way at once, 1 to 256 [8]. With 1 they are stored in their order.
  --tries N        How often a message is tried, 1 to 100 [8].
  --new            Store messages without a source_ref even if they were sent before.
  --json           Print the summary as JSON.

The exit code is 0 if every message was stored or known before.`

export const send: Command = {
  name: 'send',
  summary: 'Send messages from a file or stdin: send [FILE | -] --token-file F.',
  help: HELP,
  async run(args) {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        url: { type: 'string' },
        token: { type: 'string' },
        'token-file': { type: 'string' },
        ndjson: { type: 'boolean' },
        concurrency: { type: 'string' },
        tries: { type: 'string' },
        new: { type: 'boolean' },
        json: { type: 'boolean' },
      },
    })
    const [file = '-', ...rest] = positionals
    if (rest.length > 0) throw new UsageError('send takes one FILE.')
    const concurrency = between(values.concurrency ?? '8', '--concurrency', 256)
    const maxTries = between(values.tries ?? '8', '--tries', 100)
    const url = urlOf(values.url)
    const token = await readToken(values.token, values['token-file'], file)
    const input = openInput(file, values.ndjson ?? /\.(ndjson|jsonl)$/i.test(file))
    const client = new SendClient({ url, token, concurrency, maxTries })
    const salt = values.new ? randomBytes(16).toString('hex') : ''
    const progress = createProgress('send')
    const tellFrom = performance.now() + QUIET_MS
    const tally = new Tally()
    try {
      await sendAll(input.lines, concurrency, tally, async ({ number, bytes }) => {
        if (bytes === null) return TOO_LONG
        const result = await client.send(bytes, `send-${hash('sha256', `${salt}:${number}:${digest(bytes)}`)}`)
        if (process.stderr.isTTY || performance.now() > tellFrom)
          progress.say(`${bar(input.share())}${tally.total} sent, ${tally.text()}`)
        return result
      })
    } finally {
      progress.end()
      client.close()
    }
    if (values.json) printJson(tally.json())
    else print(tally.summary())
    return tally.isAllKept ? 0 : 1
  },
}

const digest = (bytes: Buffer): string => hash('sha256', bytes)

const TOO_LONG: SendResult = {
  outcome: 'refused',
  status: null,
  error: 'too_long',
  message: `It is longer than ${MAX_LINE_BYTES} bytes and was not sent.`,
}

/** As many at once as allowed. A refusal that would meet every other message too ends it. */
async function sendAll(
  lines: AsyncIterable<Line>,
  concurrency: number,
  tally: Tally,
  sendOne: (line: Line) => Promise<SendResult>,
): Promise<void> {
  const underWay = new Set<Promise<void>>()
  let hopeless: CommandError | null = null
  for await (const line of lines) {
    const one = sendOne(line).then((result) => {
      if (result.outcome === 'hopeless') hopeless ??= new CommandError(`${result.error}: ${printable(result.message)}`)
      else tally.add(line.number, result)
      underWay.delete(one)
    })
    underWay.add(one)
    if (underWay.size >= concurrency) await Promise.race(underWay)
    if (hopeless || tally.hasGivenUp) break
  }
  await Promise.all(underWay)
  if (hopeless) throw hopeless
}

/** What became of the messages so far. */
class Tally {
  readonly #counts = { stored: 0, duplicate: 0, conflict: 0, refused: 0, failed: 0 }
  readonly #refusals: (Omit<Unsent, 'outcome'> & { readonly line: number })[] = []

  add(line: number, result: SendResult): void {
    if (result.outcome === 'hopeless') return
    this.#counts[result.outcome] += 1
    if ('error' in result && this.#refusals.length < SHOWN_REFUSALS) {
      const { outcome: _outcome, ...refusal } = result
      this.#refusals.push({ line, ...refusal })
    }
  }

  get total(): number {
    return Object.values(this.#counts).reduce((sum, count) => sum + count, 0)
  }

  /** One was tried as often as allowed: the service is not there, and the others would take as long. */
  get hasGivenUp(): boolean {
    return this.#counts.failed > 0
  }

  get isAllKept(): boolean {
    return this.#counts.refused === 0 && this.#counts.failed === 0
  }

  text(): string {
    const { stored, duplicate, conflict, refused, failed } = this.#counts
    return [
      `${stored} stored`,
      `${duplicate} known before`,
      ...(conflict > 0 ? [`${conflict} kept as revisions of others`] : []),
      `${refused} refused`,
      ...(failed > 0 ? [`${failed} given up`] : []),
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
    if (this.hasGivenUp) lines.push('The rest was not sent. Run it again when the service is back.')
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
    if (found.isDirectory()) throw new Error('it is a folder')
    size = found.size
  } catch (error) {
    throw new CommandError(`${file} cannot be read: ${(error as Error).message}.`)
  }
  const stream = createReadStream(file, { highWaterMark: READ_BYTES })
  return { lines: cut(stream, MAX_LINE_BYTES), share: () => (size > 0 ? Math.min(1, stream.bytesRead / size) : null) }
}

/** `[####----]  50 %  `, where it is known how much there is. */
function bar(share: number | null): string {
  if (share === null) return ''
  const full = Math.round(share * BAR_WIDTH)
  return `[${'#'.repeat(full)}${'-'.repeat(BAR_WIDTH - full)}] ${String(Math.floor(share * 100)).padStart(3)} %  `
}

function urlOf(given: string | undefined): URL {
  const { host, port } = loadConfig(process.env)
  const here = ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
  const url = URL.parse(given ?? `http://${here}:${port}`)
  if (!url || !/^https?:$/.test(url.protocol))
    throw new UsageError('--url takes an address such as https://intray.example.')
  if (url.username !== '' || url.password !== '') throw new UsageError('--url takes no user and no password.')
  // A bare address means the recommended path; whoever names a path means that one.
  if (url.pathname === '/') url.pathname = INTAKE_PATH
  return url
}

async function readToken(token: string | undefined, file: string | undefined, input: string): Promise<string> {
  if (token !== undefined && file !== undefined) throw new UsageError('Give --token-file or --token, not both.')
  const found = (token ?? (file === undefined ? await askForToken(input) : readTokenFile(file))).trim()
  if (!/^[\x21-\x7e]+$/.test(found)) throw new UsageError('That is not a token.')
  return found
}

function readTokenFile(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new CommandError(`The token cannot be read from ${file}: ${(error as Error).message}.`)
  }
}

/** On a terminal, without showing it; not if the messages come from there. */
async function askForToken(input: string): Promise<string> {
  const { stdin, stderr } = process
  if (input === '-' || !stdin.isTTY || !stderr.isTTY) throw new UsageError('Give the token with --token-file FILE.')
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
