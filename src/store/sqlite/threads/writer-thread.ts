// The writer thread: the only server connection that writes and checkpoints the journal. It runs jobs from its port one
// at a time and answers each when its commit is on disk.

import { parentPort, workerData } from 'node:worker_threads'
import { StoreFailure } from '../../contract/failure.ts'
import { CHECKPOINT_PAGES, openConnection, storeFailure, truncateWal, unwrittenPages } from '../connection.ts'
import { attachIndex } from '../index/index-file.ts'
import type { AppendBatch } from '../journal/append-batch.ts'
import { prepareOperations } from '../operations.ts'
import { type FromThread, failureAnswers, type ThreadAnswer, type ToThread } from './thread-jobs.ts'
import { type WriterJob, WriterQueue } from './writer-queue.ts'
import { WriterScheduler } from './writer-scheduler.ts'

const port = parentPort!
const { path } = workerData as { path: string }
const db = openConnection(path, 'writer')
attachIndex(db, path)
const operations = prepareOperations(db)
const queue = new WriterQueue()
const scheduler = new WriterScheduler({ queue, execute, onEnd: close })
/** Litestream creates this table in a database that it replicates. */
const selectReplicated = db.prepare("SELECT 1 FROM main.sqlite_schema WHERE name = '_litestream_seq'")
/** How often the WAL is looked at. */
const CHECKPOINT_LOOK_MS = 1000
/** Set by the first fatal failure: this connection is not used afterwards. */
let broken: string | null = null

const checkpoints = setInterval(() => {
  if (broken === null) checkpointIfDue()
}, CHECKPOINT_LOOK_MS).unref()

checkpointIfDue()
port.on('message', (message: ToThread<WriterJob['name']>) => {
  if ('close' in message) scheduler.end()
  else if ('name' in message) scheduler.push(message)
})
send('ready')

function execute(jobs: readonly WriterJob[]): void {
  try {
    if (broken !== null) throw new StoreFailure('fatal', broken)
    send(jobs[0]!.name === 'append' ? appendTogether(jobs) : [runAlone(jobs[0]!)])
  } catch (error) {
    const failure = storeFailure(error)
    if (failure.kind === 'fatal') broken ??= failure.message
    send(failureAnswers(jobs, error))
  }
}

function appendTogether(jobs: readonly WriterJob[]): ThreadAnswer[] {
  const startedAt = performance.now()
  const outcomes = operations.appendAll(jobs.map((job) => job.args[0] as AppendBatch))
  const now = performance.now()
  queue.committed(jobs.length, now - startedAt, now)
  return jobs.map(({ seq }, index) => ({ seq, result: outcomes[index] }))
}

function runAlone({ seq, name, args }: WriterJob): ThreadAnswer {
  const operation = operations[name] as (...args: readonly unknown[]) => unknown
  return { seq, result: operation(...args) }
}

/**
 * A command beside an idle server fills the WAL, and SQLite would empty it at this connection's next commit only.
 *
 * Under Litestream the WAL is never reused from its beginning, but truncated: a Litestream that was down meanwhile would find the
 * last page it had read unchanged in the old end of the file, go on from there, and miss the pages between (seen with 0.5.18).
 * While it runs, it checkpoints by itself, and this finds nothing to do.
 */
function checkpointIfDue(): void {
  try {
    const isReplicated = selectReplicated.get() !== undefined
    if (isReplicated) db.exec('PRAGMA wal_autocheckpoint = 0')
    if (unwrittenPages(db) <= CHECKPOINT_PAGES.journal) return
    if (isReplicated) truncateWal(db)
    else db.exec('PRAGMA main.wal_checkpoint(PASSIVE)')
  } catch (error) {
    const failure = storeFailure(error)
    // A later sync may falsely succeed: the next job is answered with this failure.
    if (failure.kind === 'fatal') broken ??= failure.message
  }
}

function close(): void {
  clearInterval(checkpoints)
  try {
    // Litestream holds a read transaction all the time: waiting for the end of it would only delay the stop.
    if (broken === null) truncateWal(db)
  } catch {
    // Nothing is lost: committed data stays in the WAL, and the next start reads it there.
  }
  db.close()
  send('closed')
  port.close()
}

function send(message: FromThread): void {
  port.postMessage(message)
}
