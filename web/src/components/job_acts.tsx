/** What can be done to a job. Each act says what becomes of it before it happens. */
import { useState } from 'preact/hooks'
import type { Job } from '../api'
import type { Action } from '../screen'
import { call, segment, send } from '../state/http'
import { may } from '../state/rights'
import { go, href, hrefWith } from '../state/route'
import { jobs } from '../state/store'
import { ask, type Question } from './dialog'
import { Form } from './form'
import { Act } from './locked'
import { is } from './state'
import { toast } from './toast'

export function isOver(state: string): boolean {
    return is(state, 'succeeded', 'failed', 'cancelled')
}

interface JobAct {
    name: string
    right: string
    tone?: 'danger'
    isThere: (job: Job) => boolean
    run: (job: Job) => void
}

async function post(job: Job, verb: string): Promise<Job> {
    const answer = await call<Job>('POST', `/jobs/${segment(job.id)}/${verb}`)
    await jobs.load()
    return answer
}

const waits = (job: Job) => is(job.state, 'pending', 'restarting')
const runs = (job: Job) => !waits(job) && !isOver(job.state) && !is(job.state, 'stopping')
const isTraining = (job: Job) => job.kind === 'train'
const saves = (job: Job) => (isTraining(job) ? 'Its tasks write a checkpoint and stop; it goes on from there.' : 'Its tasks are asked to stop (SIGTERM, then SIGKILL); what they did not save is done again.')

export function cancelQuestion(job: Job): Question {
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

function holdQuestion(job: Job): Question {
    return {
        title: `Hold ${job.name}?`,
        text: (
            <p>
                {runs(job) ? `${saves(job)} ` : ''}It gets no node until somebody resumes it. Its place in the queue is kept.
            </p>
        ),
        confirm: 'Hold the job',
        done: `${job.name} is held`,
        act: async () => {
            await post(job, 'hold')
        },
    }
}

function requeueQuestion(job: Job): Question {
    return {
        title: `Send ${job.name} back to its queue?`,
        text: <p>{saves(job)} Then it waits again like any other; it may get the same nodes at once.</p>,
        confirm: 'Send it back',
        done: `${job.name} goes back to its queue`,
        act: async () => {
            await post(job, 'requeue')
        },
    }
}

async function again(job: Job, verb: 'restart' | 'resume', done: string): Promise<void> {
    try {
        const answer = await post(job, verb)
        toast(done)
        if (answer.id && answer.id !== job.id) {
            go(hrefWith({ job: answer.id, task: '' }))
        }
    } catch (error) {
        toast(error instanceof Error ? error.message : String(error), 'bad')
    }
}

const ACTS: JobAct[] = [
    { name: 'Resume', right: 'cancel jobs', isThere: (job) => job.is_held && !isOver(job.state), run: (job) => void again(job, 'resume', `${job.name} waits for a node again`) },
    { name: 'Resume', right: 'submit jobs', isThere: (job) => isTraining(job) && is(job.state, 'failed', 'cancelled'), run: (job) => void again(job, 'resume', `${job.name} goes on from its last checkpoint, as a new job`) },
    { name: 'Restart', right: 'submit jobs', isThere: (job) => isOver(job.state) && job.kind !== 'predict', run: (job) => void again(job, 'restart', `${job.name} starts again, as a new job`) },
    { name: 'Hold', right: 'cancel jobs', isThere: (job) => !job.is_held && (waits(job) || runs(job)), run: (job) => ask(holdQuestion(job)) },
    { name: 'Requeue', right: 'cancel jobs', isThere: runs, run: (job) => ask(requeueQuestion(job)) },
    { name: 'Edit and resubmit', right: 'submit jobs', isThere: (job) => job.kind !== 'predict', run: (job) => go(href(['jobs', 'new'], { from: job.id })) },
    { name: 'Cancel', right: 'cancel jobs', tone: 'danger', isThere: (job) => !isOver(job.state), run: (job) => ask(cancelQuestion(job)) },
]

/** For the palette: what the caller may do. */
export function jobActions(job: Job): Action[] {
    return ACTS.filter((act) => act.isThere(job) && may(act.right, job.project)).map((act) => ({ name: `${act.name} ${job.name}`, run: () => act.run(job) }))
}

function PriorityForm({ job, onClose }: { job: Job; onClose: () => void }) {
    return (
        <Form
            title={`Priority of ${job.name}`}
            confirm="Change the priority"
            fields={[{ name: 'priority', label: 'Within its queue the higher goes first: 0 to 1000', value: String(job.priority ?? 50) }]}
            act={async (values) => {
                const priority = Number(values['priority'])
                if (!Number.isInteger(priority)) {
                    throw new Error('Expected a whole number from 0 to 1000')
                }
                await send('PATCH', `/jobs/${segment(job.id)}`, { priority })
                await jobs.load()
                toast(`${job.name} has priority ${priority}`)
            }}
            onClose={onClose}
        />
    )
}

export function JobActs({ job }: { job: Job }) {
    const [isOpen, setOpen] = useState(false)
    return (
        <p class="acts row wrap">
            {ACTS.filter((act) => act.isThere(job)).map((act) => (
                <Act key={act.name} right={act.right} project={job.project} isSmall {...(act.tone ? { tone: act.tone } : {})} onClick={() => act.run(job)}>
                    {act.name}
                    <span class="hidden"> {job.name}</span>
                </Act>
            ))}
            {!isOver(job.state) && (
                <Act right="cancel jobs" project={job.project} isSmall onClick={() => setOpen(true)}>
                    Priority<span class="hidden"> of {job.name}</span>
                </Act>
            )}
            {isOpen && <PriorityForm job={job} onClose={() => setOpen(false)} />}
        </p>
    )
}
