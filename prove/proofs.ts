// THE table of proofs: a row here is all that `npm run prove` and its help need to know.

import { image } from './deploy/image.ts'
import { manifests } from './deploy/manifests.ts'
import { clock } from './faults/clock.ts'
import { cut } from './faults/cut.ts'
import { diskFull } from './faults/disk-full.ts'
import { failover } from './faults/failover.ts'
import { flip } from './faults/flip.ts'
import { kill } from './faults/kill.ts'
import { litestream } from './faults/litestream.ts'
import { nth } from './faults/nth.ts'
import { overload } from './faults/overload.ts'
import { pause } from './faults/pause.ts'
import { power } from './faults/power.ts'
import { slowloris } from './faults/slowloris.ts'
import { wordpress } from './faults/wordpress.ts'
import { neighbours } from './neighbours/neighbours.ts'
import type { Proof } from './proof.ts'

export const PROOFS: readonly Proof[] = [
  kill,
  cut,
  diskFull,
  flip,
  clock,
  pause,
  overload,
  slowloris,
  neighbours,
  power,
  nth,
  failover,
  litestream,
  wordpress,
  manifests,
  image,
]
