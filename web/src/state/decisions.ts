/**
 * Decisions for one list: what matches a filter, newest first, as it comes and back in time.
 *
 * Nothing moves under the pointer: while anybody holds the list (a reason given to hold()), what comes is only counted;
 * when the last reason goes, the newest page is fetched again. What comes is shown a few times a second, with its faces
 * already there. Above MAX_ROWS_S nobody can read along: every so many-th is shown, and oneIn says so; when it calms
 * down, the page is fetched again and nothing is left out. Memory: KEEP rows while live, KEEP_OLD when going back.
 */
import { effect, signal } from '@preact/signals'
import type { Decision, Time } from '../api'
import { preloadFace } from '../components/face'
import { millis } from '../format'
import { ApiError, get, type Params } from './http'
import type { List } from '../api'
import { decisionFeed, resyncs } from './store'

const TICK_MS = 250
const RATE_TICKS = 8 // the rate is that of the last two seconds
const MAX_ROWS_S = 8
const FACES_WAIT_MS = 5_000 // then a row comes without its face
const PAGE = 100
const KEEP = 400
const KEEP_OLD = 5_000
const FACES_AHEAD = 20

export interface DecisionFilter {
    ion: string
    camera: string
    verdict: string
    person: string
    label: string
    since: number | null // ms since 1970
    until: number | null
}

export const NO_FILTER: DecisionFilter = { ion: '', camera: '', verdict: '', person: '', label: '', since: null, until: null }

export function matches(decision: Decision, filter: DecisionFilter): boolean {
    const time = millis(decision.time_ms)
    return (
        (filter.ion === '' || decision.ion === filter.ion) &&
        (filter.camera === '' || decision.camera === filter.camera) &&
        (filter.verdict === '' || decision.verdict === filter.verdict) &&
        (filter.person === '' || decision.person === filter.person) &&
        (filter.label === '' || decision.label === filter.label) &&
        (filter.since === null || time >= filter.since) &&
        (filter.until === null || time < filter.until)
    )
}

/** RFC 3339 text in UTC sorts as it is. */
function compareTimes(a: Time, b: Time): number {
    if (typeof a === 'string' && typeof b === 'string') {
        return a < b ? -1 : a > b ? 1 : 0
    }
    return millis(a) - millis(b)
}

/** Newest first, one per id. */
export function mergeDecisions(have: Decision[], more: Decision[]): Decision[] {
    const ids = new Set(have.map((one) => one.id))
    const all = [...more.filter((one) => !ids.has(one.id)), ...have]
    return all.sort((a, b) => compareTimes(b.time_ms, a.time_ms) || (b.seq ?? 0) - (a.seq ?? 0))
}

const iso = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())
const sleep = (ms: number) => new Promise<void>((resolve) => window.setTimeout(resolve, ms))

export class DecisionList {
    readonly rows = signal<Decision[] | undefined>(undefined)
    readonly error = signal<ApiError | null>(null)
    readonly isHeld = signal(false)
    readonly missed = signal(0) // came while the list was held
    readonly perSecond = signal(0) // of what matches
    readonly oneIn = signal(1)
    readonly atEnd = signal(false) // there are no older ones
    readonly lastMs = signal(NaN) // when the newest that matches was made, shown or not
    /** Of the batch that came last: the rows to tint. */
    fresh: ReadonlySet<string> = new Set()

    private newest = NaN
    private readonly reasons = new Set<string>()
    private queue: Decision[] = []
    private arrivals = new Array<number>(RATE_TICKS).fill(0)
    private isBusy = false
    private isLoading = false
    private isOver = false

    constructor(
        readonly filter: DecisionFilter,
        private readonly keep = KEEP,
        /** Passages only. */
        private readonly isOfPassages = false,
    ) {}

    /** Begins to load and to listen; the returned function ends it. */
    start(): () => void {
        const onDecision = (decision: Decision) => this.arrived(decision)
        decisionFeed.add(onDecision)
        const timer = window.setInterval(() => void this.tick(), TICK_MS)
        const stopResyncs = effect(() => {
            void resyncs.value // fetched again, now and whenever the stream may have missed something
            void this.load()
        })
        return () => {
            this.isOver = true
            decisionFeed.delete(onDecision)
            window.clearInterval(timer)
            stopResyncs()
        }
    }

    hold(reason: string, isOn: boolean): void {
        if (isOn) {
            this.reasons.add(reason)
        } else {
            this.reasons.delete(reason)
        }
        const isHeld = this.reasons.size > 0
        if (isHeld === this.isHeld.peek()) {
            return
        }
        this.isHeld.value = isHeld
        if (!isHeld && this.missed.peek() > 0) {
            void this.load()
        }
    }

    isHeldFor(reason: string): boolean {
        return this.isHeld.value && this.reasons.has(reason)
    }

