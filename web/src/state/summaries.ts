/** What was decided in a span of time, by ION: counts, rate and latency. Fetched again while it is looked at. */
import { useEffect } from 'preact/hooks'
import type { DecisionSummary } from '../api'
import { momentOf } from '../components/time_range'
import { get } from './http'
import { Resource, useResource } from './resource'
import { now } from './store'

const REFRESH_S = 5

const iso = (ms: number | null) => (ms === null ? undefined : new Date(ms).toISOString())

/** @param from, to As in the address: "-30m", "2026-11-24T08:00", "". @param buckets So many equal parts of the time; 0: none. */
export function useSummary(ion: string, from: string, to: string, buckets = 0): Resource<DecisionSummary> {
    const summary = useResource(`summary:${ion}:${from}:${to}:${buckets}`, () =>
        get<DecisionSummary>('/decisions/summary', {
            ion,
            since: iso(momentOf(from, Date.now())),
            until: iso(momentOf(to, Date.now())),
            buckets: buckets || undefined,
        }),
    )
    const beat = to === '' ? Math.floor(now.value / 1000 / REFRESH_S) : 0
    useEffect(() => summary.loadSoon(0), [beat])
    return summary
}
