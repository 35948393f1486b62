/** Columns of a list of runs: attributes, and what was logged; figures of one of them have bars after their size. */
import type { Run } from '../api'
import { NONE, short, span } from '../format'
import { goodEnd } from '../state/curves'
import { param } from '../state/route'
import { Heading, type Rows } from '../state/rows'
import { now } from '../state/store'
import { splitColumn } from '../state/tracking'
import { Owner, When } from './basics'
import { RunState } from './run_state'
import type { Column } from './table'

/** A column's values as numbers lie between these: for the bars. */
export function boundsOf(rows: Rows<Run>, key: string): [number, number] {
    let [low, high] = [Infinity, -Infinity]
    for (const run of rows) {
        const value = run instanceof Heading ? undefined : run?.metrics?.[key]
        if (typeof value === 'number') {
            low = Math.min(low, value)
            high = Math.max(high, value)
        }
    }
    return [low, high]
}

function MetricCell({ value, bounds }: { value: number | null | undefined; bounds: [number, number] | undefined }) {
    const part = bounds && typeof value === 'number' ? (bounds[1] > bounds[0] ? 0.1 + (0.9 * (value - bounds[0])) / (bounds[1] - bounds[0]) : 1) : 0
    return (
        <>
            {value === null ? 'NaN' : short(value)}
            {bounds && (
                <span class="bar thin in-cell" aria-hidden="true">
                    <i style={{ width: `${part * 100}%` }} />
                </span>
            )}
        </>
    )
}

export const OF_ATTRIBUTES: Record<string, Column<Run>> = {
    status: { id: 'status', name: 'State', width: '100px', phone: 'state', sort: (run) => run.status, render: (run) => <RunState run={run} /> },
    took: { id: 'took', name: 'Time', width: '72px', isNumber: true, phone: 'more', render: (run) => (run.started_ms ? span(run.started_ms, run.finished_ms, run.finished_ms ? 0 : now.value) : NONE) },
    user: { id: 'user', name: 'By', width: '64px', render: (run) => <span class="muted">{run.user ?? run.created_by ?? NONE}</span> },
    started: { id: 'start_time', name: 'Started', width: '140px', isNumber: true, sort: (run) => run.started_ms ?? '', render: (run) => <When time={run.started_ms ?? run.created_ms} /> },
    project: { id: 'project', name: 'Project', width: '100px', render: (run) => <Owner project={run.project} /> },
}

/** The column that has bars: the one that is sorted by, else the first of a metric. */
export function withBars(ids: readonly string[]): string | undefined {
    const sorted = param('sort').replace(/^-/, '')
    return sorted.startsWith('metrics.') ? sorted : ids.find((id) => id.startsWith('metrics.'))
}

export const isNumeric = (run: Run | undefined, id: string) => {
    const [family, key] = splitColumn(id)
    return family === 'metrics' || (family === 'params' && !Number.isNaN(Number(run?.params?.[key] ?? NaN)))
}

/** Columns of these ids, those of `numbers` at the right. */
export function columnsOf(ids: readonly string[], barred: [string, [number, number]] | undefined, numbers: readonly string[], first: Column<Run>[]): Column<Run>[] {
    return [
        ...first,
        ...ids.flatMap((id): Column<Run>[] => {
            const [family, key] = splitColumn(id)
            if (family === '') {
                return OF_ATTRIBUTES[key] ? [OF_ATTRIBUTES[key]] : []
            }
            const bounds = id === barred?.[0] ? barred[1] : undefined
            const isNumber = numbers.includes(id)
            return [
                {
                    id,
                    name: key,
                    width: bounds ? '116px' : family === 'metrics' ? '76px' : isNumber ? '64px' : '84px',
                    isNumber,
                    isBestLast: family === 'metrics' && goodEnd(key) > 0,
                    sort: () => 0,
                    ...(bounds ? { phone: 'more' as const } : {}),
                    render: (run) => (family === 'metrics' ? <MetricCell value={run.metrics?.[key]} bounds={bounds} /> : <span title={run[family]?.[key]}>{run[family]?.[key] ?? NONE}</span>),
                },
            ]
        }),
    ]
}
