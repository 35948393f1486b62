/** Experiments: find the good run among 100,000. Filter, order and columns are the server's work; rows come as they are needed. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Experiment, List, Run, RunSummary } from '../api'
import { COMMANDS } from '../commands'
import { Choices, Empty, Failed, Loading, Owner, PageHead, Panel, When } from '../components/basics'
import { ColumnChoice } from '../components/column_choice'
import { Form } from '../components/form'
import { Grammar } from '../components/grammar'
import { Act } from '../components/locked'
import { RunActs } from '../components/run_acts'
import { Table, type Column } from '../components/table'
import { toast } from '../components/toast'
import { NONE, short, span } from '../format'
import type { Args, Screen } from '../screen'
import { csvOf, download } from '../state/audit'
import { interest } from '../state/curves'
import { call, get, send } from '../state/http'
import { inProject, project, projectList, projects } from '../state/project'
import { useResource } from '../state/resource'
import { go, href, hrefWith, param, setQuery } from '../state/route'
import { now } from '../state/store'
import { experimentOf, experiments, nameInGrammar, paramsOf, RunPages, splitColumn, summaryOf, type Wanted } from '../state/tracking'
import { RunState } from './runs'

const TYPING_MS = 250
const CHOSEN_MAX = 100
const COMPARED_MAX = 20
const FILE_MAX = 100_000
const FIRST = { metrics: 2, params: 3 } // columns that one sees without a choice
const ATTRIBUTES = ['status', 'took', 'user', 'started']
const GRAMMAR_ATTRIBUTES = ['attributes.status', 'attributes.run_name', 'attributes.start_time', 'attributes.end_time', 'attributes.user_id', 'and ', 'or ', 'not ', 'like ', 'ilike ', 'in ']

/* ---- columns -------------------------------------------------------------------------------------------------------- */

/** A column's values as numbers lie between these: for the bars. */
function boundsOf(rows: readonly (Run | undefined)[], key: string): [number, number] {
    let [low, high] = [Infinity, -Infinity]
    for (const run of rows) {
        const value = run?.metrics?.[key]
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

const OF_ATTRIBUTES: Record<string, Column<Run>> = {
    status: { id: 'status', name: 'State', width: '100px', phone: 'state', sort: (run) => run.status, render: (run) => <RunState run={run} /> },
    took: { id: 'took', name: 'Time', width: '72px', isNumber: true, phone: 'more', render: (run) => (run.started_ms ? span(run.started_ms, run.finished_ms, run.finished_ms ? 0 : now.value) : NONE) },
    user: { id: 'user', name: 'By', width: '64px', render: (run) => <span class="muted">{run.user ?? run.created_by ?? NONE}</span> },
    started: { id: 'start_time', name: 'Started', width: '124px', isNumber: true, sort: (run) => run.started_ms ?? '', render: (run) => <When time={run.started_ms ?? run.created_ms} /> },
    project: { id: 'project', name: 'Project', width: '100px', render: (run) => <Owner project={run.project} /> },
}

/** The column that has bars: the one that is sorted by, else the first of a metric. */
function withBars(ids: readonly string[]): string | undefined {
    const sorted = param('sort').replace(/^-/, '')
    return sorted.startsWith('metrics.') ? sorted : ids.find((id) => id.startsWith('metrics.'))
}

const isNumeric = (run: Run | undefined, id: string) => {
    const [family, key] = splitColumn(id)
    return family === 'metrics' || (family === 'params' && !Number.isNaN(Number(run?.params?.[key] ?? NaN)))
}

/** Columns of these ids, those of `numbers` at the right. */
function columnsOf(ids: readonly string[], barred: [string, [number, number]] | undefined, numbers: readonly string[], first: Column<Run>[]): Column<Run>[] {
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
                    sort: () => 0,
                    ...(bounds ? { phone: 'more' as const } : {}),
                    render: (run) => (family === 'metrics' ? <MetricCell value={run.metrics?.[key]} bounds={bounds} /> : <span title={run[family]?.[key]}>{run[family]?.[key] ?? NONE}</span>),
                },
            ]
        }),
    ]
}

