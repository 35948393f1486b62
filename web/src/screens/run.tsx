/** One run: is it learning, is it fast, what did it make. */
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import type { Job, Run } from '../api'
import { Empty, Facts, Loaded, Owner, PageHead, Panel, Progress, Tabs } from '../components/basics'
import { Description } from '../components/in_place'
import { DatasetLink, Id } from '../components/noun'
import { RunActs } from '../components/run_acts'
import { Artifacts } from '../components/run_artifacts'
import { curveKeys, Curves, isSystem } from '../components/run_curves'
import { RunLineageTab } from '../components/run_lineage'
import { CodeAndPlace, Parameters, SystemNow, Tags } from '../components/run_tables'
import { toneOf } from '../components/state'
import { dayTime, duration, fixed, millis, NONE, percent, plainValue, short, span } from '../format'
import type { Args, Screen } from '../screen'
import { devices } from '../state/devices'
import { get, segment, send } from '../state/http'
import { useResource } from '../state/resource'
import { href, hrefWith, param } from '../state/route'
import { jobs, now, runs } from '../state/store'
import { NOTE_TAG } from '../state/tracking'
import { Tasks } from './jobs'
import { RunState } from '../components/run_state'

const DEVICES_EVERY_MS = 5_000
const LEFT_FROM = 0.02 // of the way: before that, how long it will take is a guess
const OVERVIEW_CHARTS = 4

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

/** The run with all that was logged of it: the shared list has figures only. */
function useTracked(run: Run): { run: Run; isHere: boolean; reload: () => Promise<void> } {
    const tracked = useResource(`tracked:${run.id}`, () => get<Run>(`/runs/${segment(run.id)}`))
    useEffect(() => tracked.loadSoon(), [run.status])
    const own = tracked.data.value ?? run
    const reload = async () => {
        runs.refresh()
        await tracked.load()
    }
    return { isHere: tracked.data.value !== undefined, reload, run: { ...own, ...run, tags: own.tags, params: own.params, deleted_ms: own.deleted_ms, metrics: { ...own.metrics, ...run.metrics } } }
}

function Overview({ run, job }: { run: Run; job: Job | undefined }) {
    return (
        <div class="grid split-r">
            <div class="stack">
                <Curves key={run.id} run={run} keys={curveKeys(run).filter((key) => !isSystem(key))} most={OVERVIEW_CHARTS} />
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
                                run.model ? ['Architecture', plainValue(run.model)] : null,
                                ['Made', <Registered run={run} />],
                                run.dataset ? ['Dataset', <DatasetLink name={run.dataset} version={run.dataset_version} />] : null,
                                run.epochs ? ['Epoch', `${run.epoch ?? NONE} of ${run.epochs}`] : null,
                                ...measured(run),
                                ['Submitted', dayTime(run.created_ms)],
                                ['Started', run.started_ms ? dayTime(run.started_ms) : 'waits'],
                                ['Took', run.started_ms ? span(run.started_ms, run.finished_ms, now.value) : NONE],
                                run.code_version ? ['Code', <code>{run.code_version.slice(0, 12)}</code>] : null,
                                run.job ? ['Job', <a href={href('jobs', { job: run.job })}>{job?.name ?? 'its tasks and logs'}</a>] : null,
                                ['By', run.user && run.user !== run.created_by ? `${run.user}, as ${run.created_by ?? NONE}` : (run.created_by ?? NONE)],
                                ['Run', <Id id={run.id} />],
                            ]}
                        />
                    </div>
                </Panel>
                <Parameters run={run} />
                <Tags run={run} />
            </div>
        </div>
    )
}

/** Figures that Weir's own trainings give. */
function measured(run: Run): ([string, ComponentChildren] | null)[] {
    return run.kind === 'train'
        ? [
              ['Validation accuracy', percent(run.validation_accuracy, 2)],
              ['Validation loss', fixed(run.validation_loss, 4)],
              ['Training accuracy', <span title={OF_LAST_BATCHES}>{percent(run.accuracy, 2)}</span>],
              ['Training loss', <span title={OF_LAST_BATCHES}>{fixed(run.loss, 4)}</span>],
              ['Images/s', short(run.images_per_second)],
          ]
        : []
}

