// The header Intray-Warnings: a list (RFC 9651) of what is not as documented in a message that was stored. Short, because there
// are few fields to warn about, and safe, because a look-alike name has letters, `_` and `-` alone.

import type { Warning } from '../model/event.ts'

export function warningsHeader(warnings: readonly Warning[]): string {
  return warnings.map(itemOf).join(', ')
}

function itemOf({ path, expected, got }: Warning): string {
  const field = path.slice(1).replace('/', '.')
  return field === got
    ? `look-alike;field="${field}";expected="${expected}"`
    : `unexpected-type;field="${field}";expected="${expected}";got="${got}"`
}
