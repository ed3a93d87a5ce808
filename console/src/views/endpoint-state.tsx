// The state of an endpoint, by word and sign, and what it means for the events that wait.

import type { Endpoint } from '../../../kits/typescript/src/schema.ts'
import { SafeText } from '../text/safe-text.tsx'
import { count, Mark, Time } from '../ui/controls.tsx'

const STATES = {
  active: ['done', 'active'],
  paused: ['pending', 'paused'],
  disabled: ['dead', 'disabled'],
  open: ['dead', 'circuit open'],
  half_open: ['leased', 'trying again'],
  unreadable: ['dead', 'unreadable'],
} as const

export function EndpointState({ state }: Pick<Endpoint, 'state'>) {
  const [look, word] = STATES[state]
  return <Mark look={look}>{word}</Mark>
}

export function StateNote({ endpoint }: { readonly endpoint: Endpoint }) {
  const { state, circuit, disabled_reason: reason } = endpoint
  switch (state) {
    case 'active':
      return null
    case 'paused':
      return <p className="warning">Paused by an operator: events wait in the queue.</p>
    case 'disabled':
      return (
        <p className="trouble">
          Disabled, and events wait in the queue: <SafeText text={reason ?? ''} maxLength={600} />
        </p>
      )
    case 'open':
      return (
        <p className="trouble">
          The circuit is open after failures in a row, opened {count(circuit.trips)}{' '}
          {circuit.trips === 1 ? 'time' : 'times'}
          {circuit.opened_at && (
            <>
              , first <Time at={circuit.opened_at} short />
            </>
          )}
          . Events wait and lose no attempt.{' '}
          {circuit.next_try_at && (
            <>
              Next try: <Time at={circuit.next_try_at} />
            </>
          )}
        </p>
      )
    case 'half_open':
      return (
        <p className="warning">One delivery is tried after failures in a row. The others wait and lose no attempt.</p>
      )
    case 'unreadable':
      return (
        <p className="trouble">
          The server lacks the key under which this endpoint is sealed, so nothing is delivered. ./intray doctor says
          more.
        </p>
      )
  }
}
