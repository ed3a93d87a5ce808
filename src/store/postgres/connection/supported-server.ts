// Which servers speak PostgreSQL's protocol and cannot keep what Intray promises: they are refused, by the name they give themselves.

import { StoreRefused } from '../../contract/failure.ts'

export interface ServerName {
  /** What `version()` answers. */
  readonly version_text: string
  readonly has_citus: boolean
}

/** Throws a sentence. */
export function requireSupportedServer({ version_text: version, has_citus: hasCitus }: ServerName): void {
  if (hasCitus) {
    throw refusal(
      'has the extension Citus, which reports rows of INSERT … ON CONFLICT wrong: messages would be stored twice',
    )
  }
  if (/CockroachDB/i.test(version)) throw refusal(`is CockroachDB, ${WATERMARK}`)
  if (/-YB-|Yugabyte/i.test(version)) throw refusal(`is YugabyteDB, ${WATERMARK}`)
}

const WATERMARK = 'which lacks the snapshots that keep readers from skipping messages'

function refusal(what: string): StoreRefused {
  return new StoreRefused(
    `The database server ${what}. Use PostgreSQL 15 or newer; to grow beyond one server, see docs/operating/scale.md.`,
  )
}
