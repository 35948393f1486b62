/**
 * Why is one better: figures and parameters side by side, curves laid over each other, and all that match in one picture.
 * More runs than one can tell apart are bands: of all of them, or of those with the same value of a parameter.
 */
import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'
import type { List, Metric, Run } from '../api'
import { Choices, Empty, Loaded, PageHead, Panel } from '../components/basics'
import { Bands } from '../components/bands'
import { Chart } from '../components/chart'
import { Parallel, type Axis } from '../components/parallel'
import { curveKeys } from '../components/run_curves'
import { counted, dayTime, millis, NONE, plural, sentence, short, span } from '../format'
import type { Args, Screen } from '../screen'
import { groupsOf, type Point } from '../state/bands'
import { curveOf, goodEnd, interest } from '../state/curves'
import { get } from '../state/http'
import { project } from '../state/project'
import { useResource } from '../state/resource'
import { href, hrefWith, param, setQuery } from '../state/route'
import { now } from '../state/store'
import { experimentOf, experiments } from '../state/tracking'

const RUNS_MAX = 100
const CURVES_MAX = 20 // more are bands
const BAND_POINTS = 250
const AT_A_TIME = 8 // requests for curves
const CHARTS_MAX = 8
const CHARTS_FIRST = 4
const AXES_MAX = 8
const COLOURS = 6
const OTHERS = 1000 // of the picture of all that match

const X: Record<string, { name: string; unit: string }> = { '': { name: 'Step', unit: 'step' }, time: { name: 'Time', unit: 'time' }, relative: { name: 'Relative', unit: 's since its start' } }
const SMOOTH = ['', '0.6', '0.9', '0.97']

const isMany = (runs: readonly Run[]) => runs.length > CURVES_MAX

/** Runs that are one band: without a parameter to tell them apart by, all. */
function bandsOf(runs: readonly Run[]): { name: string; items: Run[] }[] {
    const by = param('by')
    return groupsOf(runs, (run) => (by === '' ? counted(runs.length, 'run') : `${by} ${params(run)[by] ?? 'not set'}`), COLOURS, 'others')
}

/** The colour of each run: its own, or that of its band. */
function tonesOf(runs: readonly Run[]): string[] {
    const bands = isMany(runs) ? bandsOf(runs) : []
    return runs.map((run, i) => `c${(bands.length > 0 ? bands.findIndex((band) => band.items.includes(run)) : i % COLOURS) + 1}`)
}

const idsNow = () => param('runs').split(',').filter(Boolean).slice(0, RUNS_MAX)

/* ---- figures and parameters ----------------------------------------------------------------------------------------- */

const params = (run: Run): Record<string, string> => ({ ...Object.fromEntries(Object.entries(run.parameters ?? {}).map(([key, value]) => [key, String(value)])), ...run.params })

/** Of each name that one of them has: its value in each, and whether they differ; those that differ first. */
function paramRows(runs: readonly Run[]): { key: string; values: (string | undefined)[]; isSame: boolean; isNumber: boolean }[] {
    const all = runs.map(params)
    const keys = [...new Set(all.flatMap((one) => Object.keys(one)))]
    const rows = keys.map((key) => {
        const values = all.map((one) => one[key])
        const isNumber = values.every((value) => value === undefined || (value.trim() !== '' && !Number.isNaN(Number(value))))
        return { key, values, isSame: values.every((value) => value === values[0]), isNumber }
    })
    return [...rows.filter((row) => !row.isSame), ...rows.filter((row) => row.isSame)]
}

function bestOf(values: readonly (number | null | undefined)[], end: 1 | -1 | 0): number | undefined {
    const numbers = values.filter((value): value is number => typeof value === 'number')
    return end === 0 || numbers.length < 2 ? undefined : numbers.reduce((a, b) => (end * b > end * a ? b : a))
}

