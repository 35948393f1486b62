/** One queue: change what is its, and see who is affected before it is applied. */
import { useState } from 'preact/hooks'
import type { Queue } from '../api'
import { Command, Facts, Owner } from '../components/basics'
import { ask } from '../components/dialog'
import { Drawer } from '../components/drawer'
import { Form, type Field } from '../components/form'
import { Icon } from '../components/icon'
import { Act } from '../components/locked'
import { ShareSlider } from '../components/share_slider'
import { toast } from '../components/toast'
import { WhatIfAnswer } from '../components/what_if'
import { counted, sentence, spanOf, spanText } from '../format'
import { get, messageOf, segment, send } from '../state/http'
import { amountOf, amountText, capacityOf, GIB, plainAmount, queues, shareOf, sharesWith, siblingsOf, type Share, type What } from '../state/queues'
import { projects } from '../state/project'
import { href, hrefWith, go } from '../state/route'
import { useWhatIf } from '../state/what_if'

type Body = Pick<Queue, 'parent' | 'project' | 'priority' | 'shares' | 'times' | 'min_run_ms' | 'idle_after_ms'>

function bodyOf(queue: Queue): Body {
    const { parent, project, priority, shares, times, min_run_ms, idle_after_ms } = queue
    return { parent, project, priority, shares, times, min_run_ms, idle_after_ms }
}

/** Sets a queue again, unless somebody else has changed it since it was seen. */
async function change(seen: Queue, body: Body): Promise<void> {
    if (seen.is_set) {
        const now = await get<Queue>(`/queues/${segment(seen.name)}`)
        if (JSON.stringify(bodyOf(now)) !== JSON.stringify(bodyOf(seen))) {
            await queues.load()
            throw new Error(`Somebody has changed ${seen.name} meanwhile. What it has now is shown: look, and apply again.`)
        }
    }
    await send('PUT', `/queues/${segment(seen.name)}`, body)
}

/* ---- guarantee, limit, weight --------------------------------------------------------------------------------------- */

const WEIGHT_MAX = 10

/** The three as sliders have them: in GiB for memory; one step above the end stands for no bound. */
function sliders(what: What, share: Share) {
    const unit = what === 'memory' ? GIB : 1
    const top = Math.max(1, Math.ceil(Math.max(capacityOf(what), share.guarantee ?? 0, share.limit ?? 0) / unit))
    const of = (value: number | null) => (value === null ? top + 1 : value / unit)
    const back = (value: number) => (value > top ? null : value * unit)
    const text = (unbounded: string) => (value: number) => (value > top ? unbounded : plainAmount(value * unit, what))
    return { top, of, back, text, step: [share.guarantee, share.limit].every((one) => one === null || Number.isInteger(one / unit)) ? 1 : 0.001 }
}

interface Taken {
    queue: Queue
    guarantee: number
}

/** From whom a guarantee could come that there is not enough for: who uses least of theirs. */
function proposal(queue: Queue, all: readonly Queue[], what: What, over: number, wanted: string): Taken | undefined {
    const unused = (one: Queue) => (shareOf(one, what).guarantee ?? 0) - amountOf(one.used, what)
    const able = siblingsOf(queue, all).filter((one) => (shareOf(one, what).guarantee ?? 0) >= over)
    const best = able.find((one) => one.name === wanted) ?? [...able].sort((a, b) => unused(b) - unused(a))[0]
    return best && { queue: best, guarantee: (shareOf(best, what).guarantee ?? 0) - over }
}

