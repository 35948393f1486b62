/** Jobs, why they wait, their tasks, and the tasks' logs as they are written. */
import { useEffect, useState } from 'preact/hooks'
import type { Job, Task } from '../api'
import { COMMANDS } from '../commands'
import { Ago, Empty, Facts, Loaded, PageHead, Panel } from '../components/basics'
import { is, StateChip, toneOf } from '../components/chip'
import { Confirm, type Question } from '../components/dialog'
import { Icon } from '../components/icon'
import { LogView } from '../components/log_view'
import { Id, Sentence } from '../components/noun'
import { Split } from '../components/split'
import { dayTime, nameIn, NONE, shortId, span, words } from '../format'
import { getAll, segment, send } from '../state/http'
import { useResource } from '../state/resource'
import { href, route } from '../state/route'
import { jobs, now, runs } from '../state/store'
import { canChange } from '../state/versions'

const TASKS_REFRESH_S = 5

export function isOver(state: string): boolean {
    return is(state, 'succeeded', 'failed', 'cancelled')
}

function cancelQuestion(job: Job): Question {
    return {
        title: `Cancel ${job.name}?`,
        text: <p>Its tasks are asked to stop and write a last checkpoint; what they made so far is kept.</p>,
        confirm: 'Cancel the job',
        danger: true,
        done: `${job.name} is being cancelled`,
        act: async () => {
            await send('POST', `/jobs/${segment(job.id)}/cancel`)
            await jobs.load()
        },
    }
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

function Tasks({ job, current }: { job: Job; current: string | undefined }) {
    const tasks = useResource(`tasks:${job.id}`, () => getAll<Task>(`/jobs/${segment(job.id)}/tasks`, { limit: 500 }))
    // Also after the job's end, until its tasks are seen to be over: the two changes do not come at one time.
    const isSettled = isOver(job.state) && (tasks.data.value ?? []).every((task) => isEnded(task, job))
    const beat = isSettled ? 0 : Math.floor(now.value / 1000 / (isOver(job.state) ? 1 : TASKS_REFRESH_S))
    useEffect(() => tasks.loadSoon(), [job.state, beat])
    return (
        <Loaded resource={tasks}>
            {(items) => {
                const task = items.find((one) => one.id === current) ?? items[0]
                if (task === undefined) {
                    return <p class="quiet">{isOver(job.state) ? 'No tasks: the job is over.' : 'No tasks: the job has not been placed on a node yet.'}</p>
                }
                return (
                    <>
                        <ul class="tasks" aria-label="Tasks">
                            {items.map((one) => (
                                <li key={one.id}>
                                    <a class="item" href={href('jobs', job.id, one.id)} aria-current={one.id === task.id ? 'true' : undefined}>
                                        <b>
                                            {words(one.role)} {one.rank}
                                        </b>
                                        <StateChip state={taskState(one, job)} />
                                        <small class="muted">
                                            {one.node ?? 'not placed'}
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
                <label class="attempt">
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

function JobDetail({ job, task }: { job: Job; task: string | undefined }) {
    const [question, setQuestion] = useState<Question | null>(null)
    return (
        <Panel
            title={job.name}
            id="job-title"
            aside={
                <>
                    <StateChip state={job.state} />
                    {!isOver(job.state) && canChange() && (
                        <button type="button" class="button small" onClick={() => setQuestion(cancelQuestion(job))}>
                            Cancel<span class="hidden"> {job.name}</span>
                        </button>
                    )}
                </>
            }
        >
            <div class="panel-body">
                {job.reason && !isOver(job.state) && (
                    <p class="why">
                        <Icon name="clock" />
                        <span>
                            <b>{job.state.charAt(0) + job.state.slice(1).toLowerCase()}:</b> <Sentence text={job.reason} />
                        </span>
                    </p>
                )}
                {job.reason && isOver(job.state) && !is(job.state, 'succeeded') && (
                    <p class="failed">
                        <Icon name="warning" />
                        <span>
                            <Sentence text={job.reason} />
                        </span>
                    </p>
                )}
                <Facts
                    items={[
                        ['Kind', words(job.kind)],
                        ['Project', job.project ?? NONE],
                        ['ION', job.ion ? <><a href={href('overview', job.ion)}>{job.ion}</a>{job.pipeline ? ` / ${job.pipeline}` : ''}</> : NONE],
                        ['Run', job.run ? <a href={href('training', job.run)}>{runs.data.value?.find((run) => run.id === job.run)?.name ?? shortId(job.run)}</a> : NONE],
                        ['Restarts', job.n_restarts ?? 0],
                        ['Submitted', dayTime(job.created_ms)],
                        ['Started', job.started_ms ? dayTime(job.started_ms) : isOver(job.state) ? 'never' : 'waits'],
                        ['Ran for', job.started_ms ? span(job.started_ms, job.finished_ms, now.value) : NONE],
                        ['By', job.created_by ?? NONE],
                        ['Job', <Id id={job.id} />],
                    ]}
                />
                <Tasks key={job.id} job={job} current={task} />
            </div>
            {question && <Confirm question={question} onClose={() => setQuestion(null)} />}
        </Panel>
    )
}

export function Jobs() {
    const [wanted, task] = route.value.args
    return (
        <>
            <PageHead title="Jobs" sub="What runs, what waits and why, and what it prints" />
            <Loaded resource={jobs}>
                {(items) => {
                    if (items.length === 0) {
                        return (
                            <Empty icon="jobs" title="No jobs yet" command={COMMANDS.submitJob}>
                                An ION starts its own. To run any command on the cluster:
                            </Empty>
                        )
                    }
                    const job = items.find((one) => one.id === wanted) ?? (wanted === undefined ? items[0] : undefined)
                    return (
                        <Split
                            label="Jobs"
                            back={href('jobs')}
                            chosen={wanted}
                            list={items.map((one) => (
                                <li key={one.id}>
                                    <a class="item" href={href('jobs', one.id)} aria-current={one.id === job?.id ? 'true' : undefined}>
                                        <span class="item-top">
                                            <b title={one.name}>{nameIn(one.ion, one.name)}</b>
                                            <StateChip state={one.state} />
                                        </span>
                                        <small class="muted">
                                            {one.ion ? `${one.ion} · ` : ''}
                                            {toneOf(one.state) === 'warn' && one.reason ? <Sentence text={one.reason} /> : words(one.kind)} ·{' '}
                                            <span class="nowrap">
                                                <Ago time={one.created_ms} />
                                            </span>
                                        </small>
                                    </a>
                                </li>
                            ))}
                        >
                            {job ? <JobDetail key={job.id} job={job} task={task} /> : <Empty icon="question" title="No such job">Choose one from the list.</Empty>}
                        </Split>
                    )
                }}
            </Loaded>
        </>
    )
}
