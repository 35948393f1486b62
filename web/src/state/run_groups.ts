/**
 * A list of runs in groups: those with the same value of a parameter, a tag or an attribute. The server counts and measures
 * them; the runs of a group are fetched, by pages, while it is unfolded.
 */
import { computed, signal, type ReadonlySignal } from '@preact/signals'
import type { Run, RunGroup, RunGroups } from '../api'
import type { Opt } from '../types'
import { ApiError, DRAFT, get } from './http'
import { Heading } from './rows'
import { nameInGrammar, paramsOf, RunPages, splitColumn, type Found, type Wanted } from './tracking'

const PAGE = 200
const AHEAD = 60 // rows

/** As an address has it: "-" for the runs that have no value. */
export const groupKey = (group: RunGroup): string => (group.value === null ? '-' : `=${group.value}`)

/** The filter that only the runs of a group fit. */
export function filterOfGroup(filter: string, by: string, value: string | null): string {
    const name = nameInGrammar(by)
    const own = value === null ? `not ${name} like "%"` : `${name} = "${value.replace(/"/g, '""')}"`
    return filter === '' ? own : `(${filter}) and ${own}`
}

/** Runs are told apart by more than their values: what a heading is of. */
export interface Grouped {
    group: RunGroup
    isOpen: boolean
}

export class GroupedRuns {
    readonly found: ReadonlySignal<Found | null>
    readonly error: ReadonlySignal<ApiError | null>
    private readonly list = signal<{ groups: RunGroup[]; next: Opt<string>; tookMs: number } | null>(null)
    private readonly failed = signal<ApiError | null>(null)
    private readonly inside = signal<ReadonlyMap<string, RunPages>>(new Map())
    private readonly stops = new Map<string, () => void>()
    private spans: { pages: RunPages; start: number; n: number }[] = []
    private isBusy = false

    /** @param by A column's id. @param metric Whose figures stand beside each group; undefined: none. */
    constructor(
        private readonly wanted: Wanted,
        private readonly by: string,
        private readonly metric: string | undefined,
    ) {
        this.found = computed(() => this.lay())
        this.error = computed(() => this.failed.value ?? [...this.inside.value.values()].map((pages) => pages.error.value).find((error) => error !== null) ?? null)
    }

    start(): () => void {
        void this.more()
        return () => this.open([])
    }

    /** The groups with these keys are unfolded, and no others. */
    open(keys: readonly string[]): void {
        const inside = new Map(this.inside.peek())
        for (const key of inside.keys()) {
            if (!keys.includes(key)) {
                this.stops.get(key)?.()
                inside.delete(key)
            }
        }
        for (const key of keys.filter((one) => !inside.has(one))) {
            const value = key.startsWith('=') ? key.slice(1) : null
            const pages = new RunPages({ ...this.wanted, filter: filterOfGroup(this.wanted.filter, this.by, value) })
            this.stops.set(key, pages.start(false))
            inside.set(key, pages)
        }
        this.inside.value = inside
    }

    need(first: number, last: number): void {
        for (const { pages, start, n } of this.spans) {
            if (first < start + n && last > start) {
                pages.need(Math.max(0, first - start), Math.min(n, last - start))
            }
        }
        if (last + AHEAD > (this.found.peek()?.rows.length ?? 0) && this.list.peek()?.next) {
            void this.more()
        }
    }

    /** The next page of groups. */
    private async more(): Promise<void> {
        if (this.isBusy || this.failed.peek()) {
            return
        }
        this.isBusy = true
        const began = performance.now()
        const old = this.list.peek()
        try {
            const { experiment, project, filter, view } = paramsOf(this.wanted)
            const answer = await get<RunGroups>('/runs/groups', { experiment, project, filter, view, by: nameInGrammar(this.by), metric: this.metric, limit: PAGE, cursor: old?.next }, DRAFT)
            this.list.value = { groups: [...(old?.groups ?? []), ...answer.items], next: answer.next, tookMs: old?.tookMs ?? performance.now() - began }
        } catch (error) {
            this.failed.value = error instanceof ApiError ? error : new ApiError(-1, 'PAGE', String(error))
        } finally {
            this.isBusy = false
        }
    }

    /** Headings one below another, each with its runs below it while it is unfolded: as many places as it has runs. */
    private lay(): Found | null {
        const list = this.list.value
        if (list === null) {
            return null
        }
        const rows: (Run | Heading | undefined)[] = []
        this.spans = []
        for (const group of inOrder(list.groups)) {
            const key = groupKey(group)
            const pages = this.inside.value.get(key)
            rows.push(new Heading(key, { group, isOpen: pages !== undefined } satisfies Grouped))
            if (pages) {
                const own = pages.found.value
                const n = own?.isWhole ? own.rows.length : Math.max(group.n_runs, own?.rows.length ?? 0)
                this.spans.push({ pages, start: rows.length, n })
                for (let i = 0; i < n; i++) {
                    rows.push(own?.rows[i])
                }
            }
        }
        const isWhole = !list.next
        return { rows, isWhole, matching: isWhole ? list.groups.reduce((sum, one) => sum + one.n_runs, 0) : undefined, tookMs: list.tookMs, nNew: 0 }
    }
}

/** Numbers after their size, where all are numbers; the runs that have none last. */
function inOrder(groups: readonly RunGroup[]): RunGroup[] {
    const named = groups.filter((one) => one.value !== null)
    if (named.every((one) => one.value !== '' && !Number.isNaN(Number(one.value)))) {
        named.sort((a, b) => Number(a.value) - Number(b.value))
    }
    return [...named, ...groups.filter((one) => one.value === null)]
}

/** Columns that runs can be put together by. */
export const canGroup = (id: string): boolean => ['params', 'tags'].includes(splitColumn(id)[0]) || id === 'status' || id === 'user'