function Over(props: { queue: Queue; all: readonly Queue[]; what: What; why: string; found: Taken | undefined; isTaken: boolean; onTake: () => void; onOther: (name: string) => void }) {
    const { what, found } = props
    const others = siblingsOf(props.queue, props.all).filter((one) => (shareOf(one, what).guarantee ?? 0) > 0)
    return (
        <div class={`note ${props.isTaken ? '' : 'tone-warn'}`} role="note">
            <Icon name={props.isTaken ? 'info' : 'warning'} />
            <div>
                <p>
                    {sentence(props.why)}.{' '}
                    {found ? (
                        <>
                            Take {plainAmount((shareOf(found.queue, what).guarantee ?? 0) - found.guarantee, what)} from{' '}
                            <b>
                                {found.queue.name}, {plainAmount(shareOf(found.queue, what).guarantee ?? 0, what)} → {plainAmount(found.guarantee, what)}
                            </b>
                            : it uses {plainAmount(amountOf(found.queue.used, what), what)} now.
                        </>
                    ) : (
                        'No queue beside it has so much to give: ask for less.'
                    )}
                </p>
                {found && (
                    <p class="row wrap">
                        <button type="button" class="button small" aria-pressed={props.isTaken} onClick={props.onTake}>
                            {props.isTaken ? `Taken from ${found.queue.name}` : `Take it from ${found.queue.name}`}
                        </button>
                        {others.length > 1 && (
                            <label class="small">
                                Other{' '}
                                <select value={found.queue.name} onChange={(event) => props.onOther(event.currentTarget.value)}>
                                    {others.map((one) => (
                                        <option key={one.name}>{one.name}</option>
                                    ))}
                                </select>
                            </label>
                        )}
                    </p>
                )}
            </div>
        </div>
    )
}

function ChangeShare({ queue, all, what }: { queue: Queue; all: readonly Queue[]; what: What }) {
    const now = shareOf(queue, what)
    const [draft, setDraft] = useState<Share>(now)
    const [giver, setGiver] = useState('')
    const [isTaken, setTaken] = useState(false)
    const [error, setError] = useState('')
    const [isBusy, setBusy] = useState(false)
    const isChanged = draft.guarantee !== now.guarantee || draft.limit !== now.limit || draft.weight !== now.weight
    const asked = useWhatIf(isChanged ? { queue: queue.name, shares: sharesWith(queue.shares, what, draft) } : null)
    const set = (one: Partial<Share>) => {
        setDraft({ ...draft, ...one })
        setError('')
    }
    const { top, of, back, text, step } = sliders(what, now)
    const sum = asked.answer?.guarantees
    const more = (draft.guarantee ?? Infinity) > (now.guarantee ?? Infinity)
    const over = sum && !sum.can_be_kept && more ? Math.max(0, amountOf(sum.sum, what) - amountOf(sum.capacity, what)) : 0
    const found = over > 0 ? proposal(queue, all, what, over, giver) : undefined
    const takes = over > 0 && isTaken && found ? found : undefined
    const isEmptyRange = draft.limit !== null && draft.guarantee !== null && draft.limit < draft.guarantee
    const apply = async () => {
        setBusy(true)
        setError('')
        try {
            if (takes) {
                const less = { ...shareOf(takes.queue, what), guarantee: takes.guarantee }
                await change(takes.queue, { ...bodyOf(takes.queue), shares: sharesWith(takes.queue.shares, what, less) })
            }
            await change(queue, { ...bodyOf(queue), shares: sharesWith(queue.shares, what, draft) })
            await queues.load()
            setTaken(false)
            toast(`${queue.name} has its new share`)
        } catch (failure) {
            setError(messageOf(failure))
        } finally {
            setBusy(false)
        }
    }
    const unlike = takes ? `Apply to ${queue.name} and ${takes.queue.name}` : `Apply to ${queue.name}`
    const command = `weir queue set ${queue.name} --guarantee ${what}=${draft.guarantee ?? 'all'} --limit ${what}=${draft.limit ?? 'none'} --weight ${what}=${draft.weight}`
    return (
        <>
            <ShareSlider label="Guarantee" value={of(draft.guarantee)} was={of(now.guarantee)} max={top + 1} step={step} text={text('all')} onInput={(value) => set({ guarantee: back(value) })} />
            <ShareSlider label="Limit" value={of(draft.limit)} was={of(now.limit)} max={top + 1} step={step} text={text('none')} onInput={(value) => set({ limit: back(value) })} />
            <ShareSlider label="Weight" value={draft.weight} was={now.weight} max={Math.max(WEIGHT_MAX, now.weight)} text={String} onInput={(weight) => set({ weight })} />
            {over > 0 && (
                <Over
                    queue={queue}
                    all={all}
                    what={what}
                    why={sum?.why ?? ''}
                    found={found}
                    isTaken={takes !== undefined}
                    onTake={() => setTaken(!isTaken)}
                    onOther={(name) => setGiver(name)}
                />
            )}
            {isEmptyRange && <p class="tone-warn-text small">The limit is below the guarantee: the limit holds.</p>}
            {!isChanged ? (
                <p class="quiet small">Move a slider to see who would be affected. Nothing changes before it is applied.</p>
            ) : (
                <section class="what-if-box" aria-label="What if">
                    <h3>
                        Who is affected <span class="window">asked of the same scheduler{takes ? `; ${queue.name} alone, before ${takes.queue.name} gives` : ''}</span>
                    </h3>
                    <WhatIfAnswer {...asked} what={what} />
                    {error && (
                        <p class="failed" role="alert">
                            <Icon name="warning" />
                            <span>{error}</span>
                        </p>
                    )}
                    <p class="acts row wrap">
                        <Act right="change queues" tone="primary" onClick={() => void apply()} disabled={isBusy || (over > 0 && !takes)} title={over > 0 && !takes ? 'There is not so much: take it from another queue first' : ''}>
                            {unlike}
                        </Act>
                        <button type="button" class="button" onClick={() => setDraft(now)}>
                            Discard
                        </button>
                    </p>
                    <details class="small">
                        <summary>As a command, to type or to ask somebody for</summary>
                        <Command text={command} />
                    </details>
                </section>
            )}
        </>
    )
}

