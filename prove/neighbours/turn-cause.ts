// What a thread did in its last turn, from a profile of samples that ends with it.

export interface Sampled {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
    readonly children?: readonly number[]
  }[]
  readonly samples?: readonly number[]
  readonly timeDeltas?: readonly number[]
}

type Node = Sampled['nodes'][number]

/** The two functions that most of the last so many microseconds went to: of ours, with what they called outside of it. */
export function causeOf({ nodes, samples = [], timeDeltas = [] }: Sampled, lastUs: number): string {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const parentOf = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)))
  const counts = new Map<string, number>()
  let total = 0
  for (let at = samples.length - 1, leftUs = lastUs; at >= 0 && leftUs > 0; at -= 1) {
    const place = placeOf(byId, parentOf, samples[at]!)
    leftUs -= timeDeltas[at] ?? 0
    if (place === null) continue
    counts.set(place, (counts.get(place) ?? 0) + 1)
    total += 1
  }
  return Array.from(counts)
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, 2)
    .map(([place, count]) => `${Math.round((100 * count) / total)} % ${place}`)
    .join(', ')
}

function placeOf(byId: ReadonlyMap<number, Node>, parentOf: ReadonlyMap<number, number>, id: number): string | null {
  const leaf = byId.get(id)
  if (leaf === undefined || leaf.callFrame.functionName === '(idle)') return null
  for (let at: number | undefined = id; at !== undefined; at = parentOf.get(at)) {
    const { functionName, url, lineNumber } = byId.get(at)!.callFrame
    const file = /\/(src\/[^?]+)$/.exec(url)?.[1]
    if (file !== undefined) return `${functionName || 'top level'} (${file}:${lineNumber + 1})`
  }
  return leaf.callFrame.functionName || leaf.callFrame.url
}
