/**
 * Parallel coordinates: an axis for each parameter and measure, a line for each run. A drag along an axis chooses the lines
 * that pass there; a click on the axis lets it go. The same as a table behind a button, for readers and for copying.
 */
import { useMemo, useRef, useState } from 'preact/hooks'
import { NONE, short } from '../format'
import { ChartWithTable } from './chart_table'

export interface Axis {
    name: string
    values: readonly (number | string | null | undefined)[] // of each line
}

export interface Strand {
    id: string
    name: string
    /** A class that gives it a colour; absent: it is one of many. */
    tone?: string | undefined
}

const [WIDTH, HEIGHT, TOP, LEFT, RIGHT] = [1120, 208, 28, 24, 72]
const WORDS_MAX = 12 // different values that have a place of their own each
const TABLE_ROWS = 200
const CLICK = 0.02 // a drag so short lets the axis go

type Scale = { at: (value: Axis['values'][number]) => number | null; marks: [number, string][] }

/** Where each value stands, 0 (below) to 1; few values, and words, have a place each. */
export function scaleOf(axis: Axis): Scale {
    const there = axis.values.filter((value): value is number | string => value !== null && value !== undefined && value !== '')
    const isNumber = there.every((value) => !Number.isNaN(Number(value)))
    const different = [...new Set(there.map(String))].sort((a, b) => (isNumber ? Number(a) - Number(b) : a.localeCompare(b, undefined, { numeric: true })))
    if (!isNumber || different.length <= 4) {
        const step = 1 / Math.max(1, different.length - 1)
        const every = Math.ceil(different.length / WORDS_MAX)
        const place = new Map(different.map((value, i) => [value, different.length === 1 ? 0.5 : i * step]))
        return { at: (value) => place.get(String(value)) ?? null, marks: different.flatMap((value, i): [number, string][] => (i % every === 0 ? [[place.get(value)!, value]] : [])) }
    }
    const numbers = there.map(Number)
    const [low, high] = [numbers.reduce((a, b) => Math.min(a, b)), numbers.reduce((a, b) => Math.max(a, b))]
    const isLog = low > 0 && high / low >= 100
    const of = (value: number) => (isLog ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low || 1))
    const middle = isLog ? Math.sqrt(low * high) : (low + high) / 2
    return { at: (value) => (value === null || value === undefined || value === '' ? null : of(Number(value))), marks: [low, middle, high].map((value) => [of(value), short(value)]) }
}

