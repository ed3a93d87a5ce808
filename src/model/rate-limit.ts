// How often somebody may ask.

/** So many requests in so much time, all of them at once if need be. */
export interface RateLimit {
  readonly requests: number
  readonly windowMs: number
}

/** What is kept with a token: a rate of its own, or none whatever the setting says. */
export type TokenRateLimit = RateLimit | 'off'
