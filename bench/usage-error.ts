// What a benchmark throws when its options make no sense: shown without a stack, exit code 2.

export class UsageError extends Error {
  override readonly name = 'UsageError'
}
