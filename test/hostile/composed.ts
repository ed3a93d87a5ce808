// Requests put together from parts: every part once with all else as it should be (the table), and any of them together
// (the generator). What each has to be answered is the oracle's prediction.

import fc from 'fast-check'
import { BODIES, KEYS, MEDIA, PACKINGS } from './bodies.ts'
import { FRAMINGS } from './framings.ts'
import { BROKEN_METHODS, EXPECTATIONS, FURTHER, type HeaderPart, HOSTS, LINES } from './heads.ts'
import { type HostileCase, wireOf } from './hostile-case.ts'
import { type Composition, predict } from './oracle.ts'
import { sendersOf, type Tokens } from './senders.ts'
import { METHODS, PLACES, TARGETS } from './targets.ts'

/** Where a request cannot be told apart from a body that follows it, this must not be stored. */
const SMUGGLED = '{"source_ref":"smuggled"}'

let count = 0

/** A case of a composition. Each call makes another message. */
export function caseOf(given: Composition, tokens: Tokens, cuts: readonly number[] = []): HostileCase {
  const { line, method, target, version, host, further, expectation, sender, framing, packing, media, body, key } =
    given
  count += 1
  const raw = body.make(count)
  const packed = packing.pack(raw)
  const prediction = predict(given, { packed: packed.length, raw: raw.length })
  const isAmiss = !['fine', 'none', 'endless'].includes(framing.verdict)
  const wire = Buffer.concat([
    wireOf(
      line.render(method, target.text, version),
      [
        ...host.lines,
        ...sender.lines,
        ...media.lines,
        ...packing.lines,
        ...key.lines(count),
        ...expectation.lines,
        ...framing.lines(packed.length),
        ...further.lines,
      ],
      framing.frame(packed),
    ),
    ...(isAmiss ? [smuggled(tokens)] : []),
  ])
  return { name: nameOf(given), pieces: cut(wire, cuts), stored: prediction.isStored ? [raw] : [], ...prediction }
}

function smuggled({ sender }: Tokens): Buffer {
  const headers = ['Host: intray.test', `Authorization: Bearer ${sender}`, 'Content-Type: application/json']
  return wireOf(
    'POST /v1/inbox/events HTTP/1.1',
    [...headers, `Content-Length: ${SMUGGLED.length}`],
    Buffer.from(SMUGGLED),
  )
}

function cut(wire: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [...new Set(cuts.map((share) => Math.floor(share * wire.length)))].sort((a, b) => a - b)
  const pieces: Buffer[] = []
  let from = 0
  for (const place of [...places, wire.length]) {
    if (place > from) pieces.push(wire.subarray(from, place))
    from = Math.max(from, place)
  }
  return pieces
}

function nameOf(given: Composition): string {
  const { method, version, ...parts } = given
  const names = Object.values(parts).flatMap((part) => (typeof part === 'object' ? [part.name] : []))
  return [`${method} HTTP/${version}`, ...names].join(' · ')
}

/** All as it should be: a message to the intake address. */
export function goodRequest(tokens: Tokens): Composition {
  return {
    line: LINES[0]!,
    method: 'POST',
    isMethodBroken: false,
    version: '1.1',
    target: TARGETS[0]!,
    host: HOSTS[0]!,
    further: FURTHER[0]!,
    expectation: EXPECTATIONS[0]!,
    sender: sendersOf(tokens)[0]!,
    framing: FRAMINGS[0]!,
    packing: PACKINGS[0]!,
    media: MEDIA[0]!,
    body: BODIES[0]!,
    key: KEYS[0]!,
  }
}

