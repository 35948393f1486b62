/** Why is one better: figures and parameters side by side, curves laid over each other, and all that match in one picture. */
import { useMemo } from 'preact/hooks'
import type { List, Metric, Run } from '../api'
import { Choices, Empty, Loaded, PageHead, Panel } from '../components/basics'
import { Chart } from '../components/chart'
import { Parallel, type Axis } from '../components/parallel'
import { curveKeys } from '../components/run_curves'
import { dayTime, millis, NONE, sentence, short, span } from '../format'
import type { Args, Screen } from '../screen'
import { curveOf, goodEnd, interest } from '../state/curves'
import { get, segment } from '../state/http'
import { project } from '../state/project'
import { useResource } from '../state/resource'
import { href, hrefWith, param, setQuery } from '../state/route'
import { now } from '../state/store'
import { experimentOf, experiments } from '../state/tracking'

const RUNS_MAX = 20
const CHARTS_MAX = 8
const CHARTS_FIRST = 4
const AXES_MAX = 8
const COLOURS = 6
const OTHERS = 1000 // of the picture of all that match

const X: Record<string, { name: string; unit: string }> = { '': { name: 'Step', unit: 'step' }, time: { name: 'Time', unit: 'time' }, relative: { name: 'Relative', unit: 's since its start' } }
const SMOOTH = ['', '0.6', '0.9', '0.97']

const toneOfRun = (i: number) => `c${(i % COLOURS) + 1}`

const idsNow = () => param('runs').split(',').filter(Boolean).slice(0, RUNS_MAX)

/* ---- figures and parameters ----------------------------------------------------------------------------------------- */

const params = (run: Run): Record<string, string> => ({ ...Object.fromEntries(Object.entries(run.parameters ?? {}).map(([key, value]) => [key, String(value)])), ...run.params })

/** Of each name that one of them has: its value in each, and whether they differ; those that differ first. */
function paramRows(runs: readonly Run[]): { key: string; values: (string | undefined)[]; isSame: boolean }[] {
    const all = runs.map(params)
    const keys = [...new Set(all.flatMap((one) => Object.keys(one)))]
    const rows = keys.map((key) => {
        const values = all.map((one) => one[key])
        return { key, values, isSame: values.every((value) => value === values[0]) }
    })
    return [...rows.filter((row) => !row.isSame), ...rows.filter((row) => row.isSame)]
}

function bestOf(values: readonly (number | null | undefined)[], end: 1 | -1 | 0): number | undefined {
    const numbers = values.filter((value): value is number => typeof value === 'number')
    return end === 0 || numbers.length < 2 ? undefined : numbers.reduce((a, b) => (end * b > end * a ? b : a))
}

