// Prints a note if the index is behind, for commands that read it.

import type { Store } from '../../store/contract/store.ts'
import { note } from '../output.ts'

export async function noteLag(store: Store, isSearch = false): Promise<void> {
  const { lag, searchLag, clearing } = await store.index.progress()
  if (lag > 0)
    note(`${lag} stored rows of all tenants are not indexed yet and not shown. A running server indexes them.`)
  else if (isSearch && searchLag > 0) note(`${searchLag} stored events of all tenants are not found by a search yet.`)
  else if (clearing) note('The index is being rebuilt: the list is incomplete until then.')
}