const widthOf = (columns: readonly Column<Run>[]) => columns.reduce((sum, one) => sum + parseInt(one.width ?? '180'), 0)

/* ---- what is chosen ------------------------------------------------------------------------------------------------- */

const chosenIds = () => param('pick').split(',').filter(Boolean)

function choose(ids: readonly string[], isOn: boolean): void {
    const rest = chosenIds().filter((one) => !ids.includes(one))
    const next = isOn ? [...rest, ...ids] : rest
    if (next.length > CHOSEN_MAX) {
        toast(`At most ${CHOSEN_MAX} runs can be chosen`, 'bad')
    }
    setQuery({ pick: next.slice(0, CHOSEN_MAX).join() }, true)
}

const toggle = (id: string) => choose([id], !chosenIds().includes(id))

export function compareAddress(experiment: string | undefined, ids: readonly string[]): string {
    return href(experiment ? ['experiments', experiment, 'compare'] : ['compare'], { runs: ids.slice(0, COMPARED_MAX).join(), q: param('q') })
}

/* ---- the list ------------------------------------------------------------------------------------------------------- */

function useLate<T>(value: T, delayMs: number): T {
    const [late, setLate] = useState(value)
    useEffect(() => {
        const timer = window.setTimeout(() => setLate(value), delayMs)
        return () => window.clearTimeout(timer)
    }, [value])
    return late
}

/** The rows that are in the file as they are in the list: all that match, with the columns that are chosen. */
async function writeFile(wanted: Wanted, name: string): Promise<void> {
    const rows: Run[] = []
    let cursor: List<Run>['next'] = null
    do {
        const list: List<Run> = await get('/runs', { ...paramsOf(wanted), limit: 1000, cursor })
        rows.push(...list.items)
        cursor = list.next
    } while (cursor && rows.length < FILE_MAX)
    const cells = wanted.columns.filter((id) => splitColumn(id)[0] !== '')
    const cell = (run: Run, id: string) => {
        const [family, key] = splitColumn(id)
        return family === '' ? '' : run[family]?.[key]
    }
    const text = csvOf(['run', 'id', 'status', 'by', 'started', 'ended', ...cells], rows.map((run) => [run.name, run.id, run.status, run.user ?? run.created_by, run.started_ms, run.finished_ms, ...cells.map((id) => cell(run, id))]))
    download(`${name}.csv`, text, 'text/csv')
    toast(`${rows.length} runs are in the file${cursor ? `: the first ${FILE_MAX}` : ''}`)
}

