// What a signature check needs beside the request, and what it finds. A verdict names what to look at, and repeats no secret, no signature
// and nothing else of the request.

import type { Sliceable } from '../runtime/sliced-work.ts'

export const SIGNATURE_FAULTS = [
  'no_secret',
  'missing_signature',
  'malformed_signature',
  'wrong_signature',
  'missing_timestamp',
  'old_timestamp',
  'future_timestamp',
  'no_public_url',
  'too_large',
] as const

export type SignatureFault = (typeof SIGNATURE_FAULTS)[number]

export type SignatureVerdict =
  /** `secret`: the place in the list of the one that fits; null without a signature. */
  | { readonly ok: true; readonly secret: number | null }
  | { readonly ok: false; readonly fault: SignatureFault; readonly message: string }

export interface SignatureContext {
  /** Those that are valid now, the newest first. */
  readonly secrets: readonly string[]
  /** INTRAY_PUBLIC_URL: the address that senders use, without the path. */
  readonly publicUrl: string | null
  /** In ms. */
  readonly now: number
}

/** Work that ends with a verdict. */
export interface SignatureCheck extends Sliceable {
  /** Once it is done. */
  readonly verdict: SignatureVerdict
}

export function refused(fault: SignatureFault, message: string): SignatureVerdict {
  return { ok: false, fault, message }
}
