/** Runs and their live curves. */
import { useEffect, useMemo } from 'preact/hooks'
import type { MetricPoint, Run } from '../api'
import { COMMANDS } from '../commands'
import { Ago, Empty, Facts, Loaded, PageHead, Panel, Progress } from '../components/basics'
import { StateChip, toneOf } from '../components/chip'
import { Chart } from '../components/chart'
import { clockTime, datasetText, fixed, NONE, percent, shortId, short, span, words } from '../format'
import { getAll, segment } from '../state/http'
import { useResource } from '../state/resource'
import { href, route } from '../state/route'
import { freshMetrics, now, runs } from '../state/store'
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

function RunDetail({ run }: { run: Run }) {
    const isRunning = toneOf(run.status) === 'busy'
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
                        ['Model', run.model ? <a href={href('models', run.model)}>{run.model}</a> : NONE],
                        ['Dataset', datasetText(run)],
                        ['Epoch', `${run.epoch ?? NONE} of ${run.epochs ?? NONE}`],
                        ['Loss', fixed(run.loss, 4)],
                        ['Accuracy', percent(run.accuracy, 2)],
                        ['Images/s', short(run.images_per_second)],
                        ['Started', clockTime(run.started_ms)],
                        ['Took', span(run.started_ms, run.finished_ms, now.value)],
                        ['Job', run.job ? <a href={href('jobs', run.job)}>{shortId(run.job)}</a> : NONE],
                        ['Run', <code>{shortId(run.id)}</code>],
                    ]}
                />
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
                    <b>{run.name}</b>
                    <StateChip state={run.status} />
                </span>
                {toneOf(run.status) === 'busy' && <Progress value={run.progress} label={`Progress of ${run.name}`} />}
                <small class="muted">
                    loss {fixed(run.loss)} · accuracy {percent(run.accuracy)} · {short(run.images_per_second)} img/s · <Ago time={run.started_ms} />
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
                                Press “Train now” on the overview, or start one from a terminal:
                            </Empty>
                        )
                    }
                    const run = items.find((one) => one.id === wanted) ?? (wanted === undefined ? items[0] : undefined)
                    return (
                        <div class="split">
                            <nav class="panel list" aria-label="Runs">
                                <ul>
                                    {items.map((one) => (
                                        <RunItem key={one.id} run={one} isCurrent={one.id === run?.id} />
                                    ))}
                                </ul>
                            </nav>
                            {run ? <RunDetail run={run} /> : <Empty icon="question" title="No such run">It may have been removed. Choose one from the list.</Empty>}
                        </div>
                    )
                }}
            </Loaded>
        </>
    )
}
