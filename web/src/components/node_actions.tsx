/** What can be done to a node: drain it, let it take tasks again, label and taint it, take it out; and how one joins. */
import { useRef, useState } from 'preact/hooks'
import type { BusyJobs, Job, Node, NodeJoin } from '../api'
import { counted, dayMinute, millis } from '../format'
import { call, get, messageOf, segment, send } from '../state/http'
import { useResource } from '../state/resource'
import { go, href } from '../state/route'
import { nodes } from '../state/store'
import { Command } from './basics'
import { ask, Dialog, type Question } from './dialog'
import { Form } from './form'
import { Act } from './locked'
import { toast } from './toast'

async function change(node: Node, body: Record<string, unknown>): Promise<void> {
    await send('PATCH', `/nodes/${segment(node.name)}`, body)
    await nodes.load()
}

/** What runs there when it is read: whoever asks at once may be quicker than the lists. undefined: not known yet. */
type CountTasks = () => number | undefined

const NAMED = 8 // jobs in the question

interface Work {
    id: string
    name: string
    since: string | null
    untilMs: number // NaN: nobody knows
}

/** The jobs whose tasks are on a node, as far as one sees them, and when they end at the latest, where they have a limit of time. */
async function workOn(node: string): Promise<{ all: number; named: Work[] }> {
    const { items } = await get<BusyJobs>('/top/jobs', { node })
    const named = await Promise.all(
        items.slice(0, NAMED).map(async ({ id, name }) => {
            const job = await get<Job>(`/jobs/${segment(id)}`)
            return { id, name, since: job.started_ms, untilMs: job.time_limit_ms > 0 ? millis(job.started_ms) + job.time_limit_ms : NaN }
        }),
    )
    return { all: items.length, named }
}

function DrainText({ node, count }: { node: Node; count: CountTasks }) {
    const found = useResource(`work:${node.name}`, () => workOn(node.name))
    const work = found.data.value?.named
    const n = found.data.value ? Math.max(found.data.value.all, count() ?? 0) : count()
    const more = (n ?? 0) - (work?.length ?? 0)
    const ends = work?.map((one) => one.untilMs) ?? []
    const there = n === undefined ? 'What runs there may end there.' : n === 0 ? 'Nothing runs there: it is empty at once.' : `${n} ${n === 1 ? 'job runs' : 'jobs run'} there, and may end there:`
    return (
        <>
            <p>It takes no new tasks. {there}</p>
            {work && work.length > 0 && (
                <>
                    <ul class="plain-list">
                        {work.map((one) => (
                            <li key={one.id}>
                                <a href={href('jobs', { job: one.id })}>{one.name}</a>{' '}
                                <span class="muted">
                                    {one.since ? `since ${dayMinute(one.since)}` : 'starts'}
                                    {Number.isNaN(one.untilMs) ? ', without a limit of time' : `, until ${dayMinute(one.untilMs)} at the latest`}
                                </span>
                            </li>
                        ))}
                        {more > 0 && <li class="muted">and {counted(more, 'other')}</li>}
                    </ul>
                    <p>{more > 0 || ends.some(Number.isNaN) ? 'It is empty when the last of them ends; nobody can say when.' : `It is empty at ${dayMinute(Math.max(...ends))} at the latest.`}</p>
                </>
            )}
            <p>Resume takes it back.</p>
        </>
    )
}

function RemoveText({ count }: { count: CountTasks }) {
    const n = count()
    const there =
        n === undefined
            ? 'The server refuses as long as tasks are there.'
            : n > 0
              ? `${n} ${n === 1 ? 'job is' : 'jobs are'} there: the server refuses as long as tasks are. Drain it first.`
              : 'What it did stays known.'
    return <p>Its tokens end: it has to join anew. {there}</p>
}

export function drainQuestion(node: Node, count: CountTasks): Question {
    return {
        title: `Drain ${node.name}?`,
        text: <DrainText node={node} count={count} />,
        confirm: `Drain ${node.name}`,
        done: `${node.name} drains`,
        act: () => change(node, { is_draining: true }),
    }
}

/** Drain, or resume. */
export function DrainButton({ node, count }: { node: Node; count: CountTasks }) {
    const resume = async () => {
        try {
            await change(node, { is_draining: false })
            toast(`${node.name} takes tasks again`)
        } catch (error) {
            toast(messageOf(error), 'bad')
        }
    }
    return node.is_draining ? (
        <Act right="operate nodes" isSmall onClick={() => void resume()}>
            Resume<span class="hidden"> {node.name}</span>
        </Act>
    ) : (
        <Act right="operate nodes" isSmall onClick={() => ask(drainQuestion(node, count))}>
            Drain<span class="hidden"> {node.name}</span>
        </Act>
    )
}

interface Taint {
    key: string
    value?: string
    effect?: string
}

const pairs = (text: string) => text.split(/[\n,]/).map((one) => one.trim()).filter(Boolean)

/** Labels as they would be: those that are gone are null, which takes them away. */
function labelChange(node: Node, text: string): Record<string, string | null> {
    const wanted = Object.fromEntries(
        pairs(text).map((one) => {
            const at = one.indexOf('=')
            if (at < 1) {
                throw new Error(`Labels: expected KEY=VALUE, got "${one}"`)
            }
            return [one.slice(0, at), one.slice(at + 1)]
        }),
    )
    const gone = Object.keys(node.labels ?? {}).filter((key) => wanted[key] === undefined)
    return { ...wanted, ...Object.fromEntries(gone.map((key) => [key, null])) }
}

