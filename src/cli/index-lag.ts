// Prints a note if the index is behind, for commands that read it.

import type { Store } from '../store/contract/store.ts'
import { note } from './output.ts'

export async function noteLag(store: Store): Promise<void> {
  const { lag, clearing } = await store.index.progress()
  if (lag > 0)
    note(`${lag} stored rows of all tenants are not indexed yet and not shown. A running server indexes them.`)
  else if (clearing) note('The index is being rebuilt: the list is incomplete until then.')
}
