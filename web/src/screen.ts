/**
 * What a screen is: one object, in a file of its own, named by one line of screens/index.ts. The frame knows nothing else
 * of it: addresses, navigation, palette, keys, loading and the browser's history all come from here.
 */
import type { ComponentType } from 'preact'
import type { IconName } from './components/icon'
import type { Resource } from './state/resource'

export type View = 'science' | 'operations'

/** Groups of the navigation, by view, in their order; "" stands on top and has no heading. */
export const GROUPS: Record<View, readonly string[]> = {
    science: ['', 'Build', 'Serve', 'Share', 'Watch'],
    operations: ['', 'Cluster', 'Watch', 'Build', 'Manage'],
}

/** What the address says: values of the pattern's names. */
export type Args = Readonly<Record<string, string | undefined>>

export interface Badge {
    count: number
    tone: 'bad' | 'warn' | 'plain'
    what: string // "alerts fire"
}

/** Something that can be done here: a button of the screen that the palette knows too. */
export interface Action {
    name: string // "Cancel training.5"
    run: () => void
}

export interface Key {
    key: string // as KeyboardEvent.key
    name: string // what it does, for the list of keys
    run: () => void
}

export interface Screen {
    id: string
    title: string
    icon: IconName
    /** Below /p/PROJECT: "ions/:ion/graph"; a name with "?" may be missing. */
    address: string
    /** Keys of the query that belong to it: filters, sort, time range, what is chosen. */
    query: readonly string[]
    /** Where the navigation has it, by view; absent: in none, it is reached from others. */
    group?: Partial<Record<View, string>>
    /** The screen whose entry of the navigation is marked while this one is shown. */
    under?: string
    /** It is one of the tabs of something: of what, and its name there. */
    tab?: { of: string; name: string; badge?: (args: Args) => Badge | undefined }
    /** The lists of the page that it shows, fetched before any other. */
    load: readonly Resource<unknown>[]
    badge?: () => Badge | undefined
    /** The letter after "g" that goes there. */
    letter?: string
    actions?: (args: Args) => Action[]
    /** The same of what it is about, offered by the palette wherever one is: by the names of all there are. */
    always?: () => Action[]
    keys?: (args: Args) => Key[]
    render: ComponentType<{ args: Args }>
}

/** The values of the pattern's names, or undefined: another screen's address. */
export function match(address: string, parts: readonly string[]): Args | undefined {
    const wanted = address.split('/')
    const args: Record<string, string | undefined> = {}
    if (parts.length > wanted.length) {
        return undefined
    }
    for (const [i, want] of wanted.entries()) {
        const part = parts[i]
        if (want.startsWith(':')) {
            if (part === undefined && !want.endsWith('?')) {
                return undefined
            }
            args[want.replace(/[:?]/g, '')] = part
        } else if (part !== want) {
            return undefined
        }
    }
    return args
}
