// Reads what strace saw of a server on SQLite and tells which answers left too early. An answer of 2xx may leave when the
// sync that covers its message has returned: one that began after the last frame of its commit was written to the WAL.
//
//   frame (24 bytes, then a page)  the page holds references       → written
//   frame with the commit mark     the transaction is complete     → awaits a sync
//   fsync of the WAL, begun        covers what is complete by now
//   fsync of the WAL, returned 0   what it covers                  → durable
//   write to a socket, begun       "id":n of a 2xx                 → must be durable
//
// strace sees a call begin before the kernel does anything and sees it return before the thread goes on, so the order of its
// lines is the order that counts.

import { SENDS, SYNCS } from './strace.ts'

const FRAME_HEADER_BYTES = 24

export interface SyncOrder {
  /** Answers of 2xx that were seen to leave. */
  readonly answers: number
  readonly syncs: number
  /** Ids whose answer left before the sync that covers them had returned, or that never were in the WAL. */
  readonly early: readonly number[]
}

interface Call {
  readonly thread: string
  readonly name: string
  readonly file: string
  readonly bytes: Buffer
}

/** `refs`: by the id in the answer, the source_ref in the bytes of the message. It must not be part of another. */
export function readSyncOrder(strace: string, refs: ReadonlyMap<number, string>): SyncOrder {
  const isWaited = new Set(refs.values())
  const durable = new Set<string>()
  let written: string[] = []
  let complete: string[] = []
  let isLastFrame = false
  const covered = new Map<string, string[]>()
  const begun = new Map<string, Call>()
  const early: number[] = []
  let answers = 0
  let syncs = 0

  const begin = (call: Call): void => {
    if (isSync(call)) {
      covered.set(call.thread, complete)
      complete = []
    } else if (isSend(call)) {
      const text = call.bytes.toString('latin1')
      for (const [, id] of text.matchAll(/HTTP\/1\.1 200 .*?"id":(\d+)/gs)) {
        const ref = refs.get(Number(id))
        if (ref === undefined) continue
        answers += 1
        if (!durable.has(ref)) early.push(Number(id))
      }
    }
  }
  const end = (call: Call, result: number): void => {
    if (isSync(call)) {
      if (result === 0) for (const ref of covered.get(call.thread) ?? []) durable.add(ref)
      covered.delete(call.thread)
      syncs += 1
    } else if (call.name.startsWith('pwrite') && isJournal(call)) {
      if (call.bytes.length === FRAME_HEADER_BYTES) {
        isLastFrame = call.bytes.readUInt32BE(4) !== 0
        return
      }
      const page = call.bytes.toString('latin1')
      written.push(...[...isWaited].filter((ref) => page.includes(ref)))
      if (!isLastFrame) return
      complete = [...complete, ...written]
      written = []
      isLastFrame = false
    }
  }

  for (const line of strace.split('\n')) {
    const whole = /^(\d+) +(\w+)\((.*)$/.exec(line)
    if (whole) {
      const call = { thread: whole[1]!, name: whole[2]!, file: fileOf(whole[3]!), bytes: bytesOf(whole[3]!) }
      begin(call)
      if (line.endsWith('<unfinished ...>')) begun.set(call.thread, call)
      else end(call, resultOf(line))
      continue
    }
    const resumed = /^(\d+) +<\.\.\. \w+ resumed>/.exec(line)
    const call = resumed ? begun.get(resumed[1]!) : undefined
    if (!call) continue
    begun.delete(call.thread)
    end(call, resultOf(line))
  }
  return { answers, syncs, early }
}

/** The index is derived, in a file of its own, and waits for no sync. */
function isJournal({ file }: Pick<Call, 'file'>): boolean {
  return file.endsWith('/intray.db-wal')
}

function isSync({ name, file }: Call): boolean {
  return SYNCS.some((sync) => sync === name) && isJournal({ file })
}

function isSend({ name, file }: Call): boolean {
  return SENDS.some((send) => send === name) && /^(socket|TCP|TCPv6)\b/.test(file)
}

function fileOf(args: string): string {
  return (
    /^\d+<((?:\\x[0-9a-f]{2}|[^>])*)>/
      .exec(args)?.[1]
      ?.replace(/\\x([0-9a-f]{2})/g, (_, hex: string) => hexText(hex)) ?? ''
  )
}

function hexText(hex: string): string {
  return String.fromCharCode(Number.parseInt(hex, 16))
}

/** All strings of a call, one after the other: `writev` has several. */
function bytesOf(args: string): Buffer {
  const strings = [...args.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)].map(([, hex]) => hex!.replaceAll('\\x', ''))
  return Buffer.from(strings.join(''), 'hex')
}

function resultOf(line: string): number {
  return Number(/= (-?\d+)(?: |$)/.exec(line.slice(line.lastIndexOf(')')))?.[1] ?? Number.NaN)
}
