// Operations that read a JSON command from the body. The main thread is shared by all tenants, so a command is scanned in
// slices, and parsed and validated in its tenant's turn.

import { objectOf } from '../../intake/envelope.ts'
import type { Problem } from '../../model/errors.ts'
import type { JsonScan } from '../../model/json/scan.ts'
import { scanMessage } from '../../model/message-scan.ts'
import { tenantText } from '../../model/principal.ts'
import type { Read } from '../../processing/commands.ts'
import { SCANNED_BYTES, SlicedWork, type Sliceable } from '../../runtime/sliced-work.ts'
import { type Call, callerOf, type Operation, type Outcome, readPayload } from '../call.ts'
import { orUnavailable } from '../unavailable.ts'

export const OUTCOME_UNKNOWN: Problem = {
  code: 'storage_unavailable',
  message:
    'The database cannot be reached, so it is not known whether this was done. Send it again after Retry-After seconds: ' +
    'nothing is done twice.',
}

/** Fits the longest reference, escaped, with room to spare. */
export const MAX_COMMAND_BYTES = 16 * 1024
/** Fits the longest list of leases that is allowed. */
export const MAX_LIST_BYTES = 256 * 1024

/** To parse and validate a byte takes about as long as to scan so many. */
const PARSE_COST = 4

/** Apart from those of intake, because messages must not wait for commands. */
const commands = new SlicedWork(SCANNED_BYTES)

type ReadBody<C> = (body: Record<string, unknown>) => Read<C>

/** An operation that reads a command from the body and runs it. */
export function withCommand<C>(
  read: ReadBody<C>,
  work: (call: Call, command: C) => Promise<Outcome>,
  maxBytes = MAX_COMMAND_BYTES,
): Operation {
  return async (call) => {
    const given = await readPayload(call, maxBytes)
    if ('problem' in given) return given.problem
    const reading = new CommandReading(given.payload, read)
    await commands.finish(tenantText(callerOf(call)), reading)
    const found = reading.result!
    return 'problem' in found ? found.problem : orUnavailable(() => work(call, found.command), OUTCOME_UNKNOWN)
  }
}

/** Scans a body; then parses it, in one go: the scan has found out that it holds few values. */
export class CommandReading<C> implements Sliceable {
  readonly #payload: Buffer
  readonly #read: ReadBody<C>
  readonly #scan: JsonScan
  result: Read<C> | null = null

  constructor(payload: Buffer, read: ReadBody<C>) {
    this.#payload = payload
    this.#read = read
    this.#scan = scanMessage(payload)
  }

  get isDone(): boolean {
    return this.result !== null
  }

  run(maxUnits: number): number {
    const scanned = this.#scan.run(maxUnits)
    if (!this.#scan.isDone) return scanned
    const parsed = objectOf(this.#scan, this.#payload)
    this.result = 'problem' in parsed ? parsed : this.#read(parsed.body)
    return scanned + PARSE_COST * this.#payload.length
  }
}
