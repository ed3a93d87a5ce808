// Time as a parameter: everything that asks "what time is it" is handed a Clock, so that tests can move it.

export interface Clock {
  /** Milliseconds since the epoch, UTC. */
  now(): number
}

export const systemClock: Clock = { now: () => Date.now() }

export function isoTime(ms: number): string {
  return new Date(ms).toISOString()
}
