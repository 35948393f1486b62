/**
 * What the whole page shares: the lists, kept fresh by the event stream. Screens read signals and never fetch these
 * themselves. Every list has a bound; the oldest entries go first.
 */
import { computed, effect, signal } from '@preact/signals'
import type { Alert, Dataset, Decision, Deployment, HealthSummary, Ion, Job, Metric, Model, Node, Run, WeirEvent } from '../api'
import { is } from '../components/state'
import { millis } from '../format'
import { noteTransitions } from './transitions'
import { cameras } from './cameras'
import { auth, get, getAll, openSession, segment, send, session } from './http'
import { RateMeter } from './rate'
import { Resource } from './resource'
import { Stream, type Message } from './stream'
import { services } from './services'
import { sweeps } from './sweeps'

export const KEEP_EVENTS = 200
export const KEEP_ROWS = 200 // of a list, in the page
const KEEP_RUNS = 100 // the newest, by name and figures: screens that search runs ask for their own
const MANY_RUNS = 5 // that change at once: then the list is fetched, not each of them
const ION_POLL_MS = 15_000

// ------------------------------------------------------------------------------------------------ resources

export const ions = new Resource<Ion[]>(async () => {
    const list = await getAll<Ion>('/ions')
    // A list entry may be a summary; the full document has the pipelines and links.
    const full = await Promise.all(list.map((ion) => (ion.pipelines ? ion : get<Ion>(`/ions/${segment(ion.name)}`))))
    noteTransitions(full)
    return full
})
export const models = new Resource<Model[]>(() => getAll<Model>('/models', { limit: KEEP_ROWS }))
export const deployments = new Resource<Deployment[]>(() => getAll<Deployment>('/deployments'))
export const datasets = new Resource<Dataset[]>(() => getAll<Dataset>('/datasets', { limit: KEEP_ROWS }))
export const platform = new Resource<HealthSummary>(() => get<HealthSummary>('/health/summary'))
export const nodes = new Resource<Node[]>(() => getAll<Node>('/nodes', { limit: 1000 }, 20))
export const runs = new Resource<Run[]>(async () => newestRuns(await getAll<Run>('/runs', { limit: KEEP_RUNS })))
export const jobs = new Resource<Job[]>(async () => {
    const newest = await getAll<Job>('/jobs', { newest: 1, limit: KEEP_ROWS })
    return newestJobs(newest.length < KEEP_ROWS ? newest : [...(await liveJobs()), ...newest])
})
const LIVE_STATES = ['PENDING', 'STARTING', 'RUNNING', 'STOPPING', 'RESTARTING']
const LIVE_PAGES = 5 // of 200, of each state

/** More jobs run or wait than the page holds: what it counts of them is "at least". */
export const hasMoreJobs = signal(false)

/** Jobs that are not over, however old. */
async function liveJobs(): Promise<Job[]> {
    const lists = await Promise.all(LIVE_STATES.map((state) => getAll<Job>('/jobs', { state, newest: 1, limit: KEEP_ROWS }, LIVE_PAGES)))
    hasMoreJobs.value = lists.some((list) => list.length === LIVE_PAGES * KEEP_ROWS)
    return lists.flat()
}

export const alerts = new Resource<Alert[]>(async () => newestAlerts(await getAll<Alert>('/alerts', { newest: 1, limit: KEEP_ROWS })))
export const events: Resource<WeirEvent[]> = new Resource(async () =>
    mergeEvents(events.data.peek() ?? [], await getAll<WeirEvent>('/events', { limit: KEEP_EVENTS })),
)

/** Who wants every decision of the stream: lists take from it what they show. */
export const decisionFeed = new Set<(decision: Decision) => void>()

/** Grows whenever the stream may have missed something: what is fed by it fetches again. */
export const resyncs = signal(0)

/** Grows by one whenever candidates may have changed: screens that show them reload on it. */
export const candidatesVersion = signal(0)

export const rate = new RateMeter()

