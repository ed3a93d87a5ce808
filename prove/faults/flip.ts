// `prove flip`: bits of stored payloads are flipped, and columns are changed, below the service. A cycle is one flipped payload.
// Claim: flipped bytes are served by no read (500, or a claim that says "damaged"), every other event is served as it was
// sent, and `doctor` names every flipped payload and every column that no longer agrees, and nothing else.
// Control: a reader that knows nothing of digests must be found to serve the flipped bytes.

import { Damage } from '../damage.ts'
import type { Inbox, StoredRow } from '../inbox.ts'
import type { ControlResult, Proof, ProofContext } from '../proof.ts'
import { brokenIn, newSubject, type Subject } from '../subject.ts'

/** Which check of doctor finds a change of this column. */
const DETECTED = [
  ['events', 'source_ref', 'references'],
  ['events', 'channel_ref', 'references'],
  ['events', 'size', 'payloads'],
  ['events', 'account_id', 'keys'],
  ['dedupe', 'digest', 'keys'],
  ['dedupe', 'sha256', 'keys'],
] as const
/** Nothing else says what these should be. docs/internals/reliability.md lists them. */
const NOT_DETECTED = ['received_at', 'scope', 'route', 'content_type', 'request_id'] as const

const ABOUT_ROWS = ['payloads', 'references', 'keys']

interface DoctorCheck {
  readonly name: string
  readonly verdict: string
  readonly events?: readonly { readonly id: number }[]
}

export const flip: Proof = {
  name: 'flip',
  about: 'bits of stored payloads are flipped in the file, columns are changed',
  needs: '',
  stores: ['sqlite', 'postgres'],
  // Doctor names the first 20 of a kind.
  defaultCycles: 15,
  async run(context) {
    const subject = await newSubject(context, { name: 'flip', load: { onTrouble: 'resend', maxTextPieces: 400 } })
    const { service, load } = subject
    await service.start()
    await load.run(Math.max(120, context.cycles * 20))
    await load.settle()
    const findings = await subject.check()
    const broken = brokenIn(findings)
    const rows = await subject.inbox.rows()
    const payloads = await subject.inbox.payloads(rows.map(({ id }) => id))
    await service.stop()
    const before = (await diagnose(subject)).filter(({ name }) => ABOUT_ROWS.includes(name))
    if (before.length < ABOUT_ROWS.length || before.some(({ verdict }) => verdict !== 'ok')) {
      broken.push('doctor found something wrong before anything was')
    }

    const damage = new Damage(service.options.databaseUrl, context.random.fork('damage'))
    const shuffled = rows.toSorted((a, b) => (a.sha256 < b.sha256 ? -1 : 1))
    const flipped = new Map<number, StoredRow>()
    for (const row of shuffled) {
      if (flipped.size === context.cycles) break
      if (await damage.flipPayload(row.id, payloads.get(row.id)!.bytes)) flipped.set(row.id, row)
    }
    context.progress(`${flipped.size} payloads flipped`)
    broken.push(...differences('payloads', await diagnose(subject), [...flipped.keys()]))
    const control = await readWithoutDigest(damage, flipped, payloads)
    await service.command(['reindex'])
    await service.start()
    const served = await readEverything(context, subject, rows, flipped, broken)
    await service.stop()

    const changed = await changeColumns(context, subject, damage, rows, flipped, broken)
    return {
      counts: { ...findings.counts, altered: findings.counts.altered + served.altered, faults: flipped.size + changed },
      notes: [
        `${flipped.size} payloads flipped by one bit: ${served.refusals} reads answered 500, ${served.damaged} claims said "damaged", ${served.intact} reads of other events were as sent.`,
        `doctor was held to name these and no other, and ${changed} changed columns: ${DETECTED.map(([table, column]) => `${table}.${column}`).join(', ')}. Not detected, as documented: ${NOT_DETECTED.join(', ')}.`,
      ],
      broken,
      controls: [control],
    }
  },
}

async function diagnose({ service }: Subject): Promise<readonly DoctorCheck[]> {
  const { stdout, stderr } = await service.command(['doctor', '--json'])
  if (stdout === '') throw new Error(`doctor said nothing: ${stderr}`)
  return (JSON.parse(stdout) as { checks: readonly DoctorCheck[] }).checks
}

/** What a check of doctor names and should not, or the other way round. */
function differences(name: string, checks: readonly DoctorCheck[], expected: readonly number[]): string[] {
  const found = checks.find((check) => check.name === name)?.events ?? []
  const named = new Set(found.map(({ id }) => id))
  const missed = expected.filter((id) => !named.has(id))
  const wrongly = [...named].filter((id) => !expected.includes(id))
  return [
    ...(missed.length > 0 ? [`doctor (${name}) did not name ${missed.join(', ')}`] : []),
    ...(wrongly.length > 0 ? [`doctor (${name}) named ${wrongly.join(', ')}, which are well`] : []),
  ]
}

