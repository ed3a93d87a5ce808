// Questions of a test to its database, past the store.

import { withClient } from './databases.ts'

/** The one cell of the answer. */
export async function ask<R>(url: string, text: string): Promise<R> {
  return withClient(url, async (client) => (await client.query({ text, rowMode: 'array' })).rows[0]![0] as R)
}
