// Another commit of this project, written to a folder from which it can be started.

import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { addPackages, describeCommit, findCommit, writeCommit } from '../../bench/ab/checkout.ts'
import type { ProofContext } from '../proof.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

export async function checkOut(context: ProofContext, name: string): Promise<{ about: string; launcher: string }> {
  const commit = await findCommit(ROOT, name)
  const folder = join(context.folder, 'other')
  await writeCommit(ROOT, commit, folder)
  const own = <Child extends { kill(signal: 'SIGKILL'): boolean }>(child: Child): Child => {
    context.onCleanup(() => void child.kill('SIGKILL'))
    return child
  }
  await addPackages({ own }, ROOT, folder)
  return { about: await describeCommit(ROOT, commit), launcher: join(folder, 'intray') }
}
