/** Keys of the page: off while somebody types, in a dialog, with a modifier, or when a person has switched them off. */
import { shortcuts } from './view'

/** Returns whether it took the key. */
type OnKey = (key: string) => boolean

const listeners: OnKey[] = []

/** Hears of keys until the returned function is called; who came last hears first. */
export function onKeys(listener: OnKey): () => void {
    listeners.unshift(listener)
    return () => {
        listeners.splice(listeners.indexOf(listener), 1)
    }
}

/** Space and Enter press what has the focus, a link only Enter; letters move in a list of choices. */
function isTaken(event: KeyboardEvent): boolean {
    const at = document.activeElement
    const isTyped = at?.closest('input, textarea, select, [contenteditable]')
    const isPressed = (event.key === ' ' || event.key === 'Enter') && at?.closest(`button, summary, [role=log]${event.key === 'Enter' ? ', a' : ''}`)
    return Boolean(isTyped || isPressed || document.querySelector('dialog[open]'))
}

document.addEventListener('keydown', (event) => {
    if (shortcuts.value === 'off' || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTaken(event)) {
        return
    }
    if (listeners.some((listener) => listener(event.key))) {
        event.preventDefault()
    }
})
