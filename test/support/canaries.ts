// Canary tokens and the scanner that looks for them. A canary's secret part is random, so that any piece of it found
// anywhere is a leak and nothing else.

import { existsSync, readFileSync } from 'node:fs'
import pg from 'pg'

/** The part after the key id: 30 of secret and 6 of checksum. */
const SECRET_LENGTH = 36
/** A third of a secret found is found enough: something cut it off half-way. */
const PIECE_LENGTH = 12

export interface Place {
  readonly name: string
  readonly bytes: Buffer
}

/** `<place>: <what was sent>` for each canary of which a piece is found. */
export function findCanaries(places: readonly Place[], canaries: ReadonlyMap<string, string>): string[] {
  const hits: string[] = []
  for (const { name, bytes } of places) {
    for (const [token, sentAs] of canaries) {
      if (pieces(token).some((piece) => bytes.includes(piece))) hits.push(`${name}: ${sentAs}`)
    }
  }
  return hits
}

function pieces(token: string): string[] {
  const secret = token.slice(-SECRET_LENGTH)
  const starts = [0, PIECE_LENGTH, 2 * PIECE_LENGTH]
  return starts.map((start) => secret.slice(start, start + PIECE_LENGTH))
}

/** Every file of the database that is there, as it is now. No SQLite connection of this process may be open. */
export function databaseFiles(path: string, when: string): Place[] {
  const lock = path.replace(/\.db$/, '.lock.db')
  return [path, `${path}-wal`, `${path}-shm`, `${path}-journal`, lock, `${lock}-journal`]
    .filter((file) => existsSync(file))
    .map((file) => ({ name: `${file.slice(file.lastIndexOf('/') + 1)} ${when}`, bytes: readFileSync(file) }))
}

/** The files of a database of SQLite with those of its index, or every table of one of PostgreSQL. */
export async function placesOfDatabase(url: string, when: string): Promise<Place[]> {
  if (url.startsWith('sqlite:')) {
    const path = url.slice('sqlite:'.length)
    return [path, path.replace(/\.db$/, '.index.db')].flatMap((file) => databaseFiles(file, when))
  }
  const client = new pg.Client(url)
  await client.connect()
  try {
    const { rows } = await client.query<{ name: string }>(
      "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'intray'",
    )
    const places: Place[] = []
    for (const { name } of rows) {
      const { rows: all } = await client.query(`SELECT * FROM intray.${name}`)
      // Bytes as they are, not in hexadecimal.
      const cells = all.flatMap((row) => Object.values(row as object))
      const bytes = cells.map((cell) => (Buffer.isBuffer(cell) ? cell : Buffer.from(String(cell))))
      places.push({ name: `${name} ${when}`, bytes: Buffer.concat([Buffer.from(name), ...bytes]) })
    }
    return places
  } finally {
    await client.end()
  }
}
