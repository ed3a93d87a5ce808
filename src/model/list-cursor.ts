// Page cursors: opaque to clients, base64url of a small JSON object.

const MAX_LENGTH = 100
const MAX_ID = 999_999_999_999_999

/** Where a page ended: lists by time use both fields, other lists the id. */
interface Position {
  readonly id: number
  readonly receivedAt: number | null
}

export function writeCursor({ id, receivedAt }: Position): string {
  const fields = receivedAt === null ? { id } : { id, at: receivedAt }
  return Buffer.from(JSON.stringify(fields)).toString('base64url')
}

/** Null unless this service wrote it: the position must encode to the same text again. */
export function readCursor(text: string): Position | null {
  const position = text.length <= MAX_LENGTH ? parse(text) : null
  return position && writeCursor(position) === text ? position : null
}

function parse(text: string): Position | null {
  try {
    const fields = JSON.parse(Buffer.from(text, 'base64url').toString()) as { id?: unknown; at?: unknown } | null
    if (!isNumber(fields?.id) || (fields.at !== undefined && !isNumber(fields.at))) return null
    return { id: fields.id, receivedAt: fields.at ?? null }
  } catch {
    return null
  }
}

function isNumber(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_ID
}