/** Once a second; stops while nobody looks. */
export const now = signal(Date.now())

export const openAlerts = computed(() => (alerts.data.value ?? []).filter((alert) => is(alert.state, 'open')))

// -------------------------------------------------------------------------------------- order and bounds

function byTimeDown<T>(items: T[], time: (item: T) => number): T[] {
    return items.sort((a, b) => (time(b) || 0) - (time(a) || 0))
}

export function mergeEvents(have: WeirEvent[], more: WeirEvent[]): WeirEvent[] {
    const bySeq = new Map(have.map((event) => [event.seq, event]))
    for (const event of more) {
        bySeq.set(event.seq, event)
    }
    return [...bySeq.values()].sort((a, b) => b.seq - a.seq).slice(0, KEEP_EVENTS)
}

const newestRuns = (items: Run[]): Run[] => byTimeDown(items, (run) => millis(run.started_ms ?? run.created_ms)).slice(0, KEEP_RUNS)
/** Each once: all that are not over, and of the others the newest. */
function newestJobs(items: Job[]): Job[] {
    const sorted = byTimeDown([...new Map(items.map((job) => [job.id, job])).values()], (job) => millis(job.created_ms))
    const isLive = (job: Job) => LIVE_STATES.includes(job.state)
    const nLive = sorted.filter(isLive).length
    let left = Math.max(0, KEEP_ROWS - nLive)
    return sorted.filter((job) => isLive(job) || left-- > 0)
}
const newestAlerts = (items: Alert[]): Alert[] => byTimeDown(items, (alert) => millis(alert.raised_ms))

/** Brings one record up to date; fields the message leaves out keep their value. What is not there yet is fetched. */
function update<T extends { id: string }>(list: Resource<T[]>, change: Partial<T>): void {
    const have = list.data.peek()
    if (!have?.some((one) => one.id === change.id)) {
        list.refresh()
        return
    }
    list.data.value = have.map((one) => (one.id === change.id ? { ...one, ...change } : one))
}

// ------------------------------------------------------------------------------------------------ the stream

function onDecision(decision: Decision): void {
    rate.count(decision.ion, decision.pipeline)
    for (const take of decisionFeed) {
        take(decision)
    }
}

function onEvent(event: WeirEvent): void {
    events.data.value = mergeEvents(events.data.peek() ?? [], [event])
    onIonChange()
}

function onIonChange(): void {
    ions.refresh()
    candidatesVersion.value++
}

/** The newest points of a run, for the curves that show it. */
export const freshMetrics = signal<{ run: string; points: Metric[] } | null>(null)

const RUN_FIELDS = ['progress', 'epoch', 'epochs', 'loss', 'accuracy', 'images_per_second'] as const

const changedRuns = new Set<string>()
let changedTimer = 0

/** The message does not tell all of it: it is fetched alone, after a pause in which others of the kind are merged. */
function refetchRun(id: string): void {
    if (!runs.isWanted || runs.isDenied) {
        return
    }
    changedRuns.add(id)
    if (changedTimer === 0) {
        changedTimer = window.setTimeout(() => void fetchChangedRuns(), 300)
    }
}

async function fetchChangedRuns(): Promise<void> {
    changedTimer = 0
    const ids = [...changedRuns]
    if (runs.loading.peek()) {
        refetchRun(ids[0]!) // the list that comes may be older than the change
        return
    }
    changedRuns.clear()
    if (ids.length > MANY_RUNS) {
        runs.refresh()
        return
    }
    try {
        const fresh = await Promise.all(ids.map((id) => get<Run>(`/runs/${segment(id)}`)))
        const others = (runs.data.peek() ?? []).filter((run) => !ids.includes(run.id))
        runs.data.value = newestRuns([...fresh, ...others])
    } catch {
        runs.refresh() // one of them has gone
    }
}

type RunNews = Omit<Partial<Run>, 'id' | 'metrics'> & { id: string; metrics?: Metric[] }

