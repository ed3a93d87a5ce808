// A virtualized list: the page holds the visible rows and a few around them. One row is in the tab order; j, k and the arrow
// keys move it, and Enter follows its link.

import { useVirtualizer } from '@tanstack/react-virtual'
import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from 'react'
import { followHere } from '../router.tsx'
import { useShortcuts } from './keyboard.ts'

interface VirtualListProps<Row> {
  readonly label: string
  readonly rows: readonly Row[]
  readonly rowHeight: number
  readonly keyOf: (row: Row) => string | number
  readonly addressOf: (row: Row) => string
  readonly isOpen: (row: Row) => boolean
  readonly render: (row: Row) => ReactNode
  readonly hasMore: boolean
  readonly onMore: () => void
}

export function VirtualList<Row>(props: VirtualListProps<Row>) {
  const { label, rows, rowHeight, keyOf, addressOf, isOpen, render, hasMore, onMore } = props
  const scroller = useRef<HTMLDivElement>(null)
  const [activeKey, setActiveKey] = useState<string | number | null>(null)
  const [wantsFocus, setWantsFocus] = useState(false)
  const opened = rows.findIndex(isOpen)
  const active = Math.max(0, activeKey === null ? opened : rows.findIndex((row) => keyOf(row) === activeKey))
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    getItemKey: (index) => keyOf(rows[index]!),
    overscan: 8,
    initialRect: { width: 600, height: 700 },
  })
  const items = virtual.getVirtualItems()
  const lastShown = items.at(-1)?.index ?? 0
  useEffect(() => {
    if (hasMore && lastShown >= rows.length - 15) onMore()
  }, [hasMore, lastShown, rows.length, onMore])

  const moveTo = (index: number) => {
    const row = rows[Math.min(Math.max(index, 0), rows.length - 1)]
    if (!row) return
    setActiveKey(keyOf(row))
    setWantsFocus(true)
    virtual.scrollToIndex(rows.indexOf(row))
  }
  useEffect(() => {
    if (!wantsFocus) return
    const link = scroller.current?.querySelector<HTMLElement>(`[data-index="${active}"]`)
    if (!link) return
    link.focus({ preventScroll: true })
    setWantsFocus(false)
  })
  useShortcuts({
    j: () => moveTo(hasFocus(scroller.current) ? active + 1 : active),
    k: () => moveTo(hasFocus(scroller.current) ? active - 1 : active),
  })
  // One visible row must be in the tab order, even if the active one is scrolled out of view.
  const tabStop = items.some(({ index }) => index === active) ? active : items[0]?.index
  const onKeyDown = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / rowHeight) - 1)
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page }[event.key]
    if (step === undefined) return
    event.preventDefault()
    moveTo(active + step)
  }
  return (
    <div ref={scroller} className="virtual-list">
      <ul aria-label={label} style={{ height: virtual.getTotalSize() }} onKeyDown={onKeyDown}>
        {items.map(({ index, start, key }) => {
          const row = rows[index]!
          const address = addressOf(row)
          return (
            <li
              key={key}
              style={{ transform: `translateY(${start}px)`, height: rowHeight }}
              aria-setsize={hasMore ? -1 : rows.length}
              aria-posinset={index + 1}
            >
              <a
                href={address}
                className="row"
                data-index={index}
                tabIndex={index === tabStop ? 0 : -1}
                aria-current={isOpen(row) ? 'true' : undefined}
                onFocus={() => setActiveKey(keyOf(row))}
                onClick={(event) => followHere(event, address)}
              >
                {render(row)}
              </a>
            </li>
          )
        })}
      </ul>
    </div>
  )
}

function hasFocus(element: HTMLElement | null): boolean {
  return element?.contains(document.activeElement) ?? false
}
