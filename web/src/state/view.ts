/** Data science or Operations: order and defaults, never rights or addresses. Kept in this browser, as is what folds. */
import { signal, type Signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import type { View } from '../screen'

/** A signal whose value this browser keeps. */
export function kept<T extends string>(key: string, values: readonly T[]): Signal<T> {
    let stored: string | null = null
    try {
        stored = localStorage.getItem(key)
    } catch {
        // Storage is refused in some private modes: the choice then lasts as long as the page.
    }
    const found = signal<T>(values.find((value) => value === stored) ?? values[0]!)
    found.subscribe((value) => {
        try {
            if (value === values[0]) {
                localStorage.removeItem(key)
            } else {
                localStorage.setItem(key, value)
            }
        } catch {
            // As above.
        }
    })
    return found
}

export const view = kept<View>('weir.view', ['science', 'operations'])
export const folded = kept('weir.nav', ['open', 'folded'])
export const shortcuts = kept('weir.keys', ['on', 'off'])

export const PHONE = window.matchMedia('(max-width: 760px)')

/** Whether it matches, followed while the window changes. */
export function useMedia(query: MediaQueryList): boolean {
    const [isMatching, setMatching] = useState(query.matches)
    useEffect(() => {
        const onChange = () => setMatching(query.matches)
        query.addEventListener('change', onChange)
        return () => query.removeEventListener('change', onChange)
    }, [query])
    return isMatching
}
