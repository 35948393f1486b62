/** Clusters: where work can go, what holds it there, and what is ours of it. Own nodes first, then each cluster with its pools. */
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import type { Allocation, Cluster, ClusterCheck, Node, Pool, Queue } from '../api'
import { Ago, Empty, Loaded, Meter, Owner, PageHead, Panel } from '../components/basics'
import { ask, openDialog } from '../components/dialog'
import { Icon } from '../components/icon'
import { Act } from '../components/locked'
import { Menu } from '../components/menu'
import { State, type Tone } from '../components/state'
import { Table, type Column } from '../components/table'
import { toast } from '../components/toast'
import { counted, dayMinute, duration, NONE } from '../format'
import { isSilent } from '../screens/nodes'
import { allocations, clusters, needsYou } from '../state/clusters'
import { accelerators } from '../state/devices'
import { call, getAll, messageOf, segment, send } from '../state/http'
import { queues } from '../state/queues'
import { useResource } from '../state/resource'
import { href, param } from '../state/route'
import { jobs, nodes, now } from '../state/store'
import { connection } from '../state/stream'
import { ASK_MS, ClusterForm } from './add'
import style from './clusters.css'
import { othersText, poolText, shapeText, useOf } from './pool'

const REFRESH_S = 5
const OPERATE = 'operate nodes'
const CHANGE = 'change nodes'

const add = () => openDialog((close) => <ClusterForm onClose={close} />)

const waits = (one: Allocation) => one.state === 'wanted' || one.state === 'pending'

/* ---- own nodes ------------------------------------------------------------------------------------------------------ */

/** Accelerators by model, or cores where there are none. */
function modelsOf(own: readonly Node[]): { name: string; used: number; all: number }[] {
    const found = new Map<string, { name: string; used: number; all: number }>()
    for (const device of own.filter((one) => !isSilent(one)).flatMap((one) => accelerators.value.get(one.name) ?? [])) {
        const row = found.get(device.model ?? 'accelerators') ?? { name: device.model ?? 'accelerators', used: 0, all: 0 }
        found.set(row.name, { ...row, used: row.used + (device.used_milli > 0 ? 1 : 0), all: row.all + 1 })
    }
    const heard = own.filter((one) => !isSilent(one))
    const cores = heard.reduce((sum, one) => sum + (one.cpu_slots ?? 0), 0)
    const free = heard.reduce((sum, one) => sum + (one.cpus_free ?? 0), 0)
    return [...found.values(), { name: 'CPUs', used: Math.round(cores - free), all: cores }]
}

/** @param others  So much of all that others have: hatched. */
function Bar({ name, note, used, all, others = 0, unit = '', below }: { name: string; note?: string; used: number; all: number; others?: number; unit?: string; below?: ComponentChildren }) {
    return (
        <div class="pool">
            <span class="row">
                <span>
                    <b>{name}</b> {note && <span class="muted">{note}</span>}
                </span>
            </span>
            <Meter part={all > 0 ? used / all : 0} others={all > 0 ? others / all : 0} label={`${name}: ${used} of ${all > 0 ? all : 'nobody says how many'} ${unit}`}>
                <b>{used}</b> of {all > 0 ? all : '?'} {unit}
            </Meter>
            {below && <small class="muted">{below}</small>}
        </div>
    )
}

function OwnNodes() {
    const own = (nodes.data.value ?? []).filter((one) => !one.cluster)
    const silent = own.filter(isSilent).length
    return (
        <section class="panel cluster" data-cluster="local" aria-label="Own nodes">
            <header class="panel-head">
                <Icon name="nodes" />
                <h2>
                    <a class="main" href={href('nodes')}>
                        Own nodes
                    </a>
                </h2>
                <span class="window">{counted(own.length, 'node')} that joined by themselves</span>
            </header>
            <div class="panel-body">
                <State tone={own.length === 0 ? 'plain' : silent > 0 ? 'warn' : 'good'}>{own.length === 0 ? 'none has joined' : silent > 0 ? `${silent} of ${own.length} silent` : 'take work'}</State>
                {own.length > 0 && modelsOf(own).map((one) => (
                    <Bar key={one.name} {...one} below={`${one.all - one.used} free`} />
                ))}
            </div>
        </section>
    )
}

