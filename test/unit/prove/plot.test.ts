import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plot } from '../../../prove/plot.ts'

const panel = {
  title: 'Goodput & <p99>',
  xLabel: 'offered',
  yLabel: 'a second',
  series: [
    {
      name: 'good',
      points: [
        [0, 0],
        [1, 90],
        [5, 100],
      ] as const,
    },
    {
      name: 'goal',
      points: [
        [0, 90],
        [5, 90],
      ] as const,
      isGuide: true,
    },
  ],
}

test('a drawing is whole SVG: every element is closed, text is escaped, nothing is loaded', () => {
  const svg = plot('Overload', [panel, panel])
  const open: string[] = []
  for (const [, close, name, empty] of svg.matchAll(/<(\/?)([a-z]+)[^<>]*?(\/?)>/g)) {
    if (close) assert.equal(open.pop(), name)
    else if (!empty) open.push(name!)
  }
  assert.deepEqual(open, [])
  assert.match(svg, /Goodput &amp; &lt;p99&gt;/)
  assert.doesNotMatch(svg, /href|url\(|<script|NaN|undefined/)
})

test('points are where they belong: more is higher, later is further right', () => {
  const dots = [...plot('Overload', [panel]).matchAll(/<circle [^>]*cx="([\d.]+)" cy="([\d.]+)"/g)]
  const at = dots.map(([, x, y]) => [Number(x), Number(y)] as const)
  assert.equal(at.length, 3, 'a guide has no dots')
  assert.ok(at[0]![0] < at[1]![0] && at[1]![0] < at[2]![0])
  assert.ok(at[0]![1] > at[1]![1] && at[1]![1] > at[2]![1])
})

test('it is readable on a dark page as well', () => {
  assert.match(plot('Overload', [panel]), /prefers-color-scheme: dark/)
})

test('nothing to draw is drawn as nothing', () => {
  const empty = { ...panel, series: [{ name: 'none', points: [[0, 0]] as const }] }
  assert.doesNotMatch(plot('Overload', [empty]), /NaN|Infinity/)
})
