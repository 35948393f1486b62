/** Jobs: what runs, what waits and why, and what it prints. */
import { useEffect, useState } from 'preact/hooks'
import type { Job, Task } from '../api'
import { COMMANDS } from '../commands'
import { AskedFor, useHasClusters } from '../components/allocation'
import { Choices, Command, Empty, Facts, Loaded, Owner, PageHead, Panel, When } from '../components/basics'
import { Drawer, WithDrawer } from '../components/drawer'
import { Filter, filtered, NothingMatches, type FilterOf } from '../components/filter'
import { Icon } from '../components/icon'
import { Act } from '../components/locked'
import { LogView } from '../components/log_view'
import { WhyItWaits } from '../components/explanation'
import { isOver, jobActions, JobActs } from '../components/job_acts'
import { Id, Sentence } from '../components/noun'
import { is, State, StateWord } from '../components/state'
import { Table, type Column } from '../components/table'
import { Dialog } from '../components/dialog'
import { WhatIfAnswer } from '../components/what_if'
import { dayMinute, dayTime, duration, millis, nameIn, NONE, plural, shortId, span, words } from '../format'
import type { Args, Screen } from '../screen'
import { getAll, segment, session } from '../state/http'
import { numbersText } from '../state/devices'
import { devicesOf, specOf, wantsText } from '../state/job_wants'
import { queues } from '../state/queues'
import { useWhatIf } from '../state/what_if'
import { inProject, project } from '../state/project'
import { useResource } from '../state/resource'
import { may } from '../state/rights'
import { go, href, hrefWith, param } from '../state/route'
import { hasMoreJobs, jobs, KEEP_ROWS, now, runs } from '../state/store'

const TASKS_REFRESH_S = 5

export { isOver }

const waits = (job: Job) => is(job.state, 'pending')

const GROUPS: Record<string, { name: string; has: (job: Job) => boolean }> = {
    '': { name: 'All', has: () => true },
    waiting: { name: 'Waiting', has: waits },
    running: { name: 'Running', has: (job) => !waits(job) && !isOver(job.state) },
    ended: { name: 'Ended', has: (job) => isOver(job.state) },
    failed: { name: 'Failed', has: (job) => is(job.state, 'failed') },
    mine: { name: 'Mine', has: (job) => job.created_by === session.value?.user },
}

const FILTER: FilterOf<Job> = {
    text: (job) => job.name,
    keys: {
        name: (job) => job.name,
        state: (job) => job.state,
        kind: (job) => job.kind,
        project: (job) => job.project ?? '',
        ion: (job) => job.ion ?? '',
        by: (job) => job.created_by ?? '',
    },
}

/** What waits first, then what runs, then what is over; each with the newest first. */
function byNeed(a: Job, b: Job): number {
    const need = (job: Job) => (waits(job) ? 0 : isOver(job.state) ? 2 : 1)
    return need(a) - need(b) || millis(b.created_ms) - millis(a.created_ms)
}

const SIGNALS: Record<number, string> = { 1: 'HUP', 2: 'INT', 3: 'QUIT', 4: 'ILL', 6: 'ABRT', 7: 'BUS', 8: 'FPE', 9: 'KILL', 11: 'SEGV', 13: 'PIPE', 15: 'TERM', 24: 'XCPU', 31: 'SYS' }

function exitText(task: Task): string {
    if (task.message) {
        return task.message
    }
    if (task.signal) {
        return `killed by ${SIGNALS[task.signal] ? 'SIG' + SIGNALS[task.signal] : `signal ${task.signal}`}`
    }
    return typeof task.exit_code === 'number' && task.exit_code >= 0 && is(task.state, 'exited') ? `exit ${task.exit_code}` : ''
}

/** A task that never started is over with its job. */
function isEnded(task: Task, job: Job): boolean {
    return is(task.state, 'exited', 'lost') || (is(task.state, 'waiting') && isOver(job.state))
}

/** What to show of a task: of one that waited when its job ended, that it never ran. */
function taskState(task: Task, job: Job): string {
    return is(task.state, 'waiting') && isOver(job.state) ? 'not started' : task.state
}

