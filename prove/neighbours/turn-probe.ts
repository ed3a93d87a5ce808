// Measures the turns of the service's main thread: a timer that is due every few milliseconds is late by the length of a turn.
// Loaded before the service (`node --import`), never part of it. It subtracts the time in which the thread was ready to run and
// had no processor, where Linux reports it.
// Appends one line to the file PROVE_TURNS for each turn longer than 10 ms. For the first ones longer than 50 ms, a sampling
// profiler names the functions. The file beside it (.beat) holds the time of the last timer, which reveals a turn that has not
// ended.

import { appendFileSync, openSync, readSync, writeSync } from 'node:fs'
import { Session } from 'node:inspector'
import { isMainThread } from 'node:worker_threads'
import { causeOf, type Sampled } from './turn-cause.ts'

const EVERY_MS = 5
const REPORTED_FROM_MS = 10
const EXPLAINED_FROM_MS = 50
const MAX_EXPLAINED = 20
const SAMPLE_US = 2000

const file = process.env.PROVE_TURNS
// No request waits for a command or for the turns of a worker thread.
if (isMainThread && file !== undefined && process.argv[2] === 'serve') {
  const waited = waitedForProcessor()
  let explained = 0
  const profiler = new Session()
  profiler.connect()
  profiler.post('Profiler.enable')
  profiler.post('Profiler.setSamplingInterval', { interval: SAMPLE_US })
  const profile = () => profiler.post('Profiler.start')
  profile()

  let last = performance.now()
  let lastWaited = waited()
  let lastSpent = process.threadCpuUsage()
  const beat = openSync(`${file}.beat`, 'w')
  setInterval(() => {
    const now = performance.now()
    const nowWaited = waited()
    const from = last
    const ms = now - from - EVERY_MS - (nowWaited - lastWaited)
    if (ms >= REPORTED_FROM_MS) {
      const { user, system } = process.threadCpuUsage(lastSpent)
      const line: Record<string, unknown> = { at: performance.timeOrigin + now, ms, computedMs: (user + system) / 1000 }
      if (ms >= EXPLAINED_FROM_MS && explained < MAX_EXPLAINED) {
        explained += 1
        profiler.post('Profiler.stop', (error, result) => {
          if (error === null) line.cause = causeOf(result.profile as Sampled, 1000 * (now - from))
        })
        if (explained < MAX_EXPLAINED) profile()
      }
      appendFileSync(file, `${JSON.stringify(line)}\n`)
    }
    // The work of the probe itself is not counted.
    last = performance.now()
    writeSync(beat, String(Math.round(performance.timeOrigin + last)), 0)
    lastWaited = waited()
    lastSpent = process.threadCpuUsage()
  }, EVERY_MS).unref()
}

/** Milliseconds that this thread has been ready to run without a processor; always 0 where the system does not tell. */
function waitedForProcessor(): () => number {
  try {
    const status = openSync('/proc/thread-self/schedstat', 'r')
    const bytes = Buffer.alloc(100)
    return () => Number(bytes.toString('latin1', 0, readSync(status, bytes, 0, 100, 0)).split(' ')[1]) / 1e6
  } catch {
    return () => 0
  }
}
