// A binary heap: the smallest first.

export class MinHeap<T> {
  readonly #items: T[] = []
  readonly #isBefore: (a: T, b: T) => boolean

  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore
  }

  peek(): T | undefined {
    return this.#items[0]
  }

  push(item: T): void {
    const items = this.#items
    let at = items.push(item) - 1
    for (let above: number; at > 0 && this.#isBefore(item, items[(above = (at - 1) >> 1)]!); at = above) {
      items[at] = items[above]!
    }
    items[at] = item
  }

  pop(): T | undefined {
    const items = this.#items
    const first = items[0]
    const last = items.pop()
    if (last === undefined || items.length === 0) return first
    let at = 0
    for (;;) {
      let below = 2 * at + 1
      if (below >= items.length) break
      if (below + 1 < items.length && this.#isBefore(items[below + 1]!, items[below]!)) below += 1
      if (!this.#isBefore(items[below]!, last)) break
      items[at] = items[below]!
      at = below
    }
    items[at] = last
    return first
  }
}