async function readWithoutDigest(
  damage: Damage,
  flipped: ReadonlyMap<number, StoredRow>,
  payloads: Awaited<ReturnType<Inbox['payloads']>>,
): Promise<ControlResult> {
  let served = 0
  for (const id of flipped.keys()) if (!(await damage.readUnchecked(id)).equals(payloads.get(id)!.bytes)) served += 1
  const detail = `${served} of ${flipped.size} flipped payloads served`
  return { about: 'a reader that knows nothing of digests', failed: served === flipped.size && served > 0, detail }
}

interface Served {
  altered: number
  refusals: number
  damaged: number
  intact: number
}

/** Every way to the bytes: the event, its payload, a known ETag, the promotion of a revision, lists, claims. */
async function readEverything(
  context: ProofContext,
  { inbox }: Subject,
  rows: readonly StoredRow[],
  flipped: ReadonlyMap<number, StoredRow>,
  broken: string[],
): Promise<Served> {
  const served: Served = { altered: 0, refusals: 0, damaged: 0, intact: 0 }
  for (const { id, kind } of flipped.values()) {
    const asked: [string, string][] = [
      ['GET', `/v1/inbox/events/${id}`],
      ['GET', `/v1/inbox/events/${id}/payload`],
      ...(kind === 'revision' ? [['POST', `/v1/inbox/events/${id}/promote`] as [string, string]] : []),
    ]
    for (const [method, path] of asked) {
      const { status, body } = await inbox.ask(method, path)
      if (status === 500 && body.includes('internal_error')) served.refusals += 1
      else served.altered += 1
    }
  }
  for (const row of rows.filter(({ id }) => !flipped.has(id))) {
    const { status, sha256 } = await inbox.payload(row.id)
    if (status === 200 && sha256 === row.sha256) served.intact += 1
    else broken.push(`event ${row.id} was not flipped, and is answered ${status}`)
  }
  const listed = (await inbox.rows()).filter(({ id }) => flipped.has(id))
  const shown = listed.filter(({ snippet }) => snippet !== null)
  if (shown.length > 0) broken.push(`after a reindex ${shown.length} lists show text of flipped bytes`)
  await claimEverything(inbox, flipped, served)
  context.progress(`${served.refusals} reads refused, ${served.damaged} claims marked`)
  return served
}

async function claimEverything(inbox: Inbox, flipped: ReadonlyMap<number, StoredRow>, served: Served): Promise<void> {
  for (;;) {
    const { body } = await inbox.ask('POST', '/v1/inbox/claims', { limit: 200, lease_s: 600 })
    const { events } = JSON.parse(body.toString()) as {
      events: readonly { id: number; lease_id: string; payload: unknown; payload_missing?: string }[]
    }
    if (events.length === 0) return
    for (const { id, payload, payload_missing } of events) {
      if (!flipped.has(id)) continue
      if (payload === null && payload_missing === 'damaged') served.damaged += 1
      else served.altered += 1
    }
    await inbox.ask('POST', '/v1/inbox/claims/ack', { events: events.map(({ id, lease_id }) => ({ id, lease_id })) })
  }
}

/** Each column of one event that is well so far. Returns how many were changed that doctor can tell. */
async function changeColumns(
  { progress }: ProofContext,
  subject: Subject,
  damage: Damage,
  rows: readonly StoredRow[],
  flipped: ReadonlyMap<number, StoredRow>,
  broken: string[],
): Promise<number> {
  const well = rows.filter(
    ({ id, kind, source_ref, channel_ref }) => kind === 'event' && !flipped.has(id) && source_ref && channel_ref,
  )
  const expected: Record<string, number[]> = { payloads: [...flipped.keys()], references: [], keys: [] }
  for (const [table, column, check] of DETECTED) {
    const { id } = well.pop()!
    await damage.change(table, column, id, damage.flipped)
    expected[check]!.push(id)
    // The key is made of the reference.
    if (column === 'source_ref') expected.keys!.push(id)
  }
  for (const column of NOT_DETECTED) await damage.change('events', column, well.pop()!.id, damage.flipped)
  const checks = await diagnose(subject)
  for (const [check, ids] of Object.entries(expected)) broken.push(...differences(check, checks, ids))
  progress(`${DETECTED.length} columns changed`)
  return DETECTED.length
}
