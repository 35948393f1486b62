/** Libraries that are files of their own, fetched when the first component needs one. */
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Loading } from './basics'

type Plot = typeof import('../plot')
export type Dagre = typeof import('../dagre')

// What the build puts for them: the addresses of those files, with a mark of their bytes.
declare const PLOT_ADDRESS: string
declare const DAGRE_ADDRESS: string

// No literals in import(): these are no parts of the bundle.
const ADDRESSES = { plot: PLOT_ADDRESS, dagre: DAGRE_ADDRESS }
const fetched: { plot?: Promise<Plot>; dagre?: Promise<Dagre> } = {}

function fetchLibrary<Name extends 'plot' | 'dagre'>(name: Name): Promise<Name extends 'plot' ? Plot : Dagre> {
    const library = fetched[name] ?? import(ADDRESSES[name])
    fetched[name] = library
    library.catch(() => delete fetched[name]) // the server was away: the next one that needs it tries again
    return library
}

export const fetchPlot = () => fetchLibrary('plot')

/** Draws with what places the boxes of graphs, once it is there. */
export function WithDagre({ children }: { children: (dagre: Dagre) => ComponentChildren }) {
    const [dagre, setDagre] = useState<Dagre | 'failed' | null>(null)
    useEffect(() => {
        let isOver = false
        fetchLibrary('dagre').then(
            (library) => isOver || setDagre(library),
            () => isOver || setDagre('failed'),
        )
        return () => {
            isOver = true
        }
    }, [])
    if (dagre === 'failed') {
        return <p class="muted">The graph could not be fetched: load the page again.</p>
    }
    return dagre === null ? <Loading rows={6} /> : <>{children(dagre)}</>
}
