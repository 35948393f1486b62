/** One machine: its devices and who has them, what runs, its network and disks, what happened to it, and what can be done. */
import { useEffect } from 'preact/hooks'
import type { BusyJob, BusyJobs, Device, Node, Task, WeirEvent } from '../api'
import { FromCluster } from '../components/allocation'
import { Ago, Empty, Facts, Loaded, Owner, PageHead, Panel } from '../components/basics'
import { EventList } from '../components/event_list'
import { DrainButton, Marks, MarksButton, RemoveButton } from '../components/node_actions'
import { StateWord } from '../components/state'
import { Table, type Column } from '../components/table'
import { bytes, duration, fixed, NONE, plainValue, sentence, short, span, words } from '../format'
import type { Args, Screen } from '../screen'
import { devices, holdersOf, numberOf, numbersText } from '../state/devices'
import { get, getAll, segment } from '../state/http'
import { useResource } from '../state/resource'
import { href } from '../state/route'
import { jobs, nodes, now } from '../state/store'
import { coresOf, Devices, diskOf, DiskMeter, isSilent, jobsOn, nodeState, wrongWith } from './nodes'

const REFRESH_S = 5
/** The single values of what the agent reported; lists and objects need more than a line. */
function inventoryFacts(node: Node): [string, string][] {
    return Object.entries(node.inventory ?? {})
        .filter(([, value]) => typeof value === 'string' || typeof value === 'number')
        .map(([key, value]) => [sentence(words(key)).replace(/^Cpu/, 'CPU'), key.endsWith('_bytes') ? bytes(value as number) : plainValue(value)])
}

/** What separates the jobs of a node, as its agent found out. */
function Isolation({ node }: { node: Node }) {
    const isolation = node.inventory?.['isolation'] as { missing?: string[]; images?: string; disk?: string } | undefined
    if (!isolation) {
        return null
    }
    const missing = isolation.missing ?? []
    return (
        <>
            <h3>What separates jobs</h3>
            {missing.length === 0 ? (
                <p class="quiet">The sandbox is whole: a user, folders, processes, messages and system calls of its own for each job.</p>
            ) : (
                <ul class="missing" aria-label={`What the sandbox of ${node.name} lacks`}>
                    {missing.map((text) => (
                        <li key={text}>Missing: {text}</li>
                    ))}
                </ul>
            )}
            <p class="small muted">
                {isolation.images === 'crun' ? 'Jobs may run in OCI images.' : 'No OCI images: crun is not installed there.'}
                {isolation.disk === 'quota' ? ' The file system bounds the folders of jobs.' : ' The folders of jobs are measured.'}
            </p>
        </>
    )
}


/* ---- what it has ---------------------------------------------------------------------------------------------------- */

const detailsText = (device: Device) =>
    Object.entries(device.details ?? {})
        .filter(([, value]) => typeof value !== 'object' && value !== -1)
        .map(([key, value]) => `${words(key)} ${plainValue(value)}`)
        .join(' · ')

const PARTS: Column<Device>[] = [
    { id: 'idx', name: 'No.', width: '56px', isNumber: true, render: (device) => numberOf(device) ?? <span class="muted">{NONE}</span> },
    { id: 'kind', name: 'Kind', width: '88px', phone: 'more', sort: (device) => device.kind, render: (device) => device.kind },
    { id: 'what', name: 'What', phone: 'name', render: (device) => <b title={device.id}>{device.model ?? device.id}</b> },
    {
        id: 'state',
        name: 'State',
        width: '160px',
        phone: 'state',
        sort: (device) => device.state,
        render: (device) => (
            <>
                <StateWord state={device.state === 'ok' ? 'ready' : device.state} /> {device.reason && <small class="muted">{device.reason}</small>}
            </>
        ),
    },
    { id: 'size', name: 'Size', width: '88px', isNumber: true, render: (device) => (device.memory_bytes > 0 ? bytes(device.memory_bytes) : NONE) },
    { id: 'numa', name: 'NUMA', width: '64px', isNumber: true, render: (device) => (device.numa >= 0 ? device.numa : NONE) },
    { id: 'heat', name: '°C', width: '56px', isNumber: true, render: (device) => (device.temperature_c === null ? NONE : fixed(device.temperature_c, 0)) },
    { id: 'power', name: 'W', width: '56px', isNumber: true, render: (device) => (device.power_w === null ? NONE : fixed(device.power_w, 0)) },
    { id: 'ecc', name: 'ECC', width: '56px', isNumber: true, render: (device) => (device.ecc_errors >= 0 ? device.ecc_errors : NONE) },
    { id: 'details', name: 'Besides', phone: 'more', render: (device) => <span class="muted">{[detailsText(device), device.holders ? `held by ${device.holders}` : '', device.idle_since_ms ? `idle for ${duration(now.value - Date.parse(device.idle_since_ms))}` : ''].filter(Boolean).join(' · ')}</span> },
]

