// When an endpoint may be sent to: its circuit, and the time that it asked to be left alone. The state of an open circuit is stored
// by the caller; the run of failures before it is this process's own.

import { type Circuit, CLOSED, FAILURES_TO_OPEN, openCircuit } from '../../model/endpoint.ts'

export class CircuitBreaker {
  #circuit: Circuit
  #failures = 0
  #quietUntil = 0
  #isProbing = false

  constructor(circuit: Circuit) {
    this.#circuit = circuit
  }

  get circuit(): Circuit {
    return this.#circuit
  }

  /** As another node stored it. */
  set(circuit: Circuit): void {
    this.#circuit = circuit
  }

  /** Or open. */
  get isOpen(): boolean {
    return this.#circuit.openedAt !== null
  }

  /** Whether a request may begin. While the circuit is half-open, one at a time. */
  begin(now: number): boolean {
    if (this.waitMs(now) > 0) return false
    if (this.#circuit.openedAt === null) return true
    if (this.#isProbing) return false
    this.#isProbing = true
    return true
  }

  waitMs(now: number): number {
    return Math.max(0, this.#quietUntil - now, (this.#circuit.retryAt ?? 0) - now)
  }

  quiet(until: number): void {
    this.#quietUntil = Math.max(this.#quietUntil, until)
  }

  /** A request that had begun is over, with any result. */
  ended(): void {
    this.#isProbing = false
  }

  /** The new state, if it changed. Any success shows that the endpoint is back. */
  succeeded(): Circuit | null {
    this.#failures = 0
    if (this.#circuit.openedAt === null) return null
    this.#circuit = CLOSED
    return this.#circuit
  }

  /** The new state, if it changed. Requests that were under way when it opened change nothing. */
  failed(now: number): Circuit | null {
    this.#failures += 1
    const isOpen = this.#circuit.openedAt !== null
    const isProbe = isOpen && (this.#circuit.retryAt ?? 0) <= now
    if (isOpen ? !isProbe : this.#failures < FAILURES_TO_OPEN) return null
    this.#circuit = openCircuit(this.#circuit, now)
    return this.#circuit
  }
}