/* ---- a cluster ------------------------------------------------------------------------------------------------------ */

const STATES: Record<string, [tone: Tone, text: string]> = {
    new: ['plain', 'not asked yet'],
    ready: ['good', 'takes work'],
    wrong: ['bad', 'lacks something'],
    silent: ['warn', 'does not answer'],
}

function stateOf(one: Cluster): [tone: Tone, text: string] {
    return one.state === 'ready' && one.is_draining ? ['warn', 'draining'] : (STATES[one.state] ?? ['plain', one.state])
}

async function tell(act: () => Promise<string>): Promise<void> {
    try {
        toast(await act())
        await Promise.all([clusters.load(), allocations.load()])
    } catch (error) {
        toast(messageOf(error), 'bad')
    }
}

async function checkNow(one: Cluster): Promise<string> {
    const found = await call<ClusterCheck>('POST', `/clusters/${segment(one.name)}/check`, {}, ASK_MS)
    if (found.missing !== null) {
        throw new Error(`${one.name}: ${found.missing}`)
    }
    return `${one.name} answers: ${found.pools.map(poolText).join('; ') || 'no pools'}`
}

const drain = (one: Cluster, is_draining: boolean) => send('PATCH', `/clusters/${segment(one.name)}`, { is_draining })

function askDrain(one: Cluster): void {
    ask({
        title: `Drain ${one.name}?`,
        text: <p>No more nodes are asked for there. What runs there goes on, and its nodes go back when they are idle: {counted(one.n_nodes, 'node')} now. Resume takes it back.</p>,
        confirm: `Drain ${one.name}`,
        done: `${one.name} drains`,
        act: async () => {
            await drain(one, true)
            await clusters.load()
        },
    })
}

function askRemove(one: Cluster): void {
    ask({
        title: `Remove ${one.name}?`,
        text: <p>{one.n_allocations > 0 ? `${counted(one.n_allocations, 'allocation')} of it have not ended: the server refuses. Drain it first.` : 'Its configuration is gone. Jobs that name it wait for another.'}</p>,
        confirm: `Remove ${one.name}`,
        danger: true,
        done: `${one.name} is removed`,
        act: async () => {
            await send('DELETE', `/clusters/${segment(one.name)}`)
            await clusters.load()
        },
    })
}

function Acts({ one }: { one: Cluster }) {
    const name = <span class="hidden"> {one.name}</span>
    return (
        <span class="aside">
            <Act right={OPERATE} isSmall onClick={() => void tell(() => checkNow(one))}>
                Check{name}
            </Act>
            <Menu label={`More: ${one.name}`} text="More">
                {one.is_draining ? (
                    <Act right={OPERATE} onClick={() => void tell(async () => (await drain(one, false), `${one.name} is asked for nodes again`))}>
                        Resume{name}
                    </Act>
                ) : (
                    <Act right={OPERATE} onClick={() => askDrain(one)}>
                        Drain{name}
                    </Act>
                )}
                <Act right={CHANGE} onClick={() => openDialog((close) => <ClusterForm of={one} onClose={close} />)}>
                    Change{name}
                </Act>
                <Act right={CHANGE} tone="danger" onClick={() => askRemove(one)}>
                    Remove{name}
                </Act>
            </Menu>
        </span>
    )
}

/** CPUs that Weir has of a pool's nodes now. */
const runsIn = (pool: Pool) =>
    (allocations.data.value ?? [])
        .filter((one) => one.cluster === pool.cluster && one.pool === pool.name && (one.state === 'running' || one.state === 'releasing'))
        .reduce((sum, one) => sum + one.n_nodes * (one.cpu_slots || pool.cpu_slots), 0)

