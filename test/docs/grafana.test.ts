// docs/operating/grafana/intray.json shows the figures that there are: all of them, and no other.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly datasource: { readonly uid: string }
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[]
}
interface Dashboard {
  readonly uid: string
  readonly schemaVersion: number
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string }[] }
  readonly panels: readonly Panel[]
}

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const dashboard = JSON.parse(read('docs/operating/grafana/intray.json')) as Dashboard

test('every figure of the code has a panel, and every figure in a panel is in the code', () => {
  const code = read('src/runtime/service-metrics.ts')
  const served = [...code.matchAll(/(?:[cC]ounter|histogram|gauge)\(\s*'(\w+)'/g)].map(([, name]) => name!)
  assert.ok(served.length > 20)
  const shown = dashboard.panels
    .flatMap(({ targets }) => targets)
    .flatMap(({ expr }) => [...expr.matchAll(/\b(?:intray|process)_\w+/g)])
    .map(([name]) => name.replace(/_bucket$/, ''))
  assert.deepEqual([...new Set(shown)].toSorted(), served.toSorted())
})

test('every panel goes by the data source that is chosen, and none lies on another', () => {
  const [source, instance] = dashboard.templating.list
  assert.deepEqual([source?.name, source?.type, instance?.name], ['datasource', 'datasource', 'instance'])
  assert.ok(dashboard.uid !== '' && dashboard.schemaVersion >= 36)
  const taken = new Set<string>()
  for (const { id, title, datasource, gridPos, targets } of dashboard.panels) {
    const sources = [datasource, ...targets.map((target) => target.datasource)]
    for (const { uid } of sources) assert.equal(uid, `\${datasource}`, title)
    assert.ok(id > 0 && targets.length > 0, title)
    assert.ok(gridPos.x + gridPos.w <= 24, title)
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        assert.ok(!taken.has(`${x},${y}`), `${title} lies on another`)
        taken.add(`${x},${y}`)
      }
    }
  }
  assert.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length)
})

test('no panel goes by a tenant or a token', () => {
  assert.doesNotMatch(read('docs/operating/grafana/intray.json'), /account|company|tenant|key_id/)
})
