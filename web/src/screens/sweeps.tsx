/** Sweeps: many trials of one job, each with other parameters. What they found, which of them were stopped early, and where. */
import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Sweep, Trial } from '../api'
import { COMMANDS } from '../commands'
import { Choices, Empty, Facts, Loaded, Owner, PageHead, Panel, Progress, Strip, When } from '../components/basics'
import { ask, Dialog } from '../components/dialog'
import { Filter, filtered, NothingMatches, type FilterOf } from '../components/filter'
import { Icon } from '../components/icon'
import { Act } from '../components/locked'
import { Parallel } from '../components/parallel'
import { is, State, StateWord, type Tone } from '../components/state'
import { Table, type Column } from '../components/table'
import { counted, dayTime, millis, NONE, plainValue, plural, short, span } from '../format'
import type { Args, Screen } from '../screen'
import { askDraft, call, get, getAll, messageOf, segment, send } from '../state/http'
import { inProject, project, projectList } from '../state/project'
import { projectsThatMay } from '../state/rights'
import { useResource } from '../state/resource'
import { go, href, hrefWith, param } from '../state/route'
import { now } from '../state/store'
import { sweeps } from '../state/sweeps'
import { readYaml, writeYaml } from '../state/yaml'

const RUNGS_MAX = 20

const isOver = (one: { state: string }) => !is(one.state, 'running', 'paused', 'pausing', 'stopping', 'wanted')

const TONES: Record<string, Tone> = { succeeded: 'good', stopped: 'plain', failed: 'bad', cancelled: 'plain', running: 'busy', paused: 'warn', pausing: 'warn', stopping: 'warn', wanted: 'plain' }
const WORDS: Record<string, string> = { stopped: 'stopped early', wanted: 'waits' }

function TrialState({ trial }: { trial: Trial }) {
    const state = trial.state.toLowerCase()
    return (
        <State tone={TONES[state] ?? 'plain'} title={trial.reason ?? undefined}>
            {WORDS[state] ?? state}
        </State>
    )
}

/* ---- all of them ---------------------------------------------------------------------------------------------------- */

const FILTER: FilterOf<Sweep> = {
    text: (one) => one.name,
    keys: { name: (one) => one.name, state: (one) => one.state, method: (one) => one.method, project: (one) => one.project, metric: (one) => one.metric, by: (one) => one.created_by ?? '' },
}

const COLUMNS: Column<Sweep>[] = [
    { id: 'name', name: 'Sweep', phone: 'name', sort: (one) => one.name, render: (one) => <a class="main" href={href(['sweeps', one.id])}>{one.name}</a> },
    { id: 'project', name: 'Project', width: '112px', phone: 'more', sort: (one) => one.project, render: (one) => <Owner project={one.project} /> },
    { id: 'state', name: 'State', width: '120px', phone: 'state', sort: (one) => one.state, render: (one) => <StateWord state={one.state} /> },
    { id: 'method', name: 'Method', width: '84px', sort: (one) => one.method, render: (one) => one.method },
    {
        id: 'trials',
        name: 'Trials',
        width: '132px',
        isNumber: true,
        sort: (one) => -one.n_made,
        render: (one) => (
            <span title={`${one.n_succeeded} had all their work, ${one.n_stopped} were stopped early, ${one.n_failed} failed, ${one.n_open} are open`}>
                {one.n_made - one.n_open} of {one.n_trials}
            </span>
        ),
    },
    { id: 'best', name: 'Best', width: '168px', isNumber: true, phone: 'more', render: (one) => <span title={one.metric}>{one.best ? `${short(one.best_value)} ${one.metric}` : NONE}</span> },
    { id: 'begun', name: 'Begun', width: '132px', isNumber: true, sort: (one) => -millis(one.created_ms), render: (one) => <When time={one.created_ms} /> },
    { id: 'by', name: 'By', width: '96px', sort: (one) => one.created_by ?? '', render: (one) => <span class="muted">{one.created_by}</span> },
]

const EXAMPLE = {
    name: 'lenet',
    job: { kind: 'train', spec: { model: 'lenet5', dataset: 'digits', epochs: '{{max_resource}}', learning_rate: '{{lr}}' } },
    parameters: { lr: { kind: 'log_uniform', min: 0.001, max: 1 } },
    goal: { metric: 'validation_accuracy', direction: 'maximize' },
    method: { kind: 'asha', min_resource: 1, max_resource: 27, resource: 'epoch' },
    trials: 32,
    parallel: 4,
}