function ClusterCard({ one, pools }: { one: Cluster; pools: readonly Pool[] }) {
    const [tone, text] = stateOf(one)
    const isKnown = connection.value.state !== 'lost'
    return (
        <section class="panel cluster" data-cluster={one.name} aria-label={one.name}>
            <header class="panel-head">
                <Icon name="cloud" />
                <h2>{one.name}</h2>
                <span class="window">{one.driver}</span>
                <Acts one={one} />
            </header>
            <div class="panel-body">
                <p>
                    <State tone={isKnown ? tone : 'plain'} isKnown={isKnown}>
                        {isKnown ? text : 'unknown'}
                    </State>{' '}
                    <small class="muted">{one.heard_ms ? <>answered <Ago time={one.heard_ms} /></> : 'it has not answered yet'}</small>
                </p>
                {one.said && (
                    <p class={needsYou(one) ? `their-words tone-${tone}-text` : 'their-words'} role="note">
                        {one.said}
                    </p>
                )}
                {pools.map((pool) => (
                    <Bar key={pool.id} name={pool.name} note={shapeText(pool)} {...useOf(pool, runsIn(pool))} below={[pool.n_nodes > 0 && `on ${counted(pool.n_nodes, 'node')} of ours`, othersText(pool, runsIn(pool)), pool.n_wanted > 0 && `${pool.n_wanted} more asked for`, pool.time_max_ms > 0 && `at most ${duration(pool.time_max_ms)}`, pool.why].filter(Boolean).join(' · ')} />
                ))}
                {pools.length === 0 && one.heard_ms && <p class="quiet">It has told no pools.</p>}
            </div>
            <footer class="panel-foot">
                <span>
                    {counted(one.n_nodes, 'node')} here{one.n_wanted > 0 ? `, ${one.n_wanted} asked for` : ''}
                    {one.max_nodes > 0 ? ` · at most ${one.max_nodes}` : ''}
                </span>
                <span>{one.after_ms > 0 ? `jobs wait ${duration(one.after_ms)} before` : 'asked as soon as no node has room'}</span>
            </footer>
        </section>
    )
}

/* ---- what was asked for --------------------------------------------------------------------------------------------- */

const jobName = (one: Allocation) => jobs.data.value?.find((job) => job.id === one.job)?.name ?? one.job

const JOB: Column<Allocation> = {
    id: 'job',
    name: 'Job',
    phone: 'name',
    sort: (one) => jobName(one) ?? '',
    render: (one) =>
        one.job ? (
            <a class="main" href={href('jobs', { job: one.job })}>
                {jobName(one)}
            </a>
        ) : (
            NONE
        ),
}
const PROJECT: Column<Allocation> = { id: 'project', name: 'Project', width: '112px', phone: 'more', sort: (one) => one.project ?? '', render: (one) => <Owner project={one.project} /> }
const NUMBER: Column<Allocation> = { id: 'number', name: 'Their number', width: '112px', phone: 'more', sort: (one) => one.their_id ?? '', render: (one) => (one.their_id ? <code title={one.id}>{one.their_id}</code> : <span class="muted">{NONE}</span>) }
const WHERE: Column<Allocation> = {
    id: 'where',
    name: 'Cluster, pool',
    width: '176px',
    phone: 'more',
    sort: (one) => `${one.cluster} ${one.pool}`,
    render: (one) => `${one.cluster} · ${one.pool}`,
}
const SIZE: Column<Allocation> = {
    id: 'size',
    name: 'Nodes',
    width: '64px',
    isNumber: true,
    sort: (one) => -one.n_nodes,
    render: (one) => one.n_nodes,
}

const WAITING: Column<Allocation>[] = [
    JOB,
    PROJECT,
    WHERE,
    NUMBER,
    SIZE,
    {
        id: 'said',
        name: 'In its own words',
        width: '280px',
        phone: 'more',
        render: (one) => (
            <span title={one.why ?? undefined}>
                <code class="their-words">{one.said ?? (one.state === 'wanted' ? 'not asked yet' : NONE)}</code> {one.why && <small class="muted">{one.why}</small>}
            </span>
        ),
    },
    { id: 'since', name: 'Since', width: '80px', isNumber: true, sort: (one) => one.created_ms, render: (one) => dayMinute(one.created_ms) },
    { id: 'starts', name: 'Starts', width: '88px', phone: 'state', isNumber: true, sort: (one) => one.starts_ms ?? '~', render: (one) => (one.starts_ms ? `~ ${dayMinute(one.starts_ms)}` : <span class="muted">nobody says</span>) },
]

