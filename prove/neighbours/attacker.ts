// A process of its own that carries out one attack: what attacking costs must not slow down those who are measured.
// Argument: the name of the attack. From its parent: what it attacks with, then "go". To it: "ready", then what was sent.

import { type Belongings, Arms } from './attack.ts'
import { ATTACKS } from './attacks.ts'

const TELL_MS = 50

const found = ATTACKS.find(({ name }) => name === process.argv[2])
if (!found) throw new Error(`There is no attack "${process.argv[2]}".`)
const attack = found

process.once('message', (belongings: Belongings) => {
  const arms = new Arms(belongings, attack.by)
  const act = attack.prepare(arms)
  process.once('message', () => {
    setInterval(() => process.send?.(arms.told), TELL_MS)
    for (let n = 0; n < attack.connections; n += 1) {
      act(n).catch((error: unknown) => {
        console.error(error)
        process.exit(1)
      })
    }
  })
  process.send?.('ready')
})
process.on('disconnect', () => process.exit(0))
