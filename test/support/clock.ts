// A clock that stands still until it is moved.

import type { Clock } from '../../src/runtime/clock.ts'

export class TestClock implements Clock {
  #now: number

  constructor(now = Date.parse('2026-11-15T12:00:00.000Z')) {
    this.#now = now
  }

  now(): number {
    return this.#now
  }

  advance(ms: number): void {
    this.#now += ms
  }
}
