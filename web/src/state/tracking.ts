/**
 * Experiments and their runs as the server tracks them: by a filter and an order that it applies, in pages by key. A list
 * may be of 100,000 runs: the page keeps those around the ones in view, and fetches the others again when they come back.
 */
import { signal } from '@preact/signals'
import type { Experiment, List, Metric, Run, RunSummary } from '../api'
import type { Opt } from '../types'
import { get, getAll, ApiError } from './http'
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
    return get<RunSummary>('/runs/summary', { experiment, project, filter, view })
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

/** Part of the list: where it begins, how many rows it has, and what the server calls its begin. */
interface Page {
    start: number
    n: number
    cursor: Opt<string | number>
    isHere: boolean
}

type News = Partial<Run> & { id: string }

export class RunPages {
    readonly found = signal<FoundRuns | null>(null)
    readonly error = signal<ApiError | null>(null)
    private pages: Page[] = [{ start: 0, n: 0, cursor: undefined, isHere: false }] // the last of them may not have been fetched
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
            if (this.found.peek() !== null) {
                this.set({ matching: n })
            }
            this.matching = n
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

    /** The page that is wanted next, if any. */
    private next(): Page | undefined {
        const [first, last] = this.view
        return this.pages.find((page) => !page.isHere && page.start <= last + AHEAD && (page.n === 0 || page.start + page.n > first))
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

    private async fetch(page: Page): Promise<void> {
        const began = performance.now()
        const list = await get<List<Run>>('/runs', { ...paramsOf(this.wanted), limit: PAGE, cursor: page.cursor })
        const old = this.found.peek()
        const rows = [...(old?.rows ?? [])]
        const isLast = page === this.pages.at(-1)
        const next = list.next ?? null
        page.isHere = true
        if (isLast) {
            page.n = list.items.length
            if (next !== null) {
                this.pages.push({ start: page.start + page.n, n: 0, cursor: next, isHere: false })
            }
        }
        for (let i = 0; i < page.n; i++) {
            rows[page.start + i] = list.items[i] // one that has gone since stays empty
        }
        this.drop(rows)
        this.set({ rows, isWhole: isLast ? next === null : (old?.isWhole ?? false), matching: this.matching, ...(old ? {} : { tookMs: performance.now() - began }) })
    }

    /** The pages that lie farthest from what is in view go; their rows are fetched again when they come back. */
    private drop(rows: (Run | undefined)[]): void {
        const middle = (this.view[0] + this.view[1]) / 2
        const far = (page: Page) => Math.abs(page.start + page.n / 2 - middle)
        const here = this.pages.filter((page) => page.isHere).sort((a, b) => far(b) - far(a))
        for (const page of here.slice(0, Math.max(0, here.length - KEEP_PAGES))) {
            page.isHere = false
            rows.fill(undefined, page.start, page.start + page.n)
        }
    }
}

/** By its name, or its number where several projects have one of that name. */
export function experimentOf(wanted: Opt<string>): Experiment | undefined {
    const list = (experiments.data.value ?? []).filter(inProject)
    return list.find((one) => one.name === wanted) ?? list.find((one) => String(one.id) === wanted)
}
