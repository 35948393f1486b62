/** The machines, what they have, and when they were last heard of. */
import { useEffect } from 'preact/hooks'
import type { Accelerator, Node } from '../api'
import { COMMANDS } from '../commands'
import { Ago, Empty, Facts, Loaded, PageHead } from '../components/basics'
import { StateChip } from '../components/chip'
import { Icon } from '../components/icon'
import { bytes, millis, NONE, percent, plainValue, sentence, words } from '../format'
import { nodes, now } from '../state/store'
import { connection } from '../state/stream'

const SILENT_MS = 15_000 // of a server that gives no state: three reports, one in 5 s, that did not come
const REFRESH_S = 5

function stateOf(node: Node): string {
    const state = node.state ?? (now.value - millis(node.last_seen_ms) < SILENT_MS ? 'ready' : 'silent')
    return state === 'ready' && node.is_draining ? 'draining' : state
}

/** The single values of what the agent reported; lists and objects need more than a line. */
function inventoryFacts(node: Node): [string, string][] {
    return Object.entries(node.inventory ?? {})
        .filter(([, value]) => typeof value === 'string' || typeof value === 'number')
        .map(([key, value]) => [sentence(words(key)).replace(/^Cpu/, 'CPU'), key.endsWith('_bytes') ? bytes(value as number) : plainValue(value)])
}

function Accelerators({ node }: { node: Node }) {
    const found = node.inventory?.['accelerators']
    const items = Array.isArray(found) ? (found as Accelerator[]) : []
    if (items.length === 0) {
        const count = node.n_accelerators ?? 0
        return <p class="quiet">{count > 0 ? `${count} accelerators` : 'No accelerators: tasks run on CPU slots.'}</p>
    }
    return (
        <ul class="accelerators" aria-label="Accelerators">
            {items.map((one, i) => {
                const part = one.memory_bytes && typeof one.used_bytes === 'number' ? one.used_bytes / one.memory_bytes : null
                return (
                    <li key={i}>
                        <Icon name="bolt" size={14} />
                        <span>
                            {one.index ?? i}: {one.name ?? 'accelerator'}
                        </span>
                        <small class="muted">
                            {bytes(one.memory_bytes)}
                            {part !== null ? ` · ${percent(part, 0)} used` : ''}
                        </small>
                    </li>
                )
            })}
        </ul>
    )
}

function NodeCard({ node }: { node: Node }) {
    return (
        <li class="panel node-card" data-node={node.name}>
            <header class="panel-head">
                <h2>
                    <Icon name="nodes" /> {node.name}
                </h2>
                <StateChip state={connection.value.state === 'lost' ? 'unknown' : stateOf(node)} />
            </header>
            <div class="panel-body">
                <Facts
                    items={[
                        ['Last heard of', <Ago time={node.last_seen_ms} />],
                        ['CPU slots', node.cpu_slots ?? NONE],
                        ['Memory', bytes(node.memory_bytes)],
                        ['Agent', node.agent_version ?? NONE],
                        ...inventoryFacts(node),
                    ]}
                />
                <Accelerators node={node} />
            </div>
        </li>
    )
}

export function Nodes() {
    const beat = Math.floor(now.value / 1000 / REFRESH_S)
    useEffect(() => nodes.loadSoon(0), [beat]) // reports are no news on the stream: their age is only as young as the list
    return (
        <>
            <PageHead title="Nodes" sub="The machines that run tasks" />
            <Loaded resource={nodes}>
                {(items) =>
                    items.length > 0 ? (
                        <ul class="node-grid">
                            {items.map((node) => (
                                <NodeCard key={node.name} node={node} />
                            ))}
                        </ul>
                    ) : (
                        <Empty icon="nodes" title="No node has registered" command={COMMANDS.startAgent}>
                            Start an agent on each machine that should run tasks:
                        </Empty>
                    )
                }
            </Loaded>
        </>
    )
}
