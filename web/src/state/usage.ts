/** What was used: the account by project, user, model or job, and what queues had over time. */
import type { ClusterUsage, QueueSeries } from '../api'
import { millis } from '../format'
import { apiUrl, get, type Params } from './http'

export const HOUR_MS = 3_600_000
export const DAY_MS = 24 * HOUR_MS
const HOUR = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hour12: false })
const DAY = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' }) // the server counts days so
const BUCKET_S = 300 // what the server keeps
const POINTS = 120 // of a chart

export interface Span {
    fromMs: number
    toMs: number
}

/** For the server, which counts whole hours and cuts what is above: the hour that runs is in it. */
export const timesOf = ({ fromMs, toMs }: Span): Params => ({ from: new Date(fromMs).toISOString(), to: new Date(Math.ceil(toMs / HOUR_MS) * HOUR_MS).toISOString() })

export function usageBy(by: string, span: Span, more: Params = {}): Promise<ClusterUsage> {
    return get<ClusterUsage>('/usage', { by, ...timesOf(span), ...more })
}

export function csvAddress(by: string, span: Span, project: string | undefined): string {
    return apiUrl('/usage', { by, ...timesOf(span), project, format: 'csv' })
}

export interface Days {
    labels: string[]
    parts: { name: string; values: number[] }[]
}

/** Device hours by day of each of these projects, and of all others together. */
export async function hoursByDay(projects: readonly string[], span: Span, isAll: boolean): Promise<Days> {
    const isHourly = span.toMs - span.fromMs <= 2 * DAY_MS
    const by = isHourly ? 'hour' : 'day'
    const [whole, ...each] = await Promise.all([usageBy(by, span, isAll ? {} : { project: projects[0] }), ...projects.map((project) => usageBy(by, span, { project }))])
    const step = isHourly ? HOUR_MS : DAY_MS
    const first = Math.floor(span.fromMs / step) * step
    const count = Math.min(400, Math.max(1, Math.ceil((span.toMs - first) / step)))
    const place = (items: ClusterUsage) => {
        const values = new Array<number>(count).fill(0)
        for (const row of items.items) {
            const i = Math.floor((millis(row.key) - first) / step)
            if (i >= 0 && i < count) {
                values[i] = (values[i] ?? 0) + row.given_device_s / 3600
            }
        }
        return values
    }
    const parts = projects.map((name, i) => ({ name, values: place(each[i]!) }))
    const rest = place(whole!).map((value, i) => Math.max(0, value - parts.reduce((sum, part) => sum + part.values[i]!, 0)))
    const isRest = rest.some((value) => value > 0.01)
    const labels = Array.from({ length: count }, (_, i) => (isHourly ? HOUR.format(first + i * step) : DAY.format(first + i * step)))
    return { labels, parts: isRest ? [...parts, { name: 'others', values: rest }] : parts }
}

export interface Series {
    times: number[]
    queues: { queue: string; project: string | null; used: (number | null)[]; waiting: (number | null)[] }[]
    stepS: number
}

/** What queues of projects had and waited for, in about so many steps as a chart has room for; steps without a sample are null. */
export async function queueSeries(what: 'accelerators' | 'cpus', span: Span): Promise<Series> {
    const stepS = Math.max(BUCKET_S, Math.ceil((span.toMs - span.fromMs) / 1000 / POINTS / BUCKET_S) * BUCKET_S)
    const answer = await get<QueueSeries>('/usage/queues', { ...timesOf(span), step_s: stepS })
    const step = answer.step_s * 1000
    const seen = answer.items.map((one) => millis(one.time))
    const [first, last] = [Math.min(...seen), Math.max(...seen)]
    const times = seen.length === 0 ? [] : Array.from({ length: Math.min(2000, Math.round((last - first) / step) + 1) }, (_, i) => first + i * step)
    const found = new Map<string, Series['queues'][number]>()
    for (const point of answer.items) {
        if (point.project === null) {
            continue // a department has what its parts have
        }
        const one = found.get(point.queue) ?? { queue: point.queue, project: point.project, used: new Array<number | null>(times.length).fill(null), waiting: new Array<number | null>(times.length).fill(null) }
        const i = Math.round((millis(point.time) - first) / step)
        one.used[i] = point.used[what]
        one.waiting[i] = point.waiting[what]
        found.set(point.queue, one)
    }
    return { times, queues: [...found.values()], stepS: answer.step_s }
}
