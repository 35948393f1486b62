/** Experiments: find the good run among 100,000. Filter, order and columns are the server's work; rows come as they are needed. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Experiment, List, Run, RunSummary } from '../api'
import { COMMANDS } from '../commands'
import { Choices, Empty, Failed, Loading, Owner, PageHead, Panel } from '../components/basics'
import { ColumnChoice } from '../components/column_choice'
import { Dialog } from '../components/dialog'
import { Form } from '../components/form'
import { Grammar } from '../components/grammar'
import { Icon } from '../components/icon'
import { Description } from '../components/in_place'
import { Act } from '../components/locked'
import { RegisterBest } from '../components/register_best'
import { RunActs } from '../components/run_acts'
import { boundsOf, columnsOf, isNumeric, OF_ATTRIBUTES, withBars } from '../components/run_columns'
import { Table } from '../components/table'
import { toast } from '../components/toast'
import { counted, short } from '../format'
import type { Args, Screen } from '../screen'
import { csvOf, download } from '../state/audit'
import { goodEnd, interest } from '../state/curves'
import { call, get, send } from '../state/http'
import { inProject, ownerClass, project, projectList } from '../state/project'
import { projectsThatMay } from '../state/rights'
import { useResource } from '../state/resource'
import { go, href, hrefWith, param, setQuery } from '../state/route'
import { Heading } from '../state/rows'
import { canGroup, GroupedRuns, type Grouped } from '../state/run_groups'
import { experimentOf, experiments, nameInGrammar, NOTE_TAG, paramsOf, RunPages, splitColumn, summaryOf, type Wanted } from '../state/tracking'

const TYPING_MS = 250
const CHOSEN_MAX = 100
const FILE_MAX = 100_000
const FIRST = { metrics: 2, params: 3 } // columns that one sees without a choice
const ATTRIBUTES = ['status', 'took', 'user', 'started']
const GRAMMAR_ATTRIBUTES = ['attributes.status', 'attributes.run_name', 'attributes.start_time', 'attributes.end_time', 'attributes.user_id', 'and ', 'or ', 'not ', 'like ', 'ilike ', 'in ']

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
    return href(experiment ? ['experiments', experiment, 'compare'] : ['compare'], { runs: ids.slice(0, CHOSEN_MAX).join(), q: param('q') })
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
    toast(`${counted(rows.length, 'run is', 'runs are')} in the file${cursor ? `: the first ${FILE_MAX}` : ''}`)
}

/** The list that is asked for, in groups or not: fetched again when that changes, while the old one stays until the first rows are there. */
function useList(wanted: Wanted, by: string, metric: string | undefined, round: number) {
    const key = JSON.stringify([wanted, by, by && metric, round])
    const list = useMemo(() => (by === '' ? new RunPages(wanted) : new GroupedRuns(wanted, by, metric)), [key])
    useEffect(() => list.start(), [list])
    const open = by === '' ? '' : param('open')
    useEffect(() => {
        if (list instanceof GroupedRuns) {
            list.open(openKeys())
        }
    }, [list, open])
    const shown = useRef(list)
    if (list.found.value) {
        shown.current = list
    }
    return { found: shown.current.found.value, error: list.error.value, need: (first: number, end: number) => shown.current.need(first, end) }
}

const openKeys = () => param('open').split(',').filter(Boolean).map(decodeURIComponent)

/** A group: its value, how many, and how good they are. */
function headingOf(by: string, metric: string | undefined) {
    return ({ key, of }: Heading) => {
        const { group, isOpen } = of as Grouped
        const keys = isOpen ? openKeys().filter((one) => one !== key) : [...openKeys(), key]
        const address = hrefWith({ open: keys.map(encodeURIComponent).join() })
        const best = goodEnd(metric ?? '') < 0 ? group.least : group.greatest
        return {
            address,
            content: (
                <span class="group-head">
                    <a class="main" href={address} aria-expanded={isOpen}>
                        <Icon name="down" /> {splitColumn(by)[1]} {group.value === null ? 'not set' : `= ${group.value}`}
                    </a>
                    <span class="muted">{counted(group.n_runs, 'run')}</span>
                    {metric && group.n_measured > 0 && (
                        <span class="figures">
                            {metric} mean <b>{short(group.mean)}</b> · {goodEnd(metric) === 0 ? 'greatest' : 'best'} <b>{short(best)}</b>
                        </span>
                    )}
                </span>
            ),
        }
    }
}

