// Predicts the answer to a composed request from the verdicts of its parts and the order of checks that DESIGN and
// docs/sending/errors.md promise: framing, path, method, token, scope, encoding, media type, size, JSON, refs. It asks nothing
// of the implementation.

import {
  type BodyPart,
  type KeyPart,
  MAX_BODY_BYTES,
  MAX_COMMAND_BYTES,
  type MediaPart,
  type PackingPart,
} from './bodies.ts'
import type { FramingPart } from './framings.ts'
import { type ExpectPart, type HeaderPart, type LinePart, NO_HOST } from './heads.ts'
import { BROKEN, type Expected, type HostileCase, refusal } from './hostile-case.ts'
import type { SenderPart } from './senders.ts'
import type { Door, TargetPart } from './targets.ts'

export interface Composition {
  readonly line: LinePart
  readonly method: string
  readonly isMethodBroken: boolean
  readonly version: '1.1' | '1.0'
  readonly target: TargetPart
  readonly host: HeaderPart
  readonly further: HeaderPart
  readonly expectation: ExpectPart
  readonly sender: SenderPart
  readonly framing: FramingPart
  readonly packing: PackingPart
  readonly media: MediaPart
  readonly body: BodyPart
  readonly key: KeyPart
}

export interface Sizes {
  /** On the wire. */
  readonly packed: number
  readonly raw: number
}

type Prediction = Pick<HostileCase, 'answers' | 'connection'> & { readonly isStored: boolean }

const HUGE = refusal(431, 'headers_too_large')

export function predict(given: Composition, sizes: Sizes): Prediction {
  const whole = (answer: Expected, connection: HostileCase['connection'], isStored = false): Prediction => ({
    answers: [answer],
    connection,
    isStored,
  })
  const bodiless = given.method === 'HEAD'
  const head = parserVerdict(given)
  if (head) return whole({ ...head, bodiless }, 'closed')
  const early = earlyAnswer(given, sizes)
  const isOld = given.version === '1.0'
  if (early) {
    const answer =
      given.framing.verdict === 'body' && early.status !== 417 ? { ...early, or: { ...BROKEN, bodiless } } : early
    return whole({ ...answer, bodiless }, isOld ? 'closed' : connectionAfter(given))
  }
  if (given.framing.verdict === 'body') return whole(BROKEN, 'closed')
  const late = bodyAnswer(given, sizes)
  return whole(late, isOld ? 'closed' : late.status === 413 ? 'either' : 'kept', late.status === 200)
}

/** What never gets past the parser. Where two things are wrong, the parser meets whichever it meets first. */
function parserVerdict({ line, method, isMethodBroken, target, host, further, framing }: Composition): Expected | null {
  const isBroken =
    line.verdict === 'broken' ||
    isMethodBroken ||
    target.doors === 'broken' ||
    host.verdict === 'broken' ||
    further.verdict === 'broken' ||
    framing.verdict === 'broken'
  const isHuge = line.verdict === 'huge' || further.verdict === 'huge'
  const isHead = method === 'HEAD'
  if (isBroken) return isHuge ? { ...BROKEN, or: { ...HUGE, bodiless: isHead } } : BROKEN
  return isHuge ? HUGE : null
}

/** What is answered without a look at the body, or null: the body decides. */
function earlyAnswer(given: Composition, { packed }: Sizes): Expected | null {
  const { host, version, framing, expectation } = given
  const isHostFine = host.verdict === 'fine' || (host === NO_HOST && version === '1.0')
  if (!isHostFine || framing.verdict === 'refused') return BROKEN
  if (framing.isChunked && version === '1.0') return BROKEN
  // The parser has its word first where a whole URL names no host: it is a matter of framing too.
  if (given.target.doors === 'malformed' && /^https?:/i.test(given.target.text)) return BROKEN
  if (expectation.verdict === 'unknown') return refusal(417, 'expectation_failed')
  const door = doorOf(given)
  if ('status' in door) return door
  const refused = tokenRefusal(door, given.sender)
  if (refused) return refused
  if (door.result === 200) return { status: 200, error: null }
  if (door.result === 404) return refusal(404, 'not_found')
  if (given.packing.verdict === 'unsupported') return refusal(415, 'unsupported_encoding')
  const { takenFor } = given.media
  if (takenFor === 'nothing' || (takenFor === 'messages' && door.result !== 'intake')) {
    return refusal(415, 'unsupported_media_type')
  }
  const isDeclared = !framing.isChunked && packed > limitOf(door)
  return isDeclared || framing.verdict === 'endless' ? refusal(413, 'payload_too_large') : null
}

function doorOf({ target, method }: Composition): Door | Expected {
  const { doors } = target
  if (doors === 'malformed') return BROKEN
  if (doors === null || doors === 'broken') return refusal(404, 'not_found')
  if (method === 'OPTIONS') return { status: 204, error: null }
  const open =
    doors === 'server' ? undefined : doors.find((door) => door.method === (method === 'HEAD' ? 'GET' : method))
  return open ?? refusal(405, 'method_not_allowed')
}

function tokenRefusal({ guard }: Door, { verdict }: SenderPart): Expected | null {
  if (guard === 'public') return null
  if (verdict === 'twice') return BROKEN
  if (verdict !== 'sender' && verdict !== 'processor') return refusal(401, verdict)
  return guard === 'token' || guard === verdict ? null : refusal(403, 'forbidden_scope')
}

function limitOf({ result }: Door): number {
  return result === 'intake' ? MAX_BODY_BYTES : MAX_COMMAND_BYTES
}

function bodyAnswer(given: Composition, { packed, raw }: Sizes): Expected {
  const { framing, packing, body, key } = given
  const door = doorOf(given) as Door
  const tooLarge = refusal(413, 'payload_too_large')
  const hasBody = framing.verdict !== 'none'
  if (!hasBody) return refusal(400, 'invalid_json')
  if (packed > limitOf(door) || packing.verdict === 'bomb') return tooLarge
  if (packing.verdict === 'broken') return refusal(400, 'invalid_json')
  if (raw > limitOf(door)) return tooLarge
  if (body.verdict === 'invalid_json') return refusal(400, 'invalid_json')
  // Every field of a command must be known, and no body here holds one that is.
  if (door.result === 'command' || body.verdict === 'invalid_payload') return refusal(422, 'invalid_payload')
  return key.isUsable || body.hasSourceRef ? { status: 200, error: null } : BROKEN
}

/** After an answer that did not wait for the body: a short rest with a length is skipped, else it depends on what arrived. */
function connectionAfter({ framing, expectation, packing, body }: Composition): HostileCase['connection'] {
  if (framing.verdict === 'none') return expectation.lines.length === 0 ? 'kept' : 'either'
  if (framing.isChunked || framing.verdict === 'endless' || expectation.lines.length > 0) return 'either'
  return body.name === 'as large as may be' || packing.verdict === 'bomb' || body.name.startsWith('unclosed')
    ? 'either'
    : 'kept'
}