function System({ run, job }: { run: Run; job: Job | undefined }) {
    const keys = curveKeys(run).filter(isSystem)
    useEffect(() => devices.need(), [])
    useEffect(() => devices.refresh(), [Math.floor(now.value / DEVICES_EVERY_MS)])
    return (
        <>
            <SystemNow job={job} />
            {keys.length > 0 ? (
                <Curves run={run} keys={keys} hasSearch />
            ) : (
                <div class="panel">
                    <Empty icon="nodes" title="No curves of the machine" command="mlflow.enable_system_metrics_logging()">
                        What tasks use of processors, memory and GPUs is measured while they run, by nodes that can tell. A program that runs elsewhere logs it by itself:
                    </Empty>
                </div>
            )}
        </>
    )
}

const TABS: { id: string; name: string; render: (props: { run: Run; job: Job | undefined }) => ComponentChildren }[] = [
    { id: '', name: 'Overview', render: Overview },
    { id: 'metrics', name: 'Metrics', render: ({ run }) => <Curves run={run} keys={curveKeys(run)} hasSearch /> },
    { id: 'system', name: 'System', render: System },
    { id: 'artifacts', name: 'Artifacts', render: ({ run }) => <Artifacts run={run.id} project={run.project} isOver={toneOf(run.status) !== 'busy'} /> },
    { id: 'lineage', name: 'Lineage', render: RunLineageTab },
    { id: 'code', name: 'Code', render: CodeAndPlace },
    {
        id: 'log',
        name: 'Log',
        render: ({ job }) => <div class="panel panel-body">{job ? <Tasks key={job.id} job={job} /> : <p class="quiet">It has no job here: its program runs elsewhere, and its output is there; or the job was removed with its log.</p>}</div>,
    },
]

function RunDetail({ run: listed }: { run: Run }) {
    const { run, isHere, reload } = useTracked(listed)
    const tab = TABS.find((one) => one.id === param('tab')) ?? TABS[0]!
    const listedJob = jobs.data.value?.find((one) => one.id === run.job)
    const wanted = !listedJob && tab.id !== '' ? run.job : null // older than the page's list, or removed
    const older = useResource(`job ${wanted}`, async () => (wanted ? await get<Job>(`/jobs/${segment(wanted)}`).catch(() => undefined) : undefined))
    const job = listedJob ?? older.data.value
    const Body = tab.render
    return (
        <>
            <PageHead
                title={<span id="run-title">{run.name}</span>}
                crumbs={[['Experiments', href('experiments')], ...(run.experiment_name ? [[run.experiment_name, href(['experiments', run.experiment_name])] as [string, string]] : [])]}
                state={
                    <>
                        <RunState run={run} />
                        {run.deleted_ms !== null && <span class="chip">deleted</span>}
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
            >
                <RunActs runs={[run]} isDeleted={run.deleted_ms !== null} onDone={() => void reload()} />
            </PageHead>
            {isHere && (
                <Description
                    text={run.tags?.[NOTE_TAG]}
                    of={run.name}
                    right="change runs"
                    project={run.project}
                    put={async (description) => {
                        await send('PATCH', `/runs/${segment(run.id)}`, { description })
                        await reload()
                    }}
                />
            )}
            <Tabs label="Parts of the run" items={TABS.map((one) => ({ name: one.name, address: hrefWith({ tab: one.id, at: '' }), isCurrent: one === tab }))} />
            {toneOf(run.status) === 'busy' && run.progress !== null && <Progress value={run.progress} label={`Progress of ${run.name}`} />}
            <Body run={run} job={job} />
        </>
    )
}

/** Older than what the page holds: asked for by itself. */
function OlderRun({ id }: { id: string }) {
    const run = useResource(`run:${id}`, () => get<Run>(`/runs/${segment(id)}`))
    if (run.error.value?.httpStatus === 404) {
        return (
            <>
                <PageHead title="No such run" crumbs={[['Experiments', href('experiments')]]} />
                <div class="panel">
                    <Empty icon="question" title="There is no such run" more={<a href={href('experiments')}>All runs</a>}>
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
    query: ['tab', 'task', 'at'],
    under: 'experiments',
    load: [runs, jobs],
    render: RunPage,
}
