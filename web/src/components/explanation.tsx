/** Why a job waits: may it, whose turn is it, does it fit; until when, and what would help. The sentences are the server's. */
import { useEffect } from 'preact/hooks'
import type { Explanation, Job } from '../api'
import { dayMinute, dayTime } from '../format'
import { get, segment } from '../state/http'
import { amountOf, amountText, plainAmount, queues, shareOf, type What } from '../state/queues'
import { useResource } from '../state/resource'
import { href } from '../state/route'
import { now } from '../state/store'
import { Loaded } from './basics'
import { Icon } from './icon'
import { Sentence } from './noun'
import { Glyph, type Tone } from './state'

const REFRESH_S = 10

/** Which of the three questions each of the planner's reasons answers with no. */
const MAY_NOT = ['queue_limit', 'queue_quota']
const NOT_ITS_TURN = ['reserved']

function Question({ tone, name, children, more }: { tone: Tone; name: string; children: preact.ComponentChildren; more?: preact.ComponentChildren }) {
    return (
        <li class={`tone-${tone}`}>
            <Glyph tone={tone} />
            <span class="outcome">
                <span>
                    <b>{name}</b> {children}
                </span>
                {more && <small>{more}</small>}
            </span>
        </li>
    )
}

function Questions({ found }: { found: Explanation }) {
    const queue = queues.data.value?.find((one) => one.name === found.queue)
    const what: What = found.resource && found.resource !== 'tasks' ? found.resource : 'accelerators'
    const share = queue && shareOf(queue, what)
    const mayNot = MAY_NOT.includes(found.code ?? '')
    const isNotItsTurn = NOT_ITS_TURN.includes(found.code ?? '')
    const fits = found.code === null || mayNot || isNotItsTurn
    return (
        <ul class="list questions" aria-label="Why it waits">
            <Question
                tone={mayNot ? 'bad' : 'good'}
                name="May it?"
                more={queue && share ? <a href={href(['queues', queue.name])}>{`guarantee ${share.guarantee === null ? 'all' : plainAmount(share.guarantee, what)} · limit ${share.limit === null ? 'none' : plainAmount(share.limit, what)} · weight ${share.weight}`}</a> : undefined}
            >
                {mayNot ? 'Its queue is at its bound.' : 'Yes.'} {queue && `${queue.name} uses ${amountText(amountOf(queue.used, what), what)}.`}
            </Question>
            <Question tone={found.n_ahead > 0 || isNotItsTurn ? 'warn' : 'good'} name="Whose turn?" more={found.since ? `it waits since ${dayTime(found.since)}` : undefined}>
                {found.n_ahead === 0 ? `It is the first of its queue${isNotItsTurn ? ', and others are owed what is free.' : '.'}` : `${found.n_ahead} ${found.n_ahead === 1 ? 'job goes' : 'jobs go'} before it in its queue.`}
            </Question>
            <Question tone={fits ? 'good' : 'bad'} name="Does it fit?" more={typeof found.need === 'number' && typeof found.have === 'number' && !fits ? `needs ${plainAmount(found.need, what)} · there is ${plainAmount(found.have, what)}${found.resource ? ` · ${found.resource}` : ''}` : undefined}>
                {fits ? 'Nothing says that it does not.' : 'Not now.'}
            </Question>
        </ul>
    )
}

export function WhyItWaits({ job, onFirst }: { job: Job; onFirst?: (() => void) | undefined }) {
    const explanation = useResource(`explanation:${job.id}`, () => get<Explanation>(`/jobs/${segment(job.id)}/explanation`))
    const beat = Math.floor(now.value / 1000 / REFRESH_S)
    useEffect(() => {
        explanation.loadSoon()
        queues.loadSoon(0)
    }, [job.state, job.reason, beat])
    return (
        <Loaded resource={explanation} rows={3}>
            {(found) => (
                <>
                    <div class="note tone-plain why">
                        <Icon name="clock" />
                        <p>
                            <b>
                                <Sentence text={found.why ?? job.reason ?? (job.is_held ? 'It is held until somebody resumes it.' : 'The scheduler has not said why yet.')} />
                            </b>
                            {found.expected_start && ` It starts about ${dayMinute(found.expected_start)}, if jobs end as expected.`}
                        </p>
                    </div>
                    {!job.is_held && found.code !== null && <Questions found={found} />}
                    {found.helps.length > 0 && (
                        <>
                            <h3>What would help</h3>
                            <ul class="list short" aria-label="What would help">
                                {found.helps.map((help) => (
                                    <li key={help.change}>
                                        <span class="outcome grow">
                                            <span>
                                                {help.change}: <b>{help.outcome}</b>
                                            </span>
                                            {help.why && <small>{help.why}</small>}
                                        </span>
                                    </li>
                                ))}
                            </ul>
                        </>
                    )}
                    {!job.is_held && found.queue && onFirst && (
                        <p>
                            <button type="button" class="button small" onClick={onFirst}>
                                What if it went first?
                            </button>
                        </p>
                    )}
                </>
            )}
        </Loaded>
    )
}
