/**
 * Rows of one height, scrolled with the page: only those in view, and a few around them, are there, so that 100,000 scroll
 * as one does. Sorted by a head (?sort=key or -key), opened by a click or by j, k and Enter. On a phone a row has two lines.
 * Where columns have widths of their own, a drag at a head's edge sets them.
 */
import { Component, type ComponentChildren } from 'preact'
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { onKeys } from '../state/keys'
import { go, hrefWith, param } from '../state/route'
import { Heading, type Rows } from '../state/rows'
import { widthsOf } from '../state/widths'
import { Grip } from './grip'

const AROUND = 4
const STEP = 8 // rows come and go so many at a time: most frames of a scroll then change nothing
const AT_LEAST = 14
const PHONE = window.matchMedia('(max-width: 760px)')
const PHONE_ROW_PX = 56

export interface Column<T> {
    id: string
    name: string
    render: (row: T) => ComponentChildren
    /** What it is sorted by; absent: it is not. */
    sort?: (row: T) => string | number
    isNumber?: boolean
    /** What is best is the greatest: the first click on the head sorts from there. */
    isBestLast?: boolean
    width?: string
    /** Whether a phone shows it, and where: the name, the state at the right, the rest below; acts at the edge. */
    phone?: 'name' | 'state' | 'more' | 'acts'
}

function compare(a: string | number, b: string | number): number {
    return typeof a === 'number' && typeof b === 'number' ? (a || 0) - (b || 0) : String(a).localeCompare(String(b), undefined, { numeric: true })
}

/** The row that it is, if it is one. */
const rowOf = <T,>(row: T | Heading | undefined): T | undefined => (row instanceof Heading ? undefined : row)

/** In the order that the address asks for; without one, as they come. */
function useSorted<T>(rows: Rows<T>, columns: readonly Column<T>[], isInOrder: boolean): Rows<T> {
    const wanted = param('sort')
    return useMemo(() => {
        const by = columns.find((column) => column.id === wanted.replace(/^-/, ''))?.sort
        if (by === undefined || isInOrder) {
            return rows
        }
        const sign = wanted.startsWith('-') ? -1 : 1
        return rows.flatMap((row) => rowOf(row) ?? []).sort((a, b) => sign * compare(by(a), by(b)))
    }, [rows, wanted])
}

function Head<T>({ column, table, width }: { column: Column<T>; table: string | undefined; width: string | undefined }) {
    const current = param('sort')
    const isSorted = current.replace(/^-/, '') === column.id
    const [first, second] = column.isBestLast ? [`-${column.id}`, column.id] : [column.id, `-${column.id}`]
    const next = current === first ? second : isSorted ? '' : first
    return (
        <th
            scope="col"
            class={column.isNumber ? 'num' : ''}
            data-column={column.id}
            style={{ width }}
            aria-sort={isSorted ? (current.startsWith('-') ? 'descending' : 'ascending') : undefined}
        >
            {column.sort ? (
                <a href={hrefWith({ sort: next })} title={`Sort by ${column.name.toLowerCase()}`}>
                    {column.name}
                    {isSorted && <span class="sort" aria-hidden="true">{current.startsWith('-') ? ' ↓' : ' ↑'}</span>}
                </a>
            ) : (
                column.name || <span class="hidden">{column.id}</span>
            )}
            {table && <Grip table={table} id={column.id} name={column.name} px={parseInt(width ?? column.width ?? '180')} />}
        </th>
    )
}

interface RowProps<T> {
    row: T
    id: string
    columns: readonly Column<T>[]
    class: string
    height: number
    index: number
    isChosen: boolean
    onOpen: (row: T, event: MouseEvent) => void
}

/** Drawn again when it is another row, or what its cells read has changed: not because the list was scrolled. */
class Row<T> extends Component<RowProps<T>> {
    override shouldComponentUpdate(next: RowProps<T>, state: unknown): boolean {
        return state !== this.state || (Object.keys(next) as (keyof RowProps<T>)[]).some((key) => next[key] !== this.props[key])
    }

    render({ row, id, columns, height, index, isChosen, onOpen, ...rest }: RowProps<T>) {
        return (
            <tr data-row={id} class={rest.class} style={{ height: `${height}px` }} aria-rowindex={index} aria-selected={isChosen ? 'true' : undefined} onClick={(event) => onOpen(row, event)}>
                {columns.map((column) => (
                    <td key={column.id} class={`${column.isNumber ? 'num' : ''} phone-${column.phone ?? 'none'}`} data-name={column.name.toLowerCase() || undefined}>
                        {column.render(row)}
                    </td>
                ))}
            </tr>
        )
    }
}

