// Resolves names for pushes. DNS is asked outside of the thread pool: the call of the system blocks a thread of the pool until it
// ends, and a few names with a silent DNS server would stop decompression and disk access of the whole service. The system is
// asked, one name at a time, only for names that DNS does not have: those of its hosts file and search domains.

import { lookup, Resolver } from 'node:dns/promises'
import { FairSlots } from '../../runtime/fair-slots.ts'

/** The addresses of a name. Rejects if there are none. */
export type ResolveName = (name: string) => Promise<readonly string[]>

const DNS = { timeout: 2000, tries: 2 } as const
/** Answers of DNS for a name that it does not have, or has no address of. */
const UNKNOWN = ['ENOTFOUND', 'ENODATA']
const MAX_WAITING = 100

export function createResolver(): ResolveName {
  const dns = new Resolver(DNS)
  const system = new FairSlots({ slots: 1, maxPerHolder: 1, maxWaitingPerHolder: MAX_WAITING })
  const askSystem = async (name: string): Promise<string[]> => {
    const found = await (system.run(name, () => lookup(name, { all: true })) ?? [])
    return found.map(({ address }) => address)
  }
  return async (name) => {
    // DNS has no names of one label: they are of the machine or of its search domains.
    if (!name.replace(/\.$/, '').includes('.')) return askSystem(name)
    const answers = await Promise.allSettled([dns.resolve4(name), dns.resolve6(name)])
    const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
    if (found.length > 0) return found
    const failed = answers.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[]
    const other = failed.find(({ reason }) => !UNKNOWN.includes((reason as NodeJS.ErrnoException).code ?? ''))
    if (other) throw other.reason
    return askSystem(name)
  }
}
