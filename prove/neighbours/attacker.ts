// Carries out one attack in a process of its own, so that the cost of attacking does not slow down the victim's client.
// Argument: the name of the attack. Messages: the parent sends the target, then "go"; this process sends "ready", then its counts.

import { AttackClient, type Target } from './attack.ts'
import { ATTACKS } from './attacks.ts'

const REPORT_MS = 50

const found = ATTACKS.find(({ name }) => name === process.argv[2])
if (!found) throw new Error(`There is no attack "${process.argv[2]}".`)
const attack = found

process.once('message', (target: Target) => {
  const client = new AttackClient(target, attack.by)
  const attackFrom = attack.prepare(client)
  process.once('message', () => {
    setInterval(() => process.send?.(client.counts), REPORT_MS)
    for (let n = 0; n < attack.connections; n += 1) {
      attackFrom(n).catch((error: unknown) => {
        console.error(error)
        process.exit(1)
      })
    }
  })
  process.send?.('ready')
})
process.on('disconnect', () => process.exit(0))
