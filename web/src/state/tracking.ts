/**
 * Experiments and their runs as the server tracks them: by a filter and an order that it applies, in pages by key. A list
 * may be of 100,000 runs: the page keeps those around the ones in view, and fetches the others again when they come back.
 */
import { signal } from '@preact/signals'
import type { Experiment, List, Metric, Run, RunSummary } from '../api'
import type { Opt } from '../types'
import { ApiError, DRAFT, get, getAll } from './http'
import { Resource } from './resource'
import { inProject } from './project'
import type { Rows } from './rows'
import { runFeed } from './store'

export const PAGE = 200
const KEEP_PAGES = 12
const AHEAD = 150 // rows fetched before they come into view: who does not scroll fetches one page

export const experiments = new Resource<Experiment[]>(() => getAll<Experiment>('/experiments', { limit: 1000 }, 5))

export type Family = 'metrics' | 'params' | 'tags'

/** "metrics.val/acc" → metrics and val/acc; else an attribute of the run. */
export function splitColumn(id: string): [Family | '', string] {
    const found = /^(metrics|params|tags)\.(.+)$/.exec(id)
    return found ? [found[1] as Family, found[2]!] : ['', id]
}

/** As the grammar of filters and orders wants a name: what is no plain word stands in backticks. */
export function nameInGrammar(id: string): string {
    const [family, key] = splitColumn(id)
    return family === '' ? key : `${family}.${/^\w+$/.test(key) ? key : `\`${key}\``}`
}

/** The tag that is a run's or an experiment's description, as MLflow's page has it. */
export const NOTE_TAG = 'mlflow.note.content'

/** How many runs there are, and the names of what was logged of the newest of them. */
export function summaryOf(wanted: Pick<Wanted, 'experiment' | 'project' | 'filter' | 'isDeleted'>): Promise<RunSummary> {
    const { experiment, project, filter, view } = paramsOf({ ...wanted, sort: '', columns: [] })
    return get<RunSummary>('/runs/summary', { experiment, project, filter, view }, DRAFT)
}

/** What one asks for; each part as the server takes it. */
export interface Wanted {
    experiment: Opt<number>
    project: Opt<string>
    filter: string
    /** A column's id, with "-" before it for the greatest first. */
    sort: string
    columns: readonly string[]
    isDeleted: boolean
}

export function paramsOf(wanted: Wanted): Record<string, Opt<string | number>> {
    const by = wanted.sort.replace(/^-/, '')
    return {
        experiment: wanted.experiment,
        project: wanted.project,
        filter: wanted.filter,
        order: by === '' ? undefined : `${nameInGrammar(by)} ${wanted.sort.startsWith('-') ? 'DESC' : 'ASC'}`,
        columns: wanted.columns.join(),
        view: wanted.isDeleted ? 'deleted' : undefined,
    }
}

export interface Found {
    rows: Rows<Run>
    isWhole: boolean // there are no more
    matching: number | undefined
    tookMs: number
    /** Runs that began since. */
    nNew: number
}

/** As Found, without headings. */
interface FoundRuns extends Found {
    rows: readonly (Run | undefined)[]
}

type News = Partial<Run> & { id: string }

export class RunPages {
    readonly found = signal<FoundRuns | null>(null)
    readonly error = signal<ApiError | null>(null)
    private here = new Set<number>() // pages that are held, by their number: each is PAGE rows
    private end = Infinity // how many there are, once the last of them has come
    private cursors = new Map<number, string>() // where a page begins, once the one before it has come
    private view: [number, number] = [0, 0]
    private isBusy = false
    private isOver = false

    constructor(private readonly wanted: Wanted) {}

    /** Rows in view: what lies there, and a little after it, is fetched if it is not here. */
    need(first: number, last: number): void {
        this.view = [first, last]
        void this.work()
    }

    /** Live changes come until the returned function is called. @param isCounted How many match is asked for, too. */
    start(isCounted = true): () => void {
        const take = (news: News, points: readonly Metric[]) => this.change(news, points)
        runFeed.add(take)
        void this.work()
        if (isCounted) {
            void this.count()
        }
        return () => {
            this.isOver = true
            runFeed.delete(take)
        }
    }

    private set(change: Partial<FoundRuns>): void {
        this.found.value = { rows: [], isWhole: false, matching: undefined, tookMs: 0, nNew: 0, ...this.found.peek(), ...change }
    }

    /** How many match comes by itself, after the first rows: of many runs it takes longer than they do. */
    private async count(): Promise<void> {
        try {
            const { n } = await summaryOf(this.wanted)
            const found = this.found.peek()
            this.matching = n
            if (found !== null) {
                const rows = [...found.rows]
                this.stretch(rows)
                this.set({ rows, matching: n })
            }
        } catch {
            this.matching = undefined // the rows say what is wrong
        }
    }

    private matching: number | undefined

    private change(news: News, points: readonly Metric[]): void {
        const found = this.found.peek()
        const at = found?.rows.findIndex((run) => run?.id === news.id) ?? -1
        if (!found || at < 0) {
            /* A run of a job is new when it is told whole; one of a program when it runs. */
            if (found && (news.created_ms || (news.status === 'RUNNING' && !news.job))) {
                this.set({ nNew: found.nNew + 1 })
            }
            return
        }
        const old = found.rows[at]!
        const rows = [...found.rows]
        rows[at] = { ...old, ...news, metrics: { ...old.metrics, ...Object.fromEntries(points.map((one) => [one.key, one.value as number])) } }
        this.set({ rows })
    }

    /** The page that is wanted next, if any: one in view, or a little after it. */
    private next(): number | undefined {
        const [first, last] = this.view
        for (let page = Math.floor(first / PAGE); page <= Math.floor((last + AHEAD) / PAGE); page++) {
            if (!this.here.has(page) && page * PAGE < this.end) {
                return page
            }
        }
        return undefined
    }

    private async work(): Promise<void> {
        if (this.isBusy || this.isOver || this.error.peek()) {
            return
        }
        this.isBusy = true
        try {
            for (let page = this.next(); page !== undefined && !this.isOver; page = this.next()) {
                await this.fetch(page)
            }
        } catch (error) {
            this.error.value = error instanceof ApiError ? error : new ApiError(-1, 'PAGE', String(error))
        } finally {
            this.isBusy = false
        }
    }

    /** One page: behind the one before it, or, where that is not known, by how many rows come before it. */
    private async fetch(page: number): Promise<void> {
        const began = performance.now()
        const items: Run[] = []
        let cursor: Opt<string> = this.cursors.get(page)
        const skip = cursor === undefined ? page * PAGE : 0
        do {
            const list: List<Run> = await get<List<Run>>('/runs', { ...paramsOf(this.wanted), limit: PAGE - items.length, cursor, skip: items.length === 0 && skip > 0 ? skip : undefined }, DRAFT)
            items.push(...list.items)
            cursor = list.next === null ? null : String(list.next)
        } while (cursor !== null && items.length < PAGE)
        const old = this.found.peek()
        const rows = [...(old?.rows ?? [])]
        const isEnd = cursor === null || cursor === undefined
        if (isEnd) {
            this.end = page * PAGE + items.length
            rows.length = Math.min(rows.length, this.end) // fewer than there were
        } else {
            this.cursors.set(page + 1, String(cursor))
        }
        while (items.length > 0 && rows.length < page * PAGE + items.length) {
            rows.push(undefined)
        }
        items.forEach((run, i) => (rows[page * PAGE + i] = run))
        this.here.add(page)
        this.drop(rows)
        this.stretch(rows)
        this.set({ rows, isWhole: isEnd || (old?.isWhole ?? false), matching: this.matching, ...(old ? {} : { tookMs: performance.now() - began }) })
    }

    /** As many places as there are rows, once that is known: the bar of the page then tells where one is, and End leads to the end. */
    private stretch(rows: (Run | undefined)[]): void {
        while (rows.length < Math.min(this.end, this.matching ?? 0)) {
            rows.push(undefined)
        }
    }

    /** The pages that lie farthest from what is in view go; their rows are fetched again when they come back. */
    private drop(rows: (Run | undefined)[]): void {
        const middle = (this.view[0] + this.view[1]) / 2
        const far = (page: number) => Math.abs(page * PAGE + PAGE / 2 - middle)
        const byFar = [...this.here].sort((a, b) => far(b) - far(a))
        for (const page of byFar.slice(0, Math.max(0, byFar.length - KEEP_PAGES))) {
            this.here.delete(page)
            rows.fill(undefined, page * PAGE, (page + 1) * PAGE)
        }
    }
}

/** By its name, or its number where several projects have one of that name. */
export function experimentOf(wanted: Opt<string>): Experiment | undefined {
    const list = (experiments.data.value ?? []).filter(inProject)
    return list.find((one) => one.name === wanted) ?? list.find((one) => String(one.id) === wanted)
}