/** Who wants every change of a run, whether the page holds it or not. */
export const runFeed = new Set<(change: Partial<Run> & { id: string }, points: Metric[]) => void>()

/** Either {id, status} or {id, metrics}: the first may end the run, the second moves its numbers. */
function onRun(message: RunNews): void {
    const { metrics, ...change } = message
    for (const take of runFeed) {
        take(change, metrics ?? [])
    }
    if (!Array.isArray(metrics)) {
        if (runs.data.peek()?.some((one) => one.id === change.id)) {
            update(runs, change) // at once; the rest of it comes soon
        }
        refetchRun(message.id)
        return
    }
    for (const point of metrics) {
        const field = RUN_FIELDS.find((name) => name === point.key)
        if (field !== undefined && point.value !== null) {
            change[field] = point.value
        }
    }
    if (runs.data.peek()?.some((one) => one.id === change.id)) {
        update(runs, change)
    } else {
        refetchRun(message.id)
    }
    freshMetrics.value = { run: message.id, points: metrics }
}

function onAlert(alert: Partial<Alert>): void {
    platform.refresh()
    cameras.refresh()
    if (alert.id === undefined) {
        alerts.refresh()
    } else {
        update(alerts, alert)
    }
}

const topics: Record<string, (record: unknown) => void> = {
    decisions: (record) => onDecision(record as Decision),
    events: (record) => onEvent(record as WeirEvent),
    runs: (record) => onRun(record as RunNews),
    jobs: (record) => {
        update(jobs, record as Job)
        services.refresh()
        ions.refresh()
    },
    alerts: (record) => onAlert(record as Alert),
    ions: onIonChange,
    models: () => {
        models.refresh()
        onIonChange()
    },
    nodes: () => nodes.refresh(),
    deployments: () => deployments.refresh(),
    sweeps: () => sweeps.refresh(),
}

function onMessages(messages: Message[]): void {
    for (const message of messages) {
        if (message.topic === 'resync') {
            loadAll() // we fell behind what the server keeps
            continue
        }
        const apply = topics[message.topic]
        if (apply === undefined) {
            continue
        }
        try {
            apply(JSON.parse(message.data))
        } catch (error) {
            console.warn('a message of the stream was not understood', message.topic, error)
        }
    }
}

/** Again what was fetched before: what nobody has looked at yet is fetched when somebody does. */
function loadAll(): void {
    for (const resource of [ions, runs, jobs, alerts, events, models, nodes, datasets, deployments, sweeps, services, platform, cameras]) {
        if (resource.isWanted) {
            void resource.load()
        }
    }
    candidatesVersion.value++
    resyncs.value++
}

export const stream = new Stream(Object.keys(topics), onMessages, (isResume) => {
    rate.restart()
    if (isResume) {
        loadAll() // what was missed beyond the server's replay
    }
})

// ------------------------------------------------------------------------------------------------------ life

export const startError = signal<string | null>(null)

/** Opens the session and starts everything; retries by itself while the server is away. */
export async function start(): Promise<void> {
    try {
        startError.value = null
        if (!(await openSession())) {
            return
        }
    } catch (error) {
        startError.value = String(error instanceof Error ? error.message : error)
        window.setTimeout(() => void start(), 3_000)
        return
    }
    candidatesVersion.value++
    stream.start()
}

export async function signOut(): Promise<void> {
    await send('DELETE', '/session')
    auth.value = 'signed-out'
}

effect(() => {
    if (auth.value === 'signed-out') {
        session.value = null
        stream.stop()
    }
})

window.addEventListener('pageshow', (event) => {
    if (event.persisted) {
        loadAll() // the browser kept the page, and nothing came meanwhile
    }
})

window.setInterval(() => {
    if (!document.hidden) {
        now.value = Date.now()
        rate.tick()
    }
}, 1_000)

window.setInterval(() => {
    if (!document.hidden && auth.peek() === 'signed-in') {
        ions.refresh()
        nodes.refresh()
        platform.refresh()
        cameras.refresh()
    }
}, ION_POLL_MS)
