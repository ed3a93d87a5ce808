// The text of a body that is no JSON and no form. Total: bytes that are not in the charset become U+FFFD.

import { mediaParameter } from './body-kind.ts'
import type { BodyKind } from './recipe.ts'

/** More than an index entry shows, tags included. */
const MAX_TEXT_BYTES = 96 * 1024

export function bodyText(kind: BodyKind, contentType: string, payload: Uint8Array): string {
  if (kind === 'binary') return ''
  const text = decoderFor(contentType).decode(payload.subarray(0, MAX_TEXT_BYTES))
  return kind === 'xml' ? textOfXml(text) : text
}

function decoderFor(contentType: string): TextDecoder {
  try {
    return new TextDecoder(mediaParameter(contentType, 'charset') ?? 'utf-8')
  } catch {
    return new TextDecoder()
  }
}

/** What stands between tags, with a space for each tag. One pass: a pattern would look from each of many `<` to the end. */
function textOfXml(xml: string): string {
  const texts: string[] = []
  for (let at = 0; at < xml.length; ) {
    const open = xml.indexOf('<', at)
    if (open === -1) {
      texts.push(decodeEntities(xml.slice(at)))
      break
    }
    texts.push(decodeEntities(xml.slice(at, open)))
    const [start, end] = MARKUP.find(([begin]) => xml.startsWith(begin, open)) ?? ['<', '>']
    const close = xml.indexOf(end, open + start.length)
    if (start === CDATA) texts.push(xml.slice(open + start.length, close === -1 ? xml.length : close))
    at = close === -1 ? xml.length : close + end.length
  }
  return texts
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .join(' ')
}

const CDATA = '<![CDATA['
const MARKUP = [
  [CDATA, ']]>'],
  ['<!--', '-->'],
  ['<?', '?>'],
] as const

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

function decodeEntities(text: string): string {
  if (!text.includes('&')) return text
  return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]{2,4}));/gi, (source, decimal, hex, name: string) => {
    if (name !== undefined) return ENTITIES[name.toLowerCase()] ?? source
    const code = decimal === undefined ? Number.parseInt(String(hex), 16) : Number(decimal)
    return code <= 0x10_ffff ? String.fromCodePoint(code) : source
  })
}
