/**
 * A list, and beside it the details of what is chosen from it. The drawer never covers the list, its address is that of the
 * chosen thing, Escape closes it. On a narrow page one of the two at a time, with a way back.
 */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { go } from '../state/route'
import { Icon } from './icon'

const NARROW = window.matchMedia('(max-width: 980px)')

export function WithDrawer(props: { list: ComponentChildren; listName: string; drawer: ComponentChildren; close: string }) {
    const isOpen = Boolean(props.drawer)
    const first = useRef(true)
    useEffect(() => {
        if (!first.current && NARROW.matches) {
            window.scrollTo(0, 0)
        }
        first.current = false
    }, [isOpen])
    return (
        <div class={`with-drawer ${isOpen ? 'is-open' : ''}`}>
            <div class="stack list-side">{props.list}</div>
            {isOpen && (
                <div class="stack drawer-side">
                    <a class="back" href={props.close}>
                        <Icon name="back" /> All {props.listName}
                    </a>
                    {props.drawer}
                </div>
            )}
        </div>
    )
}

export function Drawer(props: { title: string; id: string; state?: ComponentChildren; close: string; children: ComponentChildren }) {
    useEffect(() => {
        const onKey = (event: KeyboardEvent) => {
            if (event.key === 'Escape' && !event.defaultPrevented && !document.querySelector('dialog[open]')) {
                go(props.close)
            }
        }
        document.addEventListener('keydown', onKey)
        return () => document.removeEventListener('keydown', onKey)
    }, [props.close])
    return (
        <aside class="panel drawer" aria-labelledby={props.id}>
            <header class="panel-head">
                <h2 id={props.id}>{props.title}</h2>
                <span class="aside">
                    {props.state}
                    <a class="icon-button close" href={props.close} aria-label={`Close ${props.title}`}>
                        <Icon name="cross" />
                    </a>
                </span>
            </header>
            <div class="panel-body">{props.children}</div>
        </aside>
    )
}