function Runs({ experiment, keys }: { experiment: Experiment | undefined; keys: Pick<RunSummary, 'metrics' | 'params' | 'tags'> }) {
    const all = [...ATTRIBUTES, ...keys.metrics.map((key) => `metrics.${key}`), ...keys.params.map((key) => `params.${key}`), ...keys.tags.map((key) => `tags.${key}`)]
    const usual = ['status', ...[...keys.metrics].sort((a, b) => interest(b) - interest(a)).slice(0, FIRST.metrics).map((key) => `metrics.${key}`), ...all.filter((id) => id.startsWith('params.')).slice(0, FIRST.params), 'took', 'user', 'started']
    const ids = param('cols') === '' ? usual : param('cols').split(',').filter((id) => id !== '-')
    const isDeleted = param('life') === 'deleted'
    const filter = useLate(param('q').trim(), TYPING_MS)
    const [round, setRound] = useState(0)
    const wanted: Wanted = { experiment: experiment?.id, project: project.value, filter, sort: param('sort'), columns: ids, isDeleted }
    const key = JSON.stringify([wanted, round])
    const pages = useMemo(() => new RunPages(wanted), [key])
    useEffect(() => pages.start(), [pages])
    const shown = useRef(pages)
    const error = pages.error.value
    if (pages.found.value) {
        shown.current = pages // until the first rows are there, the old ones stay
    }
    const found = shown.current.found.value
    const rows = found?.rows ?? []
    const picked = chosenIds()
    const chosen = rows.filter((run): run is Run => run !== undefined && picked.includes(run.id))
    const last = useRef<string>('')
    const latest = useRef(rows)
    latest.current = rows
    const onCheck = (run: Run) => (event: MouseEvent) => {
        const rows = latest.current
        const from = rows.findIndex((one) => one?.id === last.current)
        const to = rows.findIndex((one) => one?.id === run.id)
        const isOn = !chosenIds().includes(run.id)
        const range = event.shiftKey && from >= 0 ? rows.slice(Math.min(from, to), Math.max(from, to) + 1) : [run]
        last.current = run.id
        choose(range.flatMap((one) => (one ? [one.id] : [])), isOn)
    }
    const bars = withBars(ids)
    const barred: [string, [number, number]] | undefined = bars === undefined ? undefined : [bars, boundsOf(rows, splitColumn(bars)[1])]
    const numbers = ids.filter((id) => isNumeric(rows[0], id))
    // The same columns as long as they look the same: rows that are there are then not drawn anew when others come.
    const look = JSON.stringify([ids, barred, numbers, picked, project.value, experiment?.id])
    const makeColumns = () => columnsOf(ids, barred, numbers, [
        {
            id: 'pick',
            name: '',
            width: '40px',
            render: (run) => <input type="checkbox" aria-label={`Choose ${run.name}`} checked={picked.includes(run.id)} onClick={onCheck(run)} />,
        },
        {
            id: 'run_name',
            name: 'Run',
            width: '160px',
            phone: 'name',
            sort: (run) => run.name,
            render: (run) => (
                <a class="main" href={href(['runs', run.id])} title={run.name}>
                    {picked.includes(run.id) && <i class={`sw c${(picked.indexOf(run.id) % 6) + 1}`} />} {run.name}
                </a>
            ),
        },
        ...(project.value === undefined && !experiment ? [OF_ATTRIBUTES['project']!] : []),
    ])
    const columns = useMemo(makeColumns, [look])
    const again = () => {
        setQuery({ pick: '' })
        setRound(round + 1)
        experiments.refresh()
    }
    const total = experiment?.n_runs
    const matching = found?.matching ?? (found?.isWhole ? rows.length : undefined)
    return (
        <>
            <Grammar
                names={[...all.filter((id) => id.includes('.')).map(nameInGrammar), ...GRAMMAR_ATTRIBUTES]}
                error={error?.httpStatus === 400 ? error : null}
                said={found && `${matching === undefined ? `${short(rows.length)} or more` : short(matching)}${total === undefined ? '' : ` of ${short(total)}`} in ${Math.max(1, Math.round(found.tookMs))} ms`}
            >
                <Choices
                    label="Runs that are"
                    items={[
                        { name: 'Active', address: hrefWith({ life: '', pick: '' }), isCurrent: !isDeleted },
                        { name: 'Deleted', address: hrefWith({ life: 'deleted', pick: '' }), isCurrent: isDeleted },
                    ]}
                />
                <ColumnChoice all={all} chosen={ids} />
            </Grammar>
            {error && error.httpStatus !== 400 && (
                <p class="failed" role="alert">
                    <span>{error.message}</span>
                    <button type="button" class="button small" onClick={() => setRound(round + 1)}>
                        Try again
                    </button>
                </p>
            )}
            {found === null || found === undefined ? (
                !error && <Loading rows={8} />
            ) : (
                <section class="panel" aria-label="Runs of the experiment">
                    <header class="panel-head chosen-bar">
                        {picked.length > 0 ? (
                            <>
                                <b>{picked.length} chosen</b>
                                <a class="button small" href={compareAddress(experiment?.name, picked)}>
                                    Compare
                                </a>
                                {chosen.length > 0 && <RunActs runs={chosen} isDeleted={isDeleted} onDone={again} />}
                                <button type="button" class="button small" onClick={() => setQuery({ pick: '' })}>
                                    None
                                </button>
                                {picked.length > chosen.length && <span class="small muted">{`acts are on the ${chosen.length} in this list`}</span>}
                            </>
                        ) : (
                            <>
                                <h2>Runs</h2>
                                <span class="window">{param('sort') ? '' : 'newest first'}</span>
                            </>
                        )}
                        <span class="aside small muted">
                            {found.nNew > 0 && (
                                <button type="button" class="link" onClick={() => setRound(round + 1)}>
                                    {found.nNew} new: show
                                </button>
                            )}
                            <span class="desk">x choose · j k move · Enter open · c compare</span>
                        </span>
                    </header>
                    {rows.length === 0 ? (
                        filter === '' ? (
                            <Empty icon="runs" title={isDeleted ? 'Nothing is in the bin' : 'No runs yet'} {...(isDeleted ? {} : { command: COMMANDS.trackedJob })}>
                                {isDeleted ? 'Runs that somebody deletes lie here until retention takes them.' : 'A run begins when a training of an ION trains, when a job runs, or when a program logs through MLflow’s client:'}
                            </Empty>
                        ) : (
                            <Empty icon="question" title="No run matches" more={<a class="button small" href={hrefWith({ q: '' })}>Remove the filter</a>}>
                                {total === undefined ? 'The filter leaves none.' : `0 of ${short(total)}.`}
                            </Empty>
                        )
                    ) : (
                        <Table
                            label="Runs"
                            rows={rows}
                            columns={columns}
                            keyOf={(run) => run.id}
                            hrefOf={(run) => href(['runs', run.id])}
                            classOf={(run) => (picked.includes(run.id) ? 'sel' : '')}
                            isDense
                            isInOrder
                            minPx={widthOf(columns)}
                            onRange={(first, end) => shown.current.need(first, end)}
                            onKey={(pressed, run) => {
                                if (pressed === 'x') {
                                    toggle(run.id)
                                }
                                return pressed === 'x'
                            }}
                        />
                    )}
                    <footer class="panel-foot">
                        <span>{`${short(rows.length)}${found.isWhole ? '' : ' so far · scroll loads more'}`}</span>
                        <span class="push">
                            <button type="button" class="button small" onClick={() => void writeFile(wanted, experiment?.name ?? 'runs').catch((failure: Error) => toast(failure.message, 'bad'))}>
                                Download CSV
                            </button>
                        </span>
                    </footer>
                </section>
            )}
        </>
    )
}

