// Custom recipes: read from a file in JSON or YAML, with all of its problems at once. What is stored is the definition in one canonical
// form; its digest is the version, so that equal recipes are one.

import { type Document, isScalar, parseDocument, visit } from 'yaml'
import { MAX_COLLECTORS, MAX_POINTERS } from '../model/json/pointer.ts'
import { compileRecipe } from '../model/recipes/compiled.ts'
import {
  BODY_KINDS,
  type ChallengeRule,
  CUSTOM,
  digestOfDefinition,
  HMAC_ALGORITHMS,
  type IndexTemplates,
  type Recipe,
  type RecipeDefinition,
  SECRET_ENCODINGS,
  SIGNATURE_ENCODINGS,
  type SignatureRule,
  type SignedPlace,
} from '../model/recipes/recipe.ts'
import type { Place } from '../model/recipes/template.ts'
import { Fields, type RecipeProblem } from './recipe-fields.ts'

/** A built-in recipe has at most 3 KiB. */
export const MAX_RECIPE_BYTES = 16 * 1024
const MAX_TITLE_UNITS = 100
const MAX_ANSWER_UNITS = 4096
const MAX_TOLERANCE_S = 24 * 3600

export type CustomRecipe =
  /** `definition`: what is stored; model/recipes/recipe.ts makes the recipe of it again. */
  { readonly recipe: Recipe; readonly definition: string } | { readonly problems: readonly RecipeProblem[] }

export function parseCustomRecipe(text: string): CustomRecipe {
  if (Buffer.byteLength(text) > MAX_RECIPE_BYTES)
    return problem(`The file has more than ${MAX_RECIPE_BYTES} bytes. A recipe holds places, not data.`)
  const file = parseFile(text)
  if ('problem' in file) return problem(file.problem)
  const fields = Fields.of(file.value)
  if (fields === null) return problem('The file holds no object. Begin with the field title.')
  const definition = readDefinition(fields)
  if (fields.problems.length > 0) return { problems: fields.problems }
  const canonical = JSON.stringify(definition)
  const recipe = { ...definition, name: CUSTOM, version: digestOfDefinition(canonical) }
  const { request, shown } = compileRecipe(recipe)
  if (request.pointers.count + shown.pointers.count > MAX_POINTERS)
    return problem(`The recipe has more than ${MAX_POINTERS} different JSON Pointers. Remove some.`)
  if (request.pointers.collectors + shown.pointers.collectors > MAX_COLLECTORS)
    return problem(`The recipe has more than ${MAX_COLLECTORS} different places {strings:…}. Remove some.`)
  return { recipe, definition: canonical }
}

/** `uniqueKeys` compares each key of an object with all before it: 4,000 keys took more than a second. */
const PARSING: NonNullable<Parameters<typeof parseDocument>[1]> = {
  version: '1.2',
  schema: 'core',
  customTags: [],
  logLevel: 'silent',
  uniqueKeys: false,
}

function repeatedKey(document: Document.Parsed): string | null {
  let repeated: string | null = null
  visit(document, {
    Map: (_, { items }) => {
      const keys = new Set<unknown>()
      for (const { key } of items) {
        const name = isScalar(key) ? key.value : key
        if (keys.has(name)) repeated = String(name)
        keys.add(name)
      }
      return repeated === null ? undefined : visit.BREAK
    },
  })
  return repeated
}

function parseFile(text: string): { readonly value: unknown } | { readonly problem: string } {
  try {
    const document = parseDocument(text, PARSING)
    const [error] = document.errors
    if (error) return { problem: `The file is neither JSON nor YAML: ${error.message.split('\n', 1)[0]}` }
    const repeated = repeatedKey(document)
    if (repeated !== null) return { problem: `The file has the key ${JSON.stringify(repeated)} twice in one place.` }
    // Aliases of aliases may grow a small file to any size.
    return { value: document.toJS({ maxAliasCount: 0 }) as unknown }
  } catch (error) {
    if (error instanceof ReferenceError) return { problem: 'The file has YAML aliases (*name). Write the values out.' }
    return { problem: 'The file is nested too deeply to be read.' }
  }
}

