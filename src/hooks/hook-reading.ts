// Reads a request to a hook: its signature, then what its recipe says of it. Nothing is stored here. The work can be cut into slices,
// because the main thread is shared by all tenants.

import { createHash, type Hash } from 'node:crypto'
import type { Warning } from '../model/event.ts'
import type { ScanProblem } from '../model/json/scan.ts'
import { bodyKindOf } from '../model/recipes/body-kind.ts'
import { BodyReader } from '../model/recipes/body-reader.ts'
import { type CompiledRecipe, compileRecipe } from '../model/recipes/compiled.ts'
import type { Recipe } from '../model/recipes/recipe.ts'
import { readRefs } from '../model/recipes/refs.ts'
import type { Sliceable } from '../runtime/sliced-work.ts'
import { answerPost, type ChallengeAnswer } from './challenge.ts'
import type { HookRequest } from './request.ts'
import { checkSignature } from './signature.ts'
import type { SignatureCheck, SignatureContext, SignatureFault } from './signature-verdict.ts'

export type HookOutcome =
  | { readonly kind: 'unauthenticated'; readonly fault: SignatureFault; readonly message: string }
  /** A kind of body that the recipe does not take. */
  | { readonly kind: 'unsupported'; readonly message: string }
  | { readonly kind: 'not_json'; readonly problem: ScanProblem }
  /** Answered, and not stored. */
  | { readonly kind: 'challenge'; readonly answer: ChallengeAnswer }
  | HookMessage

export interface HookMessage {
  readonly kind: 'message'
  readonly sourceRef: string | null
  readonly channelRef: string | null
  readonly isBatch: boolean
  readonly warnings: readonly Warning[]
  /** Whether the body is JSON; else it is handed out as bytes. */
  readonly isJson: boolean
  /** In hex. */
  readonly sha256: string
  /** Which of the valid secrets the sender used: 0 is the newest. Null without a signature. */
  readonly secret: number | null
}

export class HookReading implements Sliceable {
  readonly #compiled: CompiledRecipe
  readonly #request: HookRequest
  readonly #context: SignatureContext
  readonly #body: BodyReader | null
  readonly #hash: Hash = createHash('sha256')
  #hashed = 0
  #check: SignatureCheck | null = null
  #outcome: HookOutcome | null = null

  /** Throws a TemplateProblem for a recipe that was not checked. */
  constructor(recipe: Recipe, request: HookRequest, context: SignatureContext) {
    this.#compiled = compileRecipe(recipe)
    this.#request = request
    this.#context = context
    const { contentType, payload } = request
    const kind = bodyKindOf(contentType, recipe)
    this.#body = kind === null ? null : new BodyReader({ kind, contentType, payload }, this.#compiled.request)
    // A signature that is not in the body is checked before anything is read.
    if (!isSignedInBody(this.#compiled)) this.#check = this.#newCheck()
  }

  get isDone(): boolean {
    return this.#outcome !== null
  }

  /** Once it is done. */
  get outcome(): HookOutcome {
    return this.#outcome!
  }

  /** Returns how many bytes were worked on; each is scanned, signed and hashed. */
  run(maxBytes: number): number {
    let done = 0
    while (this.#outcome === null && done < maxBytes) {
      const left = Math.max(SMALLEST_SLICE, maxBytes - done)
      const step = this.#step(left)
      if (step === null) this.#outcome = this.#finish()
      else done += step
    }
    return done
  }

  /** Null once nothing is left to do. */
  #step(maxBytes: number): number | null {
    const check = this.#check
    if (check !== null && !check.isDone) return check.run(maxBytes)
    if (check?.verdict.ok === false) return null
    const body = this.#body
    if (body === null) return null
    if (!body.isDone) return body.run(maxBytes)
    if (body.problem !== null) return null
    if (check === null) {
      this.#check = this.#newCheck()
      return 0
    }
    if (this.#hashed === this.#request.payload.length) return null
    const slice = this.#request.payload.subarray(this.#hashed, this.#hashed + maxBytes)
    this.#hash.update(slice)
    this.#hashed += slice.length
    return slice.length
  }

  #newCheck(): SignatureCheck {
    return checkSignature(this.#compiled, this.#request, this.#body ?? NO_BODY, this.#context)
  }

  #finish(): HookOutcome {
    const { recipe } = this.#compiled
    const verdict = this.#check?.verdict
    if (verdict?.ok === false) return { kind: 'unauthenticated', fault: verdict.fault, message: verdict.message }
    const body = this.#body
    if (body === null) {
      const message = `The recipe ${recipe.name} takes ${recipe.bodies.join(', ')}; the Content-Type says something else.`
      return { kind: 'unsupported', message }
    }
    if (body.problem !== null) return { kind: 'not_json', problem: body.problem }
    const answer = answerPost(recipe, body)
    if (answer !== null) return { kind: 'challenge', answer }
    const sha256 = this.#hash.digest('hex')
    const { header, hook } = this.#request
    const refs = readRefs(this.#compiled, body, { header, hook, sha256: () => sha256 })
    return { kind: 'message', ...refs, isJson: this.#isJson, sha256, secret: verdict?.secret ?? null }
  }

  get #isJson(): boolean {
    return bodyKindOf(this.#request.contentType, this.#compiled.recipe) === 'json'
  }
}

/** In one go: for small requests, and for commands. */
export function readHook(recipe: Recipe, request: HookRequest, context: SignatureContext): HookOutcome {
  const reading = new HookReading(recipe, request, context)
  while (!reading.isDone) reading.run(Number.MAX_SAFE_INTEGER)
  return reading.outcome
}

function isSignedInBody({ signs, signature, timestamp }: CompiledRecipe): boolean {
  return [...signs, ...signature, ...timestamp]
    .flat()
    .some((part) => typeof part !== 'string' && IN_BODY.includes(part.from))
}

const IN_BODY: readonly string[] = ['pointer', 'exists', 'strings', 'field', 'fields', 'sha256']
/** As runtime/sliced-work.ts: less is not worth a start. */
const SMALLEST_SLICE = 512
const NO_BODY = new BodyReader({ kind: 'binary', contentType: '', payload: Buffer.alloc(0) }, compileNothing())

function compileNothing(): CompiledRecipe['request'] {
  return compileRecipe({
    name: 'none',
    version: '1',
    title: '',
    bodies: [],
    signature: { kind: 'none' },
    sourceRef: [],
    channelRef: [],
    batch: [],
    index: { contactName: [], contactEmail: [], messageType: [], text: [] },
    answer: null,
  }).request
}
