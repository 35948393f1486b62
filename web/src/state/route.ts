/** Hash routes: #/screen/arg/arg?key=value. The hash is the only place where "where am I" is kept. */
import { signal } from '@preact/signals'

export interface Route {
    screen: string
    args: string[]
    query: URLSearchParams
}

/** What the navigation shows, in its order; datasets are reached from what was made of them. */
export const SCREENS = ['overview', 'training', 'models', 'decisions', 'jobs', 'events', 'nodes'] as const
export type Screen = (typeof SCREENS)[number] | 'datasets'

function parse(hash: string): Route {
    const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2)
    const parts = path.split('/').filter(Boolean).map(decodePart)
    return { screen: parts[0] ?? 'overview', args: parts.slice(1), query: new URLSearchParams(query) }
}

function decodePart(part: string): string {
    try {
        return decodeURIComponent(part)
    } catch {
        return part
    }
}

export const route = signal<Route>(parse(location.hash))

window.addEventListener('hashchange', () => {
    route.value = parse(location.hash)
})

export function href(screen: Screen, ...args: string[]): string {
    return '#/' + [screen, ...args].map(encodeURIComponent).join('/')
}

/** Changes the query without a new history entry: typing in a filter must not fill the back button. */
export function setQuery(query: Record<string, string>): void {
    const entries = Object.entries(query).filter(([, value]) => value !== '')
    const text = new URLSearchParams(entries).toString()
    const path = location.hash.split('?', 1)[0] || '#/'
    history.replaceState(null, '', path + (text ? '?' + text : ''))
    route.value = parse(location.hash)
}