interface Placed {
    job: BusyJob
    task: Task
}

const TASKS: Column<Placed>[] = [
    {
        id: 'job',
        name: 'Job',
        phone: 'name',
        sort: (one) => one.job.name,
        render: (one) => (
            <a class="main" href={href('jobs', { job: one.job.id, task: one.task.id })}>
                {one.job.name}
            </a>
        ),
    },
    { id: 'project', name: 'Project', width: '112px', phone: 'more', render: (one) => <Owner project={one.job.project} /> },
    { id: 'task', name: 'Task', width: '112px', render: (one) => `${words(one.task.role)} ${one.task.rank}` },
    { id: 'state', name: 'State', width: '112px', phone: 'state', render: (one) => <StateWord state={one.task.state} /> },
    { id: 'devices', name: 'Devices', width: '96px', phone: 'more', render: (one) => (one.task.devices ? numbersText(one.task.node, one.task.devices) : NONE) },
    { id: 'cpus', name: 'Cores', width: '64px', isNumber: true, render: (one) => short(one.task.cpu_millis / 1000) },
    { id: 'memory', name: 'Memory', width: '88px', isNumber: true, render: (one) => (one.task.memory_bytes > 0 ? bytes(one.task.memory_bytes) : NONE) },
    { id: 'for', name: 'Runs for', width: '88px', isNumber: true, render: (one) => (one.task.started_ms ? span(one.task.started_ms, null, now.value) : NONE) },
]

const JOBS_MAX = 60 // whose tasks are asked for

/** Tasks of the jobs that have some there and that the caller sees, and of how many more jobs there are. */
async function tasksOn(name: string): Promise<{ placed: Placed[]; nMore: number }> {
    const { items } = await get<BusyJobs>('/top/jobs', { node: name })
    const found = await Promise.all(items.slice(0, JOBS_MAX).map(async (job) => (await getAll<Task>(`/jobs/${segment(job.id)}/tasks`, { limit: 1000 }, 10)).map((task) => ({ job, task }))))
    return { placed: found.flat().filter(({ task }) => task.node === name && !['EXITED', 'LOST'].includes(task.state)), nMore: Math.max(0, items.length - JOBS_MAX) }
}

function Tasks({ node }: { node: Node }) {
    const tasks = useResource(`tasks-on:${node.name}`, () => tasksOn(node.name))
    useEffect(() => tasks.loadSoon(), [jobs.data.value])
    const hidden = [...new Set((devices.data.value ?? []).filter((one) => one.node === node.name).flatMap((one) => holdersOf(one).filter(({ job }) => !job).map(({ name }) => name)))]
    return (
        <Panel title="Tasks" window={tasks.data.value?.nMore ? `of the ${JOBS_MAX} jobs that use most; ${tasks.data.value.nMore} more are there` : 'of the jobs that you see'} foot={hidden.length > 0 ? `Its devices are also held by: ${hidden.join(', ')}` : undefined}>
            <Loaded resource={tasks} rows={3}>
                {({ placed }) => (placed.length === 0 ? <p class="quiet">Nothing runs there that you see.</p> : <Table label={`Tasks on ${node.name}`} rows={placed} columns={TASKS} keyOf={(one) => one.task.id} hrefOf={(one) => href('jobs', { job: one.job.id, task: one.task.id })} isDense />)}
            </Loaded>
        </Panel>
    )
}

