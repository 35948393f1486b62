/** A long list of rows of one height, scrolled with the page: only the rows in view, and a few around them, are there. */
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

const AROUND = 6
const NEAR_END = 15
const AT_LEAST = 14 // rows that are there even while the list is out of sight

export function VirtualList<T>(props: {
    items: T[]
    height: number // of a row
    label: string
    keyOf: (item: T) => string
    render: (item: T) => ComponentChildren
    onNearEnd?: () => void
}) {
    const { items, height } = props
    const host = useRef<HTMLUListElement>(null)
    const [[first, last], setRange] = useState<[number, number]>([0, 30])
    const latest = useRef(props)
    latest.current = props
    const look = () => {
        const { top } = host.current!.getBoundingClientRect()
        const from = Math.max(0, Math.floor(-top / latest.current.height) - AROUND)
        const to = Math.max(from + AT_LEAST, Math.ceil((window.innerHeight - top) / latest.current.height) + AROUND)
        setRange((old) => (old[0] === from && old[1] === to ? old : [from, to]))
        if (to > latest.current.items.length - NEAR_END) {
            latest.current.onNearEnd?.()
        }
    }
    useLayoutEffect(look, [items.length, height])
    useEffect(() => {
        window.addEventListener('scroll', look, { passive: true })
        window.addEventListener('resize', look)
        return () => {
            window.removeEventListener('scroll', look)
            window.removeEventListener('resize', look)
        }
    }, [])
    return (
        <ul class="virtual" ref={host} aria-label={props.label} style={{ height: `${items.length * height}px` }}>
            {items.slice(first, last).map((item, i) => (
                <li
                    key={props.keyOf(item)}
                    style={{ height: `${height}px`, transform: `translateY(${(first + i) * height}px)` }}
                    aria-posinset={first + i + 1}
                    aria-setsize={items.length}
                >
                    {props.render(item)}
                </li>
            ))}
        </ul>
    )
}
