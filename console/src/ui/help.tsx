// The dialog that lists keyboard shortcuts.

import { ENTRIES } from '../entries.ts'
import { Dialog } from './dialog.tsx'
import { useShortcutSetting } from './keyboard.ts'

const KEYS: readonly (readonly [string, string])[] = [
  ['/', 'go to the search field'],
  ['j, k', 'next and previous row'],
  ['Enter', 'open the row'],
  ['p', 'pause and resume the live tail'],
  ['Esc', 'close the dialog'],
  ['?', 'this help'],
]

export function Help({ onClose }: { readonly onClose: () => void }) {
  const [isOn, setOn] = useShortcutSetting()
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <label className="check">
        <input type="checkbox" checked={isOn} onChange={(event) => setOn(event.target.checked)} /> Single-key shortcuts
      </label>
      <dl className="keys">
        {[...KEYS, ...ENTRIES.map(({ key, title }) => [`g ${key}`, title] as const)].map(([keys, what]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <p className="quiet">
        The API behind this console is described at{' '}
        <a href="/docs" target="_blank" rel="noreferrer">
          /docs
        </a>
        .
      </p>
    </Dialog>
  )
}
