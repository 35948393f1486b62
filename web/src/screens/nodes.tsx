/** The machines, what they have, and when they were last heard of. */
import type { Node } from '../api'
import { COMMANDS } from '../commands'
import { Ago, Empty, Facts, Loaded, PageHead } from '../components/basics'
import { StateChip } from '../components/chip'
import { Icon } from '../components/icon'
import { bytes, NONE, percent } from '../format'
import { nodes } from '../state/store'

function NodeCard({ node }: { node: Node }) {
    const accelerators = node.accelerators ?? []
    return (
        <li class="panel node-card" data-node={node.name}>
            <header class="panel-head">
                <h2>
                    <Icon name="nodes" /> {node.name}
                </h2>
                <StateChip state={node.state} />
            </header>
            <div class="panel-body">
                <Facts
                    items={[
                        ['Last heard of', <Ago time={node.last_seen_ms} />],
                        ['Processor', node.cpu_model ?? NONE],
                        ['CPU slots', node.cpus ?? NONE],
                        ['Memory', bytes(node.memory_bytes)],
                        ['Tasks', node.tasks_running ?? NONE],
                        ['Agent', node.version ?? NONE],
                    ]}
                />
                {accelerators.length > 0 ? (
                    <ul class="accelerators" aria-label="Accelerators">
                        {accelerators.map((one) => {
                            const part = one.memory_bytes && typeof one.used_bytes === 'number' ? one.used_bytes / one.memory_bytes : null
                            return (
                                <li key={one.index}>
                                    <Icon name="bolt" size={14} />
                                    <span>
                                        {one.index}: {one.name}
                                    </span>
                                    <small class="muted">
                                        {bytes(one.memory_bytes)}
                                        {part !== null ? ` · ${percent(part, 0)} used` : ''}
                                    </small>
                                </li>
                            )
                        })}
                    </ul>
                ) : (
                    <p class="quiet">No accelerators: tasks run on CPU slots.</p>
                )}
            </div>
        </li>
    )
}

export function Nodes() {
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
