// Suggests the nearest route in the message of a 404, from the route table alone, which is public.
//
// Edit distance over the parts of a path: a missing or extra part costs 1, a misspelt one 0.5, an id nothing. Long paths get
// no suggestion, so that the requests of a scanner stay cheap.

import { nearest } from '../runtime/nearest.ts'
import type { Route } from './routes.ts'

const MAX_PATH_LENGTH = 100
const MAX_PARTS = 6
const MISSPELT = 0.5
const MISSING = 1
const MAX_COST = 2

/** Gives `GET /v1/inbox/events`, or null if no route resembles the path. */
export type NearestRoute = (method: string, path: string) => string | null

export function createNearestRoute(routes: readonly Route[]): NearestRoute {
  const candidates = routes
    .filter(({ isWildcard }) => !isWildcard)
    .map((route) => ({ route, parts: partsOf(route.path) }))
  const names = new Set(candidates.flatMap(({ parts }) => parts).filter((part) => !isParameter(part)))

  return (method, path) => {
    if (path.length > MAX_PATH_LENGTH) return null
    const given = partsOf(path.toLowerCase())
    if (given.length > MAX_PARTS) return null
    const costs = given.map((part) => costsOf(part, names))
    const known = new Set(costs.flatMap((cost) => [...cost.keys()]))
    const wanted = method === 'HEAD' ? 'GET' : method
    let best: Route | null = null
    let least = MAX_COST
    for (const { route, parts } of candidates) {
      if (!parts.some((part) => known.has(part))) continue
      const cost = pathDistance(given, costs, parts)
      // At equal cost the route that takes the method wins, then the first one of the table.
      const isFirst = best === null || (best.method !== wanted && route.method === wanted)
      if (cost < least || (cost === least && isFirst)) [best, least] = [route, cost]
    }
    return best && `${best.method} ${best.path}`
  }
}

function partsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '')
}

function isParameter(part: string): boolean {
  return part.startsWith('{')
}

/** The cost of a part against each name that equals or resembles it. */
function costsOf(given: string, names: ReadonlySet<string>): ReadonlyMap<string, number> {
  if (names.has(given)) return new Map([[given, 0]])
  const near = nearest(given, [...names])
  return new Map(near === null ? [] : [[near, MISSPELT]])
}

/** Edit distance over the parts of two paths. */
function pathDistance(
  given: readonly string[],
  costs: readonly ReadonlyMap<string, number>[],
  route: readonly string[],
): number {
  let previous = Array.from({ length: route.length + 1 }, (_, index) => MISSING * index)
  for (let i = 1; i <= given.length; i++) {
    const row = [MISSING * i]
    for (let j = 1; j <= route.length; j++) {
      const part = route[j - 1]!
      const own = isParameter(part) ? parameterCost(given[i - 1]!) : (costs[i - 1]!.get(part) ?? 2 * MISSING)
      row.push(Math.min(previous[j - 1]! + own, previous[j]! + MISSING, row[j - 1]! + MISSING))
    }
    previous = row
  }
  return previous[route.length]!
}

/** Ids have digits; a word is more likely a wrong name. */
function parameterCost(given: string): number {
  return /\d/.test(given) ? 0 : MISSING
}
