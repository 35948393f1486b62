/** One run: is it learning, is it fast, what did it make. */
import { useEffect, useMemo } from 'preact/hooks'
import type { Metric, Run } from '../api'
import { Empty, Facts, Loaded, Owner, PageHead, Panel, Progress } from '../components/basics'
import { Chart } from '../components/chart'
import { DatasetLink, Id } from '../components/noun'
import { toneOf } from '../components/state'
import { dayTime, duration, fixed, millis, NONE, percent, plainValue, short, span, words } from '../format'
import type { Args, Screen } from '../screen'
import { get, getAll, segment } from '../state/http'
import { useResource } from '../state/resource'
import { href } from '../state/route'
import { freshMetrics, jobs, now, runs } from '../state/store'
import { connection } from '../state/stream'
import { Tasks } from './jobs'
import { RunState } from './runs'

const METRIC_PAGES = 20
const NO_CURVE = new Set(['epoch', 'epochs', 'progress'])
const LEFT_FROM = 0.02 // of the way: before that, how long it will take is a guess

/** Curves that belong in one picture; every other key gets its own. */
const GROUPS: { title: string; has: (key: string) => boolean }[] = [
    { title: 'Loss', has: (key) => key.includes('loss') },
    { title: 'Accuracy', has: (key) => key.includes('accuracy') },
    { title: 'Images per second', has: (key) => key.includes('per_second') },
]

/** New points after the old ones; a step that is measured again takes the new value. */
function mergePoints(have: Metric[], more: Metric[]): Metric[] {
    const again = new Set(more.map((point) => `${point.key} ${point.step}`))
    const first = Math.min(...more.map((point) => point.step))
    const kept = have.filter((point) => point.step < first || !again.has(`${point.key} ${point.step}`))
    return [...kept, ...more]
}

function chartsOf(points: Metric[]): { title: string; keys: string[] }[] {
    const keys = [...new Set(points.map((point) => point.key))].filter((key) => !NO_CURVE.has(key)).sort()
    const grouped = GROUPS.map(({ title, has }) => ({ title, keys: keys.filter(has) })).filter((group) => group.keys.length > 0)
    const taken = new Set(grouped.flatMap((group) => group.keys))
    const others = keys.filter((key) => !taken.has(key)).map((key) => ({ title: words(key), keys: [key] }))
    return [...grouped, ...others]
}

function Curves({ run }: { run: Run }) {
    const metrics = useResource(`metrics:${run.id}`, () =>
        getAll<Metric>(`/runs/${segment(run.id)}/metrics`, { limit: 1000 }, METRIC_PAGES),
    )
    useEffect(() => {
        const fresh = freshMetrics.value
        if (fresh?.run === run.id && metrics.data.value !== undefined) {
            metrics.data.value = mergePoints(metrics.data.value, fresh.points)
        }
    }, [freshMetrics.value])
    useEffect(() => metrics.loadSoon(), [run.status, connection.value.state === 'live'])
    const charts = useMemo(() => chartsOf(metrics.data.value ?? []), [metrics.data.value])
    return (
        <Loaded resource={metrics} rows={6}>
            {(points) =>
                points.length === 0 ? (
                    <div class="panel">
                        <Empty icon="runs" title="No metrics yet">
                            The first points arrive after the first steps of the run.
                        </Empty>
                    </div>
                ) : (
                    <div class="grid g2">
                        {charts.map((chart) => (
                            <Chart key={chart.title} title={chart.title} keys={chart.keys} points={points} />
                        ))}
                    </div>
                )
            }
        </Loaded>
    )
}

const OF_LAST_BATCHES = 'Of the last mini-batches of training; validation is measured on data that is not trained with'

function Registered({ run }: { run: Run }) {
    const made = run.registered
    return made ? (
        <a href={href(['models', made.model, `v${made.version}`])}>
            {made.model} v{made.version}
        </a>
    ) : (
        <>{toneOf(run.status) === 'busy' ? 'nothing yet' : 'nothing'}</>
    )
}

/** "14 min left", from how far it is and how long that took. */
function leftText(run: Run): string {
    const begun = millis(run.started_ms)
    const part = run.progress ?? 0
    return toneOf(run.status) === 'busy' && part >= LEFT_FROM && !Number.isNaN(begun) ? `about ${duration(((now.value - begun) * (1 - part)) / part)} left` : ''
}

/** The run of the same pipeline before this one, whose parameters stand beside. */
function before(run: Run): Run | undefined {
    return (runs.data.value ?? []).find((one) => one.ion && one.ion === run.ion && one.pipeline === run.pipeline && millis(one.created_ms) < millis(run.created_ms))
}

