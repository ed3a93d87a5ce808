// The writer thread: the only connection of the server that writes and checkpoints. It takes jobs from its port, one at
// a time, and answers each when its commit is on disk.

import { parentPort, workerData } from 'node:worker_threads'
import type { AppendOutcome } from '../contract/append.ts'
import { StoreFailure } from '../contract/failure.ts'
import type { IndexStepResult } from '../contract/indexing.ts'
import { openConnection, storeFailure } from './connection.ts'
import { readProgress } from './indexing.ts'
import { prepareOperations } from './operations.ts'
import { type Job, WriterQueue } from './writer-queue.ts'

export type ToWriter = Job | { readonly close: true }
export type FromWriter =
  | { readonly ready: true }
  | { readonly closed: true }
  | { readonly seq: number; readonly result: unknown }
  | { readonly seq: number; readonly failure: { readonly kind: string; readonly message: string } }

const port = parentPort!
const db = openConnection((workerData as { path: string }).path, 'writer')
const operations = prepareOperations(db) as unknown as Record<string, (...args: readonly unknown[]) => unknown>
const queue = new WriterQueue()
let lag = readProgress(db).lag
let scheduled = false
let closing = false
/** Set by the first fatal failure: nothing is tried on this connection afterwards. */
let broken: string | null = null

port.on('message', (message: ToWriter) => {
  if ('close' in message) closing = true
  else queue.push(message)
  schedule()
})
send({ ready: true })

/** One job a turn of the event loop, so that what arrives meanwhile is seen and put in its place. */
function schedule(): void {
  if (scheduled) return
  scheduled = true
  setImmediate(() => {
    scheduled = false
    const job = queue.next(lag)
    if (job) execute(job)
    if (!queue.isEmpty) schedule()
    else if (closing) close()
  })
}

function execute(job: Job): void {
  const startedAt = performance.now()
  try {
    if (broken !== null) throw new StoreFailure('fatal', broken)
    const result = operations[job.name]!(...job.args)
    send({ seq: job.seq, result })
    followLag(job, result)
  } catch (error) {
    const failure = storeFailure(error)
    if (failure.kind === 'fatal') broken ??= failure.message
    send({ seq: job.seq, failure: { kind: failure.kind, message: failure.message } })
  }
  queue.ran(job, performance.now() - startedAt, lag)
}

/** The lag as this thread knows it; the indexer's next step corrects it. */
function followLag(job: Job, result: unknown): void {
  if (job.name === 'append') lag += (result as AppendOutcome[]).length
  else if (job.name === 'indexStep') lag = (result as IndexStepResult).lag
}

function close(): void {
  try {
    if (broken === null) db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch {
    // Nothing is lost: what is committed stays in the WAL, and the next start reads it there.
  }
  db.close()
  send({ closed: true })
  port.close()
}

function send(message: FromWriter): void {
  port.postMessage(message)
}
