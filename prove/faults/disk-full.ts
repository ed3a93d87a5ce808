// `prove disk-full`: the disk of the database is filled under load and freed again. A cycle is one such time.
// Claim: while it is full every message is refused within a second and reads go on; when there is room the same process
// goes on by itself; nothing acknowledged is lost, and what was refused is there once after it was sent again.
// Control: a sender that takes the refusal for "stored" and does not send again must be found to have lost messages.

import { join } from 'node:path'
import type { ControlResult, Proof, ProofContext } from '../proof.ts'
import { SmallDisk } from '../small-disk.ts'
import { brokenIn, newSubject, type Subject } from '../subject.ts'
import { until, waitFor } from '../wait.ts'

/** A WAL that is there already takes up to some 32 MB more on a full disk: each time costs so much. */
const BYTES_A_CYCLE = 48 * 1024 * 1024
const REFUSALS = 40
const ACKNOWLEDGEMENTS = 150
const READS = 20
const WITHIN_MS = 1000

export const diskFull: Proof = {
  name: 'disk-full',
  about: 'the disk of the database is filled under load, and freed again',
  needs: 'root, to mount a small tmpfs',
  stores: ['sqlite'],
  defaultCycles: 10,
  async run(context) {
    const disk = SmallDisk.mount(context, (1 + context.cycles) * BYTES_A_CYCLE)
    const watch = new Watch()
    const subject = await newSubject(context, {
      name: 'full',
      service: { databaseUrl: `sqlite:${join(disk.folder, 'intray.db')}` },
      load: { onTrouble: 'go-on', connections: 8, maxTextPieces: 6000, onAnswer: watch.note },
    })
    const { service, load } = subject
    await service.start()
    const { pid } = service
    let control: ControlResult | null = null
    let cycle = 0
    for (; cycle < context.cycles; cycle += 1) {
      await fillAndFree(context, subject, disk, watch)
      control ??= await takeRefusalForStored(subject)
      await load.settle()
      if ((cycle + 1) % 5 === 0) context.progress(`${cycle + 1} times full, ${load.acknowledged} acknowledged`)
    }
    const findings = await subject.check()
    const isSameProcess = service.isRunning && service.pid === pid
    await service.stop()
    const slowest = Math.max(...watch.refusalsMs)
    return {
      counts: { ...findings.counts, faults: watch.timesFull },
      notes: [
        `${watch.timesFull} times full: ${watch.refusalsMs.length} refusals (503 storage_unavailable), the slowest after ${slowest.toFixed(0)} ms, the median after ${median(watch.refusalsMs).toFixed(1)} ms; ${watch.reads} reads answered 200 meanwhile.`,
        `Ready again, unaided, after at most ${watch.resumedMs.toFixed(0)} ms from when there was room.`,
      ],
      broken: [
        ...brokenIn(findings),
        ...watch.broken,
        ...(isSameProcess ? [] : ['the process did not stay up']),
        ...(context.isTimed && slowest > WITHIN_MS ? [`a refusal took ${slowest.toFixed(0)} ms`] : []),
      ],
      controls: control ? [control] : [],
    }
  },
}

class Watch {
  timesFull = 0
  reads = 0
  resumedMs = 0
  readonly refusalsMs: number[] = []
  readonly broken: string[] = []

  readonly note = ({ status, error }: { readonly status: number; readonly error: string | null }, tookMs: number) => {
    if (status === 503 && error === 'storage_unavailable') this.refusalsMs.push(tookMs)
    else if (status !== 200 && status !== 400) this.broken.push(`an attempt was answered ${status} ${error}`)
  }
}

async function fillAndFree(context: ProofContext, subject: Subject, disk: SmallDisk, watch: Watch): Promise<void> {
  const { load, inbox, service } = subject
  const goal = load.acknowledged + ACKNOWLEDGEMENTS
  const running = load.run()
  await waitFor('messages to be acknowledged', () => load.acknowledged >= goal)
  // On a full disk nothing more is indexed: the events to be read then have to be indexed before.
  await until('messages to be listed', async () => (await list(inbox)).events.length > 0)
  const refusals = watch.refusalsMs.length
  disk.fill()
  await waitFor('messages to be refused', () => watch.refusalsMs.length >= refusals + REFUSALS)
  watch.timesFull += 1
  // Reading needs no room.
  const { status, events } = await list(inbox)
  if (status !== 200) watch.broken.push(`a list was answered ${status} while the disk was full`)
  for (let read = 0; read < READS; read += 1) {
    const payload = await inbox.payload(context.random.pick(events).id)
    if (payload.status === 200) watch.reads += 1
    else watch.broken.push(`a read was answered ${payload.status} while the disk was full`)
  }
  const ready = await inbox.ask('GET', '/readyz')
  if (ready.status !== 503) watch.broken.push(`/readyz said ${ready.status} while the disk was full`)
  const freedAt = performance.now()
  disk.free()
  await until('the service is ready again', async () => (await inbox.ask('GET', '/readyz')).status === 200)
  watch.resumedMs = Math.max(watch.resumedMs, performance.now() - freedAt)
  const resumed = load.acknowledged + ACKNOWLEDGEMENTS
  await waitFor('messages to be acknowledged again', () => load.acknowledged >= resumed)
  if (!service.isRunning) watch.broken.push('the service ended')
  await load.stop()
  await running
}

async function list(inbox: Subject['inbox']): Promise<{ status: number; events: readonly { readonly id: number }[] }> {
  const { status, body } = await inbox.ask('GET', '/v1/inbox/events?limit=200')
  const { events } = JSON.parse(body.toString()) as { events?: readonly { readonly id: number }[] }
  return { status, events: events ?? [] }
}

/** Before anything is sent again: what would be missing if nobody did. */
async function takeRefusalForStored(subject: Subject): Promise<ControlResult> {
  const { unsettled, storedUnknown } = await subject.check()
  return {
    about: 'a sender that takes 503 for "stored" and does not send again',
    failed: unsettled > storedUnknown,
    detail: `${unsettled} messages answered 503, ${unsettled - storedUnknown} of them not stored`,
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}
