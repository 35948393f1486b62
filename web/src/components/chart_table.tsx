/** A chart with its title, legend, and its figures as a table behind a button. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Icon } from './icon'

export function ChartWithTable(props: {
    title: string
    /** Unit, resolution and window. */
    window: ComponentChildren
    legend?: ComponentChildren
    /** Heads of the table, the first of what the rows are. */
    heads: readonly string[]
    rows: () => readonly (readonly (string | number)[])[]
    children: ComponentChildren
    foot?: ComponentChildren
}) {
    const [isTable, setTable] = useState(false)
    return (
        <figure class="panel chart-panel">
            <figcaption>
                <b>{props.title}</b>
                <span class="muted">{props.window}</span>
                <button type="button" class="tbl" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
                    <Icon name="table" /> Table<span class="hidden"> of {props.title}</span>
                </button>
            </figcaption>
            {props.legend && <p class="legend">{props.legend}</p>}
            {isTable ? (
                <div class="table-wrap chart-table" tabIndex={0} role="group" aria-label={`${props.title} as a table`}>
                    <table class="dense">
                        <thead>
                            <tr>
                                {props.heads.map((head, i) => (
                                    <th key={i} scope="col" class={i > 0 ? 'num' : ''}>
                                        {head}
                                    </th>
                                ))}
                            </tr>
                        </thead>
                        <tbody>
                            {props.rows().map((row, i) => (
                                <tr key={i}>
                                    {row.map((cell, k) => (
                                        <td key={k} class={k > 0 ? 'num' : ''}>
                                            {cell}
                                        </td>
                                    ))}
                                </tr>
                            ))}
                        </tbody>
                    </table>
                </div>
            ) : (
                props.children
            )}
            {props.foot}
        </figure>
    )
}
