/** What the scheduler would do with a change: who is affected, and how many of each. */
import type { WhatIf } from '../api'
import { NONE } from '../format'
import { messageOf } from '../state/http'
import { amountOf, plainAmount, type What } from '../state/queues'
import { href } from '../state/route'
import type { Asked } from '../state/what_if'
import { Owner } from './basics'
import { Icon } from './icon'
import { Glyph, type Tone } from './state'

/** Outcomes as the server names them, the best first. */
const TONES: Record<string, Tone> = { starts: 'good', grows: 'good', 'starts when room is free': 'busy', stays: 'plain', waits: 'plain', shrinks: 'warn', evicted: 'warn' }

const toneOf = (outcome: string): Tone => TONES[outcome] ?? 'plain'

function Counts({ answer }: { answer: WhatIf }) {
    const rows = Object.keys(answer.before).filter((name) => (answer.before[name] ?? 0) + (answer.after[name] ?? 0) > 0)
    return rows.length === 0 ? null : (
        <table class="plain">
            <thead>
                <tr>
                    <th scope="col">Jobs, in the next cycle</th>
                    <th scope="col" class="num">
                        As it is
                    </th>
                    <th scope="col" class="num">
                        Changed
                    </th>
                </tr>
            </thead>
            <tbody>
                {rows.map((name) => {
                    const [was, is] = [answer.before[name] ?? 0, answer.after[name] ?? 0]
                    return (
                        <tr key={name}>
                            <td>{name}</td>
                            <td class="num">{was}</td>
                            <td class="num">{was === is ? is : <b class={`tone-${toneOf(name)}-text`}>{is}</b>}</td>
                        </tr>
                    )
                })}
            </tbody>
        </table>
    )
}

function Queues({ answer, what }: { answer: WhatIf; what: What }) {
    const share = (one: WhatIf['queues'][number]['before']) => (one ? plainAmount(amountOf(one.fair_share, what), what) : NONE)
    const rows = answer.queues.filter((one) => share(one.before) !== share(one.after))
    return rows.length === 0 ? null : (
        <table class="plain">
            <thead>
                <tr>
                    <th scope="col">Queue, and what it may have</th>
                    <th scope="col" class="num">
                        As it is
                    </th>
                    <th scope="col" class="num">
                        Changed
                    </th>
                </tr>
            </thead>
            <tbody>
                {rows.map((one) => (
                    <tr key={one.name}>
                        <td>{one.name}</td>
                        <td class="num">{share(one.before)}</td>
                        <td class="num">
                            <b>{share(one.after)}</b>
                        </td>
                    </tr>
                ))}
            </tbody>
        </table>
    )
}

function othersText(answer: WhatIf): string {
    const parts = Object.entries(answer.others).map(([outcome, count]) => `${count} ${outcome}`)
    return `And ${answer.n_others} ${answer.n_others === 1 ? 'job' : 'jobs'} of others${parts.length > 0 ? `: ${parts.join(', ')}` : ''}.`
}

function Affected({ answer }: { answer: WhatIf }) {
    if (answer.jobs.length + answer.n_others === 0) {
        return <p class="panel-body quiet">Nobody: the next cycle does the same with every job.</p>
    }
    return (
        <ul class="list" aria-label="Who is affected">
            {answer.jobs.map((job) => (
                <li key={job.id} class={`tone-${toneOf(job.after)}`}>
                    <Glyph tone={toneOf(job.after)} />
                    <span class="outcome grow">
                        <span>
                            <a class="main" href={href('jobs', { job: job.id })}>
                                {job.name}
                            </a>{' '}
                            {job.before === job.after ? job.after : `${job.after}, not: ${job.before}`}
                        </span>
                        {job.why_after && <small>{job.why_after}</small>}
                    </span>
                    <Owner project={job.project} />
                </li>
            ))}
            {answer.n_others > 0 && <li class="muted">{othersText(answer)}</li>}
        </ul>
    )
}

/** The answer, the wait for it, or why there is none. */
export function WhatIfAnswer({ answer, error, isAsking, what = 'accelerators' }: Asked & { what?: What }) {
    return (
        <div class={`what-if ${isAsking ? 'is-asking' : ''}`} aria-live="polite" aria-busy={isAsking}>
            {error ? (
                <p class="failed" role="alert">
                    <Icon name="warning" />
                    <span>{messageOf(error)}</span>
                </p>
            ) : answer === undefined ? (
                <p class="panel-body quiet">The same scheduler is asked…</p>
            ) : (
                <>
                    <Affected answer={answer} />
                    <Counts answer={answer} />
                    <Queues answer={answer} what={what} />
                </>
            )}
        </div>
    )
}
