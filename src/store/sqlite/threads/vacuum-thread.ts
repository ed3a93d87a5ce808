// The thread that writes a backup: one statement, which takes as long as the database is large. Ends when it is done.

import { workerData } from 'node:worker_threads'
import { openConnection } from '../connection.ts'

const { path, file } = workerData as { readonly path: string; readonly file: string }
const db = openConnection(path, 'tool')
try {
  db.prepare('VACUUM main INTO ?').run(file)
} finally {
  db.close()
}
