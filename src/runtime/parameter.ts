// Parsers for values given as text, in a query or in a flag.

/** Parses a value; throws the second half of a sentence: `must be …`. */
export type Parameter<T> = (text: string) => T

export const wholeNumber =
  (min: number, max: number): Parameter<number> =>
  (text) => {
    const number = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
    if (!(number >= min && number <= max)) throw new Error(`must be a whole number from ${min} to ${max}`)
    return number
  }

export const oneOf =
  <T extends string>(...choices: readonly T[]): Parameter<T> =>
  (text) => {
    const found = choices.find((choice) => choice === text)
    if (found === undefined) throw new Error(`must be one of ${choices.join(', ')}`)
    return found
  }

/** Text that every database can store. */
export const textUpTo =
  (maxUnits: number): Parameter<string> =>
  (text) => {
    if (text === '' || text.length > maxUnits) throw new Error(`must have 1 to ${maxUnits} characters`)
    if (text.includes('\0') || !text.isWellFormed()) throw new Error('must not contain U+0000 or a lone surrogate')
    return text
  }

/** An ISO time with its zone, as milliseconds. */
export const isoMoment: Parameter<number> = (text) => {
  const match = /^(\d{4}-\d{2}-\d{2})T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2})$/.exec(text)
  const ms = match ? Date.parse(text) : Number.NaN
  // Date.parse reads 30 February as a day in March.
  if (Number.isNaN(ms) || !new Date(Date.parse(match![1]!)).toISOString().startsWith(match![1]!)) {
    throw new Error('must be a time such as 2026-11-15T12:00:00Z')
  }
  return ms
}
