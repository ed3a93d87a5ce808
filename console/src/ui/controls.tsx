// Small components that all views share.

import { type ReactNode, useEffect, useRef, useState } from 'react'
import { ApiError } from '../api/client.ts'
import { exactTime, useNow, relativeTime } from './time.ts'

export type EventState = 'pending' | 'leased' | 'done' | 'dead'

const STATE_SIGN: Record<EventState, string> = { pending: '○', leased: '◐', done: '✓', dead: '✕' }

/** Shows a state by word and sign, not by colour alone. `look`: the state of an event that it resembles. */
export function Mark({ look, children }: { readonly look: EventState; readonly children: ReactNode }) {
  return (
    <span className="state" data-state={look}>
      <span aria-hidden="true">{STATE_SIGN[look]}</span> {children}
    </span>
  )
}

export function StateMark({ state }: { readonly state: EventState | null }) {
  return state === null ? null : <Mark look={state}>{state}</Mark>
}

export function Time({ at, short = false }: { readonly at: string; readonly short?: boolean }) {
  const now = useNow()
  return (
    <time dateTime={at} title={exactTime(at)}>
      {short ? relativeTime(at, now) : `${exactTime(at)} (${relativeTime(at, now)})`}
    </time>
  )
}

interface CopyProps {
  readonly text: string | (() => Promise<string> | string)
  readonly children: ReactNode
  readonly className?: string
}

export function CopyButton({ text, children, className = 'button' }: CopyProps) {
  const [outcome, setOutcome] = useState<'copied' | 'failed' | null>(null)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(typeof text === 'string' ? text : await text())
      setOutcome('copied')
    } catch {
      setOutcome('failed')
    }
    clearTimeout(timer.current)
    timer.current = setTimeout(() => setOutcome(null), 2000)
  }
  return (
    <button type="button" className={className} onClick={copy}>
      {outcome === null ? children : outcome === 'copied' ? 'Copied' : 'Not copied'}
      <span className="visually-hidden" role="status">
        {outcome === null ? '' : outcome === 'copied' ? 'Copied to the clipboard' : 'The browser did not allow copying'}
      </span>
    </button>
  )
}

export function ErrorNotice({ error, onRetry }: { readonly error: unknown; readonly onRetry?: () => void }) {
  const requestId = error instanceof ApiError ? error.requestId : null
  return (
    <div className="trouble" role="alert">
      <p>{error instanceof ApiError ? error.message : 'The server cannot be reached. Is it running?'}</p>
      {requestId && <p className="quiet">Request {requestId}</p>}
      {onRetry && (
        <button type="button" className="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  )
}

export function Loading({ what }: { readonly what: string }) {
  return (
    <p className="loading" role="status">
      Loading {what} …
    </p>
  )
}

interface EmptyProps {
  readonly title: string
  readonly children?: ReactNode
  /** A command that adds the first item. */
  readonly command?: string
}

export function Empty({ title, children, command }: EmptyProps) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children}
      {command && <CodeBlock text={command} label="Command that adds the first item" />}
    </div>
  )
}

export function CodeBlock({ text, label }: { readonly text: string; readonly label: string }) {
  return (
    <div className="code-block">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard. */}
      <section className="code-scroll" tabIndex={0} aria-label={label}>
        <pre>{text}</pre>
      </section>
      <CopyButton text={text}>Copy</CopyButton>
    </div>
  )
}

/** A number with its name. */
export function Metric({
  name,
  value,
  note,
}: {
  readonly name: string
  readonly value: ReactNode
  readonly note?: ReactNode
}) {
  return (
    <div className="figure">
      <dt>{name}</dt>
      <dd>
        <span className="figure-value">{value}</span>
        {note && <span className="quiet">{note}</span>}
      </dd>
    </div>
  )
}

export const count = (value: number) => value.toLocaleString('en')

export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} KiB`
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`
}
