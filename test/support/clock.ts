// Time that stands still until it is moved.

import type { TestContext } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
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

/** Time stands still until the returned function lets so much of it pass, a little at a time: timers and performance.now() alike. */
export function stopTime(t: TestContext): (ms: number) => Promise<void> {
  let now = 1_000_000
  t.mock.timers.enable({ apis: ['setTimeout'] })
  t.mock.method(performance, 'now', () => now)
  return async (ms) => {
    await nextTurn()
    for (let passed = 0; passed < ms; passed += 10) {
      now += 10
      t.mock.timers.tick(10)
      await nextTurn()
    }
  }
}
