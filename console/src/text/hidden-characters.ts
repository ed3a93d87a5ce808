// Finds invisible characters and those that change the direction of text, and names them, because they can make a text look
// different from what it is.

const NAMES: ReadonlyMap<number, string> = new Map([
  [0xad, 'soft hyphen'],
  [0x34f, 'combining grapheme joiner'],
  [0x61c, 'Arabic letter mark'],
  [0x115f, 'Hangul choseong filler'],
  [0x1160, 'Hangul jungseong filler'],
  [0x180e, 'Mongolian vowel separator'],
  [0x200b, 'zero width space'],
  [0x200c, 'zero width non-joiner'],
  [0x200d, 'zero width joiner'],
  [0x200e, 'left-to-right mark'],
  [0x200f, 'right-to-left mark'],
  [0x2028, 'line separator'],
  [0x2029, 'paragraph separator'],
  [0x202a, 'left-to-right embedding'],
  [0x202b, 'right-to-left embedding'],
  [0x202c, 'pop directional formatting'],
  [0x202d, 'left-to-right override'],
  [0x202e, 'right-to-left override'],
  [0x2060, 'word joiner'],
  [0x2066, 'left-to-right isolate'],
  [0x2067, 'right-to-left isolate'],
  [0x2068, 'first strong isolate'],
  [0x2069, 'pop directional isolate'],
  [0x3164, 'Hangul filler'],
  [0xfeff, 'byte order mark'],
  [0xffa0, 'halfwidth Hangul filler'],
])

/** All except line feed and tab, and joiners inside an emoji. */
const HIDDEN =
  /(?<=\p{Extended_Pictographic}|\u{fe0f}|[\u{1f3fb}-\u{1f3ff}])\u200d(?=\p{Extended_Pictographic})|(\u034f|[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}\ud800-\udfff])/gu

export interface TextPart {
  readonly text: string
  /** The name of a hidden character; null for visible text. */
  readonly hidden: string | null
}

export function textParts(text: string): TextPart[] {
  const parts: TextPart[] = []
  let from = 0
  for (const match of text.matchAll(HIDDEN)) {
    const character = match[1]
    if (character === undefined) continue
    if (match.index > from) parts.push({ text: text.slice(from, match.index), hidden: null })
    const code = character.codePointAt(0)!
    parts.push({ text: codeName(code), hidden: NAMES.get(code) ?? kindOf(code) })
    from = match.index + character.length
  }
  if (from < text.length) parts.push({ text: text.slice(from), hidden: null })
  return parts
}

/** For plain strings: titles, file names, labels. */
export function visibleText(text: string): string {
  return textParts(text)
    .map((part) => (part.hidden === null ? part.text : `⟦${part.text}⟧`))
    .join('')
}

function codeName(code: number): string {
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`
}

function kindOf(code: number): string {
  if (code >= 0xe0000 && code <= 0xe007f) return 'tag character'
  if (code >= 0xd800 && code <= 0xdfff) return 'lone surrogate'
  return code < 0xa0 ? 'control character' : 'invisible character'
}
