// JSON Pointers (RFC 6901) to the places that a scan looks for, as a tree: each step of a scan compares a key with the few that lead on.

/** A pointer may lead this deep. */
export const MAX_POINTER_STEPS = 32
/** Of all pointers that one scan looks for. */
export const MAX_POINTERS = 256
/** Places below which strings are collected: each looks at each key below it, and keeps as many strings as an index entry shows. */
export const MAX_COLLECTORS = 8

/** One sentence; null for a good pointer. */
export function pointerProblem(pointer: string): string | null {
  if (pointer !== '' && !pointer.startsWith('/'))
    return `"${pointer}" is no JSON Pointer: it does not begin with a slash. Write /a/b.`
  if (/~(?![01])/.test(pointer))
    return `"${pointer}" is no JSON Pointer: ~ is not followed by 0 or 1. Write ~0 for ~ and ~1 for a slash.`
  if (pointer.split('/').length - 1 > MAX_POINTER_STEPS)
    return `A JSON Pointer has more than ${MAX_POINTER_STEPS} steps. Point to a place that is less deep.`
  return null
}

function pointerSteps(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** All strings at and below a pointer; `keys`: only those that are under one of these keys, alone or in an array. */
export interface StringsBelow {
  readonly pointer: string
  readonly keys: readonly string[] | null
}

export interface Collector {
  readonly place: number
  /** As keyText gives them; null: under all keys. */
  readonly keys: ReadonlySet<string> | null
}

/** The bytes of a key as it stands between quotation marks, one character each: a look-up takes as long among many keys as among a few. */
export function keyText(bytes: Buffer, start = 0, end = bytes.length): string {
  return bytes.toString('latin1', start, end)
}

export class PointerNode {
  /** The places at and below this one: another value under the same key replaces them all. */
  readonly within: number[] = []
  /** The number of the place; -1: none was asked for. */
  place = -1
  /** Of the strings at and below it. */
  readonly collectors: Collector[] = []
  readonly #byKey = new Map<string, PointerNode>()
  readonly #byIndex = new Map<number, PointerNode>()
  readonly #byBytes = new Map<string, PointerNode>()
  readonly #lengths = new Set<number>()

  get isLeaf(): boolean {
    return this.#byKey.size === 0
  }

  /** The node for a key, given as it stands between its quotation marks. */
  member(bytes: Buffer, start: number, end: number): PointerNode | null {
    if (end - start <= MAX_ESCAPED_KEY_BYTES && bytes.subarray(start, end).includes(BACKSLASH)) {
      return this.#byKey.get(JSON.parse(bytes.toString('utf8', start - 1, end + 1)) as string) ?? null
    }
    return this.#lengths.has(end - start) ? (this.#byBytes.get(keyText(bytes, start, end)) ?? null) : null
  }

  element(index: number): PointerNode | null {
    return this.#byIndex.get(index) ?? null
  }

  /** Made if it is not there: for building the tree. */
  child(step: string): PointerNode {
    const known = this.#byKey.get(step)
    if (known) return known
    const node = new PointerNode()
    this.#byKey.set(step, node)
    const bytes = Buffer.from(step)
    this.#byBytes.set(keyText(bytes), node)
    this.#lengths.add(bytes.length)
    if (ARRAY_INDEX.test(step)) this.#byIndex.set(Number(step), node)
    return node
  }
}

const BACKSLASH = 0x5c
/** Without leading zeros. */
const ARRAY_INDEX = /^(?:0|[1-9]\d{0,8})$/
/** Longer than the key of any template with each character escaped. */
const MAX_ESCAPED_KEY_BYTES = 4096

export class JsonPointers {
  readonly root = new PointerNode()
  readonly #places = new Map<string, number>()
  #collectors = 0

  constructor(pointers: Iterable<string>, collected: Iterable<StringsBelow> = []) {
    for (const pointer of pointers) {
      if (this.#places.has(pointer)) continue
      const place = this.#places.size
      this.#places.set(pointer, place)
      this.#reach(pointer, place).place = place
    }
    for (const strings of collected) {
      const name = nameOf(strings)
      if (this.#places.has(name)) continue
      const place = this.#places.size
      this.#places.set(name, place)
      const keys = strings.keys && new Set(strings.keys.map((key) => keyText(Buffer.from(key))))
      this.#reach(strings.pointer, place).collectors.push({ place, keys })
      this.#collectors += 1
    }
  }

  get count(): number {
    return this.#places.size
  }

  /** Places below which strings are collected. */
  get collectors(): number {
    return this.#collectors
  }

  /** The number of what was asked for; -1 for anything else. */
  placeOf(asked: string | StringsBelow): number {
    return this.#places.get(typeof asked === 'string' ? asked : nameOf(asked)) ?? -1
  }

  #reach(pointer: string, place: number): PointerNode {
    let node = this.root
    node.within.push(place)
    for (const step of pointerSteps(pointer)) {
      node = node.child(step)
      node.within.push(place)
    }
    return node
  }
}

/** No pointer has such a name: it begins with a slash, or is empty. */
function nameOf({ pointer, keys }: StringsBelow): string {
  return `strings ${JSON.stringify([pointer, keys])}`
}
