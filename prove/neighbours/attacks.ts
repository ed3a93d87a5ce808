// THE table of attacks: a row here is all that `prove neighbours` needs to know.

import type { Attack } from './attack.ts'
import * as bodies from './attacks/bodies.ts'
import * as processing from './attacks/processing.ts'
import * as reads from './attacks/reads.ts'
import * as strangers from './attacks/strangers.ts'

export const ATTACKS: readonly Attack[] = [bodies, reads, processing, strangers].flatMap((kind) => Object.values(kind))
