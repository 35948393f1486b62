/** The right edge of a column's head: dragged, or moved by the arrow keys, it sets the column's width. */
import { useRef } from 'preact/hooks'
import { keepWidths, WIDTH_MAX, WIDTH_MIN, widthsOf, type Widths } from '../state/widths'

const STEP_PX = 8

const clamp = (px: number) => Math.round(Math.min(WIDTH_MAX, Math.max(WIDTH_MIN, px)))

/** Every column as wide as it is now: then only the one that is set changes. */
function measured(head: HTMLElement): Record<string, number> {
    return Object.fromEntries([...head.parentElement!.children].map((one) => [(one as HTMLElement).dataset['column'] ?? '', clamp(one.getBoundingClientRect().width)]))
}

export function Grip({ table, id, name, px }: { table: string; id: string; name: string; px: number }) {
    const grip = useRef<HTMLSpanElement>(null)
    const drag = useRef<{ x: number; widths: Widths } | null>(null)
    const head = () => grip.current!.parentElement!
    const set = (widths: Widths, px: number) => keepWidths(table, { ...widthsOf(table), ...widths, [id]: clamp(px) })
    return (
        <span
            ref={grip}
            class="grip"
            role="separator"
            aria-orientation="vertical"
            tabIndex={0}
            aria-label={`Width of ${name || id}`}
            aria-valuemin={WIDTH_MIN}
            aria-valuemax={WIDTH_MAX}
            aria-valuenow={widthsOf(table)[id] ?? px}
            title="Drag, or ← →; a double click or Delete: all columns as they were"
            onPointerDown={(event) => {
                event.preventDefault()
                grip.current!.focus()
                grip.current!.setPointerCapture(event.pointerId)
                drag.current = { x: event.clientX, widths: measured(head()) }
            }}
            onPointerMove={(event) => drag.current && set(drag.current.widths, drag.current.widths[id]! + event.clientX - drag.current.x)}
            onPointerUp={() => (drag.current = null)}
            onPointerCancel={() => (drag.current = null)}
            onDblClick={() => keepWidths(table, {})}
            onKeyDown={(event) => {
                const by = event.key === 'ArrowRight' ? STEP_PX : event.key === 'ArrowLeft' ? -STEP_PX : 0
                if (by !== 0) {
                    const widths = measured(head())
                    set(widths, widths[id]! + by)
                } else if (event.key === 'Delete') {
                    keepWidths(table, {})
                } else {
                    return
                }
                event.preventDefault()
            }}
        />
    )
}