/* ---- the rest of it ------------------------------------------------------------------------------------------------- */

const inherited = (ms: number, never: string) => (ms < 0 ? 'as the queue above it' : ms === 0 ? never : spanText(ms))

function spanField(text: string, name: string): number {
    const ms = text.trim() === '' ? -1 : spanOf(text)
    if (Number.isNaN(ms)) {
        throw new Error(`${name}: expected a time as 30m, 12h or 2d`)
    }
    return ms
}

function restFields(queue: Queue | undefined, all: readonly Queue[]): Field[] {
    const parents = ['', ...all.filter((one) => !one.project && one.name !== queue?.name).map((one) => one.name)]
    const span = (ms: number | undefined) => (ms === undefined || ms < 0 ? '' : spanText(ms))
    return [
        { name: 'parent', label: 'Part of (empty: at the root)', options: parents, value: queue?.parent ?? '' },
        { name: 'priority', label: 'Priority among its siblings: the higher gets first what is left over', value: String(queue?.priority ?? 100) },
        { name: 'min_run', label: 'Its jobs are not stopped for others before they ran for: 30m; empty: as above it', value: span(queue?.min_run_ms), isOptional: true },
        { name: 'idle_after', label: 'Its jobs are held when their devices were idle for: 1h; 0: never; empty: as above it', value: span(queue?.idle_after_ms), isOptional: true },
        { name: 'times', label: 'Other shares at times of the week, as JSON by UTC: [{"days": ["sat"], "from": "20:00", "until": "06:00", "shares": {…}}]', value: queue?.times?.length ? JSON.stringify(queue.times) : '', isOptional: true },
    ]
}

function restOf(values: Record<string, string>): Partial<Body> {
    const priority = Number(values['priority'])
    let times: unknown[] | null = null
    if (!Number.isInteger(priority)) {
        throw new Error('Priority: expected a whole number')
    }
    try {
        times = values['times']?.trim() ? (JSON.parse(values['times']) as unknown[]) : null
    } catch (error) {
        throw new Error(`Times: ${messageOf(error)}`)
    }
    return { parent: values['parent'] || null, priority, times, min_run_ms: spanField(values['min_run'] ?? '', 'Not stopped before'), idle_after_ms: spanField(values['idle_after'] ?? '', 'Idle') }
}

