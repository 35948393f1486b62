/** Line charts with uPlot, in the page's colours: curves of one run, or of several laid over each other. */
import type { ComponentChildren } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type uPlot from 'uplot'
import type { Metric } from '../api'
import { dayMinute, NONE, sentence, short, words } from '../format'
import { Icon } from './icon'
import { ALONE, css, loneValue, spanOf, usePlot } from './use_plot'

const HEIGHT = 176
const RIGHT_PX = 18 // half of the widest label of the x axis, which is centred under the last point
const SERIES = 6 // colours --series-1 … --series-6

const colour = (index: number): string => `--series-${(index % SERIES) + 1}`

/** Points of several keys on one x axis: steps in order, null where a key has no value. */
export function align(points: Metric[], keys: string[]): uPlot.AlignedData {
    const rank = new Map(keys.map((key, index) => [key, index]))
    const mine = points.filter((point) => rank.has(point.key))
    const steps = [...new Set(mine.map((point) => point.step))].sort((a, b) => a - b)
    const place = new Map(steps.map((step, index) => [step, index]))
    const series = keys.map(() => new Array<number | null>(steps.length).fill(null))
    for (const point of mine) {
        if (typeof point.value === 'number' && Number.isFinite(point.value)) {
            series[rank.get(point.key)!]![place.get(point.step)!] = point.value
        }
    }
    return [steps, ...series]
}

/** How curves of several runs are laid over each other. */
export interface Overlay {
    /** What each key is called. */
    nameOf: (key: string) => string
    /** What the x axis is, its unit with it: "step", "time", "s since its start". */
    x: string
    isLog: boolean
    /** Charts of one name share the cross-hair. */
    group: string
}

const DASHES = [[], [6, 4], [2, 3], [8, 3, 2, 3]] // for more curves than there are colours

function options(width: number, keys: string[], over: Overlay | undefined, onCursor: (index: number | null) => void): uPlot.Options {
    const font = `12px ${css('--font')}`
    const axis = { stroke: css('--muted'), font, grid: { stroke: css('--grid'), width: 1 }, ticks: { show: false } }
    const label = (tick: number) => Number(tick.toPrecision(4)).toLocaleString('en', { maximumFractionDigits: 6 })
    // Throughput is judged from zero: its noise must not look like a storm.
    const y: uPlot.Scale = keys.every((key) => key.includes('per_second')) ? { range: { min: { soft: 0, mode: 1 }, max: { pad: 0.1 } } } : {}
    const isTime = over?.x === 'time'
    const xLabel = (tick: number) => (isTime ? dayMinute(tick) : Number.isInteger(tick) ? label(tick) : '')
    return {
        width,
        height: HEIGHT,
        padding: [8, RIGHT_PX, 0, 0],
        cursor: { points: { size: 7 }, drag: { x: true, y: false }, ...(over ? { sync: { key: over.group, setSeries: false } } : {}) },
        legend: { show: false },
        scales: { x: { time: false, range: spanOf(isTime ? ALONE.ms : ALONE.steps) }, y: over?.isLog ? { distr: 3 } : y },
        axes: [
            { ...axis, values: (_u, ticks) => ticks.map(xLabel), size: 26, ...(isTime ? { space: 96 } : {}) },
            { ...axis, values: (_u, ticks) => ticks.map((tick) => (typeof tick === 'number' ? label(tick) : '')), size: 48 },
        ],
        series: [
            {},
            ...keys.map((_key, i) => ({ stroke: css(colour(i)), width: 1.75, spanGaps: true, points: { show: loneValue, size: 7, fill: css(colour(i)) }, dash: DASHES[Math.floor(i / SERIES) % DASHES.length]! })),
        ],
        hooks: { setCursor: [(u) => onCursor(u.cursor.idx ?? null)] },
    }
}

const BY_PHASE = ['loss', 'accuracy'] // measured in training, and on validation data

/** In a chart called "Loss", "validation_loss" is "validation", and "loss" itself is "training"; else by its words. */
export function seriesName(key: string, title: string): string {
    const name = words(key)
    const rest = name.replace(title.toLowerCase(), '').replace(/\/$/, '').trim()
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
function ChartTable({ title, x, nameOf, keys, data }: { title: string; x: string; nameOf: (key: string) => string; keys: string[]; data: uPlot.AlignedData }) {
    const steps = data[0]
    const rows = Array.from({ length: Math.min(TABLE_ROWS, steps.length) }, (_, i) => steps.length - 1 - i)
    return (
        <div class="table-wrap chart-table" tabIndex={0} role="group" aria-label={`${title} as a table`}>
            <table class="dense">
                <thead>
                    <tr>
                        <th scope="col">{sentence(x)}</th>
                        {keys.map((key) => (
                            <th key={key} scope="col" class="num">
                                {nameOf(key)}
                            </th>
                        ))}
                    </tr>
                </thead>
                <tbody>
                    {rows.map((row) => (
                        <tr key={row}>
                            <td>{x === 'time' ? dayMinute(steps[row]) : steps[row]}</td>
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

export function Chart(props: { title: string; points: Metric[]; keys: string[]; over?: Overlay; window?: string; foot?: ComponentChildren }) {
    const { over } = props
    const x = over?.x ?? 'step'
    const nameOf = over?.nameOf ?? ((key: string) => seriesName(key, props.title))
    const [cursor, setCursor] = useState<number | null>(null)
    const [isTable, setTable] = useState(false)
    const data = useMemo(() => align(props.points, props.keys), [props.points, props.keys.join()])
    const host = usePlot(HEIGHT, data, `${props.keys.join()} ${x} ${over?.isLog}`, (width) => options(width, props.keys, over, setCursor))
    const step = data[0][cursor ?? data[0].length - 1]
    return (
        <figure class="panel chart-panel">
            <figcaption>
                <b>{props.title}</b>
                <span class="muted">
                    {x === 'time' ? dayMinute(step) : `${x} ${step ?? NONE}`}
                    {props.window && ` · ${props.window}`}
                </span>
                <button type="button" class="tbl" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
                    <Icon name="table" /> Table<span class="hidden"> of {props.title}</span>
                </button>
            </figcaption>
            <p class="legend">
                {props.keys.map((key, i) => (
                    <span key={key}>
                        <i class="sw line" style={{ background: `var(${colour(i)})` }} aria-hidden="true" />
                        {nameOf(key)} <b>{short(valueAt(data[i + 1] as (number | null)[], cursor))}</b>
                    </span>
                ))}
            </p>
            <div ref={host} role="img" aria-label={`${props.title} by ${x}`} hidden={isTable} />
            {isTable && <ChartTable title={props.title} x={x} nameOf={nameOf} keys={props.keys} data={data} />}
            {props.foot}
        </figure>
    )
}
