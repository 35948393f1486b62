/**
 * Figures over time with uPlot: as lines, or laid on each other as areas. Each has its table; the legend shows the figures
 * under the cross-hair, or the latest. Gaps stay gaps.
 */
import { useMemo, useState } from 'preact/hooks'
import type uPlot from 'uplot'
import { dayMinute, NONE, short } from '../format'
import { Icon } from './icon'
import { ALONE, css, loneValue, spanOf, usePlot } from './use_plot'

export interface Line {
    name: string
    /** Null: nobody knows, or there was none. */
    values: readonly (number | null)[]
    /** A token: "--own-1", "--series-2". */
    colour: string
    isDashed?: boolean
}

const RIGHT_PX = 18 // half of the widest label of the x axis
const TABLE_ROWS = 200

/** Each with all below it: what stands above is drawn first, and covered by what is below. */
function stacked(lines: readonly Line[]): (number | null)[][] {
    const sums: (number | null)[][] = []
    for (const line of lines) {
        const below = sums.at(-1)
        sums.push(line.values.map((value, i) => (value === null && (below?.[i] ?? null) === null ? null : (below?.[i] ?? 0) + (value ?? 0))))
    }
    return sums
}

function options(width: number, height: number, lines: readonly Line[], isStacked: boolean, top: number | undefined, within: readonly [number, number] | undefined, onCursor: (index: number | null) => void): uPlot.Options {
    const font = `12px ${css('--font')}`
    const axis = { stroke: css('--muted'), font, grid: { stroke: css('--grid'), width: 1 }, ticks: { show: false } }
    const drawn = isStacked ? [...lines].reverse() : lines
    return {
        width,
        height,
        padding: [8, RIGHT_PX, 0, 0],
        cursor: { points: { show: !isStacked, size: 7 }, drag: { x: false, y: false } },
        legend: { show: false },
        scales: { x: { time: true, range: within ? () => [within[0] / 1000, within[1] / 1000] : spanOf(ALONE.seconds) }, y: { range: (_u, _min, max) => [0, Math.max(top ?? 0, max, 1) * 1.05] } },
        axes: [
            { ...axis, size: 26, space: 96, values: (_u, ticks) => ticks.map((tick) => dayMinute(tick * 1000).replace(/^\w+ (\d+ \w+ )/, '$1')) },
            { ...axis, size: 48, values: (_u, ticks) => ticks.map((tick) => short(tick)) },
        ],
        series: [
            {},
            ...drawn.map((line) => ({
                stroke: css(line.colour),
                width: isStacked ? 1 : 1.75,
                spanGaps: false,
                points: { show: loneValue, size: 7, fill: css(line.colour) },
                ...(isStacked ? { fill: css(line.colour) } : {}),
                ...(line.isDashed ? { dash: [4, 4] } : {}),
            })),
        ],
        hooks: { setCursor: [(u) => onCursor(u.cursor.idx ?? null)] },
    }
}

function latest(values: readonly (number | null)[], index: number | null): number | null {
    return values[index ?? values.length - 1] ?? null
}

export function TimeChart(props: {
    title: string
    /** Unit, resolution and window: "devices · 15 min means · last 24 h". */
    window: string
    /** Milliseconds since 1970, in order. */
    times: readonly number[]
    lines: readonly Line[]
    isStacked?: boolean
    /** The time that is asked for, in milliseconds since 1970: the axis shows all of it. Absent: from the first sample to the last. */
    within?: readonly [number, number]
    /** Where the scale ends at least: what there is at all. */
    top?: number
    heightPx?: number
}) {
    const { times, lines, isStacked = false, heightPx = 148 } = props
    const [cursor, setCursor] = useState<number | null>(null)
    const [isTable, setTable] = useState(false)
    const data = useMemo<uPlot.AlignedData>(
        () => [times.map((time) => time / 1000), ...(isStacked ? stacked(lines).reverse() : lines.map((line) => [...line.values]))],
        [times, lines],
    )
    const shape = `${lines.map((line) => line.name + line.colour).join()} ${props.top ?? ''} ${Math.min(2, times.length)} ${props.within?.join() ?? ''}`
    const host = usePlot(heightPx, data, shape, (width) => options(width, heightPx, lines, isStacked, props.top, props.within, setCursor))
    const at = times[cursor ?? times.length - 1]
    return (
        <figure class="panel chart-panel">
            <figcaption>
                <b>{props.title}</b>
                <span class="muted">{props.window}</span>
                <button type="button" class="tbl" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
                    <Icon name="table" /> Table<span class="hidden"> of {props.title}</span>
                </button>
            </figcaption>
            <p class="legend">
                {lines.map((line) => (
                    <span key={line.name}>
                        <i class={`sw ${isStacked ? '' : 'line'}`} style={{ background: `var(${line.colour})` }} aria-hidden="true" />
                        {line.name} <b>{short(latest(line.values, cursor))}</b>
                    </span>
                ))}
                <span class="muted">{at === undefined ? NONE : `at ${dayMinute(at)}`}</span>
            </p>
            {times.length === 0 && <p class="quiet">No figures yet.</p>}
            <div ref={host} role="img" aria-label={`${props.title}, ${props.window}`} hidden={isTable || times.length === 0} />
            {isTable && times.length > 0 && (
                <div class="table-wrap chart-table" tabIndex={0} role="group" aria-label={`${props.title} as a table`}>
                    <table class="dense">
                        <thead>
                            <tr>
                                <th scope="col">Time</th>
                                {lines.map((line) => (
                                    <th key={line.name} scope="col" class="num">
                                        {line.name}
                                    </th>
                                ))}
                            </tr>
                        </thead>
                        <tbody>
                            {times.slice(-TABLE_ROWS).map((time, i) => {
                                const row = Math.max(0, times.length - TABLE_ROWS) + i
                                return (
                                    <tr key={time}>
                                        <td>{dayMinute(time)}</td>
                                        {lines.map((line) => (
                                            <td key={line.name} class="num">
                                                {short(line.values[row])}
                                            </td>
                                        ))}
                                    </tr>
                                )
                            })}
                        </tbody>
                    </table>
                </div>
            )}
        </figure>
    )
}