/** The document of a sweep, looked at by the server before it begins. */
function NewSweep({ onClose }: { onClose: () => void }) {
    const [text, setText] = useState(() => writeYaml({ ...EXAMPLE, project: projectsThatMay('submit jobs')[0] ?? project.value ?? 'default' }).lines.join('\n'))
    const [said, setSaid] = useState<{ tone: 'good' | 'bad'; text: string } | null>(null)
    const [isBusy, setBusy] = useState(false)
    const post = async (isDry: boolean) => {
        setBusy(true)
        try {
            const made = await (isDry ? askDraft<Sweep>('/sweeps?dry_run=1', readYaml(text)) : call<Sweep>('POST', '/sweeps', readYaml(text)))
            if (isDry) {
                setSaid({ tone: 'good', text: `It is right: ${counted(made.n_trials, 'trial')} at most, chosen by ${made.method}.` })
            } else {
                await sweeps.load()
                onClose()
                go(href(['sweeps', made.id]))
            }
        } catch (failure) {
            setSaid({ tone: 'bad', text: messageOf(failure) })
        } finally {
            setBusy(false)
        }
    }
    return (
        <Dialog title="New sweep" onClose={onClose} wide>
            <form
                onSubmit={(event) => {
                    event.preventDefault()
                    void post(false)
                }}
            >
                <label class="field">
                    <span>A text that is {'{{NAME}}'} becomes the value of that parameter in each trial’s job</span>
                    <textarea class="query" name="document" rows={18} spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} />
                </label>
                {said && (
                    <p class={said.tone === 'bad' ? 'failed' : 'small'} role={said.tone === 'bad' ? 'alert' : 'status'}>
                        <Icon name={said.tone === 'bad' ? 'warning' : 'check'} /> {said.text}
                    </p>
                )}
                <footer>
                    <button type="button" class="button" disabled={isBusy} onClick={() => void post(true)}>
                        Check
                    </button>
                    <button type="submit" class="button primary" disabled={isBusy}>
                        Begin the sweep
                    </button>
                </footer>
            </form>
        </Dialog>
    )
}

const GROUPS: Record<string, { name: string; has: (one: Sweep) => boolean }> = {
    '': { name: 'All', has: () => true },
    running: { name: 'Running', has: (one) => !isOver(one) },
    ended: { name: 'Ended', has: isOver },
}

function Sweeps() {
    const [isOpen, setOpen] = useState(false)
    const all = (sweeps.data.value ?? []).filter(inProject)
    const group = GROUPS[param('state')] ?? GROUPS['']!
    const found = filtered(all, FILTER).filter(group.has)
    return (
        <>
            <PageHead title="Sweeps" sub={sweeps.data.value && `${counted(all.filter((one) => !isOver(one)).length, 'sweep runs', 'sweeps run')} · each trial is a job of its own, and a run`}>
                <Act right="submit jobs" project={project.value} tone="primary" onClick={() => setOpen(true)}>
                    New sweep
                </Act>
            </PageHead>
            {isOpen && <NewSweep onClose={() => setOpen(false)} />}
            <Loaded resource={sweeps} rows={6}>
                {() =>
                    all.length === 0 ? (
                        <div class="panel">
                            <Empty icon="sweeps" title="No sweeps yet" command={COMMANDS.sweep}>
                                A sweep tries a job with many values of its parameters, and stops those that do badly:
                            </Empty>
                        </div>
                    ) : (
                        <>
                            <Filter label="Filter sweeps" rows={all} of={FILTER} hint="name, or state:running method:asha">
                                <Choices label="By state" items={Object.entries(GROUPS).map(([id, { name, has }]) => ({ name: `${name} ${all.filter(has).length}`, address: hrefWith({ state: id }), isCurrent: group === GROUPS[id] }))} />
                            </Filter>
                            <Panel title="All sweeps" window={`${counted(found.length, 'sweep')}${found.length > 1 ? ' · newest first' : ''}`}>
                                {found.length > 0 ? <Table label="Sweeps" rows={found} columns={COLUMNS} keyOf={(one) => one.id} hrefOf={(one) => href(['sweeps', one.id])} isDense /> : <NothingMatches rows={all.filter(group.has)} of={FILTER} what="sweep" />}
                            </Panel>
                        </>
                    )
                }
            </Loaded>
        </>
    )
}

