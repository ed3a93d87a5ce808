// What commands that read the index say when it is behind.

import type { Store } from '../store/contract/store.ts'
import { note } from './output.ts'

export async function noteLag(store: Store): Promise<void> {
  const { lag, clearing } = await store.index.progress()
  if (lag > 0) note(`${lag} stored rows of all tenants are not indexed yet and not shown: a running server does that.`)
  else if (clearing) note('The index is being rebuilt: not everything is shown yet.')
}
