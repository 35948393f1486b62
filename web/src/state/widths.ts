/** Widths of columns that somebody has set, by table: kept in this browser for the person who is signed in. */
import { signal } from '@preact/signals'
import { session } from './http'

export type Widths = Readonly<Record<string, number>>

export const WIDTH_MIN = 40
export const WIDTH_MAX = 800

const changed = signal(0)

const placeOf = (table: string) => `weir.widths.${session.value?.user ?? ''}.${table}`

/** Of the columns of a table; {}: all are as they were at first. */
export function widthsOf(table: string): Widths {
    void changed.value
    try {
        const stored: unknown = JSON.parse(localStorage.getItem(placeOf(table)) ?? '{}')
        const entries = Object.entries((stored ?? {}) as object).filter((one): one is [string, number] => typeof one[1] === 'number')
        return Object.fromEntries(entries.map(([id, px]) => [id, Math.min(WIDTH_MAX, Math.max(WIDTH_MIN, px))]))
    } catch {
        return {} // no storage in some private modes
    }
}

export function keepWidths(table: string, widths: Widths): void {
    try {
        if (Object.keys(widths).length === 0) {
            localStorage.removeItem(placeOf(table))
        } else {
            localStorage.setItem(placeOf(table), JSON.stringify(widths))
        }
    } catch {
        // As above: the widths are then as they were.
    }
    changed.value++
}
