// The writer thread: the only connection of the server that writes and checkpoints. It takes jobs from its port, one at
// a time, and answers each when its commit is on disk.

import { parentPort, workerData } from 'node:worker_threads'
import { StoreFailure } from '../contract/failure.ts'
import type { IndexStepResult } from '../contract/indexing.ts'
import type { AppendBatch } from './append-batch.ts'
import { openConnection, storeFailure } from './connection.ts'
import { readProgress } from './indexing.ts'
import { prepareOperations } from './operations.ts'
import { type Job, WriterQueue } from './writer-queue.ts'

export type ToWriter = Job | { readonly close: true }
export type WriterAnswer =
  | { readonly seq: number; readonly result: unknown }
  | { readonly seq: number; readonly failure: { readonly kind: string; readonly message: string } }
export type FromWriter = 'ready' | 'closed' | readonly WriterAnswer[]

const port = parentPort!
const db = openConnection((workerData as { path: string }).path, 'writer')
const operations = prepareOperations(db)
const queue = new WriterQueue()
let lag = readProgress(db).lag
let scheduled = false
/** Until intake counts as quiet, for an indexer that waits for it. */
let pause: NodeJS.Timeout | undefined
let closing = false
/** Set by the first fatal failure: nothing is tried on this connection afterwards. */
let broken: string | null = null

port.on('message', (message: ToWriter) => {
  if ('close' in message) closing = true
  else queue.push(message)
  schedule()
})
send('ready')

/** One commit a turn of the event loop, so that what arrives meanwhile is seen and put in its place. */
function schedule(): void {
  if (scheduled) return
  scheduled = true
  setImmediate(() => {
    scheduled = false
    const jobs = queue.next(lag, performance.now())
    if (jobs.length > 0) execute(jobs)
    if (queue.isEmpty) {
      if (closing) close()
    } else if (jobs.length > 0) {
      schedule()
    } else {
      clearTimeout(pause)
      pause = setTimeout(schedule, Math.ceil(queue.pauseMs(performance.now())))
    }
  })
}

function execute(jobs: readonly Job[]): void {
  const startedAt = performance.now()
  try {
    if (broken !== null) throw new StoreFailure('fatal', broken)
    send(jobs[0]!.name === 'append' ? appendTogether(jobs) : [runAlone(jobs[0]!)])
  } catch (error) {
    const failure = storeFailure(error)
    if (failure.kind === 'fatal') broken ??= failure.message
    send(jobs.map(({ seq }) => ({ seq, failure: { kind: failure.kind, message: failure.message } })))
  }
  const endedAt = performance.now()
  queue.ran(jobs, endedAt - startedAt, lag, endedAt)
}

function appendTogether(jobs: readonly Job[]): WriterAnswer[] {
  const outcomes = operations.appendAll(jobs.map((job) => job.args[0] as AppendBatch))
  lag += outcomes.reduce((rows, one) => rows + one.length, 0)
  return jobs.map(({ seq }, index) => ({ seq, result: outcomes[index] }))
}

function runAlone({ seq, name, args }: Job): WriterAnswer {
  const result = (operations[name] as (...args: readonly unknown[]) => unknown)(...args)
  // Appends have been counted since; the indexer's own figure corrects the count.
  if (name === 'indexStep') lag = (result as IndexStepResult).lag
  return { seq, result }
}

function close(): void {
  try {
    if (broken === null) db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch {
    // Nothing is lost: what is committed stays in the WAL, and the next start reads it there.
  }
  db.close()
  send('closed')
  port.close()
}

function send(message: FromWriter): void {
  port.postMessage(message)
}
