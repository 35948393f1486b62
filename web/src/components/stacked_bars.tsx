/** Bars by day or month, each laid of parts: who used how much. With its table. */
import { useState } from 'preact/hooks'
import { short } from '../format'
import { Icon } from './icon'

export interface Part {
    name: string
    /** A token: "--own-1". */
    colour: string
    values: readonly number[]
}

/** The next number whose half is a short one, too. */
function roundUp(value: number): number {
    const unit = 10 ** Math.floor(Math.log10(value))
    return [1, 2, 4, 5, 6, 8, 10].map((one) => one * unit).find((one) => one >= value * 0.9999) ?? value
}

const LABELS = 6 // below the bars; the others have theirs on hover

export function StackedBars(props: { title: string; window: string; labels: readonly string[]; parts: readonly Part[]; unit: string; top?: number | undefined }) {
    const { labels, parts } = props
    const [isTable, setTable] = useState(false)
    const totals = labels.map((_, i) => parts.reduce((sum, part) => sum + (part.values[i] ?? 0), 0))
    const top = roundUp(Math.max(props.top ?? 0, ...totals, 1e-9))
    const every = Math.ceil(labels.length / LABELS)
    const textOf = (i: number) => `${labels[i]}: ${short(totals[i])} ${props.unit}${parts.map((part) => (part.values[i] ? `, ${part.name} ${short(part.values[i])}` : '')).join('')}`
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
                {parts.map((part) => (
                    <span key={part.name}>
                        <i class="sw" style={{ background: `var(${part.colour})` }} aria-hidden="true" />
                        {part.name}
                    </span>
                ))}
            </p>
            {isTable ? (
                <div class="table-wrap chart-table" tabIndex={0} role="group" aria-label={`${props.title} as a table`}>
                    <table class="dense">
                        <thead>
                            <tr>
                                <th scope="col">When</th>
                                {parts.map((part) => (
                                    <th key={part.name} scope="col" class="num">
                                        {part.name}
                                    </th>
                                ))}
                                <th scope="col" class="num">
                                    all
                                </th>
                            </tr>
                        </thead>
                        <tbody>
                            {labels.map((label, i) => (
                                <tr key={i}>
                                    <td>{label}</td>
                                    {parts.map((part) => (
                                        <td key={part.name} class="num">
                                            {short(part.values[i] ?? 0)}
                                        </td>
                                    ))}
                                    <td class="num">{short(totals[i])}</td>
                                </tr>
                            ))}
                        </tbody>
                    </table>
                </div>
            ) : (
                <div class="stacked-plot">
                <div class="bars-axis muted" aria-hidden="true">
                    {[top, top / 2, 0].map((value) => (
                        <small key={value}>
                            {short(value)} {value === top && props.unit}
                        </small>
                    ))}
                </div>
                <div class="stacked-bars" role="img" aria-label={`${props.title}, ${props.window}`}>
                    {labels.map((label, i) => (
                        <div key={i} class="column" title={textOf(i)}>
                            <div class="parts">
                                {parts.map((part) => (
                                    <i key={part.name} style={{ height: `${(100 * (part.values[i] ?? 0)) / top}%`, background: `var(${part.colour})` }} />
                                ))}
                            </div>
                            <small class="muted">{i % every === 0 && labels.length - i > every / 2 ? label : ''}</small>
                        </div>
                    ))}
                </div>
                </div>
            )}
        </figure>
    )
}
