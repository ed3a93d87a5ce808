// The clock, passed in everywhere so that tests can control it.

export interface Clock {
  /** Milliseconds since the epoch, UTC. */
  now(): number
}

export const systemClock: Clock = { now: () => Date.now() }

export function isoTime(ms: number): string {
  return new Date(ms).toISOString()
}