function Happened({ name }: { name: string }) {
    const log = useResource(`node-events:${name}`, () => getAll<WeirEvent>('/events', { subject: `node/${name}`, limit: 50 }))
    return (
        <Panel title="What happened" window="newest first" foot={<a href={href('events', { q: `subject:node/${name}` })}>All of it</a>}>
            <Loaded resource={log} rows={3}>
                {(items) => (items.length === 0 ? <p class="quiet">Nothing is written of it.</p> : <EventList events={items} />)}
            </Loaded>
        </Panel>
    )
}

/* ---- the page ------------------------------------------------------------------------------------------------------- */

function Found({ node }: { node: Node }) {
    const whole = useResource(`node:${node.name}`, () => get<Node>(`/nodes/${segment(node.name)}`))
    const beat = Math.floor(now.value / 1000 / REFRESH_S)
    useEffect(() => {
        nodes.loadSoon(0)
        devices.loadSoon(0)
        whole.loadSoon(0)
    }, [beat])
    const disk = diskOf(node)
    const wrong = wrongWith(node)
    return (
        <>
            <PageHead
                title={<span id="node-title">{node.name}</span>}
                crumbs={[['Cluster', href('nodes')]]}
                state={<StateWord state={nodeState(node)} />}
                sub={
                    <>
                        heard of <Ago time={node.last_seen_ms} /> · {coresOf(node)} cores used, {short(node.cpus_free)} free · {bytes(node.memory_bytes)} · agent {node.agent_version ?? NONE}
                        {node.allocation && <FromCluster node={node} />}
                    </>
                }
            >
                <MarksButton node={node} />
                <DrainButton node={node} count={() => jobsOn(node)} />
                <RemoveButton node={node} count={() => jobsOn(node)} />
            </PageHead>
            {wrong && (
                <div class="note tone-bad" role="note">
                    <p>{sentence(wrong)}</p>
                </div>
            )}
            <div class="stack">
                <Panel title="Accelerators" window={isSilent(node) ? 'what it told last' : 'now'} aside={<Marks node={node} />}>
                    <div class="panel-body">
                        <Devices node={node} />
                    </div>
                </Panel>
                <Tasks node={node} />
                <Panel title="What it has" window="processors, memory, disks, network, accelerators">
                    <Loaded resource={whole} rows={4}>
                        {(found) => ((found.devices ?? []).length === 0 ? <p class="quiet">Its agent has told no devices.</p> : <Table label={`Devices of ${node.name}`} rows={found.devices ?? []} columns={PARTS} keyOf={(device) => String(device.idx)} isDense />)}
                    </Loaded>
                </Panel>
                <div class="grid g2">
                    <Panel title="Facts">
                        <div class="panel-body">
                            <Facts items={[['Disk', disk ? <DiskMeter total={disk.bytes} free={disk.free} label={`Disk of ${node.name}`} /> : isSilent(node) ? 'unknown' : 'not reported'], ...inventoryFacts(node)]} />
                            <Isolation node={node} />
                        </div>
                    </Panel>
                    <Happened name={node.name} />
                </div>
            </div>
        </>
    )
}

function NodePage({ args }: { args: Args }) {
    const node = (nodes.data.value ?? []).find((one) => one.name === args['node'])
    return (
        <Loaded resource={nodes} rows={6}>
            {() =>
                node ? (
                    <Found key={node.name} node={node} />
                ) : (
                    <>
                        <PageHead title={<span id="node-title">{args['node']}</span>} crumbs={[['Cluster', href('nodes')]]} />
                        <div class="panel">
                            <Empty icon="nodes" title="No node of this name">
                                It has not joined, or it has left the cluster.
                            </Empty>
                        </div>
                    </>
                )
            }
        </Loaded>
    )
}

export const nodeScreen: Screen = {
    id: 'node',
    title: 'Node',
    icon: 'nodes',
    address: 'nodes/:node',
    query: ['sort', 'by'],
    under: 'nodes',
    load: [nodes, devices, jobs],
    render: NodePage,
}
