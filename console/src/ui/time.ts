// Formats times in the reader's zone, exact to the second or relative to now.

import { useSyncExternalStore } from 'react'

const EXACT = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })

export function exactTime(at: string): string {
  return EXACT.format(new Date(at))
}

export function relativeTime(at: string, now: number): string {
  const seconds = Math.round((now - new Date(at).getTime()) / 1000)
  return seconds < 0 ? `in ${span(-seconds)}` : seconds < 5 ? 'just now' : `${span(seconds)} ago`
}

function span(seconds: number): string {
  if (seconds < 90) return `${seconds} s`
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min`
  if (seconds < 36 * 3600) return `${Math.round(seconds / 3600)} h`
  return `${Math.round(seconds / 86_400)} d`
}

// One timer for all relative times of the page.
let now = Date.now()
const listeners = new Set<() => void>()
let timer: ReturnType<typeof setInterval> | null = null

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  if (timer === null) now = Date.now()
  timer ??= setInterval(() => {
    now = Date.now()
    for (const one of listeners) one()
  }, 5000)
  return () => {
    listeners.delete(listener)
    if (listeners.size === 0 && timer !== null) {
      clearInterval(timer)
      timer = null
    }
  }
}

export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now)
}
