// The writer thread: the only connection of the server that writes and checkpoints the journal. It takes jobs from its port, one at
// a time, and answers each when its commit is on disk.

import { parentPort, workerData } from 'node:worker_threads'
import { StoreFailure } from '../contract/failure.ts'
import { RecentKeys } from '../recent-keys.ts'
import type { AppendBatch } from './append-batch.ts'
import { openConnection, storeFailure } from './connection.ts'
import { attachIndex } from './index-file.ts'
import { KeyReading } from './key-reading.ts'
import { type OperationName, prepareOperations } from './operations.ts'
import { StoredKeys } from './stored-keys.ts'
import { type FromThread, failureAnswers, type ThreadAnswer, type ToThread } from './thread-jobs.ts'
import { type WriterJob, WriterQueue } from './writer-queue.ts'
import { WriterTurns } from './writer-turns.ts'

const port = parentPort!
const { path } = workerData as { path: string }
const db = openConnection(path, 'writer')
attachIndex(db, path)
const recent = new RecentKeys()
const stored = new StoredKeys(db, recent)
const operations = prepareOperations(db, recent, stored)
const queue = new WriterQueue()
const turns = new WriterTurns({ queue, execute, onEnd: close })
/** Set by the first fatal failure: nothing is tried on this connection afterwards. */
let broken: string | null = null
/** A job of the thread's own: nobody waits for an answer. */
const READ_KEYS: WriterJob = { seq: -1, name: 'readKeys', args: [] }
const reading = new KeyReading({ stored, enqueue: () => turns.push(READ_KEYS) })

port.on('message', (message: ToThread<WriterJob['name']>) => {
  if ('close' in message) {
    reading.stop()
    turns.end()
  } else turns.push(message)
})
send('ready')
reading.look()

function execute(jobs: readonly WriterJob[]): void {
  if (jobs[0] === READ_KEYS) reading.read()
  else answer(jobs)
  if (broken !== null) reading.stop()
  reading.look()
}

function answer(jobs: readonly WriterJob[]): void {
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
  const operation = operations[name as OperationName] as (...args: readonly unknown[]) => unknown
  return { seq, result: operation(...args) }
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

function send(message: FromThread): void {
  port.postMessage(message)
}
