// The colour theme: light, dark, or that of the system.

import { useEffect, useState } from 'react'

export const THEMES = ['auto', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]
const STORED = 'intray.theme'

export function storedTheme(): Theme {
  return THEMES.find((theme) => theme === localStorage.getItem(STORED)) ?? 'auto'
}

export function applyTheme(theme: Theme): void {
  if (theme === 'auto') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
}

export function useTheme(): readonly [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState(storedTheme)
  useEffect(() => {
    applyTheme(theme)
    localStorage.setItem(STORED, theme)
  }, [theme])
  return [theme, setTheme]
}

/** For canvases, which cannot use custom properties and must redraw. */
export function onThemeChange(listener: () => void): () => void {
  const system = window.matchMedia('(prefers-color-scheme: dark)')
  const observer = new MutationObserver(listener)
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] })
  system.addEventListener('change', listener)
  return () => {
    observer.disconnect()
    system.removeEventListener('change', listener)
  }
}
