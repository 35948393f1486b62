/** Runs and their live curves. */
import { useEffect, useMemo } from 'preact/hooks'
import type { MetricPoint, Run } from '../api'
import { COMMANDS } from '../commands'
import { Ago, Empty, Facts, Loaded, PageHead, Panel, Progress } from '../components/basics'
import { StateChip, toneOf } from '../components/chip'
import { Chart } from '../components/chart'
import { DatasetLink, Id } from '../components/noun'
import { Split } from '../components/split'
import { dayTime, fixed, nameIn, NONE, percent, plainValue, short, span, words } from '../format'
import { getAll, segment } from '../state/http'
import { useResource } from '../state/resource'
import { href, route } from '../state/route'
import { freshMetrics, jobs, now, runs } from '../state/store'
import { connection } from '../state/stream'

const METRIC_PAGES = 20
const NO_CURVE = new Set(['epoch', 'epochs', 'progress'])

/** Curves that belong in one picture; every other key gets its own. */
const GROUPS: { title: string; has: (key: string) => boolean }[] = [
    { title: 'Loss', has: (key) => key.includes('loss') },
    { title: 'Accuracy', has: (key) => key.includes('accuracy') },
    { title: 'Images per second', has: (key) => key.includes('per_second') },
]

/** New points after the old ones; a step that is measured again takes the new value. */
function mergePoints(have: MetricPoint[], more: MetricPoint[]): MetricPoint[] {
    const again = new Set(more.map((point) => `${point.key} ${point.step}`))
    const first = Math.min(...more.map((point) => point.step))
    const kept = have.filter((point) => point.step < first || !again.has(`${point.key} ${point.step}`))
    return [...kept, ...more]
}

function chartsOf(points: MetricPoint[]): { title: string; keys: string[] }[] {
    const keys = [...new Set(points.map((point) => point.key))].filter((key) => !NO_CURVE.has(key)).sort()
    const grouped = GROUPS.map(({ title, has }) => ({ title, keys: keys.filter(has) })).filter((group) => group.keys.length > 0)
    const taken = new Set(grouped.flatMap((group) => group.keys))
    const others = keys.filter((key) => !taken.has(key)).map((key) => ({ title: words(key), keys: [key] }))
    return [...grouped, ...others]
}

function Curves({ run }: { run: Run }) {
    const metrics = useResource(`metrics:${run.id}`, () =>
        getAll<MetricPoint>(`/runs/${segment(run.id)}/metrics`, { limit: 1000 }, METRIC_PAGES),
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
                    <Empty icon="training" title="No metrics yet">
                        The first points arrive after the first steps of the run.
                    </Empty>
                ) : (
                    <div class="charts">
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
        <a href={href('models', made.model)}>
            {made.model} v{made.version}
        </a>
    ) : (
        <>{toneOf(run.status) === 'busy' ? 'nothing yet' : 'nothing'}</>
    )
}

function RunDetail({ run }: { run: Run }) {
    const isRunning = toneOf(run.status) === 'busy'
    const parameters = Object.entries(run.parameters ?? {})
    return (
        <Panel title={run.name} id="run-title" aside={<StateChip state={run.status} />}>
            <div class="panel-body">
                {isRunning && (
                    <div class="run-progress">
                        <Progress value={run.progress} label={`Progress of ${run.name}`} />
                        <span>{percent(run.progress, 0)}</span>
                    </div>
                )}
                <Facts
                    items={[
                        ['Architecture', run.model ?? NONE],
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
                        ['Job', run.job ? <a href={href('jobs', run.job)}>{jobs.data.value?.find((job) => job.id === run.job)?.name ?? 'its tasks and logs'}</a> : NONE],
                        ['Run', <Id id={run.id} />],
                    ]}
                />
                {parameters.length > 0 && (
                    <details>
                        <summary>Parameters ({parameters.length})</summary>
                        <Facts items={parameters.map(([key, value]) => [words(key), plainValue(value)])} />
                    </details>
                )}
                <Curves key={run.id} run={run} />
            </div>
        </Panel>
    )
}

function RunItem({ run, isCurrent }: { run: Run; isCurrent: boolean }) {
    return (
        <li>
            <a class="item" href={href('training', run.id)} aria-current={isCurrent ? 'true' : undefined}>
                <span class="item-top">
                    <b title={run.name}>{nameIn(run.ion, run.name)}</b>
                    <StateChip state={run.status} />
                </span>
                {toneOf(run.status) === 'busy' && <Progress value={run.progress} label={`Progress of ${run.name}`} />}
                <small class="muted">
                    {run.ion && <span class="nowrap">{run.ion} · </span>}
                    {typeof run.validation_accuracy === 'number' && (
                        <>
                            <span class="nowrap">validation {percent(run.validation_accuracy)}</span> ·{' '}
                        </>
                    )}
                    <span class="nowrap">training {percent(run.accuracy)}</span> · <span class="nowrap">loss {fixed(run.loss)}</span> ·{' '}
                    <span class="nowrap">{run.started_ms ? <Ago time={run.started_ms} /> : 'waits'}</span>
                </small>
            </a>
        </li>
    )
}

export function Training() {
    const wanted = route.value.args[0]
    return (
        <>
            <PageHead title="Training" sub="Runs, newest first, with their curves as they grow" />
            <Loaded resource={runs}>
                {(items) => {
                    if (items.length === 0) {
                        return (
                            <Empty icon="training" title="No runs yet" command={COMMANDS.train}>
                                A run begins when a training pipeline of an ION trains, or when a job of kind train is submitted:
                            </Empty>
                        )
                    }
                    const run = items.find((one) => one.id === wanted) ?? (wanted === undefined ? items[0] : undefined)
                    return (
                        <Split
                            label="Runs"
                            back={href('training')}
                            chosen={wanted}
                            list={items.map((one) => (
                                <RunItem key={one.id} run={one} isCurrent={one.id === run?.id} />
                            ))}
                        >
                            {run ? <RunDetail run={run} /> : <Empty icon="question" title="No such run">It may have been removed. Choose one from the list.</Empty>}
                        </Split>
                    )
                }}
            </Loaded>
        </>
    )
}
