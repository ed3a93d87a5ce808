// One service for all cases of a describe block: for cases that do not get in each other's way.

import { after, before, type TestContext } from 'node:test'
import { startTestApp, type TestApp, type TestAppOptions } from './app.ts'
import type { Driver } from './drivers.ts'

/** Called in the body of a describe block. The service is there once its first case runs. */
export function sharedApp(driver: Driver, options: TestAppOptions = {}): { readonly app: TestApp } {
  const shared = {} as { app: TestApp }
  const cleanUps: (() => unknown)[] = []
  const context = { after: (cleanUp: () => unknown) => cleanUps.push(cleanUp) } as unknown as TestContext
  before(async () => {
    shared.app = await startTestApp(context, driver, options)
  })
  after(async () => {
    for (const cleanUp of cleanUps) await cleanUp()
  })
  return shared
}