/** Every part once, with all else as it should be; `base` says what that is. */
export function table(base: Composition, tokens: Tokens): HostileCase[] {
  const one = (change: Partial<Composition>) => caseOf({ ...base, ...change }, tokens)
  return [
    ...LINES.map((line) => one({ line })),
    ...METHODS.flatMap((method) => PLACES.map((target) => one({ method, target }))),
    ...['GET', 'POST', 'PUT', 'OPTIONS'].flatMap((method) => TARGETS.map((target) => one({ method, target }))),
    ...BROKEN_METHODS.map((method) => one({ method, isMethodBroken: true })),
    ...(['1.1', '1.0'] as const).flatMap((version) => HOSTS.map((host) => one({ version, host }))),
    ...FURTHER.map((further) => one({ further })),
    ...EXPECTATIONS.map((expectation) => one({ expectation })),
    ...sendersOf(tokens).map((sender) => one({ sender })),
    ...(['1.1', '1.0'] as const).flatMap((version) => FRAMINGS.map((framing) => one({ version, framing }))),
    ...PACKINGS.map((packing) => one({ packing })),
    ...MEDIA.map((media) => one({ media })),
    ...BODIES.map((body) => one({ body })),
    ...BODIES.map((body) => one({ body, packing: PACKINGS[2]!, framing: FRAMINGS[4]! })),
    ...KEYS.flatMap((key) => [BODIES[0]!, BODIES[1]!].map((body) => one({ key, body }))),
  ]
}

/** Mostly the first, which is as it should be: otherwise no request would get past its head. */
const mostlyFirst = <T>(parts: readonly T[], weight = 4): fc.Arbitrary<T> =>
  fc.oneof({ arbitrary: fc.constant(parts[0]!), weight }, { arbitrary: fc.constantFrom(...parts), weight: 1 })

export interface Drawn {
  readonly given: Composition
  readonly cuts: readonly number[]
}

/** Drawn, not made: a case that is played again while a failure is made smaller must be another message. */
export function anyRequest(tokens: Tokens): fc.Arbitrary<Drawn> {
  const senders = sendersOf(tokens)
  const method = fc.oneof(
    { arbitrary: fc.constantFrom<string>(...METHODS).map((text) => [text, false] as const), weight: 20 },
    { arbitrary: fc.constantFrom<string>(...BROKEN_METHODS).map((text) => [text, true] as const), weight: 1 },
  )
  const composition = fc.record({
    line: mostlyFirst(LINES, 12),
    version: mostlyFirst(['1.1', '1.0'] as const, 8),
    host: mostlyFirst(HOSTS, 8),
    further: mostlyFirst(FURTHER, 8),
    expectation: mostlyFirst(EXPECTATIONS, 8),
    // Either a message, or any method at any address with any token.
    aim: fc.oneof(
      fc.record({
        method: fc.constant(['POST', false] as const),
        target: fc.constantFrom(...TARGETS.filter(({ doors }) => isIntake(doors))),
        sender: mostlyFirst(senders, 6),
      }),
      fc.record({
        method,
        target: fc.constantFrom(...TARGETS),
        sender: fc.constantFrom(senders[0]!, senders[1]!, ...senders),
      }),
    ),
    framing: mostlyFirst(FRAMINGS, 2),
    packing: mostlyFirst(PACKINGS),
    media: mostlyFirst(MEDIA, 8),
    body: mostlyFirst(BODIES, 1),
    key: mostlyFirst(KEYS),
  })
  const cuts = fc.oneof(
    { arbitrary: fc.constant([]), weight: 3 },
    fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 4 }),
  )
  // Behind an Upgrade node's parser keeps silent about a body that breaks off: 408 after half a minute (docs/internals/hostile-input.md).
  const known = composition.filter(({ further, framing }) => !(isUpgrade(further) && framing.verdict === 'body'))
  return fc.tuple(known, cuts).map(([{ aim, ...parts }, places]) => ({
    given: { ...parts, target: aim.target, sender: aim.sender, method: aim.method[0], isMethodBroken: aim.method[1] },
    cuts: places,
  }))
}

function isUpgrade({ lines }: HeaderPart): boolean {
  return lines.some((text) => text.startsWith('Upgrade:'))
}

function isIntake(doors: (typeof TARGETS)[number]['doors']): boolean {
  return Array.isArray(doors) && doors.some(({ result }) => result === 'intake')
}
