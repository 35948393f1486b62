/** Line charts with uPlot, in the page's colours. Redrawn on resize and when the theme changes. */
import { useMemo, useState } from 'preact/hooks'
import type uPlot from 'uplot'
import type { Metric } from '../api'
import { NONE, sentence, short, words } from '../format'
import { Icon } from './icon'
import { css, usePlot } from './use_plot'

const HEIGHT = 176
const RIGHT_PX = 18 // half of the widest label of the x axis, which is centred under the last point
const SERIES = 6 // colours --series-1 … --series-6

const colour = (index: number): string => `--series-${(index % SERIES) + 1}`

/** Points of several keys on one x axis: steps in order, null where a key has no value. */
export function align(points: Metric[], keys: string[]): uPlot.AlignedData {
    const mine = points.filter((point) => keys.includes(point.key))
    const steps = [...new Set(mine.map((point) => point.step))].sort((a, b) => a - b)
    const place = new Map(steps.map((step, index) => [step, index]))
    const series = keys.map(() => new Array<number | null>(steps.length).fill(null))
    for (const point of mine) {
        if (typeof point.value === 'number' && Number.isFinite(point.value)) {
            series[keys.indexOf(point.key)]![place.get(point.step)!] = point.value
        }
    }
    return [steps, ...series]
}

function options(width: number, keys: string[], onCursor: (index: number | null) => void): uPlot.Options {
    const font = `12px ${css('--font')}`
    const axis = { stroke: css('--muted'), font, grid: { stroke: css('--grid'), width: 1 }, ticks: { show: false } }
    const label = (tick: number) => Number(tick.toPrecision(4)).toLocaleString('en', { maximumFractionDigits: 6 })
    // Throughput is judged from zero: its noise must not look like a storm.
    const y: uPlot.Scale = keys.every((key) => key.includes('per_second')) ? { range: { min: { soft: 0, mode: 1 }, max: { pad: 0.1 } } } : {}
    return {
        width,
        height: HEIGHT,
        padding: [8, RIGHT_PX, 0, 0],
        cursor: { points: { size: 7 }, drag: { x: true, y: false } },
        legend: { show: false },
        scales: { x: { time: false }, y },
        axes: [
            { ...axis, values: (_u, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? label(tick) : '')), size: 26 },
            { ...axis, values: (_u, ticks) => ticks.map(label), size: 48 },
        ],
        series: [
            {},
            ...keys.map((_key, i) => ({ stroke: css(colour(i)), width: 1.75, spanGaps: true, points: { show: false } })),
        ],
        hooks: { setCursor: [(u) => onCursor(u.cursor.idx ?? null)] },
    }
}

const BY_PHASE = ['loss', 'accuracy'] // measured in training, and on validation data

/** In a chart called "Loss", "validation_loss" is "validation", and "loss" itself is "training"; else by its words. */
export function seriesName(key: string, title: string): string {
    const name = words(key)
    const rest = name.replace(title.toLowerCase(), '').trim()
    return rest !== '' ? rest : BY_PHASE.includes(key) ? 'training' : name
}

/** The value at the cursor, or the latest one. */
function valueAt(values: (number | null | undefined)[], index: number | null): number | null {
    for (let i = index ?? values.length - 1; i >= 0; i--) {
        const value = values[i]
        if (typeof value === 'number') {
            return value
        }
    }
    return null
}

const TABLE_ROWS = 200

/** The newest figures of a chart, as text. */
function ChartTable({ title, keys, data }: { title: string; keys: string[]; data: uPlot.AlignedData }) {
    const steps = data[0]
    const rows = Array.from({ length: Math.min(TABLE_ROWS, steps.length) }, (_, i) => steps.length - 1 - i)
    return (
        <div class="table-wrap chart-table" tabIndex={0} role="region" aria-label={`${title} as a table`}>
            <table class="dense">
                <thead>
                    <tr>
                        <th scope="col">Step</th>
                        {keys.map((key) => (
                            <th key={key} scope="col" class="num">
                                {seriesName(key, title)}
                            </th>
                        ))}
                    </tr>
                </thead>
                <tbody>
                    {rows.map((row) => (
                        <tr key={row}>
                            <td>{steps[row]}</td>
                            {keys.map((key, i) => (
                                <td key={key} class="num">
                                    {short(data[i + 1]?.[row])}
                                </td>
                            ))}
                        </tr>
                    ))}
                </tbody>
            </table>
        </div>
    )
}

export function Chart(props: { title: string; points: Metric[]; keys: string[] }) {
    const [cursor, setCursor] = useState<number | null>(null)
    const [isTable, setTable] = useState(false)
    const data = useMemo(() => align(props.points, props.keys), [props.points, props.keys.join()])
    const host = usePlot(HEIGHT, data, props.keys.join(), (width) => options(width, props.keys, setCursor))
    const step = data[0][cursor ?? data[0].length - 1]
    return (
        <figure class="panel chart-panel">
            <figcaption>
                <b>{sentence(props.title)}</b>
                <span class="muted">step {step ?? NONE}</span>
                <button type="button" class="tbl" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
                    <Icon name="table" /> Table<span class="hidden"> of {props.title}</span>
                </button>
            </figcaption>
            <p class="legend">
                {props.keys.map((key, i) => (
                    <span key={key}>
                        <i class="sw line" style={{ background: `var(${colour(i)})` }} aria-hidden="true" />
                        {seriesName(key, props.title)} <b>{short(valueAt(data[i + 1] as (number | null)[], cursor))}</b>
                    </span>
                ))}
            </p>
            <div ref={host} role="img" aria-label={`${props.title} by step`} hidden={isTable} />
            {isTable && <ChartTable title={props.title} keys={props.keys} data={data} />}
        </figure>
    )
}
