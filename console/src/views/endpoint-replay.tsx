// Delivers a range of events again: counts them first, then asks.

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useApi, useMayChange } from '../session.tsx'
import { count, ErrorNotice } from '../ui/controls.tsx'

export function EndpointReplay({ subscription }: { readonly subscription: string }) {
  const api = useApi()
  const mayChange = useMayChange()
  const queryClient = useQueryClient()
  const [range, setRange] = useState({ from: '', to: '' })
  const call = (dryRun: boolean) =>
    api.call('POST /v1/inbox/subscriptions/{name}/endpoint/replay', {
      path: { name: subscription },
      body: { from: Number(range.from), to: Number(range.to), dry_run: dryRun },
    })
  const counting = useMutation({ mutationFn: () => call(true) })
  const replay = useMutation({
    mutationFn: () => call(false),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ['endpoints'] }),
  })
  const change = (name: 'from' | 'to', value: string) => {
    setRange({ ...range, [name]: value })
    counting.reset()
    replay.reset()
  }
  const matched = counting.data?.matched
  const next = replay.data?.next ?? null
  return (
    <form
      className="card stack"
      aria-labelledby="endpoint-replay"
      onSubmit={(event) => {
        event.preventDefault()
        replay.reset()
        counting.mutate()
      }}
    >
      <h3 id="endpoint-replay">Deliver again</h3>
      <p className="quiet">
        Events of the range that are done or dead are delivered again, the oldest first, with the same webhook-id.
      </p>
      <div className="range">
        {(['from', 'to'] as const).map((name) => (
          <label key={name} className="field">
            {name === 'from' ? 'From event' : 'To event'}
            <input
              value={range[name]}
              inputMode="numeric"
              pattern="[1-9][0-9]{0,15}"
              required
              onChange={(event) => change(name, event.target.value)}
            />
          </label>
        ))}
      </div>
      <p className="actions">
        <button type="submit" className="button" disabled={!mayChange || counting.isPending}>
          Count
        </button>
        {matched !== undefined && !replay.isSuccess && matched > 0 && (
          <button
            type="button"
            className="button main-button"
            disabled={replay.isPending}
            onClick={() => replay.mutate()}
          >
            Deliver {count(matched)} again
          </button>
        )}
        {!mayChange && <span className="quiet">Only admins may deliver again.</span>}
      </p>
      <p role="status">
        {replay.isSuccess
          ? `${count(replay.data.replayed)} will be delivered again.${next === null ? '' : ` The rest begins at event ${next}.`}`
          : matched === undefined
            ? ''
            : matched === 0
              ? 'No event of the range is done or dead.'
              : `${count(matched)} ${matched === 1 ? 'event is' : 'events are'} done or dead.`}
      </p>
      {next !== null && (
        <p className="actions">
          <button type="button" className="button" onClick={() => change('from', String(next))}>
            Go on from event {next}
          </button>
        </p>
      )}
      {(counting.isError || replay.isError) && <ErrorNotice error={replay.error ?? counting.error} />}
    </form>
  )
}
