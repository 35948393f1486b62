/** The machines: what they have, what is broken, when they were last heard of. */
import { useEffect, useMemo } from 'preact/hooks'
import type { Node } from '../api'
import { COMMANDS } from '../commands'
import { Ago, Choices, Empty, Loaded, Meter, PageHead, Panel, Strip } from '../components/basics'
import { COLOURS, DeviceTiles, HeatMap, type Colour } from '../components/device_tiles'
import { AddNode, DrainButton, Marks } from '../components/node_actions'
import { Filter, filtered, NothingMatches, type FilterOf } from '../components/filter'
import { is, StateWord } from '../components/state'
import { Table, type Column } from '../components/table'
import { bytes, millis, NONE, short } from '../format'
import type { Screen } from '../screen'
import { accelerators, devices, holdersOf, numberOf } from '../state/devices'
import { useResource } from '../state/resource'
import { get } from '../state/http'
import { href, hrefWith, param } from '../state/route'
import { jobs, nodes, now } from '../state/store'
import { connection } from '../state/stream'
import type { StoreUsage } from '../api'

const SILENT_MS = 15_000 // of a server that gives no state: three reports, one in 5 s, that did not come
const REFRESH_S = 5
const DISK_LOW = 0.1 // free: the server warns below it
const DISK_OUT = 0.03

export function nodeState(node: Node): string {
    if (connection.value.state === 'lost') {
        return 'unknown'
    }
    const state = node.state ?? (now.value - millis(node.last_seen_ms) < SILENT_MS ? 'ready' : 'silent')
    return state === 'ready' && node.unhealthy ? 'unhealthy' : state === 'ready' && node.is_draining ? 'draining' : state
}

export const isSilent = (node: Node) => !is(nodeState(node), 'ready', 'draining', 'unhealthy')

export const devicesOf = (node: Node) => accelerators.value.get(node.name) ?? []

/** Jobs that hold a device of the node; those on cores alone are not known here. undefined: the devices have not come yet. */
export const jobsOn = (node: Node) => devices.data.value && new Set(devicesOf(node).flatMap((one) => holdersOf(one).map(({ name }) => name))).size

/** What is wrong with it, in a sentence; undefined: nothing. */
export function wrongWith(node: Node): string | undefined {
    const out = devicesOf(node).filter((one) => one.state !== 'ok')
    return node.unhealthy ?? (out.length === 1 ? `device ${numberOf(out[0]!) ?? ''} is out: ${out[0]!.reason ?? 'no reason was told'}` : out.length > 1 ? `${out.length} devices are out` : undefined)
}

const COLOUR_NAMES: Record<Colour, string> = { owner: 'Owner', use: 'Use', heat: 'Temperature', memory: 'Memory' }

function colourWanted(): Colour {
    const wanted = param('by')
    return COLOURS.find((one) => one === wanted) ?? 'owner'
}

/** The disk that the agent's folder lies on, if the agent tells of it; of a silent node nobody knows. */
export function diskOf(node: Node): { bytes: number; free: number } | undefined {
    return !isSilent(node) && node.disk_bytes > 0 ? { bytes: node.disk_bytes, free: node.disk_free_bytes } : undefined
}

export function DiskMeter({ total, free, label }: { total: number; free: number; label: string }) {
    const part = free / total
    return (
        <Meter part={1 - part} label={`${label}: ${bytes(free)} of ${bytes(total)} are free`} tone={part < DISK_OUT ? 'bad' : part < DISK_LOW ? 'warn' : undefined}>
            <b>{bytes(free)}</b> <span class="muted">free of {bytes(total)}</span>
        </Meter>
    )
}

/** What is kept for tasks, of what there is: "2.1 of 8". */
export const coresOf = (node: Node) => (typeof node.cpus_used === 'number' ? `${short(node.cpus_used)} of ${short(node.cpu_slots)}` : short(node.cpu_slots))

const FILTER: FilterOf<Node> = {
    text: (node) => node.name,
    keys: {
        name: (node) => node.name,
        state: nodeState,
        cluster: (node) => node.cluster ?? 'local',
        label: (node) => Object.entries(node.labels ?? {}).map(([key, value]) => `${key}=${String(value)}`).join(' '),
        cpu: (node) => String(node.inventory?.['cpu_model'] ?? ''),
    },
}

const NEED = ['lost', 'unhealthy', 'silent', 'unknown', 'draining', 'ready']
const needOf = (node: Node) => (wrongWith(node) && nodeState(node) === 'ready' ? 1 : NEED.indexOf(nodeState(node)))
const byNeed = (a: Node, b: Node) => needOf(a) - needOf(b) || a.name.localeCompare(b.name)