function Figures({ runs, metrics }: { runs: readonly Run[]; metrics: readonly string[] }) {
    const rows = paramRows(runs)
    const without = (id: string) => hrefWith({ runs: idsNow().filter((one) => one !== id).join() })
    return (
        <Panel title="Figures" window="last values · parameters that differ are bold, equal ones grey">
            <div class="table-wrap" tabIndex={0} role="region" aria-label="Runs side by side">
                <table class="dense compare">
                    <thead>
                        <tr>
                            <th scope="col">Run</th>
                            {metrics.map((key) => (
                                <th key={key} scope="col" class="num">
                                    {key}
                                </th>
                            ))}
                            {rows.map((row) => (
                                <th key={row.key} scope="col">
                                    {row.key}
                                </th>
                            ))}
                            <th scope="col" class="num">
                                Time
                            </th>
                            <th scope="col">Started</th>
                            <th scope="col">Code</th>
                        </tr>
                    </thead>
                    <tbody>
                        {runs.map((run, i) => (
                            <tr key={run.id}>
                                <td>
                                    <i class={`sw ${toneOfRun(i)}`} /> <a class="main" href={href(['runs', run.id])}>{run.name}</a>{' '}
                                    <a class="muted" href={without(run.id)} aria-label={`Take ${run.name} out`}>
                                        ×
                                    </a>
                                </td>
                                {metrics.map((key) => {
                                    const value = run.metrics?.[key]
                                    const isBest = typeof value === 'number' && value === bestOf(runs.map((one) => one.metrics?.[key]), goodEnd(key))
                                    return (
                                        <td key={key} class={`num ${isBest ? 'best' : ''}`} title={isBest ? 'the best of them' : undefined}>
                                            {short(value)}
                                        </td>
                                    )
                                })}
                                {rows.map((row) => (
                                    <td key={row.key}>{row.isSame ? <span class="muted">{row.values[i] ?? NONE}</span> : <b>{row.values[i] ?? NONE}</b>}</td>
                                ))}
                                <td class="num">{run.started_ms ? span(run.started_ms, run.finished_ms, now.value) : NONE}</td>
                                <td class="muted">{dayTime(run.started_ms ?? run.created_ms)}</td>
                                <td>
                                    <code>{(run.tags?.['mlflow.source.git.commit'] ?? run.code_version ?? '').slice(0, 8) || NONE}</code>
                                </td>
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
        </Panel>
    )
}

/* ---- curves --------------------------------------------------------------------------------------------------------- */

/** Each point weighs against those before it; 0: as it was measured. */
function smoothed(points: readonly Metric[], weight: number): Metric[] {
    let last: number | null = null
    return points.map((point) => {
        if (point.value === null || weight === 0) {
            return point
        }
        last = last === null ? point.value : weight * last + (1 - weight) * point.value
        return { ...point, value: last }
    })
}

function Overlaid({ runs, metric }: { runs: readonly Run[]; metric: string }) {
    const ids = runs.map((run) => run.id)
    const x = X[param('x')] ?? X['']!
    const weight = Number(param('smooth')) || 0
    const isLog = param('log').split(',').includes(metric)
    const curves = useResource(`${metric} ${ids.join()}`, () => Promise.all(ids.map((id) => curveOf(id, metric))))
    const points = useMemo(
        () =>
            (curves.data.value ?? []).flatMap((curve, i) => {
                const begin = millis(curve[0]?.time_ms)
                return smoothed(curve, weight).map((point) => ({
                    ...point,
                    key: ids[i]!,
                    step: x === X['time'] ? millis(point.time_ms) : x === X['relative'] ? Math.round((millis(point.time_ms) - begin) / 1000) : point.step,
                    value: isLog && (point.value ?? 0) <= 0 ? null : point.value,
                }))
            }),
        [curves.data.value, x, weight, isLog],
    )
    const missing = (curves.data.value ?? []).filter((curve) => curve.length === 0).length
    const names = new Map(runs.map((run) => [run.id, run.name]))
    const toggled = isLog ? param('log').split(',').filter((one) => one !== metric) : [...param('log').split(',').filter(Boolean), metric]
    return (
        <Loaded resource={curves}>
            {() => (
                <div>
                    <Chart
                        title={metric}
                        keys={ids}
                        points={points}
                        window={[missing > 0 ? `not logged by ${missing} of ${runs.length}` : '', weight > 0 ? `smoothed ${weight}` : '', isLog ? 'log scale' : ''].filter(Boolean).join(' · ')}
                        over={{ nameOf: (id) => names.get(id) ?? id, x: x.unit, isLog, group: 'compare' }}
                    />
                    <p class="under-chart small">
                        <a href={hrefWith({ log: toggled.join() })}>{isLog ? 'Linear scale' : 'Log scale'}</a>
                        <a href={hrefWith({ metrics: chosenMetrics(runs).filter((one) => one !== metric).join() || '-' })}>Take away</a>
                    </p>
                </div>
            )}
        </Loaded>
    )
}

/** Names of metrics, those that most of them have first. */
function metricNames(runs: readonly Run[]): string[] {
    const count = new Map<string, number>()
    for (const key of runs.flatMap(curveKeys)) {
        count.set(key, (count.get(key) ?? 0) + 1)
    }
    return [...count.keys()].sort((a, b) => count.get(b)! - count.get(a)! || interest(b) - interest(a) || a.localeCompare(b))
}

function chosenMetrics(runs: readonly Run[]): string[] {
    return param('metrics') === '' ? metricNames(runs).filter((key) => !key.startsWith('system/')).slice(0, CHARTS_FIRST) : param('metrics').split(',').filter((key) => key !== '-')
}

/* ---- all that match ------------------------------------------------------------------------------------------------- */

/** Axes: parameters that differ among them, and at the end the first metric. */
function axesOf(runs: readonly Run[], metric: string | undefined): Axis[] {
    const differing = paramRows(runs).filter((row) => !row.isSame).slice(0, AXES_MAX - 1)
    return [...differing.map((row) => ({ name: row.key, values: row.values })), ...(metric ? [{ name: metric, values: runs.map((run) => run.metrics?.[metric]) }] : [])]
}

function All({ runs, experiment, metric }: { runs: readonly Run[]; experiment: number | undefined; metric: string | undefined }) {
    const filter = param('q')
    const others = useResource(`${experiment ?? ''} ${filter} ${project.value ?? ''}`, () => get<List<Run>>('/runs', { experiment, project: project.value, filter, limit: OTHERS }))
    const all = useMemo(() => [...runs, ...(others.data.value?.items ?? []).filter((one) => !runs.some((run) => run.id === one.id))], [runs, others.data.value])
    const axes = useMemo(() => axesOf(all, metric), [all, metric])
    const strands = useMemo(() => all.map((run, i) => ({ id: run.id, name: run.name, tone: i < runs.length ? toneOfRun(i) : undefined })), [all])
    return axes.length < 2 ? null : (
        <Parallel
            title="Parallel coordinates"
            window={`${all.length} runs${filter ? ' that match' : ''}, ${runs.length} chosen`}
            axes={axes}
            strands={strands}
            onChoose={(ids) => setQuery({ runs: ids.slice(0, RUNS_MAX).join() })}
        />
    )
}

function Compared({ runs, experiment }: { runs: readonly Run[]; experiment: number | undefined }) {
    const names = metricNames(runs)
    const shown = chosenMetrics(runs)
    const left = names.filter((key) => !shown.includes(key))
    return (
        <>
            <Figures runs={runs} metrics={shown} />
            <div class="grid g2">
                {shown.slice(0, CHARTS_MAX).map((metric) => (
                    <Overlaid key={metric} runs={runs} metric={metric} />
                ))}
            </div>
            {left.length > 0 && shown.length < CHARTS_MAX && (
                <label class="row">
                    Add a chart
                    <select class="input" name="add-chart" value="" onChange={(event) => setQuery({ metrics: [...shown, event.currentTarget.value].join() })}>
                        <option value="">of …</option>
                        {left.map((key) => (
                            <option key={key}>{key}</option>
                        ))}
                    </select>
                </label>
            )}
            <All runs={runs} experiment={experiment} metric={shown[0]} />
        </>
    )
}

function Compare({ args }: { args: Args }) {
    const experiment = experimentOf(args['experiment'])
    const ids = idsNow()
    const found = useResource(ids.join(), () => Promise.all(ids.map((id) => get<Run>(`/runs/${segment(id)}`))))
    const x = X[param('x')] ? param('x') : ''
    return (
        <>
            <PageHead
                title={`Compare ${ids.length} ${ids.length === 1 ? 'run' : 'runs'}`}
                crumbs={[['Experiments', href('experiments')], ...(experiment ? [[experiment.name, href(['experiments', experiment.name], { q: param('q'), pick: ids.join() })] as [string, string]] : [])]}
            >
                <Choices label="Curves by" items={Object.entries(X).map(([id, { name }]) => ({ name, address: hrefWith({ x: id }), isCurrent: id === x }))} />
                <Choices label="Smooth" items={SMOOTH.map((weight) => ({ name: weight === '' ? 'Not smoothed' : weight, address: hrefWith({ smooth: weight }), isCurrent: param('smooth') === weight }))} />
            </PageHead>
            {ids.length === 0 ? (
                <div class="panel">
                    <Empty icon="runs" title="No runs are chosen" more={<a class="button small" href={href('experiments')}>{sentence('choose runs')}</a>}>
                        Choose runs in the list with x, then press c.
                    </Empty>
                </div>
            ) : (
                <Loaded resource={found} rows={8}>
                    {(runs) => <Compared runs={runs} experiment={experiment?.id} />}
                </Loaded>
            )}
        </>
    )
}

const screen = (id: string, address: string): Screen => ({
    id,
    title: 'Compare runs',
    icon: 'runs',
    address,
    query: ['runs', 'q', 'x', 'smooth', 'log', 'metrics'],
    under: 'experiments',
    load: [experiments],
    render: Compare,
})

export const compareScreens: readonly Screen[] = [screen('compare', 'experiments/:experiment/compare'), screen('compare-all', 'compare')]
