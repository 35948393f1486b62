/** Training runs, newest first, with their figures side by side. */
import type { Run } from '../api'
import { COMMANDS } from '../commands'
import { Choices, Empty, Loaded, Owner, PageHead, Panel, Progress, When } from '../components/basics'
import { Filter, filtered, NothingMatches, type FilterOf } from '../components/filter'
import { is, State, StateWord, toneOf } from '../components/state'
import { Table, type Column } from '../components/table'
import { datasetText, fixed, millis, nameIn, NONE, percent, short, span } from '../format'
import type { Screen } from '../screen'
import { inProject } from '../state/project'
import { href, hrefWith, param } from '../state/route'
import { jobs, now, runs } from '../state/store'

const FILTER: FilterOf<Run> = {
    text: (run) => run.name,
    keys: {
        name: (run) => run.name,
        status: (run) => run.status,
        project: (run) => run.project ?? '',
        ion: (run) => run.ion ?? '',
        model: (run) => String(run.model ?? ''),
        dataset: (run) => run.dataset ?? '',
        by: (run) => run.created_by ?? '',
    },
}

const isRunning = (run: Run) => toneOf(run.status) === 'busy'
const GROUPS: Record<string, { name: string; has: (run: Run) => boolean }> = {
    '': { name: 'All', has: () => true },
    running: { name: 'Running', has: isRunning },
    finished: { name: 'Finished', has: (run) => is(run.status, 'finished') },
    failed: { name: 'Failed', has: (run) => is(run.status, 'failed', 'killed') },
}

export function RunState({ run }: { run: Run }) {
    if (isRunning(run)) {
        return run.started_ms ? <State tone="busy">{run.epoch && run.epochs ? `epoch ${run.epoch} of ${run.epochs}` : 'running'}</State> : <State tone="plain">waits</State>
    }
    return <StateWord state={run.status} />
}

const COLUMNS: Column<Run>[] = [
    {
        id: 'name',
        name: 'Run',
        phone: 'name',
        sort: (run) => run.name,
        render: (run) => (
            <a class="main" href={href(['runs', run.id])} title={run.name}>
                {nameIn(run.ion, run.name)}
            </a>
        ),
    },
    { id: 'ion', name: 'ION, project', width: '156px', phone: 'more', sort: (run) => run.ion ?? '', render: (run) => (run.ion ? <span class="muted">{run.ion}</span> : <Owner project={run.project} />) },
    { id: 'state', name: 'State', width: '136px', phone: 'state', sort: (run) => run.status, render: (run) => <RunState run={run} /> },
    {
        id: 'progress',
        name: 'Progress',
        width: '88px',
        sort: (run) => run.progress ?? 0,
        render: (run) => (isRunning(run) ? <Progress value={run.progress} label={`Progress of ${run.name}`} /> : <span class="muted">{run.epoch ? `${run.epoch} epochs` : NONE}</span>),
    },
    {
        id: 'validation',
        name: 'Validation',
        width: '92px',
        isNumber: true,
        phone: 'more',
        sort: (run) => -(run.validation_accuracy ?? -1),
        render: (run) => <span title="Accuracy on data that is not trained with">{percent(run.validation_accuracy)}</span>,
    },
    {
        id: 'training',
        name: 'Training',
        width: '84px',
        isNumber: true,
        sort: (run) => -(run.accuracy ?? -1),
        render: (run) => <span title="Accuracy of the last mini-batches of training">{percent(run.accuracy)}</span>,
    },
    { id: 'loss', name: 'Loss', width: '72px', isNumber: true, sort: (run) => run.loss ?? Infinity, render: (run) => fixed(run.loss) },
    { id: 'speed', name: 'Images/s', width: '84px', isNumber: true, sort: (run) => -(run.images_per_second ?? 0), render: (run) => short(run.images_per_second) },
    { id: 'data', name: 'Data', width: '116px', sort: (run) => datasetText(run), render: (run) => <span class="muted">{datasetText(run)}</span> },
    { id: 'submitted', name: 'Submitted', width: '128px', isNumber: true, sort: (run) => -millis(run.created_ms), render: (run) => <When time={run.created_ms} /> },
    { id: 'took', name: 'Took', width: '76px', isNumber: true, phone: 'more', render: (run) => (run.started_ms ? span(run.started_ms, run.finished_ms, now.value) : NONE) },
]

function Runs() {
    const all = (runs.data.value ?? []).filter(inProject)
    const group = GROUPS[param('state')] ?? GROUPS['']!
    const found = filtered(all, FILTER).filter(group.has)
    return (
        <>
            <PageHead title="Runs" sub={`${all.filter(isRunning).length} train · accuracies are of validation data where the head says so`} />
            <Loaded resource={runs} rows={6}>
                {() =>
                    all.length === 0 ? (
                        <div class="panel">
                            <Empty icon="runs" title="No runs yet" command={COMMANDS.train}>
                                A run begins when a training pipeline of an ION trains, or when a job of kind train is submitted:
                            </Empty>
                        </div>
                    ) : (
                        <>
                            <Filter label="Filter runs" rows={all} of={FILTER} hint="name, or status:finished ion:door">
                                <Choices
                                    label="By state"
                                    items={Object.entries(GROUPS).map(([id, { name, has }]) => ({
                                        name: `${name} ${all.filter(has).length}`,
                                        address: hrefWith({ state: id }),
                                        isCurrent: group === GROUPS[id],
                                    }))}
                                />
                            </Filter>
                            <Panel title="All runs" window={param('sort') ? `${found.length}` : `${found.length} · newest first`}>
                                {found.length > 0 ? (
                                    <Table label="Runs" rows={found} columns={COLUMNS} keyOf={(run) => run.id} hrefOf={(run) => href(['runs', run.id])} isDense />
                                ) : (
                                    <NothingMatches rows={all.filter(group.has)} of={FILTER} what="run" />
                                )}
                            </Panel>
                        </>
                    )
                }
            </Loaded>
        </>
    )
}

export const runsScreen: Screen = {
    id: 'runs',
    title: 'Runs',
    icon: 'runs',
    address: 'runs',
    query: ['q', 'state', 'sort'],
    under: 'experiments',
    load: [runs, jobs],
    render: Runs,
}
