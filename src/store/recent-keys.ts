// The dedupe keys of messages that are not in `dedupe` yet, each under an id: of its message, or of its batch (postgres/pen.ts). A table of
// 16 bytes a place, of which at most half are taken. A Map of as many strings takes several times that, and each collection of garbage
// goes through all of it.
//
// Promises: a key that was added and not removed is found. Only eight bytes of a key are kept, so another key may be found in
// its place: whoever finds one looks at what lies under the id, or takes it for known.

/** A power of two. */
const FEWEST_PLACES = 1024

export class RecentKeys {
  #mask = FEWEST_PLACES - 1
  /** Two words of a key at each place. */
  #words = new Uint32Array(2 * FEWEST_PLACES)
  /** 0: the place is free. */
  #ids = new Float64Array(FEWEST_PLACES)
  #size = 0

  get size(): number {
    return this.#size
  }

  /** The id under this key; 0 if there is none. Keys may lie behind each other: here and below, `at` is where it begins. */
  find(keys: Uint8Array, at = 0): number {
    return this.#ids[this.#placeOf(highWord(keys, at), lowWord(keys, at))]!
  }

  add(keys: Uint8Array, id: number, at = 0): void {
    if (2 * (this.#size + 1) > this.#ids.length) this.#resize(2 * this.#ids.length)
    this.#put(highWord(keys, at), lowWord(keys, at), id)
  }

  /** Only if it stands under this id. */
  remove(keys: Uint8Array, id: number, at = 0): void {
    const place = this.#placeOf(highWord(keys, at), lowWord(keys, at))
    if (this.#ids[place] !== id) return
    this.#free(place)
    this.#size -= 1
    if (8 * this.#size < this.#ids.length && this.#ids.length > FEWEST_PLACES) this.#resize(this.#ids.length / 2)
  }

  /** What is kept of each key. */
  visit(see: (high: number, low: number) => void): void {
    for (let place = 0; place < this.#ids.length; place++) {
      if (this.#ids[place] !== 0) see(this.#words[2 * place]!, this.#words[2 * place + 1]!)
    }
  }

  /** All up to this id. */
  forgetThrough(id: number): void {
    let left = 0
    for (let place = 0; place < this.#ids.length; place++) {
      if (this.#ids[place]! <= id) this.#ids[place] = 0
      else left += 1
    }
    // Also for those behind the ones that are gone, which would no longer be reached.
    let places = FEWEST_PLACES
    while (places < 2 * left) places *= 2
    this.#resize(places)
  }

  /** Where a key is, or would be. */
  #placeOf(high: number, low: number): number {
    let place = low & this.#mask
    while (this.#ids[place] !== 0 && (this.#words[2 * place] !== high || this.#words[2 * place + 1] !== low)) {
      place = (place + 1) & this.#mask
    }
    return place
  }

  #put(high: number, low: number, id: number): void {
    const place = this.#placeOf(high, low)
    if (this.#ids[place] === 0) this.#size += 1
    this.#words[2 * place] = high
    this.#words[2 * place + 1] = low
    this.#ids[place] = id
  }

  /** Those behind it that would no longer be reached move up. */
  #free(freed: number): void {
    let hole = freed
    for (let place = (hole + 1) & this.#mask; this.#ids[place] !== 0; place = (place + 1) & this.#mask) {
      const home = this.#words[2 * place + 1]! & this.#mask
      if (((place - home) & this.#mask) < ((place - hole) & this.#mask)) continue
      this.#words.copyWithin(2 * hole, 2 * place, 2 * place + 2)
      this.#ids[hole] = this.#ids[place]!
      hole = place
    }
    this.#ids[hole] = 0
  }

  #resize(places: number): void {
    const words = this.#words
    const ids = this.#ids
    this.#size = 0
    this.#allocate(places)
    for (let place = 0; place < ids.length; place++) {
      if (ids[place] !== 0) this.#put(words[2 * place]!, words[2 * place + 1]!, ids[place]!)
    }
  }

  #allocate(places: number): void {
    this.#mask = places - 1
    this.#words = new Uint32Array(2 * places)
    this.#ids = new Float64Array(places)
  }
}

/** This and the next: the last eight bytes. Also in a key that was minted, which begins with the time, these are as good as random. */
export function highWord(keys: Uint8Array, at = 0): number {
  return wordAt(keys, at + 8)
}

export function lowWord(keys: Uint8Array, at = 0): number {
  return wordAt(keys, at + 12)
}

function wordAt(key: Uint8Array, at: number): number {
  return ((key[at]! << 24) | (key[at + 1]! << 16) | (key[at + 2]! << 8) | key[at + 3]!) >>> 0
}