function askRelease(one: Allocation): void {
    ask({
        title: `Give ${one.id} back?`,
        text: <p>Its {counted(one.n_nodes, 'node')} of {one.cluster} go back. What runs there is stopped, and goes on elsewhere or later.</p>,
        confirm: 'Give it back',
        danger: true,
        done: `${one.id} is given back`,
        act: async () => {
            await send('POST', `/allocations/${segment(one.id)}/release`, {})
            await allocations.load()
        },
    })
}

const RUNNING: Column<Allocation>[] = [
    NUMBER,
    { id: 'nodes', name: 'Cluster, nodes', phone: 'name', sort: (one) => one.cluster, render: (one) => <span title={one.joined.join(', ')}>{`${one.cluster} · ${(one.nodes ?? []).join(', ') || one.pool}`}</span> },
    SIZE,
    { id: 'devices', name: 'Devices', width: '80px', isNumber: true, sort: (one) => -one.n_nodes * one.n_accelerators, render: (one) => one.n_nodes * one.n_accelerators || <span class="muted">{NONE}</span> },
    PROJECT,
    { ...JOB, name: 'First for', width: '176px', phone: 'more' },
    { id: 'since', name: 'Since', width: '80px', isNumber: true, sort: (one) => one.started_ms ?? '~', render: (one) => (one.started_ms ? dayMinute(one.started_ms) : NONE) },
    {
        id: 'ends',
        name: 'Ends',
        width: '112px',
        phone: 'state',
        isNumber: true,
        sort: (one) => one.ends_ms ?? '~',
        render: (one) =>
            one.state === 'releasing' ? <State tone="warn">goes back</State> : one.idle_since_ms ? <span class="muted">idle since {dayMinute(one.idle_since_ms)}</span> : one.ends_ms ? dayMinute(one.ends_ms) : 'no limit',
    },
    {
        id: 'acts',
        name: '',
        width: '108px',
        phone: 'acts',
        render: (one) =>
            one.state !== 'releasing' && (
                <Act right={OPERATE} isSmall onClick={() => askRelease(one)}>
                    Release<span class="hidden"> {one.id}</span>
                </Act>
            ),
    },
]

function Asked({ all }: { all: readonly Allocation[] }) {
    const waiting = all.filter(waits)
    const running = all.filter((one) => !waits(one))
    return (
        <>
            <Panel title="What jobs wait for there" window={`${counted(waiting.length, 'allocation')} · in its own words`}>
                {waiting.length === 0 ? <p class="quiet">Nothing is waited for at a cluster.</p> : <Table label="Waiting allocations" rows={waiting} columns={WAITING} keyOf={(one) => one.id} chosen={waiting.find((one) => one.job === param('job'))?.id} rowPx={48} minPx={980} />}
            </Panel>
            <Panel title="Allocations" window={`${running.length} · ${counted(running.reduce((sum, one) => sum + one.n_nodes, 0), 'node')} of clusters here`}>
                {running.length === 0 ? <p class="quiet">No nodes of a cluster are here.</p> : <Table label="Allocations" rows={running} columns={RUNNING} keyOf={(one) => one.id} minPx={980} />}
            </Panel>
        </>
    )
}

/* ---- where jobs may go ------------------------------------------------------------------------------------------------ */

const OWN = 'local'

/** "10 min", "at once", or what each cluster says. */
function afterText(queue: Queue | null, where: readonly Cluster[]): string {
    const words = (ms: number) => (ms > 0 ? duration(ms) : 'at once')
    if (queue && queue.overflow_after_ms >= 0) {
        return words(queue.overflow_after_ms)
    }
    return where.length === 0 ? NONE : [...new Set(where.map((one) => one.after_ms))].length === 1 ? words(where[0]!.after_ms) : where.map((one) => `${one.name}: ${words(one.after_ms)}`).join(', ')
}

interface Rule {
    queue: Queue | null
    names: string[]
    where: Cluster[]
}

/** Queues that say where their jobs may go, and all others: those may go everywhere. */
function rulesOf(all: readonly Cluster[]): Rule[] {
    const named = (queues.data.value ?? []).filter((one) => (one.clusters?.length ?? 0) > 0 || one.overflow_after_ms >= 0)
    const rule = (queue: Queue | null): Rule => {
        const names = queue?.clusters?.length ? queue.clusters : [OWN, ...all.map((one) => one.name)]
        return { queue, names, where: names.flatMap((name) => all.find((one) => one.name === name) ?? []) }
    }
    return [...named.map(rule), rule(null)]
}

