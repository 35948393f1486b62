/** What was decided in a span of time, by ION: counts, rate and latency. One request for all that show the same. */
import { useEffect, useMemo } from 'preact/hooks'
import type { DecisionSummary } from '../api'
import { momentOf } from '../components/time_range'
import { get } from './http'
import { Resource } from './resource'
import { now } from './store'

const REFRESH_S = 5

const shared = new Map<string, { summary: Resource<DecisionSummary>; users: number }>()

const iso = (ms: number | null) => (ms === null ? undefined : new Date(ms).toISOString())

function summaryOf(key: string, ion: string, from: string, to: string, buckets: number): { summary: Resource<DecisionSummary>; users: number } {
    const known = shared.get(key)
    if (known) {
        return known
    }
    const load = () =>
        get<DecisionSummary>('/decisions/summary', {
            ion,
            since: iso(momentOf(from, Date.now())),
            until: iso(momentOf(to, Date.now())),
            buckets: buckets || undefined,
        })
    const made = { summary: new Resource(load), users: 0 }
    shared.set(key, made)
    return made
}

/**
 * Fetched now, and every 5 s while the time goes on and somebody looks; forgotten when nobody does.
 *
 * @param from, to As in the address: "-30m", "2026-11-24T08:00", "".
 * @param buckets So many equal parts of the time; 0: none.
 */
export function useSummary(ion: string, from: string, to: string, buckets = 0): Resource<DecisionSummary> {
    const key = [ion, from, to, buckets].join('\n')
    const entry = useMemo(() => summaryOf(key, ion, from, to, buckets), [key])
    useEffect(() => {
        entry.users++
        entry.summary.need()
        return () => {
            if (--entry.users === 0) {
                shared.delete(key)
                entry.summary.cancel()
            }
        }
    }, [entry])
    const beat = to === '' ? Math.floor(now.value / 1000 / REFRESH_S) : 0
    useEffect(() => entry.summary.loadSoon(0), [beat])
    return entry.summary
}
