// Parts of the dialogs that change tokens, hooks and signing secrets.

import { type ReactNode, useId } from 'react'
import { CodeBlock, ErrorNotice } from '../ui/controls.tsx'
import { Dialog } from '../ui/dialog.tsx'

const LIFETIMES: readonly (readonly [string, string])[] = [
  ['1d', 'in a day'],
  ['7d', 'in a week'],
  ['30d', 'in 30 days'],
  ['365d', 'in a year'],
]

interface LifetimeFieldProps {
  readonly label?: string
  /** What it means if no time is chosen. */
  readonly otherwise?: string
}

/** The field `lifetime`, which may be empty. */
export function LifetimeField({ label = 'Expires', otherwise = 'never' }: LifetimeFieldProps) {
  return (
    <label className="field">
      {label}
      <select name="lifetime">
        <option value="">{otherwise}</option>
        {LIFETIMES.map(([lifetime, text]) => (
          <option key={text} value={lifetime}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}

const OVERLAPS: readonly (readonly [string, string])[] = [
  ['', 'stops at once'],
  ['1h', 'works for one more hour'],
  ['24h', 'works for one more day'],
  ['7d', 'works for one more week'],
]

const OVERLAP_SECONDS: Readonly<Record<string, number>> = { '1h': 3600, '24h': 86_400, '7d': 604_800 }

/** The value of the field `overlap`; null: the old one stops at once. */
export function overlapSeconds(overlap: string): number | null {
  return OVERLAP_SECONDS[overlap] ?? null
}

/** The field `overlap`: empty if the old one stops at once. */
export function OverlapField({ what, chosen = '24h' }: { readonly what: string; readonly chosen?: string }) {
  return (
    <label className="field">
      {what}
      <select name="overlap" defaultValue={chosen}>
        {OVERLAPS.map(([overlap, text]) => (
          <option key={text} value={overlap}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}

interface SecretFieldProps {
  readonly label: string
  readonly help: ReactNode
  readonly maxLength: number
  readonly isRequired?: boolean
}

/** The field `secret`. The browser is asked not to keep what is entered. */
export function SecretField({ label, help, maxLength, isRequired = false }: SecretFieldProps) {
  const id = useId()
  return (
    <>
      <label className="field">
        {label}
        <input
          name="secret"
          className="mono"
          maxLength={maxLength}
          required={isRequired}
          autoComplete="off"
          autoCapitalize="off"
          spellCheck={false}
          aria-describedby={id}
        />
      </label>
      <p id={id} className="quiet">
        {help}
      </p>
    </>
  )
}

/** A text to paste elsewhere, under its name. */
export function CopyField({
  label,
  text,
  note,
}: {
  readonly label: string
  readonly text: string
  readonly note?: string
}) {
  return (
    <div className="copy-field">
      <p>
        {label} {note && <span className="quiet">{note}</span>}
      </p>
      <CodeBlock label={label} text={text} />
    </div>
  )
}

interface ConfirmProps {
  readonly title: string
  readonly verb: string
  readonly isDanger?: boolean
  readonly isPending: boolean
  readonly error: unknown
  readonly onConfirm: () => void
  readonly onClose: () => void
  readonly children: ReactNode
}

export function Confirm(props: ConfirmProps) {
  const { title, verb, isDanger = false, isPending, error, onConfirm, onClose, children } = props
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      {error !== null && <ErrorNotice error={error} />}
      <p className="actions">
        <button
          type="button"
          className={`button ${isDanger ? 'danger-button' : 'main-button'}`}
          disabled={isPending}
          onClick={onConfirm}
        >
          {verb}
        </button>
        <button type="button" className="button" onClick={onClose}>
          Cancel
        </button>
      </p>
    </Dialog>
  )
}

/** A server that has not confirmed the change may still go by what was before. */
export function NotConfirmed({ what, onClose }: { readonly what: string; readonly onClose: () => void }) {
  return (
    <>
      <p>
        A running server has not confirmed it: it is busy, or cut off from the database. It may still accept messages
        with {what}. Look at its log; restart it to be sure.
      </p>
      <p className="actions">
        <button type="button" className="button" onClick={onClose}>
          I understand
        </button>
      </p>
    </>
  )
}