/** The tasks of a job, as one list and the log of the one that is chosen (?task=). */
export function Tasks({ job }: { job: Job }) {
    const tasks = useResource(`tasks:${job.id}`, () => getAll<Task>(`/jobs/${segment(job.id)}/tasks`, { limit: 500 }))
    // Also after the job's end, until its tasks are seen to be over: the two changes do not come at one time.
    const isSettled = isOver(job.state) && (tasks.data.value ?? []).every((task) => isEnded(task, job))
    const beat = isSettled ? 0 : Math.floor(now.value / 1000 / (isOver(job.state) ? 1 : TASKS_REFRESH_S))
    useEffect(() => tasks.loadSoon(), [job.state, beat])
    return (
        <Loaded resource={tasks}>
            {(items) => {
                const task = items.find((one) => one.id === param('task')) ?? items[0]
                if (task === undefined) {
                    return <p class="quiet">{isOver(job.state) ? 'No tasks: the job is over.' : 'No tasks: the job has not been placed on a node yet.'}</p>
                }
                return (
                    <>
                        <ul class="tasks" aria-label="Tasks">
                            {items.map((one) => (
                                <li key={one.id}>
                                    <a href={hrefWith({ task: one.id })} aria-current={one.id === task.id ? 'true' : undefined}>
                                        <b>
                                            {words(one.role)} {one.rank}
                                        </b>
                                        <StateWord state={taskState(one, job)} />
                                        <small class="muted">
                                            {one.node ?? 'not placed'}
                                            {one.devices ? ` / ${numbersText(one.node, one.devices)}` : ''}
                                            {(one.attempt ?? 0) > 1 ? ` · attempt ${one.attempt}` : ''}
                                            {exitText(one) ? ` · ${exitText(one)}` : ''}
                                        </small>
                                    </a>
                                </li>
                            ))}
                        </ul>
                        <TaskLog key={task.id} task={task} isOver={isOver(job.state)} />
                    </>
                )
            }}
        </Loaded>
    )
}

/** The log of the last attempt, or of an earlier one. */
function TaskLog({ task, isOver }: { task: Task; isOver: boolean }) {
    const [attempt, setAttempt] = useState<number | null>(null)
    const last = task.attempt ?? 1
    const title = `${words(task.role)} ${task.rank}`
    return (
        <LogView key={`${attempt ?? last}`} task={task.id} attempt={attempt} isOver={isOver || attempt !== null} title={title}>
            {last > 1 && (
                <label class="attempt small">
                    Attempt{' '}
                    <select value={attempt ?? last} onChange={(event) => setAttempt(Number(event.currentTarget.value) === last ? null : Number(event.currentTarget.value))}>
                        {Array.from({ length: last }, (_, i) => (
                            <option key={i} value={i + 1}>
                                {i + 1}
                            </option>
                        ))}
                    </select>
                </label>
            )}
        </LogView>
    )
}

/** Why it waits, restarts or failed: the server's sentence. */
function Why({ job }: { job: Job }) {
    if (!job.reason || is(job.state, 'succeeded')) {
        return null
    }
    const isFailed = isOver(job.state)
    return (
        <div class={`note tone-${isFailed ? 'bad' : 'plain'} why`}>
            <Icon name={isFailed ? 'warning' : 'clock'} />
            <p>
                {!isFailed && <b>{job.state.charAt(0) + job.state.slice(1).toLowerCase()}: </b>}
                <Sentence text={job.reason} />
            </p>
        </div>
    )
}

function First({ job, onClose }: { job: Job; onClose: () => void }) {
    const asked = useWhatIf({ first: job.id })
    return (
        <Dialog title={`What if ${job.name} went first?`} onClose={onClose}>
            <div class="dialog-text">
                <p>Before all others that wait in its queue, in the scheduler's next cycle. Nothing changes by asking; a higher priority makes it so.</p>
                <WhatIfAnswer {...asked} />
            </div>
        </Dialog>
    )
}

