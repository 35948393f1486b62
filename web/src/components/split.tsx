/**
 * A list and the thing chosen from it, side by side. On a narrow page one at a time: the list until something is
 * chosen, then the thing with a way back, so that no list scrolls inside the scrolling page.
 */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Icon } from './icon'

const NARROW = window.matchMedia('(max-width: 980px)')

export function Split(props: {
    label: string // what the list is of: "Jobs"
    back: string // the address of the list alone
    chosen: string | undefined // as the address has it
    list: ComponentChildren
    children: ComponentChildren
}) {
    const first = useRef(true)
    useEffect(() => {
        if (!first.current && NARROW.matches) {
            window.scrollTo(0, 0)
        }
        first.current = false
    }, [props.chosen])
    return (
        <div class={`split ${props.chosen === undefined ? '' : 'is-chosen'}`}>
            <nav class="panel list" aria-label={props.label}>
                <ul>{props.list}</ul>
            </nav>
            <div class="split-detail">
                <a class="back" href={props.back}>
                    <Icon name="back" /> All {props.label.toLowerCase()}
                </a>
                {props.children}
            </div>
        </div>
    )
}
