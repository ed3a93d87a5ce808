// Explains what a recipe makes of a sample request: the verdict of its signature and of each template, and what would be stored and shown.
// `./intray hook check` prints it.

import type { Extract } from '../model/extract.ts'
import { bodyKindOf } from '../model/recipes/body-kind.ts'
import { BodyReader } from '../model/recipes/body-reader.ts'
import { compileRecipe } from '../model/recipes/compiled.ts'
import { extractWhole } from '../model/recipes/extract-with.ts'
import { needsSecret, type Recipe } from '../model/recipes/recipe.ts'
import { readPlace } from '../model/recipes/refs.ts'
import { fillTemplate, parseTemplate, type Template } from '../model/recipes/template.ts'
import { type HookOutcome, readHook } from './hook-reading.ts'
import type { HookRequest } from './request.ts'
import { checkSignature } from './signature.ts'
import type { SignatureContext, SignatureVerdict } from './signature-verdict.ts'

export interface TemplateVerdict {
  /** As in the recipe file: `source_ref`, `index/text`. */
  readonly list: string
  readonly template: string
  /** Null if it is not complete. */
  readonly text: string | null
  /** The first complete one of its list. */
  readonly isUsed: boolean
}

export interface Explanation {
  /** `not_checked`: no secret was given. */
  readonly signature: SignatureVerdict | 'not_checked'
  /** Of the request, its signature aside. */
  readonly outcome: HookOutcome
  readonly templates: readonly TemplateVerdict[]
  /** Null if nothing would be stored. */
  readonly extract: Extract | null
}

export function explain(recipe: Recipe, request: HookRequest, context: SignatureContext): Explanation {
  const unsigned: Recipe = { ...recipe, signature: { kind: 'none' } }
  const outcome = readHook(unsigned, request, context)
  const isMessage = outcome.kind === 'message'
  return {
    signature:
      needsSecret(recipe) && context.secrets.length === 0 ? 'not_checked' : verdictOf(recipe, request, context),
    outcome,
    templates: isMessage ? templateVerdicts(recipe, request, outcome.sha256) : [],
    extract: isMessage ? extractWhole(recipe, request.contentType, request.payload) : null,
  }
}

function verdictOf(recipe: Recipe, request: HookRequest, context: SignatureContext): SignatureVerdict {
  const compiled = compileRecipe(recipe)
  const body = wholeBody(recipe, request, compiled.request)
  const check = checkSignature(compiled, request, body, context)
  while (!check.isDone) check.run(Number.MAX_SAFE_INTEGER)
  return check.verdict
}

function wholeBody(recipe: Recipe, { contentType, payload }: HookRequest, wanted: BodyReaderWanted): BodyReader {
  const kind = bodyKindOf(contentType, recipe) ?? 'binary'
  const body = new BodyReader({ kind, contentType, payload }, wanted)
  while (!body.isDone) body.run(Number.MAX_SAFE_INTEGER)
  return body
}

type BodyReaderWanted = ConstructorParameters<typeof BodyReader>[1]

function templateVerdicts(recipe: Recipe, request: HookRequest, sha256: string): TemplateVerdict[] {
  const compiled = compileRecipe(recipe)
  const lists = [
    ['source_ref', recipe.sourceRef, compiled.request],
    ['channel_ref', recipe.channelRef, compiled.request],
    ['index/contact_name', recipe.index.contactName, compiled.shown],
    ['index/contact_email', recipe.index.contactEmail, compiled.shown],
    ['index/message_type', recipe.index.messageType, compiled.shown],
    ['index/text', recipe.index.text, compiled.shown],
  ] as const
  return lists.flatMap(([list, templates, wanted]) => {
    const body = wholeBody(recipe, request, wanted)
    const around = { header: request.header, hook: request.hook, sha256: () => sha256 }
    const texts = templates.map((template) => {
      const text = fillTemplate(parseTemplate(template) as Template, (place) => readPlace(place, body, around))
      return text === null || text.trim() === '' ? null : text
    })
    const used = texts.findIndex((text) => text !== null)
    return templates.map((template, n) => ({ list, template, text: texts[n] ?? null, isUsed: n === used }))
  })
}

/** Of a text in a line. */
const SHOWN_UNITS = 120

export function explanationLines(recipe: Recipe, explanation: Explanation): string[] {
  const { signature, outcome, templates, extract } = explanation
  const lines = [
    `recipe: ${recipe.name}/${recipe.version}  ${recipe.title}`,
    `signature: ${signatureLine(recipe, signature)}`,
  ]
  if (outcome.kind !== 'message') return [...lines, `request: ${outcomeLine(outcome)}`]
  for (const { list, template, text, isUsed } of templates) {
    const mark = isUsed ? '=>' : text === null ? '  ' : ' ='
    lines.push(`${list}  ${mark} ${template}${text === null ? '  (not complete)' : `  ${shown(text)}`}`)
  }
  const result: readonly (readonly [string, string | null])[] = [
    ['source_ref', outcome.sourceRef],
    ['channel_ref', outcome.channelRef],
    ['contact name', extract?.contactName ?? null],
    ['contact e-mail', extract?.contactEmail ?? null],
    ['message type', extract?.messageType ?? null],
    ['text', extract?.snippet ?? null],
  ]
  if (outcome.isBatch) lines.push('The request holds several messages: it is one event, and has no channel_ref.')
  for (const [name, value] of result) lines.push(`${name}: ${value === null ? '(none)' : shown(value)}`)
  for (const { path, expected, got } of [...outcome.warnings, ...(extract?.warnings ?? [])])
    lines.push(`warning: ${path} expected ${expected}, got ${got}`)
  return lines
}

function signatureLine(recipe: Recipe, verdict: Explanation['signature']): string {
  if (verdict === 'not_checked') return 'not checked; give the secret of the sender to check it'
  if (!verdict.ok) return `refused (${verdict.fault}). ${verdict.message}`
  return recipe.signature.kind === 'none' ? 'none; the address is the secret' : 'right'
}

function outcomeLine(outcome: Exclude<HookOutcome, { readonly kind: 'message' }>): string {
  if (outcome.kind === 'challenge') return `a challenge, answered with ${shown(outcome.answer.body)}; nothing is stored`
  if (outcome.kind !== 'not_json') return outcome.message
  const { problem } = outcome
  if (typeof problem === 'object') return `The body is not JSON at line ${problem.line}, column ${problem.column}.`
  return problem === 'not_utf8' ? 'The body is not UTF-8.' : 'The body is not JSON: it ends too early.'
}

/** In quotes, on one line. */
function shown(text: string): string {
  return JSON.stringify(text.length > SHOWN_UNITS ? `${text.slice(0, SHOWN_UNITS)}…` : text)
}
