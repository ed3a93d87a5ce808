// A recipe: data that says how a hook's requests are authenticated, where references, contact and text are in them, and what the vendor
// wants back. Places are written as templates (template.ts). A recipe that was published never changes: a new version is added beside it,
// because events are indexed again by the recipe that they came in with.

import { hash } from 'node:crypto'

/** What kinds of bodies are, by their Content-Type (body-kind.ts). */
export const BODY_KINDS = ['json', 'form', 'multipart', 'xml', 'text', 'binary'] as const

export type BodyKind = (typeof BODY_KINDS)[number]

export const HMAC_ALGORITHMS = ['sha256', 'sha1', 'sha512'] as const
export const SIGNATURE_ENCODINGS = ['hex', 'base64'] as const
export const SECRET_ENCODINGS = ['text', 'base64'] as const

/** Where a signature or a time is: the first complete template; in it, the parts that begin with a prefix. */
export interface SignedPlace {
  readonly in: readonly string[]
  /** Between the parts of a list; without it the whole text is one part. */
  readonly separator?: string
  /** Of the parts that count; removed from them. */
  readonly prefix?: string
}

export interface HmacRule {
  readonly kind: 'hmac'
  readonly algorithm: (typeof HMAC_ALGORITHMS)[number]
  readonly encoding: (typeof SIGNATURE_ENCODINGS)[number]
  readonly signature: SignedPlace
  /** Seconds since 1970. */
  readonly timestamp?: SignedPlace & { readonly toleranceS: number }
  /** What is signed; `{body}` is the body as sent, `{timestamp}` the time as sent. The first complete template. */
  readonly signs: readonly string[]
  /** Whether the key is the secret's text or what it encodes. */
  readonly secret: (typeof SECRET_ENCODINGS)[number]
  /** Removed from the secret, if it is there. */
  readonly secretPrefix?: string
}

export type SignatureRule =
  /** The address is the secret. */
  | { readonly kind: 'none' }
  /** A header holds the secret itself. */
  | { readonly kind: 'header'; readonly header: string; readonly prefix?: string }
  | HmacRule
  /** HMAC-SHA1 over the public URL and the form's fields, or the URL with the digest of the body in it. */
  | { readonly kind: 'twilio' }

export type ChallengeRule =
  /** GET with hub.mode, hub.verify_token and hub.challenge: the challenge is the answer. */
  | { readonly kind: 'hub' }
  /** A signed POST in which one place has a known value: another place is the answer. Nothing is stored. */
  | { readonly kind: 'echo'; readonly when: string; readonly equals: string; readonly echo: string }

/** What the index shows; the first complete template of each. They read the body alone: headers are not stored. */
export interface IndexTemplates {
  readonly contactName: readonly string[]
  readonly contactEmail: readonly string[]
  readonly messageType: readonly string[]
  readonly text: readonly string[]
}

/** What stands in the recipe file. */
export interface RecipeDefinition {
  readonly title: string
  readonly bodies: readonly BodyKind[]
  readonly signature: SignatureRule
  readonly challenge?: ChallengeRule
  /** Of these, none may be complete: a vendor that sends no id has no template here, and nothing is deduplicated. */
  readonly sourceRef: readonly string[]
  readonly channelRef: readonly string[]
  /** JSON Pointers. A body that has one of these places holds several messages: its reference is `{sha256}`, and it has no channel. */
  readonly batch: readonly string[]
  readonly index: IndexTemplates
  /** What the vendor gets once the message is stored; null: Intray's own receipt. */
  readonly answer: { readonly contentType: string; readonly body: string } | null
}

export interface Recipe extends RecipeDefinition {
  /** `custom` for those that are no built-in ones. */
  readonly name: string
  /** A number; of a custom recipe the digest of its definition. */
  readonly version: string
}

/** What people need to set up a hook of a built-in recipe at the vendor. */
export interface RecipeGuide {
  /** `intray`: Intray makes the secret and the vendor is given it. `vendor`: the other way. null: there is none. */
  readonly secret: { readonly from: 'intray' | 'vendor'; readonly name: string } | null
  /** In order. `{url}`, `{secret}` and `{verify_token}` are placeholders. */
  readonly steps: readonly string[]
}

export interface BuiltInRecipe extends Recipe {
  readonly guide: RecipeGuide
}

export const CUSTOM = 'custom'

/** `telegram/1`, `custom/<digest>`: as it is stored with an event. */
export type RecipeRef = string

export function recipeRef({ name, version }: Pick<Recipe, 'name' | 'version'>): RecipeRef {
  return `${name}/${version}`
}

/** The digest of a custom recipe, null for a built-in one. */
export function customDigest(ref: RecipeRef): string | null {
  return ref.startsWith(`${CUSTOM}/`) ? ref.slice(CUSTOM.length + 1) : null
}

/** 96 bits: two recipes of one database never meet by chance. Shorter than what logs mask (runtime/redact.ts). */
const DIGEST_DIGITS = 24

/** Of a definition in its canonical form: the version of a custom recipe. */
export function digestOfDefinition(definition: string): string {
  return hash('sha256', definition, 'hex').slice(0, DIGEST_DIGITS)
}

/** A custom recipe from the text that its digest was made of. */
export function storedRecipe(digest: string, definition: string): Recipe {
  return { ...(JSON.parse(definition) as RecipeDefinition), name: CUSTOM, version: digest }
}

export function needsSecret({ signature }: RecipeDefinition): boolean {
  return signature.kind !== 'none'
}
