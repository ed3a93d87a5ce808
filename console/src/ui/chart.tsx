// A time series as a chart, and the same numbers as a table for screen readers and for readers who prefer it.

import { useEffect, useId, useRef, useState } from 'react'
import UPlot from 'uplot'
import { onThemeChange } from './theme.ts'

export interface Series {
  readonly name: string
  /** A custom property of styles/tokens.css. */
  readonly colour: string
  readonly values: readonly number[]
  readonly dashed?: boolean
}

interface ChartProps {
  readonly title: string
  /** Unix times in seconds. */
  readonly times: readonly number[]
  readonly series: readonly Series[]
}

const HEIGHT = 180

export function Chart({ title, times, series }: ChartProps) {
  const [isTable, setTable] = useState(false)
  const id = useId()
  return (
    <section className="card chart" aria-labelledby={id}>
      <header className="chart-head">
        <h2 id={id}>{title}</h2>
        <ul className="legend" aria-hidden="true">
          {series.map(({ name, colour, dashed }) => (
            <li key={name} data-dashed={dashed} style={{ color: `var(${colour})` }}>
              <span>{name}</span>
            </li>
          ))}
        </ul>
        <button type="button" className="button" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
          Table
        </button>
      </header>
      {isTable ? (
        <DataTable title={title} times={times} series={series} />
      ) : (
        <Canvas title={title} times={times} series={series} />
      )}
    </section>
  )
}

function Canvas({ title, times, series }: ChartProps) {
  const holder = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot | null>(null)
  const names = series.map(({ name }) => name).join()
  const data = [times, ...series.map(({ values }) => values)] as unknown as UPlot.AlignedData
  const latest = useRef(data)
  latest.current = data
  // biome-ignore lint/correctness/useExhaustiveDependencies: drawn anew only if other series are shown; data goes in below.
  useEffect(() => {
    const element = holder.current!
    const draw = () => {
      plot.current?.destroy()
      plot.current = new UPlot(optionsFor(element, series), latest.current, element)
    }
    draw()
    const observer = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }))
    observer.observe(element)
    const stop = onThemeChange(draw)
    return () => {
      stop()
      observer.disconnect()
      plot.current?.destroy()
      plot.current = null
    }
  }, [names])
  useEffect(() => plot.current?.setData(data))
  const sums = series.map(({ name, values }) => `${values.reduce((sum, value) => sum + value, 0)} ${name}`).join(', ')
  return <div ref={holder} className="canvas" role="img" aria-label={`${title}: ${sums} in ${times.length} minutes`} />
}

function optionsFor(element: HTMLElement, series: readonly Series[]): UPlot.Options {
  const style = getComputedStyle(element)
  const colour = (name: string) => style.getPropertyValue(name).trim()
  const axis: UPlot.Axis = {
    stroke: colour('--text-quiet'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
    font: '11px system-ui',
  }
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, points: { size: 6 } },
    scales: { y: { range: (_plot, _min, max) => [0, Math.max(4, max * 1.1)] } },
    axes: [
      { ...axis, size: 26, values: (_plot, seconds) => seconds.map(timeOfDay) },
      { ...axis, size: 44, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 50_000, 100_000] },
    ],
    series: [
      {},
      ...series.map(({ name, colour: property, dashed }, n) => ({
        label: name,
        stroke: colour(property),
        width: 2,
        ...(dashed ? { dash: [5, 4] } : {}),
        ...(n === 0 ? { fill: `${colour(property)}22` } : {}),
        points: { show: false },
      })),
    ],
  }
}

function timeOfDay(seconds: number): string {
  return new Date(seconds * 1000).toLocaleTimeString('en-GB').slice(0, 5)
}

function DataTable({ title, times, series }: ChartProps) {
  const rows = times.map((time, n) => ({ time, values: series.map(({ values }) => values[n] ?? 0) })).reverse()
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard.
    <section className="table-scroll" tabIndex={0} aria-label={`${title}, as a table`}>
      <table>
        <thead>
          <tr>
            <th scope="col">Minute</th>
            {series.map(({ name }) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ time, values }) => (
            <tr key={time}>
              <th scope="row">{timeOfDay(time)}</th>
              {values.map((value, n) => (
                <td key={series[n]!.name}>{value}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
