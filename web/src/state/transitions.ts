/**
 * Notices that a model moved along a link (a new version waits at its end, or went into service), by comparing two
 * states of the IONs. The graph animates what is found here.
 */
import { signal } from '@preact/signals'
import type { Ion } from '../api'

export interface Transition {
    version: number
    kind: 'pending' | 'serving'
    at: number
}

export const TRANSITION_MS = 2_600

/** The latest transition of each link, by linkKey. */
export const transitions = signal<Record<string, Transition>>({})

export function linkKey(ion: string, from: string, to: string): string {
    return `${ion}:${from}>${to}`
}

let before = new Map<string, { serving: number | null; pending: number[] }>()

export function noteTransitions(ions: Ion[]): void {
    const after: typeof before = new Map()
    const found: Record<string, Transition> = {}
    for (const ion of ions) {
        for (const link of ion.links) {
            const key = linkKey(ion.name, link.from, link.to)
            const state = { serving: link.serving_version ?? null, pending: link.pending_versions ?? [] }
            after.set(key, state)
            const old = before.get(key)
            if (old === undefined) {
                continue
            }
            const arrived = state.pending.find((version) => !old.pending.includes(version))
            if (state.serving !== null && state.serving !== old.serving) {
                found[key] = { version: state.serving, kind: 'serving', at: Date.now() }
            } else if (arrived !== undefined) {
                found[key] = { version: arrived, kind: 'pending', at: Date.now() }
            }
        }
    }
    before = after
    if (Object.keys(found).length > 0) {
        transitions.value = { ...transitions.peek(), ...found }
    }
}
