// Lines over one axis, as SVG: no library, nothing to load, readable on a light and on a dark page.

export interface Series {
  readonly name: string
  readonly points: readonly (readonly [x: number, y: number])[]
  /** A limit or a goal is drawn thin and dashed. */
  readonly isGuide?: boolean
}

export interface Panel {
  readonly title: string
  readonly xLabel: string
  readonly yLabel: string
  readonly series: readonly Series[]
}

const WIDTH = 420
const HEIGHT = 300
const MARGIN = { left: 64, right: 16, top: 40, bottom: 64 }
const STYLE = `
  text { font: 12px system-ui, sans-serif; fill: #1f2328 }
  .title { font-size: 14px; font-weight: 600 }
  .axis { stroke: #59636e; fill: none }
  .grid { stroke: #d1d9e0 }
  .line { fill: none; stroke-width: 2 }
  .dot { stroke: none }
  .guide { stroke-width: 1; stroke-dasharray: 4 4 }
  .s0 { stroke: #0969da } .s1 { stroke: #bc4c00 } .s2 { stroke: #1a7f37 }
  .f0 { fill: #0969da } .f1 { fill: #bc4c00 } .f2 { fill: #1a7f37 }
  .page { fill: #ffffff }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc }
    .axis { stroke: #9198a1 } .grid { stroke: #3d444d } .page { fill: #0d1117 }
    .s0 { stroke: #4493f8 } .s1 { stroke: #f0883e } .s2 { stroke: #3fb950 }
    .f0 { fill: #4493f8 } .f1 { fill: #f0883e } .f2 { fill: #3fb950 }
  }`

export function plot(title: string, panels: readonly Panel[]): string {
  const width = WIDTH * panels.length
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${HEIGHT}" viewBox="0 0 ${width} ${HEIGHT}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${STYLE}</style>`,
    `<rect class="page" width="${width}" height="${HEIGHT}"/>`,
    ...panels.map((panel, n) => `<g transform="translate(${n * WIDTH} 0)">\n${panelOf(panel)}\n</g>`),
    '</svg>\n',
  ].join('\n')
}

function panelOf({ title, xLabel, yLabel, series }: Panel): string {
  const points = series.flatMap((one) => one.points)
  const xTicks = ticks(Math.max(...points.map(([x]) => x)))
  const yTicks = ticks(Math.max(...points.map(([, y]) => y)))
  const [left, right, top, bottom] = [MARGIN.left, WIDTH - MARGIN.right, MARGIN.top, HEIGHT - MARGIN.bottom]
  const atX = (x: number) => rounded(left + ((right - left) * x) / xTicks.at(-1)!)
  const atY = (y: number) => rounded(bottom - ((bottom - top) * y) / yTicks.at(-1)!)
  return [
    `<text class="title" x="${left}" y="22">${escaped(title)}</text>`,
    ...yTicks.map((y) => `<path class="grid" d="M${left} ${atY(y)}H${right}"/>`),
    ...yTicks.map((y) => `<text x="${left - 6}" y="${atY(y) + 4}" text-anchor="end">${shown(y)}</text>`),
    ...xTicks.map((x) => `<text x="${atX(x)}" y="${bottom + 16}" text-anchor="middle">${shown(x)}</text>`),
    `<path class="axis" d="M${left} ${top}V${bottom}H${right}"/>`,
    `<text x="${(left + right) / 2}" y="${bottom + 34}" text-anchor="middle">${escaped(xLabel)}</text>`,
    `<text transform="translate(14 ${(top + bottom) / 2}) rotate(-90)" text-anchor="middle">${escaped(yLabel)}</text>`,
    ...series.map((one, n) => lineOf(one, n, atX, atY)),
    ...series.map(({ name }, n) => {
      const x = left + n * 150
      return `<g><rect class="f${n}" x="${x}" y="${HEIGHT - 20}" width="10" height="10"/><text x="${x + 14}" y="${HEIGHT - 11}">${escaped(name)}</text></g>`
    }),
  ].join('\n')
}

function lineOf(
  { points, isGuide }: Series,
  n: number,
  atX: (x: number) => number,
  atY: (y: number) => number,
): string {
  const path = points.map(([x, y], at) => `${at === 0 ? 'M' : 'L'}${atX(x)} ${atY(y)}`).join('')
  const line = `<path class="line s${n}${isGuide ? ' guide' : ''}" d="${path}"/>`
  if (isGuide) return line
  return [line, ...points.map(([x, y]) => `<circle class="dot f${n}" cx="${atX(x)}" cy="${atY(y)}" r="3"/>`)].join('\n')
}

/** Round numbers from 0 to at least the largest value. */
function ticks(largest: number): number[] {
  if (!(largest > 0)) return [0, 1]
  const raw = largest / 5
  const power = 10 ** Math.floor(Math.log10(raw))
  const step = [1, 2, 5, 10].map((times) => times * power).find((one) => one >= raw)!
  return Array.from({ length: Math.ceil(largest / step - 1e-9) + 1 }, (_, n) => n * step)
}

function shown(value: number): string {
  return Number(value.toPrecision(6)).toLocaleString('en')
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
