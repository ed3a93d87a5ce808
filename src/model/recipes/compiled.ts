// A recipe whose templates are parsed: once for each recipe, because all of its requests and events need them.

import { JsonPointers } from '../json/pointer.ts'
import type { Recipe, RecipeDefinition } from './recipe.ts'
import { parseTemplate, type Place, type Template } from './template.ts'

export interface CompiledIndex {
  readonly contactName: readonly Template[]
  readonly contactEmail: readonly Template[]
  readonly messageType: readonly Template[]
  readonly text: readonly Template[]
}

/** What a reader looks for in a body. */
export interface Wanted {
  readonly pointers: JsonPointers
  readonly fields: ReadonlySet<string>
  /** Whether the text of all fields is wanted. */
  readonly allFields: boolean
}

export interface CompiledRecipe {
  readonly recipe: Recipe
  readonly sourceRef: readonly Template[]
  readonly channelRef: readonly Template[]
  readonly index: CompiledIndex
  readonly signs: readonly Template[]
  readonly signature: readonly Template[]
  readonly timestamp: readonly Template[]
  /** What a request is read for: references, signature, challenge, whether it is a batch. */
  readonly request: Wanted
  /** What the index is read for. */
  readonly shown: Wanted
}

const compiled = new WeakMap<Recipe, CompiledRecipe>()

/** Throws a TemplateProblem for a recipe that was not checked (hooks/custom-recipe.ts). */
export function compileRecipe(recipe: Recipe): CompiledRecipe {
  const known = compiled.get(recipe)
  if (known) return known
  const made = compile(recipe)
  compiled.set(recipe, made)
  return made
}

function compile(recipe: Recipe): CompiledRecipe {
  const { signature, index } = recipe
  const templates = {
    sourceRef: recipe.sourceRef.map(parseTemplate),
    channelRef: recipe.channelRef.map(parseTemplate),
    signs: signature.kind === 'hmac' ? signature.signs.map(parseTemplate) : [],
    signature: signature.kind === 'hmac' ? signature.signature.in.map(parseTemplate) : [],
    timestamp: signature.kind === 'hmac' ? (signature.timestamp?.in ?? []).map(parseTemplate) : [],
  }
  const compiledIndex = {
    contactName: index.contactName.map(parseTemplate),
    contactEmail: index.contactEmail.map(parseTemplate),
    messageType: index.messageType.map(parseTemplate),
    text: index.text.map(parseTemplate),
  }
  return {
    recipe,
    ...templates,
    index: compiledIndex,
    request: wantedBy(Object.values(templates).flat(), [...recipe.batch, ...challengePointers(recipe)]),
    shown: wantedBy(Object.values(compiledIndex).flat(), []),
  }
}

function challengePointers({ challenge }: RecipeDefinition): string[] {
  return challenge?.kind === 'echo' ? [challenge.when, challenge.echo] : []
}

function wantedBy(templates: readonly Template[], more: readonly string[]): Wanted {
  const places = templates
    .flat()
    .filter((part): part is Place => typeof part !== 'string')
    .map((place) => (place.from === 'exists' ? place.place : place))
  return {
    pointers: new JsonPointers(
      [...places.flatMap((place) => (place.from === 'pointer' ? place.pointer : [])), ...more],
      places.flatMap((place) => (place.from === 'strings' ? place.strings : [])),
    ),
    fields: new Set(places.flatMap((place) => (place.from === 'field' ? place.name : []))),
    allFields: places.some(({ from }) => from === 'fields'),
  }
}
