// Shows untrusted text: always as text, isolated from the text around it, with invisible characters made visible, and
// truncated.

import { textParts } from './hidden-characters.ts'

interface SafeTextProps {
  readonly text: string
  readonly maxLength?: number
}

export function SafeText({ text, maxLength = 20_000 }: SafeTextProps) {
  const shown = text.length > maxLength ? cutAt(text, maxLength) : text
  const left = text.length - shown.length
  const parts = textParts(shown)
  let at = 0
  return (
    <bdi className="safe-text">
      {parts.map((part) => {
        const key = at
        at += part.text.length + 1
        return part.hidden === null ? (
          part.text
        ) : (
          <span key={key} className="hidden-char" title={part.hidden}>
            {part.text}
          </span>
        )
      })}
      {left > 0 && <span className="cut">… {left.toLocaleString('en')} more characters</span>}
    </bdi>
  )
}

/** Does not split a surrogate pair. */
export function cutAt(text: string, length: number): string {
  const code = text.charCodeAt(length - 1)
  return text.slice(0, code >= 0xd800 && code <= 0xdbff ? length - 1 : length)
}
