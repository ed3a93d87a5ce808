// Parses numeric options. Promises: a value out of range is a UsageError that names the option.

import { UsageError } from './usage-error.ts'

export function numberIn(name: string, text: string | undefined, fallback: number, min: number, max: number): number {
  if (text === undefined) return fallback
  const value = Number(text.replaceAll('_', ''))
  if (text.trim() === '' || !Number.isFinite(value) || value < min || value > max) {
    throw new UsageError(`--${name} must be a number from ${min} to ${max}, not "${text}".`)
  }
  return value
}

export function wholeIn(name: string, text: string | undefined, fallback: number, min: number, max: number): number {
  const value = numberIn(name, text, fallback, min, max)
  if (!Number.isInteger(value)) throw new UsageError(`--${name} must be a whole number, not "${text}".`)
  return value
}