/** What can be done to one run, also where there is no room beside it. */
function RowActs({ run, isDeleted, onClose, onDone }: { run: Run; isDeleted: boolean; onClose: () => void; onDone: () => void }) {
    const isPicked = chosenIds().includes(run.id)
    return (
        <Dialog title={run.name} onClose={onClose}>
            <div class="dialog-text acts-list">
                <a class="button" href={href(['runs', run.id])}>
                    Open
                </a>
                <button
                    type="button"
                    class="button"
                    onClick={() => {
                        onClose()
                        toggle(run.id)
                    }}
                >
                    {isPicked ? 'Do not choose it' : 'Choose it, to compare'}
                </button>
                <RunActs
                    runs={[run]}
                    isDeleted={isDeleted}
                    onDone={() => {
                        onClose()
                        onDone()
                    }}
                />
            </div>
        </Dialog>
    )
}

type Keys = Omit<RunSummary, 'n'>

/** What a command is started with says little beside other runs. */
const OF_A_COMMAND = /^(argv|code|env|files|git|image|python|resources|secrets)\b/

function Runs({ experiment, keys }: { experiment: Experiment | undefined; keys: Keys }) {
    // What a program logged itself says more of a run than what its job was started with.
    const params = [...new Set([...keys.logged_params, ...keys.params])]
    const all = [...ATTRIBUTES, ...keys.metrics.map((key) => `metrics.${key}`), ...params.map((key) => `params.${key}`), ...keys.tags.map((key) => `tags.${key}`)]
    const usual = ['status', ...[...keys.metrics].sort((a, b) => interest(b) - interest(a)).slice(0, FIRST.metrics).map((key) => `metrics.${key}`), ...[...keys.logged_params, ...keys.params.filter((key) => !OF_A_COMMAND.test(key))].slice(0, FIRST.params).map((key) => `params.${key}`), 'took', 'user', 'started']
    const ids = param('cols') === '' ? usual : param('cols').split(',').filter((id) => id !== '-')
    const isDeleted = param('life') === 'deleted'
    const filter = useLate(param('q').trim(), TYPING_MS)
    const [round, setRound] = useState(0)
    const [acting, setActing] = useState<Run | null>(null)
    const [isRegistering, setRegistering] = useState(false)
    const wanted: Wanted = { experiment: experiment?.id, project: project.value, filter, sort: param('sort'), columns: ids, isDeleted }
    const by = canGroup(param('group')) ? param('group') : ''
    const bars = withBars(ids)
    const metric = bars && splitColumn(bars)[1]
    const { found, error, need } = useList(wanted, by, metric, round)
    const rows = found?.rows ?? []
    const picked = chosenIds()
    const isRun = (run: Run | Heading | undefined): run is Run => run !== undefined && !(run instanceof Heading)
    const chosen = rows.filter((run): run is Run => isRun(run) && picked.includes(run.id))
    const last = useRef<string>('')
    const latest = useRef(rows)
    latest.current = rows
    const onCheck = (run: Run) => (event: MouseEvent) => {
        const rows = latest.current.filter(isRun)
        const from = rows.findIndex((one) => one.id === last.current)
        const to = rows.findIndex((one) => one.id === run.id)
        const isOn = !chosenIds().includes(run.id)
        const range = event.shiftKey && from >= 0 ? rows.slice(Math.min(from, to), Math.max(from, to) + 1) : [run]
        last.current = run.id
        choose(range.map((one) => one.id), isOn)
    }
    const barred: [string, [number, number]] | undefined = bars === undefined ? undefined : [bars, boundsOf(rows, splitColumn(bars)[1])]
    const first = rows.find(isRun)
    const numbers = ids.filter((id) => isNumeric(first, id))
    // The same columns as long as they look the same: rows that are there are then not drawn again when others come.
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
        {
            id: 'acts',
            name: '',
            width: '40px',
            phone: 'acts',
            render: (run) => (
                <button type="button" class="icon-button" aria-label={`What can be done with ${run.name}`} onClick={() => setActing(run)}>
                    <b aria-hidden="true">⋯</b>
                </button>
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
    const registerBest = (
        <Act right="register models" project={experiment?.project ?? project.value} isSmall onClick={() => setRegistering(true)}>
            <Icon name="models" /> Register best
        </Act>
    )
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
                <label class="group-by">
                    <span class="muted">Group by</span>
                    <select class="input" name="group" value={by} onChange={(event) => setQuery({ group: event.currentTarget.value, open: '' })}>
                        <option value="">none</option>
                        {all.filter(canGroup).map((id) => (
                            <option key={id} value={id}>
                                {splitColumn(id)[1]}
                                {id.startsWith('tags.') ? ' (tag)' : ''}
                            </option>
                        ))}
                    </select>
                </label>
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
                                {!isDeleted && registerBest}
                                {chosen.length > 0 && <RunActs runs={chosen} isDeleted={isDeleted} onDone={again} />}
                                <button type="button" class="button small" onClick={() => setQuery({ pick: '' })}>
                                    None
                                </button>
                                {picked.length > chosen.length && <span class="small muted">{`acts are on the ${chosen.length} in this list`}</span>}
                            </>
                        ) : (
                            <>
                                <h2>Runs</h2>
                                <span class="window">{by ? `by ${splitColumn(by)[1]}` : param('sort') ? '' : 'newest first'}</span>
                                {!isDeleted && rows.length > 0 && registerBest}
                            </>
                        )}
                        <span class="aside small muted">
                            {found.nNew > 0 && (
                                <button type="button" class="link" onClick={() => setRound(round + 1)}>
                                    {found.nNew} new: show
                                </button>
                            )}
                            <span class="desk">x choose · j k move · Enter open · . acts · c compare</span>
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
                            widths="runs"
                            heading={headingOf(by, metric)}
                            onRange={need}
                            onKey={(pressed, run) => {
                                if (pressed === 'x') {
                                    toggle(run.id)
                                } else if (pressed === '.') {
                                    setActing(run)
                                }
                                return pressed === 'x' || pressed === '.'
                            }}
                        />
                    )}
                    <footer class="panel-foot">
                        <span>{by ? (found.isWhole ? '' : 'scroll loads more groups') : matching === undefined ? `${short(rows.length)} so far · scroll loads more` : counted(matching, 'run')}</span>
                        <span class="push">
                            <button type="button" class="button small" onClick={() => void writeFile(wanted, experiment?.name ?? 'runs').catch((failure: Error) => toast(failure.message, 'bad'))}>
                                Download CSV
                            </button>
                        </span>
                    </footer>
                </section>
            )}
            {acting && <RowActs run={acting} isDeleted={isDeleted} onClose={() => setActing(null)} onDone={again} />}
            {isRegistering && <RegisterBest wanted={wanted} ids={picked} metrics={keys.metrics} name={experiment?.name ?? ''} onClose={() => setRegistering(false)} />}
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
                    fields={[{ name: 'name', label: 'Name' }, { name: 'project', label: 'Project', options: projectsThatMay('change experiments') }]}
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
    const hasSeveral = new Set(list.map((one) => one.project)).size > 1
    const item = (name: string, address: string, isCurrent: boolean, n: number | undefined, owner?: string, isTwin = false) => (
        <li key={address} class={isCurrent ? 'sel' : ''}>
            <a class="clip" href={address} aria-current={isCurrent ? 'true' : undefined} title={owner && `${name} of ${owner}`}>
                {hasSeveral && owner && (
                    <span class={`own ${ownerClass(owner)}`}>
                        <i />
                    </span>
                )}
                {name}
                {isTwin && <small class="muted"> of {owner}</small>}
            </a>
            <span class="push small muted">{n === undefined ? '' : short(n)}</span>
        </li>
    )
    return (
        <Panel title="Experiments" foot={<NewExperiment />}>
            <ul class="list" aria-label="Experiments">
                {item('All runs', href('experiments'), current === undefined, undefined)}
                {list.map((one) => {
                    const isTwin = list.some((other) => other !== one && other.name === one.name) // of another project
                    return item(one.name, href(['experiments', isTwin ? String(one.id) : one.name]), one === current, one.n_runs, one.project, isTwin)
                })}
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
            {current && (
                <Description
                    key={current.id}
                    text={current.tags[NOTE_TAG]}
                    of={current.name}
                    right="change experiments"
                    project={current.project}
                    put={async (description) => {
                        await send('PATCH', `/experiments/${current.id}`, { description })
                        await experiments.load()
                    }}
                />
            )}
            <div class="grid split-experiments">
                <div class="stack">
                    <ExperimentList current={current} />
                    {current && <Views key={current.id} experiment={current} />}
                </div>
                <div class="stack">{keys.data.value || keys.error.value ? <Runs key={`${current?.id} ${param('life')}`} experiment={current} keys={keys.data.value ?? { metrics: [], params: [], logged_params: [], tags: [] }} /> : <Loading rows={8} />}</div>
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
    query: ['q', 'cols', 'sort', 'life', 'pick', 'group', 'open'],
    group: { science: 'Build', operations: 'Build' },
    load: [experiments, projectList],
    letter: 'e',
    keys: (args) => [{ key: 'c', name: 'compare the chosen runs', run: () => compare(args) }],
    actions: (args) => (chosenIds().length > 0 ? [{ name: `Compare ${counted(chosenIds().length, 'run')}`, run: () => compare(args) }] : []),
    render: Experiments,
}

/** Runs have one list, that of all experiments: an address of before leads there. */
function ToExperiments() {
    useEffect(() => go(href('experiments'), true), [])
    return <Loading rows={8} />
}

export const runsScreen: Screen = { id: 'runs', title: 'Runs', icon: 'runs', address: 'runs', query: [], under: 'experiments', load: [], render: ToExperiments }
