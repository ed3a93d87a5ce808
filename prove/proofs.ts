// THE table of proofs: a row here is all that `npm run prove` and its help need to know.

import { kill } from './faults/kill.ts'
import { failover } from './faults/failover.ts'
import { nth } from './faults/nth.ts'
import { power } from './faults/power.ts'
import type { Proof } from './proof.ts'

export const PROOFS: readonly Proof[] = [kill, failover, nth, power]
