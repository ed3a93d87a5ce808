// Single-key shortcuts, active outside of input fields. They can be turned off, because speech input would trigger them
// (WCAG 2.1.4).

import { useEffect, useRef, useState } from 'react'

const STORED = 'intray.shortcuts'

export function useShortcutSetting(): readonly [boolean, (on: boolean) => void] {
  const [isOn, setOn] = useState(() => localStorage.getItem(STORED) !== 'off')
  return [
    isOn,
    (on) => {
      localStorage.setItem(STORED, on ? 'on' : 'off')
      setOn(on)
    },
  ]
}

/** `g e` is a sequence of two keys. */
export function useShortcuts(actions: Readonly<Record<string, (event: KeyboardEvent) => void>>): void {
  const latest = useRef(actions)
  useEffect(() => {
    latest.current = actions
  })
  useEffect(() => {
    let first = ''
    const onKey = (event: KeyboardEvent) => {
      if (localStorage.getItem(STORED) === 'off' && event.key !== 'Escape') return
      if (event.metaKey || event.ctrlKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return
      if (document.querySelector('dialog[open]') && event.key !== 'Escape') return
      const both = first === '' ? null : latest.current[`${first} ${event.key}`]
      const action = both ?? latest.current[event.key]
      first = both || event.key !== 'g' ? '' : 'g'
      if (!action) return
      event.preventDefault()
      action(event)
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [])
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches('input, textarea, select, [contenteditable]')
}
