// Rate limits.

/** `requests` at once, and as many again within `windowMs`. */
export interface RateLimit {
  readonly requests: number
  readonly windowMs: number
}

/** A token's own limit: a rate, or none whatever the setting says. */
export type TokenRateLimit = RateLimit | 'off'