/** KEY[=VALUE][:EFFECT] */
function taintsOf(text: string): Taint[] {
    return pairs(text).map((one) => {
        const found = /^([^=:]+)(?:=([^:]*))?(?::(.+))?$/.exec(one)
        if (!found) {
            throw new Error(`Taints: expected KEY=VALUE:EFFECT, got "${one}"`)
        }
        return { key: found[1]!, ...(found[2] ? { value: found[2] } : {}), ...(found[3] ? { effect: found[3] } : {}) }
    })
}

function MarksForm({ node, onClose }: { node: Node; onClose: () => void }) {
    const labels = Object.entries(node.labels ?? {}).map(([key, value]) => `${key}=${String(value)}`)
    const taints = ((node.taints ?? []) as Taint[]).map((one) => `${one.key}${one.value ? `=${one.value}` : ''}${one.effect ? `:${one.effect}` : ''}`)
    return (
        <Form
            title={`Labels and taints of ${node.name}`}
            confirm="Set them"
            fields={[
                { name: 'labels', label: 'Labels, which jobs select nodes by: KEY=VALUE, separated by commas', value: labels.join(', '), isOptional: true },
                { name: 'taints', label: 'Taints, which a task must tolerate: KEY=VALUE, separated by commas', value: taints.join(', '), isOptional: true },
            ]}
            act={async (values) => {
                await change(node, { labels: labelChange(node, values['labels'] ?? ''), taints: taintsOf(values['taints'] ?? '') })
                toast(`${node.name} has new labels and taints`)
            }}
            onClose={onClose}
        />
    )
}

export function MarksButton({ node }: { node: Node }) {
    const [isOpen, setOpen] = useState(false)
    return (
        <>
            <Act right="operate nodes" isSmall onClick={() => setOpen(true)}>
                Labels and taints
            </Act>
            {isOpen && <MarksForm node={node} onClose={() => setOpen(false)} />}
        </>
    )
}

export function RemoveButton({ node, count }: { node: Node; count: CountTasks }) {
    return (
        <Act
            right="change nodes"
            isSmall
            tone="danger"
            onClick={() =>
                ask({
                    title: `Take ${node.name} out of the cluster?`,
                    text: <RemoveText count={count} />,
                    confirm: `Remove ${node.name}`,
                    danger: true,
                    done: `${node.name} has left`,
                    act: async () => {
                        await send('DELETE', `/nodes/${segment(node.name)}`)
                        await nodes.load()
                        go(href('nodes'))
                    },
                })
            }
        >
            Remove
        </Act>
    )
}

/** A one-time token, and the command by which a machine joins with it. */
export function AddNode() {
    const [isOpen, setOpen] = useState(false)
    const [made, setMade] = useState<NodeJoin | null>(null)
    const isMade = useRef(false)
    const close = () => {
        isMade.current = false
        setMade(null)
        setOpen(false)
    }
    return (
        <>
            <Act right="change nodes" onClick={() => setOpen(true)}>
                Add a node
            </Act>
            {isOpen && made === null && (
                <Form
                    title="Add a node"
                    confirm="Make the command"
                    fields={[
                        { name: 'node', label: 'Only a machine of this name may join with it; empty: any', isOptional: true },
                        { name: 'hours', label: 'Good for so many hours', value: '1' },
                    ]}
                    act={async (values) => {
                        const hours = Number(values['hours'])
                        if (!(hours > 0)) {
                            throw new Error('Hours: expected a number above 0')
                        }
                        const answer = await call<NodeJoin>('POST', '/node-joins', { ...(values['node'] ? { node: values['node'] } : {}), expires_ms: Math.round(Date.now() + hours * 3_600_000) })
                        isMade.current = true
                        setMade(answer)
                    }}
                    onClose={() => isMade.current || close()}
                />
            )}
            {made && (
                <Dialog title="Type this on the machine" onClose={close}>
                    <div class="dialog-text">
                        <p>It is good once, until {dayMinute(made.expires_ms)}, and is not shown again. The machine needs the program weir, and reaches this address.</p>
                        <Command text={`weir node join ${location.origin} ${made.secret ?? ''}`} />
                    </div>
                    <footer>
                        <button type="button" class="button primary" onClick={close}>
                            Done
                        </button>
                    </footer>
                </Dialog>
            )}
        </>
    )
}

/** Labels and taints, as people gave them. */
export function Marks({ node }: { node: Node }) {
    const labels = Object.entries(node.labels ?? {})
    const taints = (node.taints ?? []) as { key?: string; value?: string; effect?: string }[]
    if (labels.length + taints.length === 0) {
        return null
    }
    return (
        <span class="row wrap small">
            {labels.map(([key, value]) => (
                <span key={key} class="chip">
                    {key}={String(value)}
                </span>
            ))}
            {taints.map((one, i) => (
                <span key={i} class="chip tone-warn" title={`A task must tolerate it (${one.effect ?? ''})`}>
                    {one.key}
                    {one.value ? `=${one.value}` : ''}
                </span>
            ))}
        </span>
    )
}