const COLUMNS: Column<Node>[] = [
    {
        id: 'name',
        name: 'Node',
        phone: 'name',
        sort: (node) => node.name,
        render: (node) => (
            <a class="main" href={nodeAddress(node)}>
                {node.name}
            </a>
        ),
    },
    {
        id: 'state',
        name: 'State and evidence',
        width: '200px',
        phone: 'state',
        sort: nodeState,
        render: (node) => (
            <>
                <StateWord state={nodeState(node)} />{' '}
                <small class="muted">
                    <Ago time={node.last_seen_ms} />
                </small>
            </>
        ),
    },
    { id: 'cores', name: 'Cores used', width: '96px', isNumber: true, phone: 'more', sort: (node) => -(node.cpu_slots ?? 0), render: coresOf },
    { id: 'memory', name: 'Memory', width: '88px', isNumber: true, sort: (node) => -(node.memory_bytes ?? 0), render: (node) => bytes(node.memory_bytes) },
    { id: 'devices', name: 'Accelerators', width: '104px', isNumber: true, sort: (node) => -(node.n_accelerators ?? 0), render: (node) => node.n_accelerators ?? 0 },
    {
        id: 'disk',
        name: 'Disk free',
        width: '108px',
        isNumber: true,
        phone: 'more',
        sort: (node) => diskOf(node)?.free ?? Infinity,
        render: (node) => {
            const disk = diskOf(node)
            return disk ? <span class={disk.free / disk.bytes < DISK_LOW ? 'tone-warn-text' : ''}>{bytes(disk.free)}</span> : NONE
        },
    },
    { id: 'cpu', name: 'Processor', render: (node) => <span class="muted">{String(node.inventory?.['cpu_model'] ?? NONE)}</span> },
    { id: 'agent', name: 'Agent', width: '80px', render: (node) => <span class="muted">{node.agent_version ?? NONE}</span> },
]

function nodeAddress(node: Node): string {
    return href(['nodes', node.name], { q: param('q'), sort: param('sort'), view: param('view'), by: param('by') })
}

export function Devices({ node }: { node: Node }) {
    const items = devicesOf(node)
    if (items.length === 0) {
        const count = node.n_accelerators ?? 0
        return <p class="quiet">{count > 0 ? `${count} accelerators` : 'No accelerators: tasks run on CPUs.'}</p>
    }
    return <DeviceTiles node={node.name} items={items} colour={colourWanted()} />
}

function NodeTile({ node }: { node: Node }) {
    const disk = diskOf(node)
    const wrong = wrongWith(node)
    return (
        <section class="panel node-card" data-node={node.name} aria-label={node.name}>
            <header class="panel-head">
                <h2>
                    <a class="main" href={nodeAddress(node)}>
                        {node.name}
                    </a>
                </h2>
                <StateWord state={nodeState(node)} />
                <span class="window">
                    {node.cluster && `${node.cluster} · `}
                    <Ago time={node.last_seen_ms} /> · {coresOf(node)} cores used · {bytes(node.memory_bytes)}
                    {node.inventory?.['cpu_model'] ? ` · ${String(node.inventory['cpu_model'])}` : ''}
                </span>
                <Marks node={node} />
                <span class="aside node-disk">
                    {disk && (
                        <>
                            <span class="small muted">Disk</span>
                            <DiskMeter total={disk.bytes} free={disk.free} label={`Disk of ${node.name}`} />
                        </>
                    )}
                    <DrainButton node={node} count={() => jobsOn(node)} />
                </span>
            </header>
            {wrong && (
                <p class="panel-body node-wrong tone-bad-text" role="note">
                    {wrong}
                </p>
            )}
            {devicesOf(node).length > 0 && (
                <div class="panel-body">
                    <Devices node={node} />
                </div>
            )}
        </section>
    )
}

function Figures({ all }: { all: readonly Node[] }) {
    const usage = useResource('usage', () => get<StoreUsage>('/store/usage'))
    const heard = all.filter((node) => !isSilent(node))
    const sum = (of: (node: Node) => number) => heard.reduce((total, node) => total + of(node), 0)
    const store = usage.data.value
    const given = heard.flatMap(devicesOf)
    const used = given.filter((one) => one.used_milli > 0).length
    const out = given.filter((one) => one.state !== 'ok').length
    const closed = heard.filter((node) => node.is_draining).flatMap(devicesOf).filter((one) => one.used_milli === 0).length // empty, and given to nobody
    const watts = given.reduce((total, one) => total + (one.power_w ?? 0), 0)
    const lowest = heard.flatMap((node) => (diskOf(node) ? [{ node, ...diskOf(node)! }] : [])).sort((a, b) => a.free / a.bytes - b.free / b.bytes)[0]
    return (
        <Strip
            label="The cluster now"
            items={[
                { name: 'Nodes that report', value: heard.length, note: `of ${all.length}${heard.length < all.length ? ' · the others are silent' : ''}` },
                { name: 'Cores', value: short(sum((node) => node.cpu_slots ?? 0)), note: `of nodes that report · ${short(sum((node) => node.cpus_free ?? 0))} free` },
                {
                    name: 'Accelerators in use',
                    value: short(used),
                    note: `of ${given.length}${out > 0 ? ` · ${out} out` : ''}${closed > 0 ? ` · ${closed} of draining nodes` : ''}${watts > 0 ? ` · ${short(watts)} W` : ''}`,
                },
                ...(lowest ? [{ name: 'Least free disk', value: bytes(lowest.free), note: `of ${bytes(lowest.bytes)} · ${lowest.node.name}` }] : []),
                {
                    name: <a href={href('storage')}>Free on the server</a>,
                    value: store ? bytes(store.disk_free_bytes) : NONE,
                    note: store ? `of ${bytes(store.disk_bytes)} · Weir ${bytes(store.total_bytes)}` : '',
                },
            ]}
        />
    )
}