export function Parallel(props: { title: string; window: string; axes: readonly Axis[]; strands: readonly Strand[]; onChoose?: (ids: string[]) => void }) {
    const { axes, strands } = props
    const [ranges, setRanges] = useState<Record<string, [number, number]>>({})
    const drag = useRef<{ name: string; from: number } | null>(null)
    const svg = useRef<SVGSVGElement>(null)
    const scales = useMemo(() => axes.map(scaleOf), [axes])
    const x = (i: number) => LEFT + (i * (WIDTH - LEFT - RIGHT)) / Math.max(1, axes.length - 1)
    const y = (part: number) => HEIGHT - 8 - part * (HEIGHT - TOP - 16)
    const lines = useMemo(
        () =>
            strands.map((_one, k) => {
                const points = scales.flatMap((scale, i): string[] => {
                    const at = scale.at(axes[i]!.values[k])
                    return at === null ? [] : [`${x(i).toFixed(1)} ${y(at).toFixed(1)}`]
                })
                return points.length > 1 ? `M${points.join('L')}` : ''
            }),
        [axes, strands],
    )
    const isIn = (k: number) =>
        axes.every((axis, i) => {
            const range = ranges[axis.name]
            const at = range && scales[i]!.at(axis.values[k])
            return range === undefined || (at !== null && at !== undefined && at >= range[0] && at <= range[1])
        })
    const hasRange = Object.keys(ranges).length > 0
    const inside = strands.map((_one, k) => isIn(k))
    const partAt = (event: PointerEvent) => {
        const box = svg.current!.getBoundingClientRect()
        const at = ((event.clientY - box.top) / box.height) * HEIGHT
        return Math.min(1.02, Math.max(-0.02, (HEIGHT - 8 - at) / (HEIGHT - TOP - 16)))
    }
    const move = (event: PointerEvent) => {
        if (drag.current) {
            const to = partAt(event)
            setRanges({ ...ranges, [drag.current.name]: [Math.min(drag.current.from, to), Math.max(drag.current.from, to)] })
        }
    }
    const drop = (event: PointerEvent) => {
        if (drag.current && Math.abs(partAt(event) - drag.current.from) < CLICK) {
            const { [drag.current.name]: _gone, ...rest } = ranges
            setRanges(rest)
        }
        drag.current = null
    }
    const found = strands.filter((_one, k) => inside[k])
    return (
        <ChartWithTable
            title={props.title}
            window={props.window}
            heads={['Run', ...axes.map((axis) => axis.name)]}
            rows={() => strands.flatMap((one, k) => (inside[k] ? [[one.name, ...axes.map((axis) => cellOf(axis.values[k]))]] : [])).slice(0, TABLE_ROWS)}
            // There at any time: nothing moves under the pointer that chooses.
            legend={
                <>
                    <span>{hasRange ? `${found.length} of ${strands.length} pass` : 'drag on an axis to choose'}</span>
                    {props.onChoose && (
                        <button type="button" class="button small" disabled={!hasRange || found.length === 0} onClick={() => props.onChoose!(found.map((one) => one.id))}>
                            Show these
                        </button>
                    )}
                    <button type="button" class="button small" disabled={!hasRange} onClick={() => setRanges({})}>
                        Let go
                    </button>
                </>
            }
        >
            <div class="table-wrap">
                <svg ref={svg} class="parallel" style={{ '--faint': Math.max(0.06, Math.min(0.25, 12 / strands.length)) }} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${props.title}, ${axes.map((axis) => axis.name).join(', ')}`} onPointerMove={move} onPointerUp={drop}>
                    {/* Those with a colour last, above the others. */}
                    {[false, true].map((isToned) =>
                        strands.map((one, k) =>
                            Boolean(one.tone) === isToned && lines[k] ? (
                                <path key={one.id} d={lines[k]} class={`${one.tone ?? 'plain'} ${inside[k] ? '' : 'out'}`}>
                                    <title>{one.name}</title>
                                </path>
                            ) : null,
                        ),
                    )}
                    {axes.map((axis, i) => {
                        const range = ranges[axis.name]
                        return (
                            <g key={axis.name}>
                                <path class="axis" d={`M${x(i)} ${y(0)}V${y(1)}`} />
                                {scales[i]!.marks.map(([at, text]) => (
                                    <text key={text} x={x(i) + 6} y={y(at) + (at > 0.5 ? 12 : -4)}>
                                        {text.length > 14 ? `${text.slice(0, 13)}…` : text}
                                    </text>
                                ))}
                                <text class="name" x={x(i)} y="12" text-anchor={i === 0 ? 'start' : 'middle'}>
                                    {axis.name.length > 24 ? `…${axis.name.slice(-23)}` : axis.name}
                                </text>
                                {range && <rect class="range" x={x(i) - 6} width="12" y={y(range[1])} height={Math.max(1, y(range[0]) - y(range[1]))} />}
                                <rect
                                    class="catch"
                                    x={x(i) - 14}
                                    width="28"
                                    y={TOP - 8}
                                    height={HEIGHT - TOP + 8}
                                    onPointerDown={(event) => {
                                        drag.current = { name: axis.name, from: partAt(event) }
                                        svg.current!.setPointerCapture(event.pointerId)
                                    }}
                                />
                            </g>
                        )
                    })}
                </svg>
            </div>
        </ChartWithTable>
    )
}

const cellOf = (value: Axis['values'][number]) => (typeof value === 'number' ? short(value) : value || NONE)
