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
import { dayTime, NONE, shortId, span, words } from '../format'
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

function exitText(task: Task): string {
    if (task.message) {
        return task.message
    }
    if (task.signal) {
        return `signal ${task.signal}`
    }
    return typeof task.exit_code === 'number' && task.exit_code >= 0 && is(task.state, 'exited') ? `exit ${task.exit_code}` : ''
}

function Tasks({ job, current }: { job: Job; current: string | undefined }) {
    const tasks = useResource(`tasks:${job.id}`, () => getAll<Task>(`/jobs/${segment(job.id)}/tasks`, { limit: 500 }))
    const beat = isOver(job.state) ? 0 : Math.floor(now.value / 1000 / TASKS_REFRESH_S)
    useEffect(() => tasks.loadSoon(), [job.state, beat])
    return (
        <Loaded resource={tasks}>
            {(items) => {
                const task = items.find((one) => one.id === current) ?? items[0]
                if (task === undefined) {
                    return <p class="quiet">No tasks: the job has not been placed on a node yet.</p>
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
                                        <StateChip state={one.state} />
                                        <small class="muted">
                                            {one.node ?? 'not placed'}
                                            {(one.attempt ?? 0) > 1 ? ` · attempt ${one.attempt}` : ''}
                                            {exitText(one) ? ` · ${exitText(one)}` : ''}
                                        </small>
                                    </a>
                                </li>
                            ))}
                        </ul>
                        <LogView key={task.id} task={task.id} title={`${words(task.role)} ${task.rank}`} />
                    </>
                )
            }}
        </Loaded>
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
                                            <b title={one.name}>{one.name}</b>
                                            <StateChip state={one.state} />
                                        </span>
                                        <small class="muted">
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