function Nodes() {
    const beat = Math.floor(now.value / 1000 / REFRESH_S)
    useEffect(() => {
        nodes.loadSoon(0)
        devices.loadSoon(0)
    }, [beat]) // reports are no news on the stream: their age is only as young as the list
    const all = nodes.data.value ?? []
    const found = filtered(all, FILTER).sort(byNeed)
    const shown = param('view') || (all.length > 200 ? 'heat' : all.length > 40 ? 'table' : 'tiles')
    const isTable = shown === 'table'
    const colour = colourWanted()
    const heatRows = useMemo(
        () => found.map((one) => ({ name: one.name, state: nodeState(one), devices: devicesOf(one) })),
        [nodes.data.value, devices.data.value, param('q'), connection.value.state],
    )
    const silent = all.filter(isSilent).length
    const wrong = all.filter(wrongWith).length
    return (
        <>
            <PageHead
                title={
                    silent > 0
                        ? `${silent} of ${all.length} nodes ${silent === 1 ? 'is' : 'are'} silent`
                        : wrong > 0
                          ? `Something is wrong with ${wrong} of ${all.length} nodes`
                          : 'Nodes'
                }
                sub={nodes.data.value && `${all.length === 1 ? '1 node' : `${all.length} nodes`} · ${all.length - silent} ${all.length - silent === 1 ? 'reports' : 'report'}`}
            >
                <Choices
                    label="View"
                    items={[
                        { name: 'Tiles', address: hrefWith({ view: 'tiles' }), isCurrent: shown === 'tiles' },
                        { name: 'Heat map', address: hrefWith({ view: 'heat' }), isCurrent: shown === 'heat' },
                        { name: 'Table', address: hrefWith({ view: 'table' }), isCurrent: isTable },
                    ]}
                />
                <AddNode />
            </PageHead>
            <Loaded resource={nodes} rows={6}>
                {() =>
                    all.length === 0 ? (
                        <div class="panel">
                            <Empty icon="nodes" title="No node has registered" command={COMMANDS.joinNode}>
                                Add a node makes the token; on each machine that should run tasks, type:
                            </Empty>
                        </div>
                    ) : (
                        <>
                            <Figures all={all} />
                            {!isTable && heatRows.some((row) => row.devices.length > 0) && (
                                <div class="row wrap small">
                                    <span class="muted">Colour by</span>
                                    <Choices
                                        label="Colour by"
                                        items={COLOURS.map((one) => ({ name: COLOUR_NAMES[one], address: hrefWith({ by: one === 'owner' ? undefined : one }), isCurrent: one === colour }))}
                                    />
                                </div>
                            )}
                            <Filter label="Filter nodes" rows={all} of={FILTER} hint="name, or state:silent" />
                            {found.length === 0 ? (
                                        <div class="panel">
                                            <NothingMatches rows={all} of={FILTER} what="node" />
                                        </div>
                                    ) : isTable ? (
                                        <Panel title="All nodes" window={`${found.length} · what is broken first`}>
                                            <Table
                                                label="Nodes"
                                                rows={found}
                                                columns={COLUMNS}
                                                keyOf={(one) => one.name}
                                                hrefOf={nodeAddress}
                                            />
                                        </Panel>
                                    ) : shown === 'heat' ? (
                                        <Panel title="All nodes" window={`${found.length} · what is broken first`}>
                                            <div class="panel-body">
                                                <HeatMap rows={heatRows} colour={colour} chosen={undefined} />
                                            </div>
                                        </Panel>
                                    ) : (
                                        <div class="stack node-grid">
                                            {found.map((one) => (
                                                <NodeTile key={one.name} node={one} />
                                            ))}
                                        </div>
                                    )}
                        </>
                    )
                }
            </Loaded>
        </>
    )
}

export const nodesScreen: Screen = {
    id: 'nodes',
    title: 'Cluster',
    icon: 'nodes',
    address: 'nodes',
    query: ['q', 'sort', 'view', 'by'],
    group: { science: 'Share', operations: 'Cluster' },
    load: [nodes, devices, jobs],
    badge: () => ({ count: (nodes.data.value ?? []).filter((node) => is(nodeState(node), 'silent', 'lost')).length, tone: 'bad', what: 'silent' }),
    letter: 'c',
    render: Nodes,
}
