/** Curves of many runs as a band for each group: the median, and round it where half of them are, or all. */
import type { ComponentChildren } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type uPlot from 'uplot'
import type { Run } from '../api'
import { dayMinute, NONE, sentence, short } from '../format'
import { href } from '../state/route'
import { placesOf, spreadOf, type Point, type Reach, type Spread } from '../state/bands'
import { ChartWithTable } from './chart_table'
import { ALONE, css, loneValue, spanOf, usePlot } from './use_plot'

const HEIGHT = 176
const TABLE_ROWS = 200

export interface BandGroup {
    name: string
    runs: readonly Run[]
    /** Of each of its runs, in their order. */
    curves: readonly (readonly Point[])[]
}

const colourOf = (i: number) => `--series-${i + 1}`

function options(width: number, n: number, x: string, isLog: boolean, onCursor: (index: number | null) => void): uPlot.Options {
    const axis = { stroke: css('--muted'), font: `12px ${css('--font')}`, grid: { stroke: css('--grid'), width: 1 }, ticks: { show: false } }
    const label = (tick: number) => Number(tick.toPrecision(4)).toLocaleString('en', { maximumFractionDigits: 6 })
    const groups = Array.from({ length: n }, (_, i) => css(colourOf(i)))
    const edge = { width: 0, points: { show: false } }
    return {
        width,
        height: HEIGHT,
        padding: [8, 18, 0, 0],
        cursor: { points: { show: false }, drag: { x: true, y: false }, sync: { key: 'compare', setSeries: false } },
        legend: { show: false },
        scales: { x: { time: false, range: spanOf(x === 'time' ? ALONE.ms : ALONE.steps) }, y: isLog ? { distr: 3 } : {} },
        axes: [
            { ...axis, values: (_u, ticks) => ticks.map((tick) => (x === 'time' ? dayMinute(tick) : label(tick))), size: 26, ...(x === 'time' ? { space: 96 } : {}) },
            { ...axis, values: (_u, ticks) => ticks.map((tick) => (typeof tick === 'number' ? label(tick) : '')), size: 48 },
        ],
        // Of each group: the band's upper edge, its lower one, and the median above both.
        series: [{}, ...groups.flatMap((stroke) => [edge, edge, { stroke, width: 2, points: { show: loneValue, size: 7, fill: stroke } }])],
        bands: groups.map((stroke, i) => ({ series: [3 * i + 1, 3 * i + 2] as [number, number], fill: `${stroke}33` })),
        hooks: { setCursor: [(u) => onCursor(u.cursor.idx ?? null)] },
    }
}

function Plot({ title, x, isLog, data, n, onCursor }: { title: string; x: string; isLog: boolean; data: uPlot.AlignedData; n: number; onCursor: (index: number | null) => void }) {
    const host = usePlot(HEIGHT, data, `${n} ${x} ${isLog}`, (width) => options(width, n, x, isLog, onCursor))
    return <div ref={host} role="img" aria-label={`${title} by ${x}, ${n === 1 ? 'a band' : `${n} bands`}`} />
}

/** At the cursor, or where the group was last. */
function spreadAt(spreads: readonly Spread[], index: number | null): Spread | undefined {
    return index === null ? [...spreads].reverse().find((one) => one.median !== null) : spreads[index]
}

export function Bands(props: { title: string; groups: readonly BandGroup[]; x: string; reach: Reach; isLog: boolean; window: string; foot?: ComponentChildren }) {
    const { groups, x, reach, isLog } = props
    const [cursor, setCursor] = useState<number | null>(null)
    const { places, spreads, data } = useMemo(() => {
        const places = placesOf(groups.flatMap((group) => group.curves))
        const spreads = groups.map((group) => spreadOf(group.curves, places, reach))
        const positive = (value: number | null) => (isLog && (value ?? 0) <= 0 ? null : value)
        return { places, spreads, data: [places, ...spreads.flatMap((one) => [one.map((it) => positive(it.high)), one.map((it) => positive(it.low)), one.map((it) => positive(it.median))])] as uPlot.AlignedData }
    }, [groups, reach, isLog])
    const [lower, upper] = reach === 'range' ? ['least', 'greatest'] : ['lower quartile', 'upper quartile']
    const at = places[cursor ?? places.length - 1]
    const xText = (value: number | undefined) => (value === undefined ? NONE : x === 'time' ? dayMinute(value) : Number(value.toFixed(2)).toString())
    const named = (group: BandGroup, head: string) => (groups.length > 1 ? `${group.name}: ${head}` : head)
    return (
        <ChartWithTable
            title={props.title}
            foot={props.foot}
            window={[x === 'time' ? xText(at) : `${x} ${xText(at)}`, `median and ${reach === 'range' ? 'least to greatest' : 'quartiles'} of ${groups.reduce((sum, one) => sum + one.runs.length, 0)} runs`, props.window].filter(Boolean).join(' · ')}
            heads={[sentence(x), ...groups.flatMap((group) => ['median', lower!, upper!].map((head) => named(group, head)))]}
            rows={() => places.map((place, i) => [xText(place), ...spreads.flatMap((one) => [short(one[i]!.median), short(one[i]!.low), short(one[i]!.high)])]).reverse().slice(0, TABLE_ROWS)}
            legend={groups.map((group, i) => {
                const spread = spreadAt(spreads[i]!, cursor)
                return (
                    <span key={group.name}>
                        <i class="sw line" style={{ background: `var(${colourOf(i)})` }} aria-hidden="true" />
                        {group.name} <b>{short(spread?.median)}</b> {short(spread?.low)} to {short(spread?.high)}
                    </span>
                )
            })}
        >
            <Plot title={props.title} x={x} isLog={isLog} data={data} n={groups.length} onCursor={setCursor} />
            <details class="band-runs small">
                <summary>Runs of the {groups.length === 1 ? 'band' : 'bands'}, with their last values</summary>
                {groups.map((group, i) => (
                    <ul key={group.name} aria-label={group.name}>
                        {group.runs.map((run, k) => (
                            <li key={run.id}>
                                <i class="sw" style={{ background: `var(${colourOf(i)})` }} aria-hidden="true" /> <a href={href(['runs', run.id])}>{run.name}</a> {short(group.curves[k]?.at(-1)?.[1])}
                            </li>
                        ))}
                    </ul>
                ))}
            </details>
        </ChartWithTable>
    )
}
