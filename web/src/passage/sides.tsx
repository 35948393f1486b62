/** Beside the frames of a passage: the rule, the nearest people, what the door was told, and what people say about it. */
import { useState } from 'preact/hooks'
import type { Decision, Feedback, Ion } from '../api'
import { Facts, Loaded, Panel } from '../components/basics'
import { Lineage } from '../components/decision_drawer'
import { ask, openDialog } from '../components/dialog'
import { Shot } from '../components/face'
import { Form } from '../components/form'
import { Icon } from '../components/icon'
import { Act } from '../components/locked'
import { Id } from '../components/noun'
import { ScoreLine } from '../components/score_line'
import { Glyph, State, type Tone } from '../components/state'
import { toast } from '../components/toast'
import { counted, dayMinute, fixed, millis } from '../format'
import { bestOf, framesOf, toldOf, type Told } from '../state/film'
import { getAll, messageOf, segment, send } from '../state/http'
import { useResource } from '../state/resource'
import { href } from '../state/route'
import { memberQuestion } from '../state/versions'
import { tenths } from './film'
import { candidateOf, gapText, nFramesOf, ruleText, timesText } from './passage'

const NOBODY = 'unknown' // as the server calls it
const LISTS_RIGHT = 'list people ions'
const FEEDBACK_RIGHT = 'give feedback'

export function Rule({ decision, told }: { decision: Decision; told: Told }) {
    const { n_named, n_counted, rule } = told
    const m = rule?.m ?? Math.max(n_named, 1)
    const looked = Math.min(m, n_counted)
    const tones: Tone[] = Array.from({ length: m }, (_, i) => (i < n_named ? 'good' : i < looked ? 'warn' : 'plain'))
    return (
        <Panel title="Rule of the door" window={rule && `${rule.n} of ${rule.m} frames${decision.threshold === null ? '' : `, each ${fixed(decision.threshold, 2)} or more`}`}>
            <div class="panel-body stack mid">
                <p class="row">
                    <span class="n-of-m" aria-hidden="true">
                        {tones.map((tone, i) => (
                            <i key={i} class={`tone-${tone}`}>
                                {tone !== 'plain' && <Glyph tone={tone} />}
                            </i>
                        ))}
                    </span>
                    {n_named} of {looked}
                </p>
                <p class="small muted">{ruleText(decision, told)}</p>
            </div>
        </Panel>
    )
}

export function Nearest({ decision, told }: { decision: Decision; told: Told }) {
    const nearest = told.nearest ?? []
    if (nearest.length === 0) {
        return null
    }
    return (
        <Panel title="Nearest people" window={`best frame · gallery v${decision.gallery_version}`}>
            <div class="panel-body stack mid">
                <ul class="near">
                    {nearest.map((one) => {
                        const n = nFramesOf(framesOf(decision), one.person)
                        return (
                            <li key={one.person} class="small">
                                <span class="clip">{one.person}</span>
                                <ScoreLine score={one.score} limit={decision.threshold} tone={one.person === decision.person ? 'good' : 'plain'} />
                                <span class="num">{fixed(one.score, 2)}</span>
                                <span class="muted nowrap">{n > 0 && `in ${counted(n, 'frame')}`}</span>
                            </li>
                        )
                    })}
                </ul>
                <p class="small muted">{gapText(nearest)}</p>
            </div>
        </Panel>
    )
}

interface Order {
    id: string
    door: string
    verb: string
    sent_ms: string
    valid_until_ms: string | null
    state: string
    answered_ms: string | null
    detail: string | null
}

const ORDERS: Record<string, [Tone, string]> = {
    sent: ['busy', 'sent, not answered yet'],
    done: ['good', 'done'],
    repeated: ['plain', 'the door had it already'],
    late: ['bad', 'came too late: not carried out'],
    refused: ['bad', 'refused'],
    jammed: ['bad', 'the door is jammed'],
    silent: ['bad', 'the door did not answer: whether it opened is not known'],
    'locked-down': ['warn', 'not sent: the door is locked down'],
    'not-now': ['warn', 'not sent: the door lets nobody in at this time'],
    interlocked: ['warn', 'not sent: another door is open'],
}

