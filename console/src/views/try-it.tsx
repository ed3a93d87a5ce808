// The try-it view: sends a test event and shows how it arrives.

import { useMutation } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { useLiveEvents } from '../live/live.tsx'
import { addressFor, Link } from '../router.tsx'
import { useApi, useSession, useMayChange } from '../session.tsx'
import { count, ErrorNotice } from '../ui/controls.tsx'
import { jsonObjectProblem } from './refusal-fixes.ts'
import { SAMPLE_BODY } from './snippets.ts'

const OUTCOMES = {
  stored: '',
  duplicate: ': a duplicate, nothing new is stored',
  conflict: ': other bytes under a known source_ref, stored as a revision',
} as const

const freshBody = () =>
  JSON.stringify({ ...SAMPLE_BODY, source_ref: `try:${Date.now()}`, channel_ref: 'console/try-it' }, null, 2)

export function TryIt() {
  const api = useApi()
  const { tenant } = useSession()
  const mayChange = useMayChange()
  const [text, setText] = useState(freshBody)
  const [seen, setSeen] = useState<ReadonlyMap<number, number>>(new Map())
  useLiveEvents((event) => setSeen((known) => new Map(known).set(event.id, performance.now())))
  const send = useMutation({
    mutationFn: async () => {
      const startedAt = performance.now()
      const receipt = await api.call('POST /v1/console/test-events', { bodyText: text })
      return { receipt, startedAt, storedAt: performance.now() }
    },
  })
  const sent = send.data
  const arrivedAt = sent && seen.get(sent.receipt.id)
  // Only recent arrivals are needed.
  useEffect(() => {
    if (seen.size > 500) setSeen(new Map([...seen].slice(-100)))
  }, [seen])
  const wrong = jsonObjectProblem(text)
  return (
    <div className="page try-it">
      <form
        className="card stack"
        onSubmit={(event) => {
          event.preventDefault()
          send.mutate()
        }}
      >
        <label className="field">
          A message, as an integration would send it
          <textarea
            rows={14}
            spellCheck={false}
            value={text}
            aria-describedby="try-problem"
            onChange={(event) => setText(event.target.value)}
          />
        </label>
        <p id="try-problem" role="status" className={wrong ? 'warning' : 'quiet'}>
          {wrong ?? 'It is stored like any other message and marked as a test.'}
        </p>
        <p className="actions">
          <button
            type="submit"
            className="button main-button"
            disabled={wrong !== null || send.isPending || !mayChange}
          >
            Send
          </button>
          <button type="button" className="button" onClick={() => setText(freshBody())}>
            New sample
          </button>
          {!mayChange && <span className="quiet">Only admins may send test messages.</span>}
        </p>
        {send.isError && <ErrorNotice error={send.error} />}
      </form>
      <ol className="steps" aria-live="polite" aria-label="Progress">
        <Step isDone={sent !== undefined} title="Stored">
          {sent && (
            <>
              as event {sent.receipt.id}
              {OUTCOMES[sent.receipt.outcome]}, after {count(Math.round(sent.storedAt - sent.startedAt))} ms
            </>
          )}
        </Step>
        <Step isDone={arrivedAt !== undefined} title="Arrived on the stream">
          {sent && arrivedAt !== undefined && `after ${count(Math.max(0, Math.round(arrivedAt - sent.startedAt)))} ms`}
        </Step>
        <Step isDone={arrivedAt !== undefined} title="Waiting for a processor">
          {sent && arrivedAt !== undefined && (
            <Link to={addressFor(tenant, 'events', sent.receipt.id)}>Look at event {sent.receipt.id}</Link>
          )}
        </Step>
      </ol>
    </div>
  )
}

interface StepProps {
  readonly isDone: boolean
  readonly title: string
  readonly children: React.ReactNode
}

function Step({ isDone, title, children }: StepProps) {
  return (
    <li data-done={isDone}>
      <span aria-hidden="true">{isDone ? '✓' : '○'}</span> <strong>{title}</strong> {children}
      {!isDone && <span className="visually-hidden">(not yet)</span>}
    </li>
  )
}
