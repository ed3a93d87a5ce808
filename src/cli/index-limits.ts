// The limits with which commands index: larger steps than the server's, since nobody waits for a claim meanwhile.

import type { Config } from '../config.ts'
import type { WordLimits } from '../store/contract/indexing.ts'

export function indexLimits({ searchWords, extractBytes }: Config): WordLimits {
  return { maxRows: 2000, maxBytes: 16 * 1024 * 1024, maxWords: searchWords, extractBytes }
}
