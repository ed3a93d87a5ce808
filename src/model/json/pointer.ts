// JSON Pointers (RFC 6901) to the places that a scan looks for, as a tree: each step of a scan compares a key with the few that lead on.

/** A pointer may lead this deep. */
export const MAX_POINTER_STEPS = 32
/** Of all pointers that one scan looks for. */
export const MAX_POINTERS = 256

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
  /** As they stand between quotation marks. */
  readonly keys: readonly Buffer[] | null
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
  readonly #byLength = new Map<number, Member[]>()

  get isLeaf(): boolean {
    return this.#byKey.size === 0
  }

  /** The node for a key, given as it stands between its quotation marks. */
  member(bytes: Buffer, start: number, end: number): PointerNode | null {
    if (end - start <= MAX_ESCAPED_KEY_BYTES && bytes.subarray(start, end).includes(BACKSLASH)) {
      return this.#byKey.get(JSON.parse(bytes.toString('utf8', start - 1, end + 1)) as string) ?? null
    }
    for (const { key, node } of this.#byLength.get(end - start) ?? NO_MEMBERS) {
      if (key.compare(bytes, start, end) === 0) return node
    }
    return null
  }

  element(index: number): PointerNode | null {
    return this.#byIndex.get(index) ?? null
  }

  /** Made if it is not there: for building the tree. */
  child(step: string): PointerNode {
    const known = this.#byKey.get(step)
    if (known) return known
    const node = new PointerNode()
    const key = Buffer.from(step)
    this.#byKey.set(step, node)
    this.#byLength.set(key.length, [...(this.#byLength.get(key.length) ?? []), { key, node }])
    if (ARRAY_INDEX.test(step)) this.#byIndex.set(Number(step), node)
    return node
  }
}

interface Member {
  readonly key: Buffer
  readonly node: PointerNode
}

const BACKSLASH = 0x5c
/** Without leading zeros. */
const ARRAY_INDEX = /^(?:0|[1-9]\d{0,8})$/
/** Longer than the key of any template with each character escaped. */
const MAX_ESCAPED_KEY_BYTES = 4096
const NO_MEMBERS: readonly Member[] = []

export class JsonPointers {
  readonly root = new PointerNode()
  readonly #places = new Map<string, number>()

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
      const keys = strings.keys?.map((key) => Buffer.from(key)) ?? null
      this.#reach(strings.pointer, place).collectors.push({ place, keys })
    }
  }

  get count(): number {
    return this.#places.size
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
