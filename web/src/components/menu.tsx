/** Acts that open under a button: closed by a choice, a click elsewhere, or Escape. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Icon } from './icon'

export function Menu({ label, text, children }: { label: string; text: string; children: ComponentChildren }) {
    const menu = useRef<HTMLDetailsElement>(null)
    useEffect(() => {
        const close = (event: Event) => {
            const isOther = event instanceof KeyboardEvent ? event.key === 'Escape' : !menu.current?.contains(event.target as Node)
            if (isOther && menu.current?.open) {
                menu.current.open = false
            }
        }
        document.addEventListener('click', close)
        document.addEventListener('keydown', close)
        return () => {
            document.removeEventListener('click', close)
            document.removeEventListener('keydown', close)
        }
    }, [])
    const choose = (event: Event) => {
        if ((event.target as Element).closest('button:not(.locked)')) {
            menu.current!.open = false
        }
    }
    return (
        <details class="menu acts-menu" ref={menu}>
            <summary class="button" aria-label={label}>
                {text}
                <Icon name="down" />
            </summary>
            <div class="menu-body" onClick={choose}>
                {children}
            </div>
        </details>
    )
}