const hasParts = (queue: Queue) => (queues.data.value ?? []).some((one) => one.parent === queue.name)

const RULES: Column<Rule>[] = [
    { id: 'whose', name: 'Jobs of', phone: 'name', sort: (one) => one.queue?.name ?? '~', render: (one) => (one.queue ? <><a class="main" href={href(['queues', one.queue.name])}>{one.queue.name}</a>{hasParts(one.queue) && ' and those below'}</> : 'all other queues') },
    { id: 'where', name: 'Where, in this order', phone: 'more', render: (one) => one.names.map((name) => (name === OWN ? 'own nodes' : one.where.some((known) => known.name === name) ? name : `${name} (there is none)`)).join(', ') },
    { id: 'after', name: 'Asked after a wait of', width: '208px', phone: 'more', render: (one) => afterText(one.queue, one.where) },
    { id: 'most', name: 'At most', width: '160px', phone: 'more', render: (one) => one.where.filter((known) => known.max_nodes > 0).map((known) => `${counted(known.max_nodes, 'node')} of ${known.name}`).join(', ') || <span class="muted">no bound of ours</span> },
]

function Rules({ all }: { all: readonly Cluster[] }) {
    const rows = rulesOf(all)
    return (
        <Panel title="Whose jobs go where" window="a job may name clusters of its own, of those that its queue lists">
            <Table label="Rules" rows={rows} columns={RULES} keyOf={(one) => one.queue?.name ?? ''} minPx={720} />
        </Panel>
    )
}

/* ---- the page ------------------------------------------------------------------------------------------------------- */

function titleOf(all: readonly Cluster[]): string {
    const wrong = all.filter(needsYou)
    return wrong.length === 0 ? 'Clusters' : wrong.length === 1 ? `${wrong[0]!.name} ${stateOf(wrong[0]!)[1]}` : `${wrong.length} of ${all.length} clusters take no work`
}

export function Clusters() {
    const pools = useResource('pools', () => getAll<Pool>('/pools', { limit: 1000 }, 10))
    const beat = Math.floor(now.value / 1000 / REFRESH_S)
    useEffect(() => {
        for (const one of [clusters, allocations, pools, nodes, queues]) {
            one.loadSoon(0)
        }
    }, [beat])
    const asked = allocations.data.value ?? []
    const waiting = asked.filter(waits)
    const first = waiting.flatMap((one) => one.starts_ms ?? []).sort()[0]
    return (
        <Loaded resource={clusters} rows={6}>
            {(all) => (
                <>
                    <style>{style}</style>
                    <PageHead
                        title={titleOf(all)}
                        sub={
                            all.length > 0 &&
                            [waiting.length > 0 ? `${counted(waiting.length, 'allocation')} waited for${first ? `, the first starts about ${dayMinute(first)}` : ''}` : 'nothing is waited for', `${counted(all.reduce((sum, one) => sum + one.n_nodes, 0), 'node')} of clusters here`].join(' · ')
                        }
                    >
                        <Act right={CHANGE} onClick={add}>
                            <Icon name="plus" /> Add a cluster
                        </Act>
                    </PageHead>
                    <div class="stack">
                        <div class="grid clusters">
                            <OwnNodes />
                            {[...all].sort((a, b) => Number(needsYou(b)) - Number(needsYou(a))).map((one) => (
                                <ClusterCard key={one.name} one={one} pools={(pools.data.value ?? []).filter((pool) => pool.cluster === one.name)} />
                            ))}
                        </div>
                        {all.length === 0 ? (
                            <div class="panel">
                                <Empty icon="cloud" title="Own nodes only" command="weir cluster add NAME --driver slurm">
                                    A cluster that other people run can supply nodes when no own one has room. Add it here, or type:
                                </Empty>
                            </div>
                        ) : (
                            <>
                                <Loaded resource={allocations} rows={4}>
                                    {(items) => <Asked all={items} />}
                                </Loaded>
                                <Rules all={all} />
                            </>
                        )}
                    </div>
                </>
            )}
        </Loaded>
    )
}
