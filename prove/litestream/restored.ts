// Restores the replica of a trial as docs/operating/backup.md describes it, starts a server on it, and holds what it has against
// the senders' acknowledgements. Afterwards the senders send everything again.

import { cpSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { writeCursor } from '../../src/model/list-cursor.ts'
import { EventStream } from '../../test/support/event-stream.ts'
import { post } from '../../test/support/load.ts'
import { Inbox, type StoredRow } from '../inbox.ts'
import type { ProofContext } from '../proof.ts'
import { Service } from '../service.ts'
import type { Acknowledged, Trial } from './trial.ts'

const SENDERS = 8

export interface Outcome {
  /** Replicated, by Litestream's own word, and not there. */
  lost: number
  twice: number
  altered: number
  misnumbered: number
  /** Erased, and there all the same. */
  resurrected: number
  /** Acknowledged after the last sync, and not there: allowed. */
  missing: number
  readonly broken: string[]
}

/** Where the replica goes. Nothing was started on it. */
export async function restoreReplica(
  folder: string,
  { litestream }: Pick<Trial, 'litestream'>,
): Promise<string | null> {
  const path = join(folder, 'intray.db')
  return (await litestream.restore(path)) ? path : null
}

/** The id of a first message without `epoch`: was it given out before? On a copy of the restored file. */
export async function sendWithoutEpoch(context: ProofContext, path: string, trial: Trial): Promise<boolean> {
  const copy = join(dirname(path), 'no-epoch', 'intray.db')
  mkdirSync(dirname(copy))
  cpSync(path, copy)
  const service = new Service(context, { databaseUrl: `sqlite:${copy}` })
  await service.start()
  const { json } = await post(service.port, trial.subject.token, '{"source_ref":"no epoch"}')
  await service.kill()
  return trial.acknowledged.some(({ id }) => id === json?.id)
}

export async function checkRestored(context: ProofContext, path: string, trial: Trial): Promise<Outcome> {
  const service = new Service(context, { databaseUrl: `sqlite:${path}` })
  const epoch = await service.command(['epoch', '--erasures', trial.backups, '--json'])
  if (epoch.code !== 0) throw new Error(`epoch failed: ${epoch.stderr}`)
  const { gap } = JSON.parse(epoch.stdout) as { gap: Gap }
  await service.start()
  const checked = new Restored(service, trial, gap)
  try {
    await checked.compare()
    await checked.follow()
    await checked.sendAgain()
    await checked.examine()
    return checked.outcome
  } finally {
    checked.close()
    await service.kill()
  }
}

interface Gap {
  readonly after: number
  readonly before: number
}

class Restored {
  readonly outcome: Outcome = {
    lost: 0,
    twice: 0,
    altered: 0,
    misnumbered: 0,
    resurrected: 0,
    missing: 0,
    broken: [],
  }
  readonly #service: Service
  readonly #trial: Trial
  readonly #gap: Gap
  readonly #inbox: Inbox
  #ids: readonly number[] = []
  #missing: readonly Acknowledged[] = []

  constructor(service: Service, trial: Trial, gap: Gap) {
    this.#service = service
    this.#trial = trial
    this.#gap = gap
    this.#inbox = new Inbox(() => service.port, trial.subject.processorToken)
  }

  close(): void {
    this.#inbox.close()
  }

  /** What the replica had. */
  async compare(): Promise<void> {
    const { outcome } = this
    const rows = await this.#inbox.rows()
    this.#ids = rows.map(({ id }) => id)
    const byRef = await this.#readRows(rows)
    const missing: Acknowledged[] = []
    for (const sent of this.#trial.acknowledged) {
      const id = byRef.get(sent.ref)
      if (id === undefined && !this.#ids.includes(sent.id)) {
        missing.push(sent)
        if (sent.isReplicated) outcome.lost += 1
      } else if (id !== undefined && id !== sent.id) outcome.misnumbered += 1
    }
    this.#missing = missing
    outcome.missing = missing.filter(({ isReplicated }) => !isReplicated).length
    const { status } = await this.#inbox.payload(this.#trial.erased)
    if (status !== 410) outcome.resurrected += 1
    if (missing.length === 0) outcome.broken.push('nothing was lost: the gap of ids was not tested')
    if (this.#gap.after !== Math.max(...this.#ids)) outcome.broken.push(`the gap begins at ${this.#gap.after}`)
  }

  /** Older cursors go on, lost ones are refused. */
  async follow(): Promise<void> {
    const { broken } = this.outcome
    const { after, before } = this.#gap
    const known = this.#ids.at(-Math.min(10, this.#ids.length))!
    const { port } = this.#service
    const { token, processorToken } = this.#trial.subject
    const follower = await EventStream.open(port, processorToken, { lastEventId: known })
    const { json } = await post(port, token, '{"source_ref":"after the restore"}')
    const fresh = json?.id as number
    if (!(fresh > before)) broken.push(`a new id is ${fresh}, not above ${before}`)
    await follower.until(({ ids }) => ids.includes(fresh))
    const expected = [...this.#ids.filter((id) => id > known), fresh]
    if (String(follower.ids) !== String(expected)) broken.push(`a follower after ${known} read ${follower.ids}`)
    follower.close()
    for (const lost of [after + 1, ...this.#missing.map(({ id }) => id).slice(-1)]) {
      for (const path of [`stream?after=${lost}`, `events?cursor=${writeCursor({ id: lost, receivedAt: null })}`]) {
        const { status, body } = await this.#inbox.ask('GET', `/v1/inbox/${path}`)
        if (status !== 409 || !body.includes('cursor_ahead')) broken.push(`${path} was answered ${status}`)
      }
    }
  }

  /** Everything twice: the first time stores what was missing, the second time nothing. */
  async sendAgain(): Promise<void> {
    const { acknowledged } = this.#trial
    const { outcome } = this
    const isMissing = new Set(this.#missing.map(({ ref }) => ref))
    const first = await this.#sendAll()
    const second = await this.#sendAll()
    for (const { ref, id } of acknowledged) {
      const one = first.get(ref)!
      const isWrong = isMissing.has(ref) ? one.isDuplicate || one.id <= this.#gap.before : one.id !== id
      if (isWrong || (!isMissing.has(ref) && !one.isDuplicate)) outcome.misnumbered += 1
      const two = second.get(ref)!
      if (!two.isDuplicate || two.id !== one.id) outcome.twice += 1
    }
    // And the one message of the follower.
    const rows = await this.#inbox.rows()
    const byRef = await this.#readRows(rows)
    outcome.twice += Math.max(0, rows.length - acknowledged.length - 1)
    const erased = rows.filter(({ source_ref }) => source_ref === null).length
    outcome.lost += Math.max(0, acknowledged.length + 1 - byRef.size - erased)
  }

  async examine(): Promise<void> {
    const { stdout } = await this.#service.command(['doctor', '--json'])
    const { checks } = JSON.parse(stdout) as { checks: { name: string; verdict: string; summary: string }[] }
    for (const { name, verdict, summary } of checks) {
      if (verdict !== 'ok') this.outcome.broken.push(`doctor, ${name}: ${verdict}, ${summary}`)
    }
  }

  async #sendAll(): Promise<Map<string, { id: number; isDuplicate: boolean }>> {
    const left = [...this.#trial.acknowledged]
    const answers = new Map<string, { id: number; isDuplicate: boolean }>()
    const send = async () => {
      for (let sent = left.pop(); sent; sent = left.pop()) {
        const { status, json } = await post(this.#service.port, this.#trial.subject.token, sent.body)
        if (status !== 200) throw new Error(`${sent.ref} was answered ${status}`)
        answers.set(sent.ref, { id: json!.id as number, isDuplicate: json!.duplicate === true })
      }
    }
    await Promise.all(Array.from({ length: SENDERS }, send))
    return answers
  }

  /** Compares the bytes of all rows; returns their ids by source_ref. */
  async #readRows(rows: readonly StoredRow[]): Promise<Map<string, number>> {
    const { outcome } = this
    const bodies = new Map(this.#trial.acknowledged.map(({ ref, body }) => [ref, body]))
    const payloads = await this.#inbox.payloads(rows.map(({ id }) => id))
    const byRef = new Map<string, number>()
    for (const { id, source_ref: ref, kind } of rows) {
      // An erased row has none.
      if (ref === null) continue
      if (kind !== 'event' || byRef.has(ref)) outcome.twice += 1
      byRef.set(ref, id)
      const body = bodies.get(ref)
      if (ref !== 'after the restore' && !(body && payloads.get(id)!.bytes.equals(body))) outcome.altered += 1
    }
    return byRef
  }
}
