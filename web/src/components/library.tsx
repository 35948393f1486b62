/** Libraries that are files of their own, fetched when the first component needs one. */
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Loading } from './basics'

interface Libraries {
    plot: typeof import('../plot')
    dagre: typeof import('../dagre')
    alerts: typeof import('../alerts/settings')
    cameras: typeof import('../cameras/page')
    clusters: typeof import('../clusters/page')
    enrol: typeof import('../enrol/page')
    passage: typeof import('../passage/page')
    snapshots: typeof import('../snapshots/page')
}
export type Dagre = Libraries['dagre']

// What the build puts for them: the addresses of those files, with a mark of their bytes.
declare const PLOT_ADDRESS: string
declare const DAGRE_ADDRESS: string
declare const ALERTS_ADDRESS: string
declare const CAMERAS_ADDRESS: string
declare const CLUSTERS_ADDRESS: string
declare const ENROL_ADDRESS: string
declare const PASSAGE_ADDRESS: string
declare const SNAPSHOTS_ADDRESS: string

// No literals in import(): these are no parts of the bundle.
const ADDRESSES = { plot: PLOT_ADDRESS, dagre: DAGRE_ADDRESS, alerts: ALERTS_ADDRESS, cameras: CAMERAS_ADDRESS, clusters: CLUSTERS_ADDRESS, enrol: ENROL_ADDRESS, passage: PASSAGE_ADDRESS, snapshots: SNAPSHOTS_ADDRESS }
const fetched: { [Name in keyof Libraries]?: Promise<Libraries[Name]> } = {}

function fetchLibrary<Name extends keyof Libraries>(name: Name): Promise<Libraries[Name]> {
    const library = (fetched[name] ??= import(ADDRESSES[name]))
    library.catch(() => delete fetched[name]) // the server was away: the next one that needs it tries again
    return library
}

export const fetchPlot = () => fetchLibrary('plot')

/** Draws with what places the boxes of graphs, or with a screen that is a file of its own, once it is there. */
export function WithLibrary<Name extends 'dagre' | 'alerts' | 'cameras' | 'clusters' | 'enrol' | 'passage' | 'snapshots'>({ name, children }: { name: Name; children: (library: Libraries[Name]) => ComponentChildren }) {
    const [library, setLibrary] = useState<Libraries[Name] | 'failed' | null>(null)
    useEffect(() => {
        let isOver = false
        fetchLibrary(name).then(
            (one) => isOver || setLibrary(one),
            () => isOver || setLibrary('failed'),
        )
        return () => {
            isOver = true
        }
    }, [])
    if (library === 'failed') {
        return <p class="muted">A part of the page could not be fetched: load it again.</p>
    }
    return library === null ? <Loading rows={6} /> : <>{children(library)}</>
}
