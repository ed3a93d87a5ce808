// Tabs by the ARIA pattern: arrow keys move, and one tab is in the tab order.

import { type KeyboardEvent, type ReactNode, useId, useRef } from 'react'

export interface TabChoice<Name extends string> {
  readonly name: Name
  readonly label: ReactNode
}

interface TabsProps<Name extends string> {
  readonly label: string
  readonly choices: readonly TabChoice<Name>[]
  readonly chosen: Name
  readonly onChoose: (name: Name) => void
  readonly children: ReactNode
}

export function Tabs<Name extends string>({ label, choices, chosen, onChoose, children }: TabsProps<Name>) {
  const id = useId()
  const list = useRef<HTMLDivElement>(null)
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key]
    if (step === undefined) return
    event.preventDefault()
    const here = choices.findIndex(({ name }) => name === chosen)
    const next = Number.isFinite(step)
      ? (here + step + choices.length) % choices.length
      : step < 0
        ? 0
        : choices.length - 1
    onChoose(choices[next]!.name)
    list.current?.querySelectorAll<HTMLButtonElement>('[role=tab]')[next]?.focus()
  }
  return (
    <div className="tabs">
      <div ref={list} role="tablist" aria-label={label} className="tab-list" onKeyDown={onKeyDown}>
        {choices.map(({ name, label: text }) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`${id}-${name}`}
            aria-selected={name === chosen}
            aria-controls={`${id}-panel`}
            tabIndex={name === chosen ? 0 : -1}
            onClick={() => onChoose(name)}
          >
            {text}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${chosen}`} className="tab-panel">
        {children}
      </div>
    </div>
  )
}