export function NewQueue({ all, onClose }: { all: readonly Queue[]; onClose: () => void }) {
    const taken = new Set(all.filter((one) => one.is_set).map((one) => one.project))
    return (
        <Form
            title="New queue"
            confirm="Make the queue"
            fields={[
                { name: 'name', label: 'Name' },
                { name: 'project', label: 'Of the project whose jobs wait in it; empty: a department with parts', options: ['', ...projects.value.filter((one) => !taken.has(one))] },
                ...restFields(undefined, all),
            ]}
            act={async (values) => {
                await send('PUT', `/queues/${segment(values['name']!)}`, { project: values['project'] || null, shares: {}, ...restOf(values) })
                await queues.load()
                toast(`Queue ${values['name']} was made`)
                go(href(['queues', values['name']!]))
            }}
            onClose={onClose}
        />
    )
}

function askDelete(queue: Queue): void {
    ask({
        title: `Delete the queue ${queue.name}?`,
        text: (
            <p>
                {queue.project
                    ? `Jobs of ${queue.project} go on without a guarantee and without a limit: ${counted(queue.n_running, 'runs', 'run')} and ${counted(queue.n_waiting, 'waits', 'wait')}.`
                    : 'It must have no parts. What they were guaranteed through it is not touched.'}
            </p>
        ),
        confirm: `Delete ${queue.name}`,
        danger: true,
        done: `The queue ${queue.name} is gone`,
        act: async () => {
            await send('DELETE', `/queues/${segment(queue.name)}`)
            await queues.load()
            go(href('queues'))
        },
    })
}

export function QueueDrawer({ queue, all, what }: { queue: Queue; all: readonly Queue[]; what: What }) {
    const [isOpen, setOpen] = useState(false)
    const parts = all.filter((one) => one.parent === queue.name)
    const promised = parts.reduce((sum, one) => sum + (shareOf(one, what).guarantee ?? 0), 0)
    const own = shareOf(queue, what).guarantee
    return (
        <Drawer title={`Change ${queue.name}`} id="queue-title" close={href('queues', { of: what === 'accelerators' ? '' : what })} state={<span class="muted small">{queue.is_set ? '' : 'nobody has set it'}</span>}>
            {own !== null && promised > own && (
                <div class="note" role="note">
                    <Icon name="info" />
                    <p>
                        Its parts are promised {plainAmount(promised, what)}, and {queue.name} itself has {plainAmount(own, what)}: what they hold above that can be taken back by others.
                    </p>
                </div>
            )}
            <ChangeShare key={`${queue.name} ${what} ${JSON.stringify(shareOf(queue, what))}`} queue={queue} all={all} what={what} />
            <h3>Besides</h3>
            <Facts
                items={[
                    ['Jobs of', queue.project ? <Owner project={queue.project} /> : 'its parts'],
                    ['Part of', queue.parent ? <a href={hrefWith({}).replace(/queues\/[^?]*/, `queues/${segment(queue.parent)}`)}>{queue.parent}</a> : 'the whole cluster'],
                    ['May have now', amountText(amountOf(queue.fair_share, what), what)],
                    ['Priority', `${queue.priority} among its siblings`],
                    ['Not stopped before', inherited(queue.min_run_ms, 'no time')],
                    ['Held when idle for', inherited(queue.idle_after_ms, 'never')],
                    ['Other times', queue.times?.length ? `${queue.times.length} in the week` : 'none'],
                ]}
            />
            <p class="acts row wrap">
                <Act right="change queues" isSmall onClick={() => setOpen(true)}>
                    Change the rest
                </Act>
                {queue.is_set && (
                    <Act right="change queues" isSmall tone="danger" onClick={() => askDelete(queue)}>
                        Delete
                    </Act>
                )}
                {queue.project && (
                    <a class="button small" href={href('jobs', { q: `project:${queue.project}` })}>
                        Its jobs
                    </a>
                )}
            </p>
            {isOpen && (
                <Form
                    title={`Change the rest of ${queue.name}`}
                    confirm={`Change ${queue.name}`}
                    fields={restFields(queue, all)}
                    act={async (values) => {
                        await change(queue, { ...bodyOf(queue), ...restOf(values) })
                        await queues.load()
                        toast(`${queue.name} is changed`)
                    }}
                    onClose={() => setOpen(false)}
                />
            )}
        </Drawer>
    )
}