/* ---- the experiments, and views that somebody has kept -------------------------------------------------------------- */

const VIEW = 'weir.view.'

function Views({ experiment }: { experiment: Experiment }) {
    const [isOpen, setOpen] = useState(false)
    const views = Object.entries(experiment.tags ?? {}).filter(([key]) => key.startsWith(VIEW))
    const keep = (name: string, value: string | null) => send('PATCH', `/experiments/${experiment.id}`, { tags: { [VIEW + name]: value } }).then(() => experiments.load())
    return (
        <Panel title="Saved views">
            <ul class="list">
                {views.map(([key, query]) => (
                    <li key={key}>
                        <a href={href(['experiments', experiment.name], Object.fromEntries(new URLSearchParams(String(query))))}>{key.slice(VIEW.length)}</a>
                        <button type="button" class="icon-button push" aria-label={`Forget ${key.slice(VIEW.length)}`} onClick={() => void keep(key.slice(VIEW.length), null)}>
                            ×
                        </button>
                    </li>
                ))}
                <li>
                    <Act right="change experiments" project={experiment.project} isSmall onClick={() => setOpen(true)}>
                        Save this view
                    </Act>
                </li>
            </ul>
            {isOpen && (
                <Form
                    title="Save this view"
                    confirm="Save"
                    fields={[{ name: 'name', label: 'Name: filter, order and columns are kept for all who see the experiment' }]}
                    act={async ({ name = '' }) => {
                        const query = new URLSearchParams(location.search)
                        query.delete('pick')
                        await keep(name, query.toString())
                    }}
                    onClose={() => setOpen(false)}
                />
            )}
        </Panel>
    )
}

