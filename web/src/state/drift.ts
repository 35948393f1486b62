/** The drift of an ION and its live accuracy, as the server makes them of the reports; fetched again while the time goes on. */
import { useEffect } from 'preact/hooks'
import type { DriftSignal, IonDrift, IonHealth } from '../api'
import { momentOf } from '../components/time_range'
import { get, segment } from './http'
import { useResource, type Resource } from './resource'
import { now } from './store'

const REFRESH_S = 15
export const POINTS = 36

const iso = (ms: number | null) => (ms === null ? undefined : new Date(ms).toISOString())

/** @param from, to As in the address. */
export function useDrift(ion: string, from: string, to: string): Resource<IonDrift> {
    const drift = useResource(`drift:${ion}:${from}:${to}`, () =>
        get<IonDrift>(`/ions/${segment(ion)}/drift`, { since: iso(momentOf(from, Date.now())), until: iso(momentOf(to, Date.now())), points: POINTS }),
    )
    const beat = to === '' ? Math.floor(now.value / 1000 / REFRESH_S) : 0
    useEffect(() => drift.loadSoon(0), [beat])
    return drift
}

export function useLiveHealth(ion: string, by: string): Resource<IonHealth> {
    const health = useResource(`health:${ion}:${by}`, () => get<IonHealth>(`/ions/${segment(ion)}/health`, { by }))
    const beat = Math.floor(now.value / 1000 / REFRESH_S)
    useEffect(() => health.loadSoon(0), [beat])
    return health
}

export const signalKey = (signal: DriftSignal): string => `${signal.pipeline}/${signal.signal}`

export interface Bin {
    from: number // -Infinity: the first
    to: number // Infinity: the last
    training: number // share of all
    live: number
}

export interface Histogram {
    bins: Bin[]
    nTraining: number
    nLive: number
}

const numbers = (value: unknown): number[] => (Array.isArray(value) ? value.filter((one): one is number => typeof one === 'number') : [])
const sum = (values: readonly number[]) => values.reduce((all, one) => all + one, 0)

/** Training beside live, as shares; null: one of them is not told, or has other bins. */
export function histogramOf(signal: DriftSignal): Histogram | null {
    const [edges, training, live] = [numbers(signal.baseline?.['edges']), numbers(signal.baseline?.['counts']), numbers(signal.live?.['counts'])]
    if (edges.length === 0 || training.length !== edges.length + 1 || live.length !== training.length) {
        return null
    }
    const [nTraining, nLive] = [sum(training), sum(live)]
    const bins = training.map((count, i) => ({
        from: edges[i - 1] ?? -Infinity,
        to: edges[i] ?? Infinity,
        training: count / Math.max(1, nTraining),
        live: live[i]! / Math.max(1, nLive),
    }))
    // What both leave empty at the ends says nothing.
    const first = bins.findIndex((bin) => bin.training + bin.live > 0)
    const last = bins.findLastIndex((bin) => bin.training + bin.live > 0)
    return { bins: first < 0 ? bins : bins.slice(first, last + 1), nTraining, nLive }
}
