// Programs to paste that send or process: files of the kits, with the address of this server and, while it is shown, the token.

import sendPhp from '../../../kits/examples/snippets/send.php?raw'
import sendPython from '../../../kits/examples/snippets/send.py?raw'
import sendCurl from '../../../kits/examples/snippets/send.sh?raw'
import sendTypeScript from '../../../kits/examples/snippets/send.ts?raw'
import sendWordPress from '../../../kits/examples/snippets/send-wordpress.php?raw'
import workPython from '../../../kits/examples/snippets/work.py?raw'
import workCurl from '../../../kits/examples/snippets/work.sh?raw'
import workTypeScript from '../../../kits/examples/snippets/work.ts?raw'

/** What the files have in place of an address and a token. */
const ORIGIN = 'https://inbox.example.org'
const TOKEN = 'itr_…'

const SENDING: Readonly<Record<string, string>> = {
  WordPress: sendWordPress,
  PHP: sendPhp,
  TypeScript: sendTypeScript,
  Python: sendPython,
  curl: sendCurl,
}
const PROCESSING: Readonly<Record<string, string>> = {
  TypeScript: workTypeScript,
  Python: workPython,
  curl: workCurl,
}

export interface Snippet {
  readonly name: string
  readonly text: string
}

/** For a new token: programs of what it may do. */
export function snippetsFor(scope: string, origin: string, token: string): readonly Snippet[] {
  const files = scope === 'processor' ? PROCESSING : SENDING
  return Object.entries(files).map(([name, file]) => ({ name, text: filled(file, origin, token) }))
}

function filled(file: string, origin: string, token: string): string {
  return file.trimEnd().replaceAll(ORIGIN, origin).replaceAll(TOKEN, token)
}

export const SAMPLE_BODY = {
  source_ref: 'example:1',
  channel_ref: 'ada@example.org',
  contact: { name: 'Ada Lovelace', email: 'ada@example.org' },
  message: { type: 'text', text: 'Do you ship to Malta?' },
} as const

/** A first message, for empty lists. */
export function sampleCommand(origin: string): string {
  return filled(sendCurl, origin, '$TOKEN')
}

export function sendCommand(origin: string, body: string): string {
  return [
    `curl -sS ${origin}/v1/inbox/events \\`,
    `  -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\`,
    `  --data-raw ${shellQuoted(body)}`,
  ].join('\n')
}

/** For bodies too long for a command line. */
export function sendFileCommand(origin: string, file: string): string {
  return [
    `curl -sS ${origin}/v1/inbox/events \\`,
    `  -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\`,
    `  --data-binary @${file}`,
  ].join('\n')
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