function JobDrawer({ job }: { job: Job }) {
    const hasClusters = useHasClusters()
    const [isFirst, setFirst] = useState(false)
    const run = runs.data.value?.find((one) => one.id === job.run)
    return (
        <Drawer title={job.name} id="job-title" close={hrefWith({ job: '', task: '' })} state={<StateWord state={job.is_held && waits(job) ? 'held' : job.state} />}>
            {waits(job) ? <WhyItWaits job={job} onFirst={() => setFirst(true)} /> : <Why job={job} />}
            <JobActs job={job} />
            <Facts
                items={[
                    ['Kind', words(job.kind)],
                    ['Project', <Owner project={job.project} />],
                    job.ion
                        ? [
                              'ION',
                              <>
                                  <a href={href(['ions', job.ion, 'graph'])}>{job.ion}</a>
                                  {job.pipeline ? ` / ${job.pipeline}` : ''}
                              </>,
                          ]
                        : null,
                    job.run ? ['Run', <a href={href(['runs', job.run])}>{run?.name ?? shortId(job.run)}</a>] : null,
                    ['Asks for', wantsText(job)],
                    hasClusters ? ['Clusters', <AskedFor job={job} />] : null,
                    ['Priority', `${job.priority ?? NONE}${job.is_preemptible === false ? ', never stopped for others' : ''}`],
                    job.time_limit_ms ? ['Time limit', duration(job.time_limit_ms)] : null,
                    ['Restarts', `${job.n_restarts ?? 0}${job.max_restarts ? ` of at most ${job.max_restarts}` : ''}`],
                    job.n_evictions ? ['Stopped for others', `${job.n_evictions} ${job.n_evictions === 1 ? 'time' : 'times'}${job.eviction ? `, last: ${job.eviction}` : ''}`] : null,
                    ['Submitted', dayTime(job.created_ms)],
                    waits(job) && job.expected_start_ms ? ['May start', `about ${dayMinute(job.expected_start_ms)}, if jobs end as expected`] : null,
                    ['Started', job.started_ms ? dayTime(job.started_ms) : isOver(job.state) ? 'never' : 'waits'],
                    ['Ran for', job.started_ms ? span(job.started_ms, job.finished_ms, now.value) : NONE],
                    ['By', job.created_by ?? NONE],
                    ['Job', <Id id={job.id} />],
                ]}
            />
            <Tasks key={job.id} job={job} />
            <details class="small">
                <summary>What was submitted</summary>
                <pre class="document">{JSON.stringify(specOf(job), null, 2)}</pre>
            </details>
            {isFirst && <First job={job} onClose={() => setFirst(false)} />}
        </Drawer>
    )
}

/** Beside a drawer only what tells them apart; what no job has takes no room. */
function columns(isNarrow: boolean, rows: readonly Job[]): Column<Job>[] {
    const all: (Column<Job> & { isWide?: boolean; isRare?: (job: Job) => boolean })[] = [
        {
            id: 'name',
            name: 'Job',
            ...(isNarrow ? {} : { width: '24%' }),
            phone: 'name',
            sort: (job) => job.name,
            render: (job) => (
                <span class="job-name" title={job.name}>
                    <a class="main" href={hrefWith({ job: job.id, task: '' })}>
                        {nameIn(job.ion, job.name)}
                    </a>
                    {job.ion && nameIn(job.ion, job.name) !== job.name && <small class="muted"> of {job.ion}</small>}
                </span>
            ),
        },
        { id: 'project', name: 'Project', width: '104px', phone: 'more', isWide: true, sort: (job) => job.project ?? '', render: (job) => <Owner project={job.project} /> },
        { id: 'kind', name: 'Kind', width: '80px', phone: 'more', isWide: true, sort: (job) => job.kind, render: (job) => words(job.kind) },
        {
            id: 'state',
            name: 'State',
            width: '128px',
            phone: 'state',
            sort: (job) => job.state,
            render: (job) => (job.is_held && waits(job) ? <State tone="warn">held</State> : waits(job) ? <State tone="plain">{job.expected_start_ms ? `waits ~ ${duration(millis(job.expected_start_ms) - now.value)}` : 'waits'}</State> : <StateWord state={job.state} />),
        },
        {
            id: 'why',
            name: 'Why, or for what',
            isWide: true,
            render: (job) => {
                const its = [job.n_evictions ? `stopped ${plural(job.n_evictions, 'once', `${job.n_evictions} times`)}` : '', job.n_restarts ? `restarted ${plural(job.n_restarts, 'once', `${job.n_restarts} times`)}` : '']
                const why = !is(job.state, 'succeeded') && job.reason ? job.reason : job.ion ? `${job.ion}${job.pipeline ? ` / ${job.pipeline}` : ''}` : ''
                const text = [why, ...its].filter(Boolean).join(' · ')
                return (
                    <span class="muted why-text" title={text}>
                        <Sentence text={text} />
                    </span>
                )
            },
        },
        {
            id: 'devices',
            name: 'Devices',
            width: '72px',
            isNumber: true,
            isWide: true,
            isRare: (job) => devicesOf(job) > 0,
            sort: (job) => -devicesOf(job),
            render: (job) => devicesOf(job) || <span class="muted">{NONE}</span>,
        },
        { id: 'priority', name: 'Priority', width: '72px', isNumber: true, isWide: true, isRare: (job) => (job.priority ?? 0) !== 0, sort: (job) => -(job.priority ?? 0), render: (job) => job.priority ?? NONE },
        {
            id: 'since',
            name: 'Submitted',
            width: '124px',
            isNumber: true,
            phone: 'more',
            sort: (job) => -millis(job.created_ms),
            render: (job) => <When time={job.created_ms} />,
        },
        { id: 'took', name: 'Ran for', width: '80px', isNumber: true, isWide: true, render: (job) => (job.started_ms ? span(job.started_ms, job.finished_ms, now.value) : NONE) },
        { id: 'by', name: 'By', width: '80px', isWide: true, sort: (job) => job.created_by ?? '', render: (job) => <span class="muted">{job.created_by}</span> },
    ]
    return all.filter((column) => (!isNarrow || !column.isWide) && (!column.isRare || rows.some(column.isRare)))
}

