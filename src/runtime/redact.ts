// The last line of defence for secrets: whatever text came from outside passes through here before it is written
// anywhere but the journal. Our own tokens are recognisable by shape, which is what makes this possible.

/** A token, or anything that starts like one: the prefix, a separator and what follows. */
const TOKEN_SHAPED = /itr_[0-9A-Za-z_]+/gi

export function redactText(text: string): string {
  return text.replace(TOKEN_SHAPED, 'itr_[redacted]')
}

/** The same for bytes, keeping their length and position: each secret character becomes an x. */
export function redactBytes(bytes: Uint8Array): Uint8Array {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
  return Buffer.from(
    text.replace(TOKEN_SHAPED, (found) => `itr_${'x'.repeat(found.length - 4)}`),
    'latin1',
  )
}
