// The state of a hook, by word and sign.

import type { Hook } from '../../../kits/typescript/src/schema.ts'
import { Mark } from '../ui/controls.tsx'

const LOOKS = { active: 'done', disabled: 'dead', expired: 'pending' } as const

export function HookState({ state }: { readonly state: Hook['state'] }) {
  return <Mark look={LOOKS[state]}>{state}</Mark>
}
