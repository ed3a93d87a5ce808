// A control, never part of the service: loaded before it (`node --import`), it keeps the main thread busy for 200 ms twice a
// second, as a request would that costs too much.

import { isMainThread } from 'node:worker_threads'

const EVERY_MS = 500
const STALL_MS = 200

if (isMainThread && process.argv[2] === 'serve') {
  setInterval(() => {
    // Of its own time: what other processes take does not count.
    const before = process.threadCpuUsage()
    for (let spentMs = 0; spentMs < STALL_MS; ) {
      const { user, system } = process.threadCpuUsage(before)
      spentMs = (user + system) / 1000
    }
  }, EVERY_MS).unref()
}