function Parameters({ run }: { run: Run }) {
    const parameters = Object.entries(run.parameters ?? {})
    const other = before(run)
    if (parameters.length === 0) {
        return null
    }
    return (
        <Panel title="Parameters" window={parameters.length}>
            <div class="table-wrap" tabIndex={0} role="region" aria-label="Parameters">
                <table class="dense parameters">
                    <thead>
                        <tr>
                            <th scope="col">Parameter</th>
                            <th scope="col">Value</th>
                            {other && (
                                <th scope="col" title={other.name}>
                                    Run before
                                </th>
                            )}
                        </tr>
                    </thead>
                    <tbody>
                        {parameters.map(([key, value]) => {
                            const theirs = other?.parameters?.[key]
                            const isSame = JSON.stringify(theirs) === JSON.stringify(value)
                            return (
                                <tr key={key}>
                                    <td>{words(key)}</td>
                                    <td title={plainValue(value)}>{plainValue(value)}</td>
                                    {other && <td>{isSame ? <span class="muted">same</span> : <b>{plainValue(theirs)}</b>}</td>}
                                </tr>
                            )
                        })}
                    </tbody>
                </table>
            </div>
        </Panel>
    )
}

function RunDetail({ run }: { run: Run }) {
    const job = jobs.data.value?.find((one) => one.id === run.job)
    return (
        <>
            <PageHead
                title={<span id="run-title">{run.name}</span>}
                crumbs={[['Runs', href('runs')]]}
                state={
                    <>
                        <RunState run={run} />
                        <span class="small muted">{leftText(run)}</span>
                    </>
                }
                sub={
                    <>
                        project <Owner project={run.project} />
                        {run.ion && (
                            <>
                                {' '}
                                · ION <a href={href(['ions', run.ion, 'graph'])}>{run.ion}</a> / {run.pipeline}
                            </>
                        )}
                    </>
                }
            />
            {toneOf(run.status) === 'busy' && <Progress value={run.progress} label={`Progress of ${run.name}`} />}
            <div class="grid split-r">
                <div class="stack">
                    <Curves key={run.id} run={run} />
                    {job && (
                        <Panel title="Log" window={job.name} aside={<a href={href('jobs', { job: job.id })}>Job</a>}>
                            <div class="panel-body">
                                <Tasks key={job.id} job={job} />
                            </div>
                        </Panel>
                    )}
                </div>
                <div class="stack">
                    <Panel title="Where and what">
                        <div class="panel-body">
                            <Facts
                                items={[
                                    ['Architecture', plainValue(run.model)],
                                    ['Made', <Registered run={run} />],
                                    ['Dataset', <DatasetLink name={run.dataset} version={run.dataset_version} />],
                                    ['Epoch', `${run.epoch ?? NONE} of ${run.epochs ?? NONE}`],
                                    ['Validation accuracy', percent(run.validation_accuracy, 2)],
                                    ['Validation loss', fixed(run.validation_loss, 4)],
                                    ['Training accuracy', <span title={OF_LAST_BATCHES}>{percent(run.accuracy, 2)}</span>],
                                    ['Training loss', <span title={OF_LAST_BATCHES}>{fixed(run.loss, 4)}</span>],
                                    ['Images/s', short(run.images_per_second)],
                                    ['Submitted', dayTime(run.created_ms)],
                                    ['Started', run.started_ms ? dayTime(run.started_ms) : 'waits'],
                                    ['Took', run.started_ms ? span(run.started_ms, run.finished_ms, now.value) : NONE],
                                    ['Code', run.code_version ? <code>{run.code_version.slice(0, 12)}</code> : NONE],
                                    ['Job', run.job ? <a href={href('jobs', { job: run.job })}>{job?.name ?? 'its tasks and logs'}</a> : NONE],
                                    ['By', run.created_by ?? NONE],
                                    ['Run', <Id id={run.id} />],
                                ]}
                            />
                        </div>
                    </Panel>
                    <Parameters run={run} />
                </div>
            </div>
        </>
    )
}

/** Older than what the page holds: asked for by itself. */
function OlderRun({ id }: { id: string }) {
    const run = useResource(`run:${id}`, () => get<Run>(`/runs/${segment(id)}`))
    if (run.error.value?.httpStatus === 404) {
        return (
            <>
                <PageHead title="No such run" crumbs={[['Runs', href('runs')]]} />
                <div class="panel">
                    <Empty icon="question" title="There is no such run" more={<a href={href('runs')}>All runs</a>}>
                        It may have been removed.
                    </Empty>
                </div>
            </>
        )
    }
    return <Loaded resource={run}>{(found) => <RunDetail run={found} />}</Loaded>
}

function RunPage({ args }: { args: Args }) {
    const id = args['run']!
    return (
        <Loaded resource={runs} rows={6}>
            {(all) => {
                const run = all.find((one) => one.id === id || one.name === id)
                return run ? <RunDetail key={run.id} run={run} /> : <OlderRun key={id} id={id} />
            }}
        </Loaded>
    )
}

export const runScreen: Screen = {
    id: 'run',
    title: 'Run',
    icon: 'runs',
    address: 'runs/:run',
    query: ['task'],
    under: 'runs',
    load: [runs, jobs],
    render: RunPage,
}