function Jobs() {
    const all = (jobs.data.value ?? []).filter(inProject)
    const group = GROUPS[param('state')] ?? GROUPS['']!
    const found = filtered(all, FILTER).filter(group.has).sort(byNeed)
    const wanted = param('job')
    const job = (jobs.data.value ?? []).find((one) => one.id === wanted)
    const isPart = (jobs.data.value ?? []).length >= KEEP_ROWS // of those that are over the page holds the newest
    const n = (id: string) => all.filter(GROUPS[id]!.has).length
    const count = (id: string) => (hasMoreJobs.value && (id === 'running' || id === 'waiting') && n(id) > 0 ? `${n(id)}+` : n(id))
    const missing = wanted && jobs.data.value && !job && (
        <Drawer title="No such job" id="job-title" close={hrefWith({ job: '', task: '' })}>
            <p class="quiet">The page holds those that run or wait, and the newest of the others. It may be older, or have been removed:</p>
            <Command text={`weir describe job ${wanted}`} />
        </Drawer>
    )
    return (
        <>
            <PageHead title="Jobs" sub={jobs.data.value && `${count('running')} run · ${count('waiting')} wait · ${count('ended')} ended${isPart ? ', of the newest' : ''}`}>
                <Act right="submit jobs" project={project.value} tone="primary" onClick={() => go(href(['jobs', 'new']))}>
                    Submit a job
                </Act>
            </PageHead>
            <Loaded resource={jobs} rows={6}>
                {() =>
                    all.length === 0 && !wanted ? (
                        <div class="panel">
                            <Empty icon="jobs" title="No jobs yet" command={COMMANDS.submitJob}>
                                An ION starts its own. To run any command on the cluster:
                            </Empty>
                        </div>
                    ) : (
                        <>
                            <Filter label="Filter jobs" rows={all} of={FILTER} hint="name, or state:running kind:train by:mara">
                                <Choices
                                    label="By state"
                                    items={Object.entries(GROUPS).map(([id, { name }]) => ({
                                        name: isPart && !['running', 'waiting'].includes(id) ? name : `${name} ${count(id)}`,
                                        address: hrefWith({ state: id }),
                                        isCurrent: group === GROUPS[id],
                                    }))}
                                />
                            </Filter>
                            <WithDrawer
                                listName="jobs"
                                close={hrefWith({ job: '', task: '' })}
                                drawer={job ? <JobDrawer key={job.id} job={job} /> : missing}
                                list={
                                    <Panel title={isPart ? 'Newest jobs' : 'All jobs'} window={`${found.length}${isPart ? ' are here' : ''}${param('sort') ? '' : ' · waiting first, then newest'}`}>
                                        {found.length > 0 ? (
                                            <Table
                                                label="Jobs"
                                                rows={found}
                                                columns={columns(Boolean(wanted), found)}
                                                rowPx={wanted ? 28 : 44}
                                                keyOf={(one) => one.id}
                                                hrefOf={(one) => hrefWith({ job: one.id, task: '' })}
                                                chosen={wanted}
                                                isDense
                                            />
                                        ) : (
                                            <NothingMatches rows={all.filter(group.has)} of={FILTER} what="job" />
                                        )}
                                    </Panel>
                                }
                            />
                        </>
                    )
                }
            </Loaded>
        </>
    )
}

export const jobsScreen: Screen = {
    id: 'jobs',
    title: 'Jobs',
    icon: 'jobs',
    address: 'jobs',
    query: ['q', 'state', 'sort', 'job', 'task'],
    group: { science: 'Build', operations: 'Cluster' },
    load: [jobs, runs, queues],
    badge: () => ({ count: (jobs.data.value ?? []).filter(inProject).filter((job) => !isOver(job.state)).length, tone: 'plain', what: 'running or waiting' }),
    letter: 'j',
    actions: (_args: Args) => {
        const job = (jobs.data.value ?? []).find((one) => one.id === param('job'))
        return [...(may('submit jobs') ? [{ name: 'Submit a job', run: () => go(href(['jobs', 'new'])) }] : []), ...(job ? jobActions(job) : [])]
    },
    render: Jobs,
}
