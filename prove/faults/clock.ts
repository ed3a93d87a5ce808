// `prove clock`: the clock of the service is stepped by 24 hours, forward and back, under load. A cycle is one step.
// Claim: nothing is lost, doubled or misordered, re-sends are recognised across steps, and no event has two acks that count.
// Control: a reader that goes by time instead of by id must be found to have conversations in the wrong order.
//
// The step is libfaketime's, which Debian packages: real time and timers go on as they were, as with a wrong NTP server or
// an operator's `date -s`.

import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { StoredRow } from '../inbox.ts'
import { Processors } from '../processors.ts'
import { type Proof, type ProofContext, Unable } from '../proof.ts'
import { brokenIn, newSubject, type Subject } from '../subject.ts'
import { until, waitFor } from '../wait.ts'

const DAY_S = 86_400
const HOUR_MS = 3_600_000
const ACKNOWLEDGEMENTS = 60
const LEASE_S = 5

export const clock: Proof = {
  name: 'clock',
  about: 'the clock of the service is stepped by ±24 h under load',
  needs: 'libfaketime (Debian: apt-get install libfaketime)',
  stores: ['sqlite', 'postgres'],
  defaultCycles: 20,
  async run(context) {
    const stepper = new Stepper(context)
    const subject = await newSubject(context, {
      name: 'clock',
      service: { env: { ...stepper.env, INTRAY_MAX_ATTEMPTS: '1000' } },
      load: { onTrouble: 'resend', connections: 8 },
    })
    const { service, load, inbox, processorToken } = subject
    await service.start()
    const options = { ports: [service.port], token: processorToken, leaseSeconds: LEASE_S, workMs: 2 }
    const processors = new Processors(context, 2, options)
    for (let cycle = 1; cycle <= context.cycles; cycle += 1) {
      const running = load.run()
      await sendMore(subject)
      await stepper.step(subject, context.random.pick([-DAY_S, 0, DAY_S]))
      await sendMore(subject)
      await load.stop()
      await running
      if (cycle % 5 === 0) context.progress(`${cycle} steps, ${load.acknowledged} acknowledged`)
    }
    await load.settle()
    await letLeasesEnd(subject, stepper)
    context.progress('waiting for the processors')
    await processors.finish(inbox)
    const findings = await subject.check()
    const rows = (await inbox.rows()).filter(({ kind }) => kind === 'event')
    await service.stop()
    const byTime = misorderedByTime(rows)
    return {
      counts: { ...findings.counts, faults: stepper.steps },
      notes: [
        `${stepper.steps} steps seen in the times of new events; ${processors.acked.size} events processed, ${processors.handedOutAgain} handed out more than once (leases that a step ended), ${processors.lost} late acks refused.`,
      ],
      broken: [...brokenIn(findings), ...processors.broken(rows.map(({ id }) => id))],
      controls: [
        {
          about: 'a reader that goes by time instead of by id',
          failed: byTime > 0,
          detail: `${byTime} of ${rows.length} events out of order`,
        },
      ],
    }
  },
}

/**
 * A step back lengthens the leases that were given before it: what a processor was handed without hearing of it waits until
 * the clock is past that. So at last the clock goes ahead of them all.
 */
async function letLeasesEnd(subject: Subject, stepper: Stepper): Promise<void> {
  const running = subject.load.run()
  await stepper.step(subject, 3 * DAY_S)
  await subject.load.stop()
  await running
  await subject.load.settle()
}

async function sendMore({ load }: Subject): Promise<void> {
  const goal = load.acknowledged + ACKNOWLEDGEMENTS
  await waitFor('messages to be acknowledged', () => load.acknowledged >= goal)
}

/** Events of a conversation that a sort by time puts before one with a lower id. */
function misorderedByTime(rows: readonly StoredRow[]): number {
  const newest = new Map<string, number>()
  let count = 0
  for (const { channel_ref, received_at } of rows) {
    if (channel_ref === null) continue
    const at = Date.parse(received_at)
    if (at < (newest.get(channel_ref) ?? 0)) count += 1
    newest.set(channel_ref, Math.max(newest.get(channel_ref) ?? 0, at))
  }
  return count
}

class Stepper {
  /** Steps that were seen to have happened. */
  steps = 0
  readonly env: Readonly<Record<string, string>>
  readonly #file: string
  #offset = 0

  constructor({ folder }: Pick<ProofContext, 'folder'>) {
    this.#file = join(folder, 'clock')
    this.#write(0)
    this.env = {
      LD_PRELOAD: findLibrary(),
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_CACHE_DURATION: '1',
      // Only what a step of the system's clock would change.
      DONT_FAKE_MONOTONIC: '1',
      FAKETIME_DONT_RESET: '1',
    }
  }

  /** Steps to another offset and waits until a new event has a time of that kind. */
  async step({ inbox }: Subject, wanted: number): Promise<void> {
    const offset = wanted === this.#offset ? (wanted === DAY_S ? -DAY_S : DAY_S) : wanted
    this.#offset = offset
    this.#write(offset)
    await until(`the clock of the service is ${offset} s off`, async () => {
      const { status, body } = await inbox.ask('GET', '/v1/inbox/events?limit=1')
      const page = JSON.parse(body.toString()) as { events?: readonly StoredRow[] }
      const newest = status === 200 ? page.events?.[0] : undefined
      return newest !== undefined && Math.abs(Date.parse(newest.received_at) - Date.now() - offset * 1000) < HOUR_MS
    })
    this.steps += 1
  }

  #write(offset: number): void {
    writeFileSync(this.#file, `${offset < 0 ? '' : '+'}${offset}\n`)
  }
}

function findLibrary(): string {
  const roots = ['/usr/lib', ...safeList('/usr/lib').map((name) => join('/usr/lib', name))]
  const found = roots.map((root) => join(root, 'faketime', 'libfaketime.so.1')).find(existsSync)
  if (!found) throw new Unable('This proof needs libfaketime. On Debian: apt-get install libfaketime')
  return found
}

function safeList(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