function Figures({ runs, metrics }: { runs: readonly Run[]; metrics: readonly string[] }) {
    const rows = paramRows(runs)
    const tones = tonesOf(runs)
    const without = (id: string) => hrefWith({ runs: idsNow().filter((one) => one !== id).join() })
    return (
        <Panel title="Figures" window="last values · parameters that differ are bold, equal ones grey">
            <div class={`table-wrap ${isMany(runs) ? 'many' : ''}`} tabIndex={0} role="group" aria-label="Runs side by side">
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
                                <th key={row.key} scope="col" class={row.isNumber ? 'num' : ''}>
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
                                    <i class={`sw ${tones[i]}`} /> <a class="main" href={href(['runs', run.id])}>{run.name}</a>{' '}
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
                                    <td key={row.key} class={row.isNumber ? 'num' : ''}>{row.isSame ? <span class="muted">{row.values[i] ?? NONE}</span> : <b>{row.values[i] ?? NONE}</b>}</td>
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

/** The curves of all, some at a time. */
async function curvesOf(ids: readonly string[], metric: string): Promise<Metric[][]> {
    const found: Metric[][] = []
    const left = [...ids.keys()].reverse()
    const work = async () => {
        for (let i = left.pop(); i !== undefined; i = left.pop()) {
            found[i] = await curveOf(ids[i]!, metric, ids.length > CURVES_MAX ? BAND_POINTS : undefined)
        }
    }
    await Promise.all(Array.from({ length: AT_A_TIME }, work))
    return found
}

/** Where a point stands on the x axis that is chosen. */
function placeOf(point: Metric, begin: number): number {
    const x = param('x')
    return x === 'time' ? millis(point.time_ms) : x === 'relative' ? Math.round((millis(point.time_ms) - begin) / 1000) : point.step
}

/** Curves as they are drawn: smoothed, by the x axis that is chosen. */
function drawn(curve: readonly Metric[], weight: number): Metric[] {
    const begin = millis(curve[0]?.time_ms)
    return smoothed(curve, weight).map((point) => ({ ...point, step: placeOf(point, begin) }))
}

function Banded({ runs, metric, curves, weight, isLog, said, foot }: { runs: readonly Run[]; metric: string; curves: readonly Metric[][]; weight: number; isLog: boolean; said: string; foot: ComponentChildren }) {
    const [by, x] = [param('by'), param('x')]
    const groups = useMemo(() => {
        const points = new Map(runs.map((run, i) => [run, drawn(curves[i]!, weight).flatMap((one): Point[] => (one.value === null ? [] : [[one.step, one.value]])).sort((a, b) => a[0] - b[0])]))
        return bandsOf(runs).map((band) => ({ name: band.name, runs: band.items, curves: band.items.map((run) => points.get(run)!) }))
    }, [curves, by, x, weight])
    return <Bands title={metric} groups={groups} x={(X[x] ?? X['']!).unit} reach={param('band') === 'range' ? 'range' : 'quartiles'} isLog={isLog} window={said} foot={foot} />
}

function Overlaid({ runs, metric }: { runs: readonly Run[]; metric: string }) {
    const ids = runs.map((run) => run.id)
    const x = X[param('x')] ?? X['']!
    const weight = Number(param('smooth')) || 0
    const isLog = param('log').split(',').includes(metric)
    const curves = useResource(`${metric} ${ids.join()}`, () => curvesOf(ids, metric))
    const points = useMemo(
        () =>
            isMany(runs)
                ? []
                : (curves.data.value ?? []).flatMap((curve, i) => drawn(curve, weight).map((point) => ({ ...point, key: ids[i]!, value: isLog && (point.value ?? 0) <= 0 ? null : point.value }))),
        [curves.data.value, x, weight, isLog],
    )
    const missing = (curves.data.value ?? []).filter((curve) => curve.length === 0).length
    const names = new Map(runs.map((run) => [run.id, run.name]))
    const said = [missing > 0 ? `not logged by ${missing} of ${runs.length}` : '', weight > 0 ? `smoothed ${weight}` : '', isLog ? 'log scale' : ''].filter(Boolean).join(' · ')
    const toggled = isLog ? param('log').split(',').filter((one) => one !== metric) : [...param('log').split(',').filter(Boolean), metric]
    return (
        <Loaded resource={curves}>
            {(found) => {
                const foot = (
                    <p class="under-chart small">
                        <a href={hrefWith({ log: toggled.join() })}>{isLog ? 'Linear scale' : 'Log scale'}</a>
                        <a href={hrefWith({ metrics: chosenMetrics(runs).filter((one) => one !== metric).join() || '-' })}>Take away</a>
                    </p>
                )
                return isMany(runs) ? (
                    <Banded runs={runs} metric={metric} curves={found} weight={weight} isLog={isLog} said={said} foot={foot} />
                ) : (
                    <Chart title={metric} keys={ids} points={points} window={said} foot={foot} over={{ nameOf: (id) => names.get(id) ?? id, x: x.unit, isLog, group: 'compare' }} />
                )
            }}
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
    const tones = tonesOf(runs)
    const strands = useMemo(() => all.map((run, i) => ({ id: run.id, name: run.name, tone: i < runs.length ? `${tones[i]} ${isMany(runs) ? 'many' : ''}` : undefined })), [all, tones.join()])
    return axes.length < 2 ? null : (
        <Parallel
            title="Parallel coordinates"
            window={`${counted(all.length, 'run')}${filter ? plural(all.length, ' that matches', ' that match') : ''}, ${runs.length} chosen`}
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
    const differing = paramRows(runs).filter((row) => !row.isSame).map((row) => row.key)
    return (
        <>
            {isMany(runs) && (
                <div class="row wrap">
                    <label class="group-by">
                        <span class="muted">{`More than ${CURVES_MAX} runs are bands, by`}</span>
                        <select class="input" name="by" value={param('by')} onChange={(event) => setQuery({ by: event.currentTarget.value })}>
                            <option value="">all together</option>
                            {differing.map((key) => (
                                <option key={key}>{key}</option>
                            ))}
                        </select>
                    </label>
                    <Choices
                        label="Bands of"
                        items={[
                            { name: 'Quartiles', address: hrefWith({ band: '' }), isCurrent: param('band') !== 'range' },
                            { name: 'Least to greatest', address: hrefWith({ band: 'range' }), isCurrent: param('band') === 'range' },
                        ]}
                    />
                </div>
            )}
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

/** In the order in which they were chosen; those that are not there any more are left out. */
async function runsOf(ids: readonly string[]): Promise<Run[]> {
    const { items } = ids.length === 0 ? { items: [] } : await get<List<Run>>('/runs', { filter: `run_id in (${ids.map((id) => `"${id.replace(/"/g, '')}"`).join()})`, view: 'all', limit: RUNS_MAX })
    return ids.flatMap((id) => items.find((run) => run.id === id) ?? [])
}

function Compare({ args }: { args: Args }) {
    const experiment = experimentOf(args['experiment'])
    const ids = idsNow()
    const found = useResource(ids.join(), () => runsOf(ids))
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
                    {(runs) => (
                        <>
                            {runs.length < ids.length && <p class="quiet">{`${ids.length - runs.length} of them ${ids.length - runs.length === 1 ? 'is' : 'are'} not there any more.`}</p>}
                            {runs.length > 0 && <Compared runs={runs} experiment={experiment?.id} />}
                        </>
                    )}
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
    query: ['runs', 'q', 'x', 'smooth', 'log', 'metrics', 'by', 'band'],
    under: 'experiments',
    load: [experiments],
    render: Compare,
})

export const compareScreens: readonly Screen[] = [screen('compare', 'experiments/:experiment/compare'), screen('compare-all', 'compare')]
