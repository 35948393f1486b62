/** Who did what: acts of people from all topics and, for admins, logins and refusals; by pages, back to the begin of a time. */
import type { List, WeirEvent } from '../api'
import { millis } from '../format'
import type { Opt } from '../types'
import { get } from './http'

const PAGE = 200
const PAGES_MAX = 50 // looked through for one page of what matches: most events of a busy cluster are no acts of people

export interface Wanted {
    /** Exact values that the server looks for. */
    actor?: string | undefined
    kind?: string | undefined
    subject?: string | undefined
    /** Milliseconds since 1970; null: no bound. */
    from: number | null
    to: number | null
    /** Also what no person did. */
    hasSystem: boolean
    isAdmin: boolean
}

/** Where the next page begins, by list; null: that list is at its end. */
export interface Place {
    acts: string | null
    access: string | null
}

export interface Page {
    items: WeirEvent[]
    next: Place | null
}

export const START: Place = { acts: '', access: '' }

const NO_PEOPLE = new Set(['', 'system', 'agent', 'worker', 'policy', 'others', 'nobody'])

/** A task ("task/ID"), of before a replica's own identifier, and what Weir does by itself are nobody. */
export const isPerson = (actor: Opt<string>): boolean => !NO_PEOPLE.has(actor ?? '') && !/^task\/|^[0-9a-f]{8}-[0-9a-f]{4}-/.test(actor ?? '')

function isWanted(event: WeirEvent, wanted: Wanted): boolean {
    const at = millis(event.time_ms)
    return (wanted.from === null || at >= wanted.from) && (wanted.to === null || at < wanted.to) && (wanted.hasSystem || isPerson(event.actor))
}

/** The next events of one list that match: about a page of them, or the end. */
async function collect(topic: string | undefined, cursor: string | null, wanted: Wanted): Promise<{ items: WeirEvent[]; next: string | null }> {
    const items: WeirEvent[] = []
    for (let page = 0; cursor !== null && page < PAGES_MAX && items.length < PAGE; page++) {
        const list: List<WeirEvent> = await get('/events', { topic, limit: PAGE, cursor, actor: wanted.actor, kind: wanted.kind, subject: wanted.subject })
        items.push(...list.items.filter((event) => isWanted(event, wanted)))
        const last = list.items.at(-1)
        const isPast = last !== undefined && wanted.from !== null && millis(last.time_ms) < wanted.from
        cursor = isPast ? null : list.next
    }
    return { items, next: cursor }
}

/**
 * The page that begins at a place. Two lists are laid into one by time: what lies below the end of the shorter one waits for
 * the next page, so that nothing is out of order.
 */
export async function auditPage(place: Place, wanted: Wanted, kept: readonly WeirEvent[]): Promise<Page & { rest: WeirEvent[] }> {
    const none = { items: [] as WeirEvent[], next: null }
    const [acts, access] = await Promise.all([collect(undefined, place.acts, wanted), wanted.isAdmin ? collect('audit', place.access, wanted) : none])
    const all = [...kept, ...acts.items, ...access.items].sort((a, b) => b.seq - a.seq)
    const ends = [acts, access].filter((one) => one.next !== null && one.items.length > 0).map((one) => one.items.at(-1)!.seq)
    const low = Math.max(0, ...ends)
    const next = { acts: acts.next, access: access.next }
    return { items: all.filter((one) => one.seq >= low), rest: all.filter((one) => one.seq < low), next: next.acts === null && next.access === null ? null : next }
}

const cell = (value: unknown): string => {
    const text = value === null || value === undefined ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value)
    const safe = /^[=+\-@\t]/.test(text) ? `'${text}` : text // a sheet must not take a name for a formula
    return /[",\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe
}

/** Rows of a table as CSV (RFC 4180). */
export function csvOf(head: readonly string[], rows: readonly (readonly unknown[])[]): string {
    return [head, ...rows].map((row) => row.map(cell).join(',')).join('\r\n') + '\r\n'
}

export function auditCsv(events: readonly WeirEvent[]): string {
    return csvOf(
        ['number', 'time', 'who', 'did', 'what', 'message', 'area', 'severity', 'data'],
        events.map((one) => [one.seq, one.time_ms, one.actor, one.kind, one.subject, one.message, one.topic, one.severity, one.data]),
    )
}

/** Hands a text to the browser as a file. */
export function download(name: string, text: string, type: string): void {
    const url = URL.createObjectURL(new Blob([text], { type }))
    const link = document.createElement('a')
    link.href = url
    link.download = name
    link.click()
    window.setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
