/** Decisions over time, stacked by verdict: a bar for each part of the window; drag to choose a time; the figures as a table. */
import { useRef, useState } from 'preact/hooks'
import type { DecisionSummary } from '../api'
import { clockTime, millis, short } from '../format'
import { localText } from './time_range'
import { setQuery } from '../state/route'
import { Icon } from './icon'
import { VERDICTS } from './state'

type Bucket = NonNullable<DecisionSummary['buckets']>[number]
const ORDER = ['grant', 'label', 'unknown', 'deny', 'error'] as const
const COLOUR = { grant: 'c3', label: 'c1', unknown: 'c2', deny: 'c5', error: 'c4' } as const
const HEIGHT = 72

const totalOf = (one: Bucket) => ORDER.reduce((sum, verdict) => sum + one[verdict], 0)

function Bars({ buckets, top }: { buckets: readonly Bucket[]; top: number }) {
    return (
        <>
            {buckets.map((one, i) => {
                let y = HEIGHT
                return ORDER.map((verdict) => {
                    const height = (one[verdict] / top) * HEIGHT
                    y -= height
                    return height > 0 && <rect key={`${i}${verdict}`} class={`f ${COLOUR[verdict]}`} x={i + 0.06} y={y} width={0.88} height={height} />
                })
            })}
        </>
    )
}

export function VerdictChart({ title, buckets, window: span }: { title: string; buckets: readonly Bucket[]; window: string }) {
    const [isTable, setTable] = useState(false)
    const [drag, setDrag] = useState<[number, number] | null>(null)
    const host = useRef<SVGSVGElement>(null)
    const [first, second] = [millis(buckets[0]!.time_ms), millis(buckets[1]!.time_ms)]
    const stepMs = second - first
    const rates = buckets.map((one) => (totalOf(one) * 1000) / stepMs)
    const top = Math.max(...buckets.map(totalOf), 1)
    const at = (event: PointerEvent) => {
        const box = host.current!.getBoundingClientRect()
        return Math.min(buckets.length, Math.max(0, ((event.clientX - box.left) / box.width) * buckets.length))
    }
    const choose = () => {
        if (drag && Math.abs(drag[1] - drag[0]) >= 1) {
            const [from, to] = [Math.floor(Math.min(...drag)), Math.ceil(Math.max(...drag))]
            setQuery({ from: localText(first + from * stepMs), to: localText(first + to * stepMs) })
        }
        setDrag(null)
    }
    return (
        <section class="panel chart-panel" aria-label={title}>
            <figure>
                <figcaption>
                    <b>{title}</b>
                    <span class="muted">
                        means of {short(stepMs / 1000)} s · {span} · drag to choose a time
                    </span>
                    <button type="button" class="tbl" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
                        <Icon name="table" /> Table
                    </button>
                </figcaption>
                <p class="legend">
                    {ORDER.map((verdict) => (
                        <span key={verdict} class={COLOUR[verdict]}>
                            <i class="sw" />
                            {VERDICTS[verdict]!.label.toLowerCase()}
                        </span>
                    ))}
                    <span class="push">
                        highest <b>{short(Math.max(...rates))}</b>/s
                    </span>
                </p>
                {isTable ? (
                    <div class="table-wrap chart-table" tabIndex={0} role="group" aria-label={`${title} as a table`}>
                        <table class="dense">
                            <thead>
                                <tr>
                                    <th scope="col">From</th>
                                    {ORDER.map((verdict) => (
                                        <th key={verdict} scope="col" class="num">
                                            {VERDICTS[verdict]!.label}
                                        </th>
                                    ))}
                                </tr>
                            </thead>
                            <tbody>
                                {buckets.map((one) => (
                                    <tr key={String(one.time_ms)}>
                                        <td>{clockTime(one.time_ms)}</td>
                                        {ORDER.map((verdict) => (
                                            <td key={verdict} class="num">
                                                {one[verdict]}
                                            </td>
                                        ))}
                                    </tr>
                                ))}
                            </tbody>
                        </table>
                    </div>
                ) : (
                    <>
                        <svg
                            ref={host}
                            class="chart bars"
                            viewBox={`0 0 ${buckets.length} ${HEIGHT}`}
                            preserveAspectRatio="none"
                            role="img"
                            aria-label={`${title} by verdict, ${span}`}
                            onPointerDown={(event) => {
                                host.current!.setPointerCapture(event.pointerId)
                                setDrag([at(event), at(event)])
                            }}
                            onPointerMove={(event) => drag && setDrag([drag[0], at(event)])}
                            onPointerUp={choose}
                        >
                            <Bars buckets={buckets} top={top} />
                            {drag && <rect class="drag" x={Math.min(...drag)} y={0} width={Math.abs(drag[1] - drag[0])} height={HEIGHT} />}
                        </svg>
                        <p class="row small muted chart-ends" aria-hidden="true">
                            <span>{clockTime(buckets[0]!.time_ms).slice(0, 5)}</span>
                            <span class="push">{clockTime(new Date(first + buckets.length * stepMs).toISOString()).slice(0, 5)}</span>
                        </p>
                    </>
                )}
            </figure>
        </section>
    )
}