export const sweepsScreen: Screen = {
    id: 'sweeps',
    title: 'Sweeps',
    icon: 'sweeps',
    address: 'sweeps',
    query: ['q', 'state', 'sort'],
    group: { science: 'Build', operations: 'Build' },
    load: [sweeps, projectList],
    badge: () => ({ count: (sweeps.data.value ?? []).filter(inProject).filter((one) => !isOver(one)).length, tone: 'plain', what: 'running' }),
    render: Sweeps,
}

/* ---- one ------------------------------------------------------------------------------------------------------------ */

const parametersOf = (trial: Trial) => (trial.parameters ?? {}) as Record<string, string | number>

const namesOf = (trials: readonly Trial[]) => [...new Set(trials.flatMap((trial) => Object.keys(parametersOf(trial))))]

interface Document {
    goal?: { metric?: string; direction?: string }
    method?: { kind?: string; min_resource?: number; max_resource?: number; eta?: number; resource?: string }
    parallel?: number
}

const rungsOf = (trial: Trial): (number | null)[] => (Array.isArray(trial.rungs) ? (trial.rungs as (number | null)[]) : [])

/** At each rung: where it lies, how many came to it, how many were stopped there, and the best of them. */
function Rungs({ trials, document }: { trials: readonly Trial[]; document: Document }) {
    const { min_resource: first = 1, eta = 3, resource = 'step' } = document.method ?? {}
    const sign = document.goal?.direction === 'minimize' ? -1 : 1
    const n = Math.min(RUNGS_MAX, Math.max(0, ...trials.map((trial) => rungsOf(trial).length)))
    return n === 0 ? null : (
        <Panel title="Rungs" window={`amounts of work at which trials are compared; one in ${eta} goes on`}>
            <div class="table-wrap" tabIndex={0} role="group" aria-label="Rungs">
                <table class="dense rungs">
                    <thead>
                        <tr>
                            <th scope="col">At {resource}</th>
                            <th scope="col" class="num">Came</th>
                            <th scope="col" class="num">Stopped there</th>
                            <th scope="col" class="num">Best</th>
                            <th scope="col">Share that went on</th>
                        </tr>
                    </thead>
                    <tbody>
                        {Array.from({ length: n }, (_, k) => {
                            const came = trials.filter((trial) => rungsOf(trial).length > k)
                            const stopped = came.filter((trial) => rungsOf(trial).length === k + 1 && (is(trial.state, 'stopped') || is(trial.ends_as ?? '', 'stopped')))
                            const values = came.map((trial) => rungsOf(trial)[k]).filter((value): value is number => typeof value === 'number')
                            const part = 1 - stopped.length / Math.max(1, came.length)
                            return (
                                <tr key={k}>
                                    <td>{short(first * eta ** k)}</td>
                                    <td class="num">{came.length}</td>
                                    <td class="num">{stopped.length}</td>
                                    <td class="num">{values.length > 0 ? short(values.reduce((a, b) => (sign * b > sign * a ? b : a))) : NONE}</td>
                                    <td>
                                        <Progress value={part} label={`Of those at ${first * eta ** k} went on`} />
                                    </td>
                                </tr>
                            )
                        })}
                    </tbody>
                </table>
            </div>
        </Panel>
    )
}

function trialColumns(names: readonly string[], metric: string, best: number): Column<Trial>[] {
    return [
        {
            id: 'number',
            name: 'Trial',
            width: '88px',
            phone: 'name',
            sort: (trial) => trial.number,
            render: (trial) =>
                trial.run ? (
                    <a class="main" href={href(['runs', trial.run])}>
                        {trial.number}
                    </a>
                ) : (
                    trial.number
                ),
        },
        { id: 'state', name: 'State', width: '132px', phone: 'state', sort: (trial) => trial.state, render: (trial) => <TrialState trial={trial} /> },
        { id: 'value', name: metric, width: '132px', isNumber: true, phone: 'more', sort: (trial) => trial.value ?? Infinity, render: (trial) => <span class={trial.number === best ? 'best' : ''}>{short(trial.value)}</span> },
        ...names.map((name): Column<Trial> => ({ id: `p.${name}`, name, width: '112px', isNumber: true, sort: (trial) => parametersOf(trial)[name] ?? '', render: (trial) => plainValue(parametersOf(trial)[name]) })),
        { id: 'work', name: 'Work', width: '84px', isNumber: true, sort: (trial) => -(trial.resource ?? 0), render: (trial) => short(trial.resource) },
        { id: 'took', name: 'Took', width: '88px', isNumber: true, render: (trial) => (trial.started_ms ? span(trial.started_ms, trial.ended_ms, trial.ended_ms ? 0 : now.value) : NONE) },
        { id: 'job', name: 'Job', width: '64px', render: (trial) => (trial.job ? <a href={href('jobs', { job: trial.job })}>job</a> : NONE) },
        { id: 'why', name: 'Why', render: (trial) => <span class="muted" title={trial.reason ?? undefined}>{trial.reason}</span> },
    ]
}

