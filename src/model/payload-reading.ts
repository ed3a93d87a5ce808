// Reads from a stored payload what the index shows: the documented fields of a message of the inbox, or what the recipe names of a
// hook's event. The work can be cut into slices.

import { type Extract, extract } from './extract.ts'
import { scanMessage } from './message-scan.ts'
import { builtInRecipe } from './recipes/built-in.ts'
import { extractWith, indexReader } from './recipes/extract-with.ts'
import { customDigest, type Recipe, type RecipeRef, storedRecipe } from './recipes/recipe.ts'
import type { Tenant } from './principal.ts'

export interface PayloadReading {
  readonly isDone: boolean
  /** Goes on for at most so many bytes; returns how many were read. */
  run(maxBytes: number): number
  /** Of a reading that is done. */
  extract(): Extract
}

export interface ReadableRow extends Tenant {
  readonly recipe: RecipeRef | null
  readonly contentType: string
  readonly payload: Uint8Array | null
}

/** Finds the definition of a tenant's custom recipe by digest; null if it is not stored. */
export type DefinitionOf = (tenant: Tenant, digest: string) => string | null

export type RecipeOf = (row: ReadableRow) => Recipe | null

/** Custom recipes that are kept parsed. */
const MAX_PARSED = 200

/** Null for an erased event. */
export function readingOf(row: ReadableRow, recipeOf: RecipeOf, maxBytes?: number): PayloadReading | null {
  const { recipe: ref, contentType, payload } = row
  if (payload === null) return null
  if (ref === null) {
    const scan = scanMessage(payload, maxBytes)
    return {
      get isDone() {
        return scan.isDone
      },
      run: (bytes) => scan.run(bytes),
      extract: () => extract(payload, scan),
    }
  }
  const found = attempt(() => {
    const recipe = recipeOf(row)
    return recipe && { recipe, reader: indexReader(recipe, contentType, payload, maxBytes) }
  })
  if (found === null) return UNKNOWN_RECIPE
  const { recipe, reader } = found
  return {
    get isDone() {
      return reader.isDone
    },
    run: (bytes) => reader.run(bytes),
    extract: () => extractWith(recipe, reader),
  }
}

/** Null for a recipe that cannot be used, such as one that was imported from a file that somebody wrote by hand. */
function attempt<T>(work: () => T): T | null {
  try {
    return work()
  } catch {
    return null
  }
}

/** In one go. */
export function readWhole(reading: PayloadReading): Extract {
  while (!reading.isDone) reading.run(Number.MAX_SAFE_INTEGER)
  return reading.extract()
}

const UNKNOWN_RECIPE: PayloadReading = {
  isDone: true,
  run: () => 0,
  extract: () => {
    throw new Error('its recipe is not known here: it is one of a newer Intray, or a custom one that was not copied')
  },
}

/** A definition that was found is asked for once. */
export function createRecipeOf(definitionOf: DefinitionOf): RecipeOf {
  const parsed = new Map<string, Recipe>()
  return ({ recipe: ref, accountId, companyId }) => {
    const digest = ref === null ? null : customDigest(ref)
    if (digest === null) return ref === null ? null : builtInRecipe(ref)
    const key = `${companyId}:${accountId}:${digest}`
    const known = parsed.get(key)
    if (known) return known
    const definition = definitionOf({ accountId, companyId }, digest)
    if (definition === null) return null
    const recipe = storedRecipe(digest, definition)
    if (parsed.size >= MAX_PARSED) parsed.delete(parsed.keys().next().value ?? '')
    parsed.set(key, recipe)
    return recipe
  }
}