export function Table<T>(props: {
    label: string
    rows: Rows<T>
    /** The server has put them into the order that the address asks for. */
    isInOrder?: boolean
    columns: readonly Column<T>[]
    keyOf: (row: T) => string
    /** Where a row leads; its name is the link. */
    hrefOf?: (row: T) => string
    chosen?: string | undefined // key of the row that a drawer shows
    rowPx?: number
    isDense?: boolean
    classOf?: (row: T) => string
    /** All columns have widths, which people may set: the name under which a browser keeps them. */
    widths?: string
    /** Narrower than this it scrolls sideways; where there are widths, they say it. */
    minPx?: number
    /** What a heading between rows says, and where it leads: the same list with its rows folded, or not. */
    heading?: (one: Heading) => { address: string; content: ComponentChildren }
    /** Told which rows are in view, or nearly. */
    onRange?: (first: number, last: number) => void
    /** A key while the cursor stands on a row; returns whether it took it. */
    onKey?: (key: string, row: T) => boolean
}) {
    const rows = useSorted(props.rows, props.columns, props.isInOrder ?? false)
    const body = useRef<HTMLTableSectionElement>(null)
    const [isPhone, setPhone] = useState(PHONE.matches)
    const [[first, last], setRange] = useState<[number, number]>([0, 30])
    const [cursor, setCursor] = useState(-1)
    const height = isPhone ? PHONE_ROW_PX : (props.rowPx ?? (props.isDense ? 28 : 36))
    const latest = useRef({ rows, height, cursor, props })
    latest.current = { rows, height, cursor, props }
    const look = () => {
        const top = body.current?.getBoundingClientRect().top ?? 0
        const from = Math.max(0, STEP * Math.floor((Math.floor(-top / latest.current.height) - AROUND) / STEP))
        const to = Math.max(from + AT_LEAST, STEP * Math.ceil((Math.ceil((window.innerHeight - top) / latest.current.height) + AROUND) / STEP))
        setRange((old) => (old[0] === from && old[1] === to ? old : [from, to]))
        latest.current.props.onRange?.(from, to)
    }
    useLayoutEffect(look, [rows, height])
    useEffect(() => {
        const onWidth = () => setPhone(PHONE.matches)
        window.addEventListener('scroll', look, { passive: true })
        window.addEventListener('resize', look)
        PHONE.addEventListener('change', onWidth)
        const stopKeys = onKeys((key) => {
            const { rows, cursor, props } = latest.current
            if (key === 'j' || key === 'k') {
                const next = Math.min(rows.length - 1, Math.max(0, cursor + (key === 'j' ? 1 : -1)))
                setCursor(next)
                latest.current.cursor = next // before it is drawn: a key that follows is about this row
                body.current?.querySelector(`[aria-rowindex="${next + 2}"]`)?.scrollIntoView({ block: 'nearest' })
                return true
            }
            const at = rows[cursor]
            const row = rowOf(at)
            const address = at instanceof Heading ? props.heading?.(at).address : row !== undefined ? props.hrefOf?.(row) : undefined
            if (key === 'Enter' && address !== undefined) {
                go(address)
                return true
            }
            return row !== undefined && (props.onKey?.(key, row) ?? false)
        })
        return () => {
            window.removeEventListener('scroll', look)
            window.removeEventListener('resize', look)
            PHONE.removeEventListener('change', onWidth)
            stopKeys()
        }
    }, [])
    const end = Math.min(last, rows.length)
    const own = props.widths ? widthsOf(props.widths) : {}
    const px = props.columns.map((column) => own[column.id] ?? parseInt(column.width ?? '180'))
    const isSet = props.columns.some((column) => own[column.id] !== undefined)
    const whole = `${px.reduce((sum, one) => sum + one, 0)}px`
    const onOpen = useCallback((row: T, event: MouseEvent) => {
        const { hrefOf } = latest.current.props
        const isText = (window.getSelection()?.toString() ?? '') !== ''
        if (hrefOf && !isText && !(event.target as Element).closest('a, button, input, label')) {
            go(hrefOf(row))
        }
    }, [])
    return (
        <div class="table-wrap" tabIndex={0} role="group" aria-label={props.label}>
            <table style={isPhone ? undefined : isSet ? { width: whole } : { minWidth: props.widths ? whole : `${props.minPx ?? 0}px` }} class={`rows ${props.isDense ? 'dense' : ''} ${props.hrefOf ? 'opens' : ''}`} aria-label={props.label} aria-rowcount={rows.length + 1}>
                <thead>
                    <tr>
                        {props.columns.map((column, i) => (
                            <Head key={column.id} column={column} table={props.widths} width={isSet ? `${px[i]}px` : column.width} />
                        ))}
                    </tr>
                </thead>
                <tbody ref={body}>
                    {first > 0 && <tr class="gap" style={{ height: `${first * height}px` }} aria-hidden="true" />}
                    {rows.slice(first, end).map((row, i) => {
                        if (row === undefined) {
                            return (
                                <tr key={first + i} style={{ height: `${height}px` }} aria-rowindex={first + i + 2}>
                                    <td class="phone-name" colSpan={props.columns.length}>
                                        <span class="skeleton" />
                                    </td>
                                </tr>
                            )
                        }
                        if (row instanceof Heading) {
                            const { address, content } = props.heading!(row)
                            return (
                                <tr key={`heading ${row.key}`} data-heading={row.key} class={`heading ${first + i === cursor ? 'at' : ''}`} style={{ height: `${height}px` }} aria-rowindex={first + i + 2} onClick={(event) => !(event.target as Element).closest('a') && go(address)}>
                                    <td class="phone-name" colSpan={props.columns.length}>
                                        {content}
                                    </td>
                                </tr>
                            )
                        }
                        const key = props.keyOf(row)
                        const isChosen = key === props.chosen
                        return (
                            <Row
                                key={key}
                                id={key}
                                row={row}
                                columns={props.columns}
                                class={`${isChosen ? 'sel' : ''} ${first + i === cursor ? 'at' : ''} ${props.classOf?.(row) ?? ''}`}
                                height={height}
                                index={first + i + 2}
                                isChosen={isChosen}
                                onOpen={onOpen as (row: unknown, event: MouseEvent) => void}
                            />
                        )
                    })}
                    {end < rows.length && <tr class="gap" style={{ height: `${(rows.length - end) * height}px` }} aria-hidden="true" />}
                </tbody>
            </table>
        </div>
    )
}