    private params(): Params {
        const { ion, camera, verdict, person, label, since, until } = this.filter
        return { ion, camera, verdict, person, label, since: iso(since), until: iso(until) }
    }

    /** The newest page; what is shown stays until it is there with its first faces. */
    async load(): Promise<void> {
        if (this.isLoading) {
            return
        }
        this.isLoading = true
        try {
            this.missed.value = 0
            this.queue = []
            const list = await get<List<Decision>>(this.isOfPassages ? '/passages' : '/decisions', { ...this.params(), limit: Math.min(PAGE, this.keep) })
            if (this.rows.peek() !== undefined) {
                await this.faces(list.items.slice(0, FACES_AHEAD))
            }
            if (this.isHeld.peek() && this.rows.peek() !== undefined) {
                this.missed.value += 1 // held again meanwhile: it is fetched when that ends
            } else if (!this.isOver) {
                this.fresh = new Set()
                this.atEnd.value = list.next === null || list.next === undefined
                this.error.value = null
                this.rows.value = list.items
                this.newest = list.items[0] ? Math.max(this.newest || 0, millis(list.items[0].time_ms)) : this.newest
                this.lastMs.value = this.newest
            }
        } catch (error) {
            this.error.value = error instanceof ApiError ? error : new ApiError(-1, 'PAGE', String(error))
        } finally {
            this.isLoading = false
        }
    }

    /** The next older page, after what is there. */
    async loadOlder(): Promise<void> {
        const have = this.rows.peek() ?? []
        const last = have[have.length - 1]
        if (this.isLoading || this.atEnd.peek() || last === undefined || have.length >= KEEP_OLD) {
            return
        }
        this.isLoading = true
        try {
            const until = millis(last.time_ms) + 1 // others of the same millisecond may be missing yet
            const list = await get<List<Decision>>(this.isOfPassages ? '/passages' : '/decisions', { ...this.params(), until: iso(until), limit: 2 * PAGE })
            const merged = mergeDecisions(this.rows.peek() ?? [], list.items)
            this.atEnd.value = list.next === null || list.next === undefined || merged.length === have.length
            this.rows.value = merged
        } catch (error) {
            this.error.value = error instanceof ApiError ? error : new ApiError(-1, 'PAGE', String(error))
        } finally {
            this.isLoading = false
        }
    }

    private arrived(decision: Decision): void {
        if (!matches(decision, this.filter) || (this.isOfPassages && !decision.passage)) {
            return
        }
        this.arrivals[0]!++
        this.newest = Math.max(this.newest || 0, millis(decision.time_ms))
        if (this.isHeld.peek()) {
            this.missed.value++
            return
        }
        this.queue.push(decision)
        if (this.queue.length > this.keep) {
            this.queue.shift()
        }
    }

    private faces(decisions: Decision[]): Promise<unknown> {
        return Promise.race([Promise.all(decisions.map(preloadFace)), sleep(FACES_WAIT_MS)])
    }

    /** Sets rate and sampling. @return It has calmed down: what was left out can be shown again. */
    private measure(): boolean {
        const perSecond = (this.arrivals.reduce((sum, n) => sum + n, 0) * 1000) / (TICK_MS * RATE_TICKS)
        this.arrivals = [0, ...this.arrivals.slice(0, -1)]
        const before = this.oneIn.peek()
        const wanted = Math.max(1, Math.ceil(perSecond / MAX_ROWS_S))
        this.perSecond.value = Math.round(perSecond)
        // Not back and forth between two neighbours at a rate that is nearly even.
        this.oneIn.value = wanted === before - 1 && perSecond > (before - 1) * MAX_ROWS_S - 1 ? before : wanted
        return before > 1 && this.oneIn.peek() === 1
    }

    private async tick(): Promise<void> {
        const isCalm = this.measure()
        this.lastMs.value = this.newest
        if (this.isHeld.peek() || this.isBusy) {
            return
        }
        if (isCalm) {
            void this.load()
            return
        }
        const nth = this.oneIn.peek()
        const chosen = this.queue.filter((one) => nth === 1 || (one.seq ?? 0) % nth === 0)
        this.queue = []
        if (chosen.length === 0 || this.rows.peek() === undefined) {
            return
        }
        this.isBusy = true
        await this.faces(chosen)
        this.isBusy = false
        if (this.isHeld.peek()) {
            this.missed.value += chosen.length
        } else if (!this.isOver) {
            this.fresh = new Set(chosen.map((one) => one.id))
            const bound = Math.max(this.keep, 0)
            const merged = mergeDecisions(this.rows.peek() ?? [], chosen)
            if (merged.length > bound) {
                this.atEnd.value = false
            }
            this.rows.value = merged.slice(0, bound)
        }
    }
}
