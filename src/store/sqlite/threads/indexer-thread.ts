// The indexer thread: the only server connection that writes and checkpoints the index. It has its own thread and file,
// so that a step blocks neither intake nor claims.

import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { StoreFailure } from '../../contract/failure.ts'
import { storeFailure } from '../connection.ts'
import { markDamaged, openIndexWriter } from '../index/index-file.ts'
import { prepareIndexOperations } from '../operations.ts'
import { type FromThread, failureAnswers, type Job, type ToThread } from './thread-jobs.ts'

/** Below the other threads: a quarter of a core while all of them are busy, a whole one otherwise. */
const NICENESS = 5

lowerPriority()
const port = parentPort!
const { path } = workerData as { path: string }
const db = openIndexWriter(path)
const operations = prepareIndexOperations(db) as unknown as Record<string, (...args: readonly unknown[]) => unknown>
/** Set by the first fatal failure: this connection is not used afterwards. */
let broken: string | null = null

port.on('message', (message: ToThread) => {
  if ('close' in message) close()
  else if ('name' in message) execute(message)
})
send('ready')

function execute(job: Job): void {
  try {
    if (broken !== null) throw new StoreFailure('fatal', broken)
    send([{ seq: job.seq, result: operations[job.name]!(...job.args) }])
  } catch (error) {
    const failure = storeFailure(error)
    if (failure.kind === 'fatal') {
      broken ??= failure.message
      if (job.name === 'repairIndex') markDamaged(path)
    }
    send(failureAnswers([job], error))
  }
}

function close(): void {
  db.close()
  send('closed')
  port.close()
}

function send(message: FromThread): void {
  port.postMessage(message)
}

/** On Linux each thread has its own priority. Elsewhere it runs like the others. */
function lowerPriority(): void {
  try {
    setPriority(Number(readlinkSync('/proc/thread-self').split('/').at(-1)), NICENESS)
  } catch {
    // No /proc, or no permission: it takes a little more CPU from the other threads.
  }
}
