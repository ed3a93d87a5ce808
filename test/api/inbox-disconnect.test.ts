// A list whose client has gone is not read to its end.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Store } from '../../src/store/contract/store.ts'
import { startTestApp } from '../support/app.ts'
import { RawConnection } from '../support/client.ts'
import { drivers } from '../support/drivers.ts'

const [sqlite] = drivers

test('a client that disconnects ends its read; one that stays does not', async (t) => {
  const asked: AbortSignal[] = []
  const arrived = Array.from({ length: 2 }, () => Promise.withResolvers<void>())
  const wrapStore = (store: Store): Store => ({
    ...store,
    lists: {
      ...store.lists,
      events: (...[, , , , , gone]) => {
        arrived[asked.push(gone!) - 1]!.resolve()
        return new Promise((_, reject) => gone!.addEventListener('abort', () => reject(new Error('gone'))))
      },
    },
  })
  const app = await startTestApp(t, sqlite!, { wrapStore })
  const processor = await app.createToken({ scope: 'processor' })
  const request = `GET /v1/inbox/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${processor}\r\n\r\n`
  const [leaving, staying] = [await RawConnection.open(app.port), await RawConnection.open(app.port)]
  leaving.write(request)
  await arrived[0]!.promise
  staying.write(request)
  await arrived[1]!.promise
  const isGone = new Promise((resolve) => asked[0]!.addEventListener('abort', resolve))
  leaving.destroy()
  await isGone
  assert.equal(asked[1]!.aborted, false)
  staying.destroy()
})
