/**
 * Addresses: /p/PROJECT/part/part?key=value, "-" for all projects. The address is the only place where "where am I" is
 * kept, so that a pasted address shows the same view and Back undoes one step.
 */
import { signal } from '@preact/signals'

export const ALL_PROJECTS = '-'

export type Query = Record<string, string | undefined>

export interface Route {
    project: string
    parts: string[] // below the project: ["ions", "door", "graph"]
    query: URLSearchParams
    isPlaced: boolean // false: an address without /p/PROJECT, which state/last_project.ts gives one
}

const TYPING_MS = 2_000 // letters that come this close together are one step

function decodePart(part: string): string {
    try {
        return decodeURIComponent(part)
    } catch {
        return part
    }
}

export function parse(path: string, search: string): Route {
    const parts = path.split('/').filter(Boolean).map(decodePart)
    const isOurs = parts[0] === 'p'
    return {
        project: (isOurs ? parts[1] : undefined) ?? ALL_PROJECTS,
        parts: isOurs ? parts.slice(2) : parts,
        query: new URLSearchParams(search),
        isPlaced: isOurs || parts.length === 0,
    }
}

export const route = signal<Route>(parse(location.pathname, location.search))

function read(): void {
    route.value = parse(location.pathname, location.search)
}

window.addEventListener('popstate', read)

function queryText(query: Query): string {
    const entries = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '')
    const text = new URLSearchParams(entries).toString()
    return text ? '?' + text : ''
}

/** The address of a screen in the project that is chosen now: href(['ions', name, 'graph'], { link }). */
export function href(parts: string | readonly string[], query: Query = {}, project: string = route.value.project): string {
    const path = typeof parts === 'string' ? [parts] : parts
    return '/' + ['p', project, ...path].map(encodeURIComponent).join('/') + queryText(query)
}

export function go(address: string, isReplaced = false): void {
    if (address !== location.pathname + location.search) {
        history[isReplaced ? 'replaceState' : 'pushState'](null, '', address)
        read()
    }
}

/** The address of what is shown, with another query: keys of `change` that are "" or undefined go. */
export function hrefWith(change: Query): string {
    const { project, parts, query } = route.value
    return href(parts, { ...Object.fromEntries(query), ...change }, project)
}

let typed = { keys: '', at: 0 }

/** One step of history; while somebody types, all letters together are one. */
export function setQuery(change: Query, isTyping = false): void {
    const keys = isTyping ? Object.keys(change).join() : ''
    const isSameStep = isTyping && typed.keys === keys && Date.now() - typed.at < TYPING_MS
    typed = { keys, at: Date.now() }
    go(hrefWith(change), isSameStep)
}

/** What the query says for a key, "" if nothing. */
export function param(key: string): string {
    return route.value.query.get(key) ?? ''
}

/** Links of the page change the address without loading it again; others, and those with a modifier, are the browser's. */
document.addEventListener('click', (event) => {
    const link = (event.target as Element).closest?.('a[href]')
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey
    if (link && isPlain && !event.defaultPrevented && !link.hasAttribute('download') && link.getAttribute('href')!.startsWith('/p/')) {
        event.preventDefault()
        go(link.getAttribute('href')!)
    }
})