function OneOrder({ order }: { order: Order }) {
    const [tone, word] = ORDERS[order.state] ?? ['plain', order.state]
    const after = order.answered_ms === null ? NaN : millis(order.answered_ms) - millis(order.sent_ms)
    return (
        <Facts
            items={[
                ['Order', <Id id={order.id} />],
                ['Door', `${order.door}: ${order.verb}`],
                ['Sent', tenths(order.sent_ms)],
                order.valid_until_ms === null ? null : ['Valid until', `${tenths(order.valid_until_ms)}, then it is refused`],
                [
                    'Answer',
                    <>
                        <State tone={tone}>{word}</State>
                        {!Number.isNaN(after) && <span class="small muted"> after {Math.round(after)} ms</span>}
                        {order.detail && <span class="small muted"> {order.detail}</span>}
                    </>,
                ],
            ]}
        />
    )
}

/** Nothing is shown where no door was told anything. */
export function Orders({ decision }: { decision: Decision }) {
    const orders = useResource(`orders:${decision.id}`, () => getAll<Order>(`/decisions/${segment(decision.id)}/orders`))
    return orders.data.value?.length === 0 ? null : (
        <Panel title="Door order" window="carried out once, or not at all">
            <div class="panel-body stack">
                <Loaded resource={orders} rows={2}>
                    {(items) => items.map((one) => <OneOrder key={one.id} order={one} />)}
                </Loaded>
            </div>
        </Panel>
    )
}

export interface Truth {
    told: string | undefined // what people said that it was
    tell: (truth: string) => void
    other: () => void
}

/** What people say that it was, and how to say it. */
export function useTruth(decision: Decision): Truth {
    const [said, setSaid] = useState<string>()
    const of = { ion: decision.ion, camera: decision.camera, decided: decision.person ?? decision.label ?? NOBODY, limit: 200 }
    const before = useResource(`truth:${decision.id}`, () => getAll<Feedback>('/feedback', of))
    const give = async (truth: string) => {
        await send('POST', '/feedback', { decision: decision.id, truth })
        setSaid(truth)
        toast(truth === NOBODY ? 'Noted: it was nobody known' : `Noted: it was ${truth}`)
    }
    return {
        told: said ?? before.data.value?.find((one) => one.decision === decision.id)?.truth,
        tell: (truth) => void give(truth).catch((error: unknown) => toast(messageOf(error), 'bad')),
        other: () =>
            openDialog((close) => (
                <Form title="Who was it?" fields={[{ name: 'person', label: 'Name in the gallery' }]} confirm="It was this person" act={({ person }) => give(person!.trim())} onClose={close} />
            )),
    }
}

/** The answers, in the order of their keys. */
export function answersOf(decision: Decision, truth: Truth): { name: string; isTold: boolean; icon?: 'check' | 'person'; run: () => void }[] {
    const candidate = candidateOf(decision)
    const isOther = truth.told !== undefined && truth.told !== NOBODY && truth.told !== candidate
    return [
        ...(candidate === undefined ? [] : [{ name: candidate, isTold: truth.told === candidate, run: () => truth.tell(candidate) }]),
        { name: isOther ? truth.told! : 'Somebody else…', isTold: isOther, run: truth.other },
        { name: 'Nobody known', isTold: truth.told === NOBODY, run: () => truth.tell(NOBODY) },
    ]
}

export const enrolFrom = (ion: string, ids: readonly string[], frames: readonly number[] = []) =>
    href(['ions', ion, 'people', 'new'], { from: 'passage', id: ids.join(','), frames: frames.join(',') })