function NewExperiment() {
    const [isOpen, setOpen] = useState(false)
    return (
        <>
            <Act right="change experiments" project={project.value} isSmall onClick={() => setOpen(true)}>
                New experiment
            </Act>
            {isOpen && (
                <Form
                    title="New experiment"
                    confirm="Make it"
                    fields={[{ name: 'name', label: 'Name' }, { name: 'project', label: 'Project', options: project.value ? [project.value] : projects.value }]}
                    act={async (values) => {
                        await call('POST', '/experiments', values)
                        await experiments.load()
                        go(href(['experiments', values['name']!]))
                    }}
                    onClose={() => setOpen(false)}
                />
            )}
        </>
    )
}

function ExperimentList({ current }: { current: Experiment | undefined }) {
    const list = (experiments.data.value ?? []).filter(inProject)
    const item = (name: string, address: string, isCurrent: boolean, n: number | undefined, title?: string) => (
        <li key={address} class={isCurrent ? 'sel' : ''}>
            <a class="clip" href={address} aria-current={isCurrent ? 'true' : undefined} title={title}>
                {name}
            </a>
            <span class="push small muted">{n === undefined ? '' : short(n)}</span>
        </li>
    )
    return (
        <Panel title="Experiments" foot={<NewExperiment />}>
            <ul class="list" aria-label="Experiments">
                {item('All runs', href('experiments'), current === undefined, undefined)}
                {list.map((one) => item(one.name, href(['experiments', list.filter((other) => other.name === one.name).length > 1 ? String(one.id) : one.name]), one === current, one.n_runs, one.project))}
            </ul>
        </Panel>
    )
}

function Experiments({ args }: { args: Args }) {
    const wanted = args['experiment']
    const current = experimentOf(wanted)
    const keys = useResource(`keys:${current?.id ?? ''}:${project.value ?? ''}`, () => summaryOf({ experiment: current?.id, project: project.value, filter: '', isDeleted: false }))
    if (experiments.data.value === undefined) {
        return experiments.error.value ? <Failed resource={experiments} /> : <Loading rows={8} />
    }
    if (wanted && !current) {
        return (
            <>
                <PageHead title="No such experiment" crumbs={[['Experiments', href('experiments')]]} />
                <div class="panel">
                    <Empty icon="question" title={`There is no experiment ${wanted}`} more={<a href={href('experiments')}>All experiments</a>}>
                        It may be of another project, or be deleted.
                    </Empty>
                </div>
            </>
        )
    }
    return (
        <>
            <PageHead title={current ? `Experiments: ${current.name}` : 'Experiments'} sub={current ? <Owner project={current.project} /> : 'The runs of all experiments'}>
                {chosenIds().length > 0 && (
                    <a class="button primary" href={compareAddress(current?.name, chosenIds())}>
                        Compare {chosenIds().length}
                    </a>
                )}
            </PageHead>
            <div class="grid split-experiments">
                <div class="stack">
                    <ExperimentList current={current} />
                    {current && <Views key={current.id} experiment={current} />}
                </div>
                <div class="stack">{keys.data.value || keys.error.value ? <Runs key={`${current?.id} ${param('life')}`} experiment={current} keys={keys.data.value ?? { metrics: [], params: [], tags: [] }} /> : <Loading rows={8} />}</div>
            </div>
        </>
    )
}

const compare = (args: Args) => chosenIds().length > 0 && go(compareAddress(args['experiment'], chosenIds()))

export const experimentsScreen: Screen = {
    id: 'experiments',
    title: 'Experiments',
    icon: 'runs',
    address: 'experiments/:experiment?',
    query: ['q', 'cols', 'sort', 'life', 'pick'],
    group: { science: 'Build', operations: 'Build' },
    load: [experiments, projectList],
    letter: 'e',
    keys: (args) => [{ key: 'c', name: 'compare the chosen runs', run: () => compare(args) }],
    actions: (args) => (chosenIds().length > 0 ? [{ name: `Compare ${chosenIds().length} runs`, run: () => compare(args) }] : []),
    render: Experiments,
}
