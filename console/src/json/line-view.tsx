// A virtualized list of text lines.

import { useVirtualizer } from '@tanstack/react-virtual'
import { useRef } from 'react'
import { SafeText } from '../text/safe-text.tsx'

const LINE_HEIGHT = 20

export interface ShownLine {
  readonly depth: number
  readonly text: string
  readonly isContinuation?: boolean
  readonly mark?: 'same' | 'removed' | 'added'
}

const SIGN = { same: ' ', removed: '−', added: '+' } as const

export function LineView({ lines, label }: { readonly lines: readonly ShownLine[]; readonly label: string }) {
  const scroller = useRef<HTMLElement>(null)
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE_HEIGHT,
    overscan: 10,
  })
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard.
    <section ref={scroller} className="line-view" aria-label={label} tabIndex={0}>
      <div className="line-canvas" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index, start }) => {
          const line = lines[index]!
          return (
            <div key={index} className="line" data-mark={line.mark} style={{ transform: `translateY(${start}px)` }}>
              <span className="line-number" aria-hidden="true">
                {index + 1}
              </span>
              {line.mark && (
                <span className="line-sign" title={line.mark}>
                  {SIGN[line.mark]}
                </span>
              )}
              <span className="line-text" style={{ paddingInlineStart: `${line.depth * 1.5}ch` }}>
                {line.isContinuation && <span className="cut">↳</span>}
                <SafeText text={line.text} />
              </span>
            </div>
          )
        })}
      </div>
    </section>
  )
}
