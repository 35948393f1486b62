/** What can be done to a node: drain it, let it take tasks again, label it. */
import type { Node } from '../api'
import { send, segment } from '../state/http'
import { nodes } from '../state/store'
import { may } from '../state/rights'
import { ask, type Question } from './dialog'
import { toast } from './toast'

async function change(node: Node, body: Record<string, unknown>): Promise<void> {
    await send('PATCH', `/nodes/${segment(node.name)}`, body)
    await nodes.load()
}

export function drainQuestion(node: Node, nTasks: number): Question {
    return {
        title: `Drain ${node.name}?`,
        text: (
            <p>
                It takes no new tasks. {nTasks === 0 ? 'Nothing runs there.' : `${nTasks} ${nTasks === 1 ? 'job runs' : 'jobs run'} there, and may end there.`} Resume takes it back.
            </p>
        ),
        confirm: `Drain ${node.name}`,
        done: `${node.name} drains`,
        act: () => change(node, { is_draining: true }),
    }
}

/** Drain, or resume. */
export function DrainButton({ node, nTasks }: { node: Node; nTasks: number }) {
    if (!may('operate nodes')) {
        return null
    }
    const resume = async () => {
        try {
            await change(node, { is_draining: false })
            toast(`${node.name} takes tasks again`)
        } catch (error) {
            toast(String(error), 'bad')
        }
    }
    return node.is_draining ? (
        <button type="button" class="button small" onClick={resume}>
            Resume<span class="hidden"> {node.name}</span>
        </button>
    ) : (
        <button type="button" class="button small" onClick={() => ask(drainQuestion(node, nTasks))}>
            Drain<span class="hidden"> {node.name}</span>
        </button>
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
