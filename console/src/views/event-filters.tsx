// The filters of the event list. Their only state is the URL.

import { type FormEvent, useEffect, useRef, useState } from 'react'
import type { Operations } from '../../../kits/typescript/src/schema.ts'
import { useQuerySetter } from '../router.tsx'

export type EventFilter = Omit<Operations['GET /v1/inbox/events']['query'], 'limit' | 'cursor'>

const NAMES = [
  'q',
  'state',
  'kind',
  'contact_email',
  'channel_ref',
  'source_ref',
  'key_id',
  'scope',
  'message_type',
  'received_after',
  'received_before',
  'subscription',
] as const satisfies readonly (keyof EventFilter)[]

export function filtersIn(query: URLSearchParams): EventFilter {
  const found = NAMES.flatMap((name) => {
    const value = query.get(name)
    return value === null || value === '' ? [] : [[name, value] as const]
  })
  return Object.fromEntries(found)
}

export function hasFilters(filters: EventFilter): boolean {
  return Object.keys(filters).length > 0
}

const TEXT_FILTERS: readonly (readonly [keyof EventFilter, string])[] = [
  ['contact_email', 'E-mail'],
  ['channel_ref', 'channel_ref'],
  ['source_ref', 'source_ref'],
  ['key_id', 'Token (key id)'],
  ['message_type', 'message.type'],
]

export function EventFilters({ filters }: { readonly filters: EventFilter }) {
  const setQuery = useQuerySetter()
  const more = NAMES.filter((name) => name !== 'q' && name !== 'state' && filters[name] !== undefined).length
  const [isOpen, setOpen] = useState(more > 0)
  return (
    <search className="filters">
      <div className="filter-row">
        <SearchField value={filters.q ?? ''} onSearch={(q) => setQuery({ q }, true)} />
        <label className="inline-field">
          State
          <select value={filters.state ?? ''} onChange={(event) => setQuery({ state: event.target.value })}>
            <option value="">any</option>
            <option>pending</option>
            <option>leased</option>
            <option>done</option>
            <option>dead</option>
          </select>
        </label>
        <button type="button" className="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          Filters{more > 0 ? ` (${more})` : ''}
        </button>
        {(more > 0 || filters.q || filters.state) && (
          <button
            type="button"
            className="button quiet-button"
            onClick={() => setQuery(Object.fromEntries(NAMES.map((name) => [name, null])))}
          >
            Clear
          </button>
        )}
      </div>
      {isOpen && <MoreFilters filters={filters} onSet={setQuery} />}
    </search>
  )
}

interface MoreProps {
  readonly filters: EventFilter
  readonly onSet: (changes: Readonly<Record<string, string | null>>) => void
}

function MoreFilters({ filters, onSet }: MoreProps) {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const changes: Record<string, string | null> = {}
    for (const [name, value] of form) changes[name] = String(value).trim()
    for (const name of ['received_after', 'received_before']) {
      changes[name] = changes[name] ? new Date(changes[name]).toISOString() : null
    }
    onSet(changes)
  }
  // The key resets the fields when the URL changes.
  return (
    <form className="more-filters" onSubmit={submit} key={JSON.stringify(filters)}>
      {TEXT_FILTERS.map(([name, label]) => (
        <label key={name} className="field">
          {label}
          <input name={name} defaultValue={filters[name] ?? ''} />
        </label>
      ))}
      <label className="field">
        Kind
        <select name="kind" defaultValue={filters.kind ?? ''}>
          <option value="">any</option>
          <option>event</option>
          <option>revision</option>
        </select>
      </label>
      <label className="field">
        Received from
        <input name="received_after" type="datetime-local" step="1" defaultValue={localTime(filters.received_after)} />
      </label>
      <label className="field">
        Received before
        <input
          name="received_before"
          type="datetime-local"
          step="1"
          defaultValue={localTime(filters.received_before)}
        />
      </label>
      <button type="submit" className="button main-button">
        Apply
      </button>
    </form>
  )
}

/** Local time without a zone, as the input element takes it. */
function localTime(at: string | undefined): string {
  const time = at === undefined ? Number.NaN : Date.parse(at)
  if (Number.isNaN(time)) return ''
  return new Date(time - new Date(time).getTimezoneOffset() * 60_000).toISOString().slice(0, 19)
}

const TYPING_PAUSE_MS = 300

interface SearchProps {
  readonly value: string
  readonly onSearch: (text: string) => void
}

/** Searches after a pause in typing (debounce), or at once on Enter. */
function SearchField({ value, onSearch }: SearchProps) {
  const [text, setText] = useState(value)
  const told = useRef(value)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => {
    if (value !== told.current) {
      told.current = value
      setText(value)
    }
  }, [value])
  useEffect(() => () => clearTimeout(timer.current), [])
  const tell = (next: string) => {
    clearTimeout(timer.current)
    told.current = next.trim()
    onSearch(next.trim())
  }
  return (
    <form
      className="search-form"
      onSubmit={(event) => {
        event.preventDefault()
        tell(text)
      }}
    >
      <input
        type="search"
        aria-label="Search in name, e-mail and text"
        placeholder="Search ( / )"
        maxLength={200}
        value={text}
        onChange={(event) => {
          const next = event.target.value
          setText(next)
          clearTimeout(timer.current)
          timer.current = setTimeout(() => tell(next), TYPING_PAUSE_MS)
        }}
      />
    </form>
  )
}