function SweepDetail({ sweep }: { sweep: Sweep }) {
    const trials = useResource(`trials:${sweep.id}`, () => getAll<Trial>(`/sweeps/${segment(sweep.id)}/trials`))
    useEffect(() => trials.loadSoon(), [sweep.state, sweep.n_made, sweep.n_open, sweep.best_value, sweep.work])
    const document = (sweep.document ?? {}) as Document
    const list = trials.data.value ?? []
    const names = namesOf(list)
    const axes = useMemo(() => [...names.map((name) => ({ name, values: list.map((trial) => parametersOf(trial)[name]) })), { name: sweep.metric, values: list.map((trial) => trial.value) }], [list])
    const strands = useMemo(() => list.map((trial) => ({ id: String(trial.number), name: `trial ${trial.number}`, tone: trial.number === sweep.best ? 'c1' : undefined })), [list, sweep.best])
    const best = list.find((trial) => trial.number === sweep.best)
    const runsOf = (some: readonly Trial[]) => some.flatMap((trial) => (trial.run ? [trial.run] : []))
    const sign = document.goal?.direction === 'minimize' ? -1 : 1
    const leaders = [...list].filter((trial) => trial.value !== null).sort((a, b) => sign * ((b.value ?? 0) - (a.value ?? 0)))
    return (
        <>
            <PageHead title={<span id="sweep-title">{sweep.name}</span>} crumbs={[['Sweeps', href('sweeps')]]} state={<StateWord state={sweep.state} />} sub={sweep.reason ?? <Owner project={sweep.project} />}>
                {leaders.length > 1 && (
                    <a class="button" href={href('compare', { runs: runsOf(leaders.slice(0, 5)).join() })}>
                        Compare the best {Math.min(5, leaders.length)}
                    </a>
                )}
                {is(sweep.state, 'running', 'paused') && (
                    <Act
                        right="submit jobs"
                        project={sweep.project}
                        onClick={() => {
                            const verb = is(sweep.state, 'paused') ? 'resume' : 'pause'
                            ask({
                                title: verb === 'pause' ? `Pause ${sweep.name}?` : `Resume ${sweep.name}?`,
                                text: <p>{verb === 'pause' ? 'No trial begins until it is resumed. Those that run go on to their ends.' : 'Trials begin again.'}</p>,
                                confirm: verb === 'pause' ? 'Pause the sweep' : 'Resume the sweep',
                                done: verb === 'pause' ? `${sweep.name} is paused` : `${sweep.name} goes on`,
                                act: () => send('POST', `/sweeps/${segment(sweep.id)}/${verb}`).then(() => sweeps.load()),
                            })
                        }}
                    >
                        {is(sweep.state, 'paused') ? 'Resume' : 'Pause'}
                    </Act>
                )}
                {!isOver(sweep) ? (
                    <Act
                        right="cancel jobs"
                        project={sweep.project}
                        tone="danger"
                        onClick={() =>
                            ask({
                                title: `Stop ${sweep.name}?`,
                                text: <p>{`It ends with what it has: ${plural(sweep.n_open, 'the job of 1 open trial is', `the jobs of ${sweep.n_open} open trials are`)} cancelled, no other begins. Runs stay.`}</p>,
                                confirm: 'Stop the sweep',
                                danger: true,
                                done: `${sweep.name} is being stopped`,
                                act: () => send('POST', `/sweeps/${segment(sweep.id)}/stop`).then(() => sweeps.load()),
                            })
                        }
                    >
                        Stop
                    </Act>
                ) : (
                    <Act
                        right="submit jobs"
                        project={sweep.project}
                        tone="danger"
                        onClick={() =>
                            ask({
                                title: `Delete ${sweep.name}?`,
                                text: <p>The list of its trials goes; their jobs and runs stay.</p>,
                                confirm: 'Delete the sweep',
                                danger: true,
                                done: `${sweep.name} is deleted`,
                                act: async () => {
                                    await send('DELETE', `/sweeps/${segment(sweep.id)}`)
                                    go(href('sweeps'))
                                    await sweeps.load()
                                },
                            })
                        }
                    >
                        Delete
                    </Act>
                )}
            </PageHead>
            <Strip
                label="How far it is"
                items={[
                    { name: `Best ${sweep.metric}`, value: sweep.best ? short(sweep.best_value) : NONE, note: sweep.best ? <>trial {best?.run ? <a href={href(['runs', best.run])}>{sweep.best}</a> : sweep.best}</> : '' },
                    { name: 'Trials over', value: sweep.n_made - sweep.n_open, note: `of ${sweep.n_trials} at most` },
                    { name: 'Open', value: sweep.n_open, note: document.parallel ? `of ${document.parallel} at a time` : '' },
                    { name: 'Stopped early', value: sweep.n_stopped, note: sweep.n_failed > 0 ? `${sweep.n_failed} failed` : '' },
                    { name: 'Work', value: short(sweep.work), note: document.method?.resource ? `${document.method.resource}s` : '' },
                ]}
            />
            <Loaded resource={trials} rows={8}>
                {() =>
                    list.length === 0 ? (
                        <div class="panel">
                            <Empty icon="sweeps" title="No trials yet">
                                The first are chosen within seconds.
                            </Empty>
                        </div>
                    ) : (
                        <>
                            <Parallel
                                title="Parallel coordinates"
                                window={`${counted(list.length, 'trial')}, the best in colour`}
                                axes={axes}
                                strands={strands}
                                onChoose={(ids) => go(href('compare', { runs: runsOf(list.filter((trial) => ids.includes(String(trial.number)))).slice(0, 20).join() }))}
                            />
                            <Rungs trials={list} document={document} />
                            <Panel title="Trials" window={`${counted(list.length, 'trial')}${param('sort') || list.length < 2 ? '' : ' · in their order'}`}>
                                <Table label="Trials" rows={list} columns={trialColumns(names, sweep.metric, sweep.best)} keyOf={(trial) => trial.id} {...{ hrefOf: (trial: Trial) => (trial.run ? href(['runs', trial.run]) : hrefWith({})) }} isDense minPx={720 + 112 * names.length} />
                            </Panel>
                        </>
                    )
                }
            </Loaded>
            <div class="grid g2">
                <Panel title="What it is">
                    <div class="panel-body">
                        <Facts
                            items={[
                                ['Goal', `${document.goal?.direction ?? ''} ${sweep.metric}`],
                                ['Method', sweep.method],
                                ['Begun', `${dayTime(sweep.created_ms)}, by ${sweep.created_by ?? NONE}`],
                                ['Took', span(sweep.created_ms, sweep.ended_ms, now.value)],
                            ]}
                        />
                    </div>
                </Panel>
                <Panel title="Document">
                    <pre class="log document" tabIndex={0} aria-label="Document of the sweep">
                        {writeYaml(document).lines.join('\n')}
                    </pre>
                </Panel>
            </div>
        </>
    )
}

function SweepPage({ args }: { args: Args }) {
    const wanted = args['sweep']!
    const listed = (sweeps.data.value ?? []).find((one) => one.id === wanted || one.name === wanted)
    const one = useResource(`sweep:${wanted}`, async () => (sweeps.data.peek()?.some((known) => known.id === wanted || known.name === wanted) ? undefined : get<Sweep>(`/sweeps/${segment(wanted)}`)))
    return listed ? <SweepDetail key={listed.id} sweep={listed} /> : <Loaded resource={one}>{(found) => (found ? <SweepDetail key={found.id} sweep={found} /> : null)}</Loaded>
}

export const sweepScreen: Screen = {
    id: 'sweep',
    title: 'Sweep',
    icon: 'sweeps',
    address: 'sweeps/:sweep',
    query: ['sort'],
    under: 'sweeps',
    load: [sweeps],
    render: SweepPage,
}
