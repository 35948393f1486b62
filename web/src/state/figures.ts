/** A deployment's figures while somebody looks: the gateway counts since it started, the difference of two looks is a window. */
import { useEffect, useState } from 'preact/hooks'
import type { DeploymentFigures, DeploymentVersionFigures } from '../api'
import { millis } from '../format'
import { get, segment } from './http'

const EVERY_MS = 5_000
const KEEP = 361 // half an hour
export const WINDOW_MS = 60_000

/** Of one version, between two looks. */
export interface Window {
    seconds: number
    requests: number
    failed: number
    refused: number
    p50: number | null // us
    p99: number | null
}

type Sample = { timeMs: number; versions: ReadonlyMap<number, DeploymentVersionFigures> }

/** The time that this share of the requests between the two looks stayed below, in us; null: there was none. */
function quantile(before: unknown[], after: unknown[], share: number): number | null {
    const old = new Map(before as [number, number][])
    const counts = (after as [number, number][]).map(([end, n]) => [end, n - (old.get(end) ?? 0)] as const).filter(([, n]) => n > 0)
    const wanted = Math.floor(counts.reduce((sum, [, n]) => sum + n, 0) * share)
    let seen = 0
    for (const [end, n] of counts) {
        seen += n
        if (seen > wanted) {
            return end - 1
        }
    }
    return counts.at(-1)?.[0] ?? null
}

/** Null: one of them does not have the version, or the server started again between them. */
function between(before: Sample, after: Sample, version: number): Window | null {
    const b = after.versions.get(version)
    const a = before.versions.get(version)
    if (b === undefined || (a && a.n_requests > b.n_requests)) {
        return null
    }
    const buckets = a?.buckets ?? []
    return {
        seconds: (after.timeMs - before.timeMs) / 1000,
        requests: b.n_requests - (a?.n_requests ?? 0),
        failed: b.n_failed - (a?.n_failed ?? 0),
        refused: b.n_refused - (a?.n_refused ?? 0),
        p50: quantile(buckets, b.buckets, 0.5),
        p99: quantile(buckets, b.buckets, 0.99),
    }
}

export class FigureLog {
    readonly samples: readonly Sample[]

    constructor(samples: readonly Sample[] = []) {
        this.samples = samples
    }

    with(figures: DeploymentFigures): FigureLog {
        const sample = { timeMs: millis(figures.time_ms), versions: new Map(figures.items.map((one) => [one.version, one])) }
        return new FigureLog([...this.samples, sample].slice(-KEEP))
    }

    get times(): number[] {
        return this.samples.slice(1).map((one) => one.timeMs)
    }

    get sinceMs(): number {
        return this.samples[0]?.timeMs ?? NaN
    }

    /** Since the server started. */
    total(version: number): DeploymentVersionFigures | undefined {
        return this.samples.at(-1)?.versions.get(version)
    }

    /** From look to look, as points of a chart. */
    series(version: number, of: (window: Window) => number | null): (number | null)[] {
        return this.samples.slice(1).map((sample, i) => {
            const window = between(this.samples[i]!, sample, version)
            return window && of(window)
        })
    }

    /** The last minute, or as much of it as was looked at. */
    latest(version: number): Window | null {
        const last = this.samples.at(-1)
        const first = this.samples.find((one) => one.timeMs >= (last?.timeMs ?? 0) - WINDOW_MS)
        return last && first && first !== last ? between(first, last, version) : null
    }
}

export const perSecond = (window: Window) => (window.seconds > 0 ? window.requests / window.seconds : 0)

/** Looked at now and every 5 s while the page is seen; forgotten with the component. */
export function useFigures(name: string): { log: FigureLog; error: string } {
    const [state, setState] = useState({ log: new FigureLog(), error: '' })
    useEffect(() => {
        let isOver = false
        const look = async () => {
            if (document.hidden) {
                return
            }
            try {
                const figures = await get<DeploymentFigures>(`/deployments/${segment(name)}/figures`)
                if (!isOver) {
                    setState((old) => ({ log: old.log.with(figures), error: '' }))
                }
            } catch (error) {
                if (!isOver) {
                    setState((old) => ({ ...old, error: error instanceof Error ? error.message : String(error) }))
                }
            }
        }
        void look()
        const timer = window.setInterval(() => void look(), EVERY_MS)
        return () => {
            isOver = true
            window.clearInterval(timer)
        }
    }, [name])
    return state
}
