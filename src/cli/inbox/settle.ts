// Makes the commands `inbox ack` and `inbox release`: both read claimed events from their arguments or from stdin, settle
// them, and print a line for each. A lost lease leaves its event unchanged and makes the exit code 1.

import { CLAIM_LIMITS } from '../../model/processing.ts'
import type { ReleaseItem, Settled } from '../../model/processing-plan.ts'
import { readRelease } from '../../processing/commands.ts'
import { settledView } from '../../processing/views.ts'
import { isoTime } from '../../runtime/clock.ts'
import { textUpTo } from '../../runtime/parameter.ts'
import { type Command, command, type Flags, type FlagValues, UsageError } from '../command.ts'
import { flag, JSON_LINES_FLAG, secondsBetween, SUBSCRIPTION_FLAG, TENANT_FLAGS, tenantOf } from '../flags.ts'
import { type Line, splitLines } from '../line-reader.ts'
import { withProcessing, requireSubscription, type ProcessingContext, subscriptionOf } from '../processing-context.ts'
import { note, print, printJson } from '../output.ts'

/** Fits the largest payload as base64. */
const MAX_LINE_BYTES = 160 * 1024 * 1024

type Settle = (context: ProcessingContext, items: readonly ReleaseItem[]) => Promise<readonly Settled[] | null>

const SETTLE_FLAGS = {
  ...TENANT_FLAGS,
  stdin: { about: "Read NDJSON: lines with id and lease_id, as 'inbox claim --json' prints them." },
  ...SUBSCRIPTION_FLAG,
  ...JSON_LINES_FLAG,
} as const satisfies Flags

type SettleValues = FlagValues<typeof SETTLE_FLAGS> & {
  readonly delay?: string
  readonly error?: string
  readonly dead?: boolean
}

/** `ownFlags`: --delay, --error and --dead, if the command takes them. */
export function settleCommand(about: string, ownFlags: Flags, work: Settle): Command {
  return command({
    args: '[ID LEASE_ID]...',
    about: `${about} Give ID LEASE_ID for each event, or --stdin.`,
    flags: { ...ownFlags, ...SETTLE_FLAGS },
    notes: 'Prints one line for each event. If a lease was lost, its event is unchanged and the exit code is 1.',
    run: (values, args) => settle(values as SettleValues, args, work),
  })
}

async function settle(values: SettleValues, args: readonly string[], work: Settle): Promise<number> {
  const options = {
    delayMs: flag('delay', values.delay, secondsBetween(CLAIM_LIMITS.delayS)) ?? null,
    error: flag('error', values.error, textUpTo(CLAIM_LIMITS.errorUnits)) ?? null,
    isDead: values.dead ?? false,
  }
  if (options.isDead && options.error === null) throw new UsageError('--dead needs --error TEXT, which says why.')
  if (values.stdin && args.length > 0) throw new UsageError('Give ID LEASE_ID or --stdin, not both.')
  const items = values.stdin ? [] : pairs(args).map((item) => ({ ...item, ...options }))
  return withProcessing(tenantOf(values), subscriptionOf(values), async (context) => {
    let failed = 0
    const settleSome = async (some: readonly ReleaseItem[]) => {
      const settled = await requireSubscription(await work(context, some), context)
      failed += settled.filter(({ ok }) => !ok).length
      for (const one of settled) {
        if (values.json) printJson(settledView(one))
        else print(`${one.id}  ${textOf(one)}\n`)
      }
    }
    if (!values.stdin) await inBatches(items, settleSome)
    else {
      await settleLines(splitLines(process.stdin, MAX_LINE_BYTES), settleSome, (line) => {
        const found = readLine(line)
        if (typeof found !== 'string') return { ...found, ...options }
        failed += 1
        note(`line ${line.number}: ${found}`)
        return null
      })
    }
    return failed > 0 ? 1 : 0
  })
}

type Pair = Pick<ReleaseItem, 'id' | 'leaseId'>

function pairs(positionals: readonly string[]): Pair[] {
  if (positionals.length === 0 || positionals.length % 2 === 1) {
    throw new UsageError('The events are missing. Give ID LEASE_ID for each, or --stdin.')
  }
  return Array.from({ length: positionals.length / 2 }, (_, n) => {
    const id = positionals[2 * n]!
    const found = pairOf(/^\d{1,15}$/.test(id) ? Number(id) : id, positionals[2 * n + 1])
    if (typeof found === 'string') throw new UsageError(found)
    return found
  })
}

/** The pair, or a sentence about the error in the line. */
function readLine({ bytes }: Line): Pair | string {
  if (bytes === null) return `The line is longer than ${MAX_LINE_BYTES} bytes.`
  try {
    const fields = JSON.parse(bytes.toString()) as { id?: unknown; lease_id?: unknown } | null
    return pairOf(fields?.id, fields?.lease_id)
  } catch {
    return 'The line is not JSON.'
  }
}

function pairOf(id: unknown, leaseId: unknown): Pair | string {
  const read = readRelease({ id, lease_id: leaseId })
  if ('command' in read) return read.command.items[0]!
  return (read.problem.fields ?? []).map(({ message }) => message).join(' ')
}

function textOf(one: Settled): string {
  if (!one.ok) return 'lease lost, nothing was changed'
  return one.state === 'pending' ? `pending, handed out again from ${isoTime(one.availableAt)}` : one.state
}

async function inBatches<T>(items: readonly T[], work: (some: readonly T[]) => Promise<void>): Promise<void> {
  const { max } = CLAIM_LIMITS.items
  for (let from = 0; from < items.length; from += max) await work(items.slice(from, from + max))
}

/** Settles lines as they arrive: soon, because leases end, and in batches, because each commit waits for the disk. */
async function settleLines<T>(
  lines: AsyncIterable<Line>,
  work: (some: readonly T[]) => Promise<void>,
  read: (line: Line) => T | null,
): Promise<void> {
  let waiting: T[] = []
  let isWorking = false
  let working = Promise.resolve()
  const drain = async () => {
    isWorking = true
    while (waiting.length > 0) {
      // Lets lines that arrived together form one batch.
      await new Promise((resolve) => setImmediate(resolve))
      const some = waiting
      waiting = []
      await inBatches(some, work)
    }
    isWorking = false
  }
  try {
    for await (const line of lines) {
      const item = read(line)
      if (item === null) continue
      waiting.push(item)
      if (!isWorking) {
        working = drain()
        // Ends the input, so that `await working` below throws at once.
        working.catch(() => process.stdin.destroy())
      } else if (waiting.length >= CLAIM_LIMITS.items.max) await working
    }
  } finally {
    await working
  }
}
