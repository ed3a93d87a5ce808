// So many places for what is under way, and of these only a share for each holder: one that takes all it can get leaves room for
// the others.

export type Leave = () => void

export class Places {
  readonly #max: number
  readonly #maxEach: number
  readonly #held = new Map<string, number>()
  #taken = 0

  /** A holder gets so many percent of the places, and at least one. */
  constructor(max: number, percentEach: number) {
    this.#max = max
    this.#maxEach = Math.max(1, Math.floor((max * percentEach) / 100))
  }

  get taken(): number {
    return this.#taken
  }

  /** A place, to be left; null if there is none, for this holder or for anybody. What is urgent may exceed the share. */
  enter(holder: string, isUrgent = false): Leave | null {
    const held = this.#held.get(holder) ?? 0
    if (this.#taken >= this.#max || (held >= this.#maxEach && !isUrgent)) return null
    this.#taken += 1
    this.#held.set(holder, held + 1)
    let isLeft = false
    return () => {
      if (isLeft) return
      isLeft = true
      this.#leave(holder)
    }
  }

  #leave(holder: string): void {
    this.#taken -= 1
    const held = (this.#held.get(holder) ?? 1) - 1
    if (held === 0) this.#held.delete(holder)
    else this.#held.set(holder, held)
  }
}
