// The reader thread: runs the server's reads on a read-only connection, so that no caller can make the main thread wait
// for a statement.

import { parentPort, workerData } from 'node:worker_threads'
import { readFailure } from '../connection.ts'
import { openReader } from '../index/index-file.ts'
import { prepareReads } from '../reads.ts'
import { ReaderScheduler } from './reader-scheduler.ts'
import { type FromThread, failureAnswers, type Job, type ToThread } from './thread-jobs.ts'

const port = parentPort!
const { path } = workerData as { path: string }
const db = openReader(path)
const readsOf = prepareReads(db)
const scheduler = new ReaderScheduler()
let isClosing = false

port.on('message', (message: ToThread) => {
  if ('close' in message) isClosing = true
  else if ('cancel' in message) scheduler.cancel(message.cancel)
  else void execute(message)
  closeIfIdle()
})
send('ready')

async function execute(job: Job): Promise<void> {
  const { seq, name, args, holder = '' } = job
  try {
    const result = await scheduler.run(seq, holder, (turn) => {
      const reads = readsOf(turn) as unknown as Record<string, (...args: readonly unknown[]) => unknown>
      return reads[name]!(...args)
    })
    port.postMessage([{ seq, result }] satisfies FromThread, transferable(result))
  } catch (error) {
    send(failureAnswers([job], readFailure(error)))
  }
  closeIfIdle()
}

function closeIfIdle(): void {
  if (!isClosing || scheduler.size > 0) return
  db.close()
  send('closed')
  port.close()
}

/** Bytes of pages and payloads are handed over, not copied. */
function transferable(result: unknown): ArrayBuffer[] {
  if (Array.isArray(result)) return result.flatMap(transferable)
  if (result instanceof Uint8Array) return ownMemoryOf(result)
  const { entries, payload, claimed } = (result ?? {}) as Readonly<Record<string, unknown>>
  if (claimed !== undefined) return transferable(claimed)
  return [entries, payload].flatMap(ownMemoryOf)
}

/** Small buffers of Node share memory, which cannot be handed over. */
function ownMemoryOf(bytes: unknown): ArrayBuffer[] {
  const isWhole = bytes instanceof Uint8Array && bytes.buffer.byteLength === bytes.byteLength
  return isWhole ? [bytes.buffer as ArrayBuffer] : []
}

function send(message: FromThread): void {
  port.postMessage(message)
}