export function ThisWas(props: { decision: Decision; ion: Ion | undefined; truth: Truth; chosen: ReadonlySet<number> }) {
    const { decision, ion, truth, chosen } = props
    const { person } = decision
    const frames = [...chosen].sort((a, b) => a - b)
    return (
        <Panel title="This was …" window="teaches the next training, changes no order">
            <div class="panel-body stack mid">
                <p class="row wrap" role="group" aria-label="This was">
                    {answersOf(decision, truth).map((one) => (
                        <span key={one.name} class={one.isTold ? 'told' : ''}>
                            <Act right={FEEDBACK_RIGHT} project={ion?.project} isSmall onClick={one.run}>
                                {one.isTold && <Icon name="check" />}
                                {one.name}
                                {one.isTold && <span class="hidden"> (said)</span>}
                            </Act>
                        </span>
                    ))}
                </p>
                <p class="row wrap">
                    {frames.length > 0 && (
                        <a class="button small" href={enrolFrom(decision.ion, [decision.id], frames)}>
                            <Icon name="plus" />
                            Enrol {counted(frames.length, 'frame')}…
                        </a>
                    )}
                    {person && (
                        <>
                            <Act right={LISTS_RIGHT} project={ion?.project} isSmall onClick={() => ask(memberQuestion(decision.ion, person, 'allow'))}>
                                <Icon name="check" />
                                Always allow {person}…
                            </Act>
                            <Act right={LISTS_RIGHT} project={ion?.project} isSmall tone="danger" onClick={() => ask(memberQuestion(decision.ion, person, 'deny'))}>
                                <Icon name="ban" />
                                Bar {person}…
                            </Act>
                        </>
                    )}
                </p>
            </div>
        </Panel>
    )
}

/** Under the thumb of a phone. */
export function Thumb({ decision, ion, truth }: { decision: Decision; ion: Ion | undefined; truth: Truth }) {
    const candidate = candidateOf(decision)
    const answers = answersOf(decision, truth)
    const was = decision.person === null ? answers[answers.length - 1]! : answers[0]!
    return (
        <div class="thumb only-phone">
            <Act right={FEEDBACK_RIGHT} project={ion?.project} onClick={was.run}>
                <Icon name="check" /> {decision.person === null ? 'Nobody known' : `Was ${candidate}`}
            </Act>
            <Act right={FEEDBACK_RIGHT} project={ion?.project} onClick={truth.other}>
                <Icon name="cross" /> {decision.person === null ? 'Was somebody…' : 'Was not…'}
            </Act>
        </div>
    )
}

/** Other passages of an unknown person. */
export function CameBefore({ decision, visitor }: { decision: Decision; visitor: NonNullable<Told['visitor']> }) {
    const visits = useResource(`visits:${decision.id}`, async () => {
        const all = await getAll<Decision>('/passages', { ion: decision.ion, verdict: 'unknown', since: visitor.first_ms, limit: 200 }, 5)
        return all.filter((one) => toldOf(one)?.visitor?.id === visitor.id)
    })
    return (
        <Panel title="Unknown, and seen before" window={`${timesText(visitor.times)} since ${dayMinute(visitor.first_ms)}`}>
            <div class="panel-body stack mid">
                <Loaded resource={visits} rows={2}>
                    {(items) => (
                        <>
                            <ul class="visits">
                                {items.map((one) => (
                                    <li key={one.id}>
                                        <a class="row small" href={href(['ions', one.ion, 'passages', one.id])} aria-current={one.id === decision.id ? 'true' : undefined}>
                                            <Shot path={one.image ? `/decisions/${segment(one.id)}/image` : null} name={`Unknown person at ${one.camera}`} size="small" />
                                            {one.camera} <span class="muted push">{dayMinute(one.time_ms)}</span>
                                        </a>
                                    </li>
                                ))}
                            </ul>
                            {items.length > 1 && (
                                <p>
                                    <a class="button small" href={enrolFrom(decision.ion, items.map((one) => one.id))}>
                                        <Icon name="plus" />
                                        Enrol from these {items.length}…
                                    </a>
                                </p>
                            )}
                        </>
                    )}
                </Loaded>
                <p class="small muted">By likeness of the face alone: two people may look alike.</p>
            </div>
        </Panel>
    )
}

export function DecidedBy({ decision, ion }: { decision: Decision; ion: Ion | undefined }) {
    return (
        <div class="decided small">
            <Lineage decision={decision} ion={ion} />
            <p class="muted">
                Threshold {fixed(decision.threshold, 2)}, lists of revision {decision.list_revision}.
            </p>
        </div>
    )
}

/** Frames that are offered for enrolment. */
export const offered = (decision: Decision) => new Set(bestOf(framesOf(decision), 3))
