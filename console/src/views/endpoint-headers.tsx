// The headers of an endpoint in its form. Values of secret ones are not known here, so that all are entered anew to change one.

import type { EndpointHeader } from '../../../kits/typescript/src/schema.ts'

const MAX_HEADERS = 20

export interface HeaderDraft {
  readonly key: number
  readonly name: string
  readonly value: string
  readonly isSecret: boolean
}

let made = 0

function draft(name: string, value: string, isSecret: boolean): HeaderDraft {
  made += 1
  return { key: made, name, value, isSecret }
}

export function headerDrafts(headers: readonly EndpointHeader[]): HeaderDraft[] {
  return headers.map(({ name, value, secret }) => draft(name, value ?? '', secret))
}

interface HeaderFieldsProps {
  /** Null in a new endpoint. */
  readonly old: readonly EndpointHeader[] | null
  /** Null: they stay as they are. */
  readonly drafts: readonly HeaderDraft[] | null
  readonly onChange: (drafts: readonly HeaderDraft[] | null) => void
}

export function HeaderFields({ old, drafts, onChange }: HeaderFieldsProps) {
  return (
    <fieldset className="header-fields">
      <legend>Headers of every request</legend>
      {old !== null && old.length > 0 && (
        <label className="check">
          <input
            type="checkbox"
            checked={drafts !== null}
            onChange={(event) => onChange(event.target.checked ? headerDrafts(old) : null)}
          />{' '}
          Replace all {old.length}: values of secret ones are entered anew
        </label>
      )}
      {drafts?.map((one) => (
        <HeaderRow
          key={one.key}
          header={one}
          onChange={(next) => onChange(drafts.map((other) => (other.key === one.key ? next : other)))}
          onRemove={() => onChange(drafts.filter((other) => other.key !== one.key))}
        />
      ))}
      {(drafts !== null || old?.length === 0) && (
        <p className="actions">
          <button
            type="button"
            className="button"
            disabled={(drafts?.length ?? 0) >= MAX_HEADERS}
            onClick={() => onChange([...(drafts ?? []), draft('', '', true)])}
          >
            Add a header
          </button>
        </p>
      )}
    </fieldset>
  )
}

interface HeaderRowProps {
  readonly header: HeaderDraft
  readonly onChange: (header: HeaderDraft) => void
  readonly onRemove: () => void
}

function HeaderRow({ header, onChange, onRemove }: HeaderRowProps) {
  return (
    <div className="header-row">
      <label className="field">
        Name
        <input
          value={header.name}
          maxLength={128}
          required
          autoComplete="off"
          spellCheck={false}
          placeholder="Authorization"
          onChange={(event) => onChange({ ...header, name: event.target.value })}
        />
      </label>
      <label className="field">
        Value
        <input
          value={header.value}
          maxLength={2048}
          required
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => onChange({ ...header, value: event.target.value })}
        />
      </label>
      <label className="check">
        <input
          type="checkbox"
          checked={header.isSecret}
          onChange={(event) => onChange({ ...header, isSecret: event.target.checked })}
        />{' '}
        Secret
      </label>
      <button type="button" className="button" aria-label={`Remove header ${header.name}`} onClick={onRemove}>
        Remove
      </button>
    </div>
  )
}
