// Needs the package @intray/client. Run as many as you like.
import { Intray } from '@intray/client'

const intray = new Intray({ url: 'https://inbox.example.org', token: 'itr_…', outbox: 'none' })
const stop = new AbortController()
process.once('SIGTERM', () => stop.abort())

await intray.work(
  async (event) => {
    console.log(event.id, event.payload) // your work; throw if it fails
  },
  { concurrency: 4, signal: stop.signal },
)
await intray.close()
