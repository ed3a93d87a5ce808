// A wake-up that is a hint and nothing more: whoever waits must look for itself what there is to do, so a lost or
// doubled hint costs time, never correctness.

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
