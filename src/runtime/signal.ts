// A wake-up signal. It is only a hint: the waiter checks for work itself, so that a lost or repeated signal costs time but
// not correctness.

export class Signal {
  #raised = false
  #wake: (() => void) | null = null

  raise(): void {
    this.#raised = true
    this.#wake?.()
  }

  /** Returns when the signal is raised (at once if it was raised since the last wait) or the time is over. */
  async wait(timeoutMs: number): Promise<void> {
    if (!this.#raised) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, timeoutMs)
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
      this.#wake = null
    }
    this.#raised = false
  }
}
