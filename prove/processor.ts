// A processor in a process of its own, so that it can be paused: claims, tells, works for a moment, acknowledges, tells.
// One JSON line on stdout for each step; ends on SIGTERM between two claims.
//
//   node prove/processor.ts <port,port,…> <lease seconds> <work ms>     the token is in PROCESSOR_TOKEN

import { setTimeout as pause } from 'node:timers/promises'

export type ProcessorLine =
  | { readonly what: 'claimed'; readonly ids: readonly number[]; readonly lease: string }
  | { readonly what: 'worked'; readonly id: number; readonly lease: string }
  | { readonly what: 'acked'; readonly id: number; readonly lease: string; readonly result: 'ok' | 'lost' }

interface Claimed {
  readonly id: number
  readonly lease_id: string
}

const TIMEOUT_MS = 5000

const ports = process.argv[2]!.split(',')
const leaseSeconds = Number(process.argv[3])
const workMs = Number(process.argv[4])
let isStopped = false
let at = 0
process.on('SIGTERM', () => (isStopped = true))

function tell(line: ProcessorLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

/** Asks one node after the other until one answers. */
async function ask(path: string, body: unknown): Promise<{ status: number; json: Record<string, unknown> }> {
  for (;;) {
    try {
      const answer = await fetch(`http://127.0.0.1:${ports[at % ports.length]}${path}`, {
        method: 'POST',
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(TIMEOUT_MS),
        headers: { Authorization: `Bearer ${process.env.PROCESSOR_TOKEN}`, 'Content-Type': 'application/json' },
      })
      const json = (await answer.json()) as Record<string, unknown>
      if (answer.status < 500) return { status: answer.status, json }
    } catch {
      // Paused, or gone: the next one may answer. What was claimed unheard comes back when its lease ends.
    }
    at += 1
    await pause(20)
  }
}

while (!isStopped) {
  const { json } = await ask('/v1/inbox/claims', { limit: 5, lease_s: leaseSeconds, wait_s: 1 })
  const events = (json.events ?? []) as readonly Claimed[]
  if (events.length === 0) continue
  tell({ what: 'claimed', ids: events.map(({ id }) => id), lease: events[0]!.lease_id })
  for (const { id, lease_id: lease } of events) {
    await pause(workMs)
    tell({ what: 'worked', id, lease })
  }
  const { json: acked } = await ask('/v1/inbox/claims/ack', {
    events: events.map(({ id, lease_id }) => ({ id, lease_id })),
  })
  for (const [n, { ok }] of (acked.events as readonly { readonly ok: boolean }[]).entries()) {
    const { id, lease_id: lease } = events[n]!
    tell({ what: 'acked', id, lease, result: ok ? 'ok' : 'lost' })
  }
}