/** In the order of the canonical form. */
function readDefinition(file: Fields): RecipeDefinition {
  const title = file.text('title', MAX_TITLE_UNITS)
  const bodies = file.choices('bodies', BODY_KINDS, ['json'])
  const signature = readSignature(file.object('signature'))
  const challenge = file.has('challenge') ? readChallenge(file.object('challenge')) : null
  const sourceRef = file.templates('source_ref', IN_REFERENCES)
  const channelRef = file.templates('channel_ref', IN_REFERENCES)
  const batch = file.pointers('batch')
  const index = readIndex(file.has('index') ? file.object('index') : null)
  const answer = file.has('answer') ? readAnswer(file.object('answer')) : null
  file.end()
  const challenged = challenge === null ? {} : { challenge }
  return { title, bodies, signature, ...challenged, sourceRef, channelRef, batch, index, answer }
}

const EVERYWHERE: readonly Place['from'][] = ['pointer', 'exists', 'strings', 'field', 'fields', 'body']
const IN_REFERENCES = [...EVERYWHERE, 'header', 'hook', 'sha256'] as const
const IN_SIGNED = ['pointer', 'field', 'header', 'body', 'timestamp'] as const
const IN_SIGNATURE = ['pointer', 'field', 'header'] as const

function readSignature(fields: Fields): SignatureRule {
  const kind = fields.choice('kind', ['none', 'header', 'hmac', 'twilio'])
  const rule = ((): SignatureRule => {
    if (kind === 'header') {
      return { kind, header: fields.header('header'), ...fields.optionalText('prefix') }
    }
    if (kind !== 'hmac') return { kind }
    const algorithm = fields.choice('algorithm', HMAC_ALGORITHMS)
    const encoding = fields.choice('encoding', SIGNATURE_ENCODINGS)
    const signature = readSignedPlace(fields.object('signature'))
    const timestamp = fields.has('timestamp') ? readTimestamp(fields.object('timestamp')) : null
    const signs = fields.templates('signs', IN_SIGNED, ['{body}'])
    const secret = fields.choice('secret', SECRET_ENCODINGS, 'text')
    const timed = timestamp === null ? {} : { timestamp }
    const prefix = fields.optionalText('secret_prefix').prefix
    const prefixed = prefix === undefined ? {} : { secretPrefix: prefix }
    return { kind, algorithm, encoding, signature, ...timed, signs, secret, ...prefixed }
  })()
  fields.end()
  return rule
}

function readSignedPlace(fields: Fields): SignedPlace {
  const place = {
    in: fields.templates('in', IN_SIGNATURE, undefined),
    ...fields.optional('separator'),
    ...fields.optionalText('prefix'),
  }
  fields.end()
  return place
}

function readTimestamp(fields: Fields): SignedPlace & { readonly toleranceS: number } {
  const toleranceS = fields.integer('tolerance_s', 1, MAX_TOLERANCE_S)
  return { ...readSignedPlace(fields), toleranceS }
}

function readChallenge(fields: Fields): ChallengeRule {
  const kind = fields.choice('kind', ['hub', 'echo'])
  const rule: ChallengeRule =
    kind === 'hub'
      ? { kind }
      : {
          kind,
          when: fields.pointer('when'),
          equals: fields.text('equals', MAX_TITLE_UNITS),
          echo: fields.pointer('echo'),
        }
  fields.end()
  return rule
}

function readIndex(fields: Fields | null): IndexTemplates {
  const index = {
    contactName: fields?.templates('contact_name', EVERYWHERE) ?? [],
    contactEmail: fields?.templates('contact_email', EVERYWHERE) ?? [],
    messageType: fields?.templates('message_type', EVERYWHERE) ?? [],
    text: fields?.templates('text', EVERYWHERE) ?? [],
  }
  fields?.end()
  return index
}

function readAnswer(fields: Fields): RecipeDefinition['answer'] {
  const answer = { contentType: fields.mediaType('content_type'), body: fields.text('body', MAX_ANSWER_UNITS, true) }
  fields.end()
  return answer
}

function problem(message: string): CustomRecipe {
  return { problems: [{ path: '', message }] }
}
