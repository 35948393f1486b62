/** Queues and quotas: who has, borrows, lends and waits, and what a change would do. */
import { useEffect, useState } from 'preact/hooks'
import type { Job, Queue } from '../api'
import { Choices, Empty, Loaded, Owner, PageHead, Panel } from '../components/basics'
import { WithDrawer } from '../components/drawer'
import { Act } from '../components/locked'
import { QuotaBar } from '../components/quota_bar'
import { Table, type Column } from '../components/table'
import { TimeChart } from '../components/time_chart'
import { momentOf, rangeText, TimeRange } from '../components/time_range'
import { duration, millis, NONE, sentence } from '../format'
import type { Args, Screen } from '../screen'
import { devices } from '../state/devices'
import { getAll } from '../state/http'
import { colourOf, projectList } from '../state/project'
import { amountOf, amountText, capacityOf, models, others, plainAmount, queues, reserved, shareOf, tree, type Place, type What } from '../state/queues'
import { useResource } from '../state/resource'
import { may } from '../state/rights'
import { href, hrefWith, param } from '../state/route'
import { jobs, nodes, now } from '../state/store'
import { queueSeries } from '../state/usage'
import { NewQueue, QueueDrawer } from './queue_drawer'

const REFRESH_S = 5
const CHART_MS = 60_000
const LONG_WAIT_MS = 3_600_000
const NAMES: Record<string, string> = { accelerators: 'Devices', cpus: 'Cores', memory: 'Memory' }

const whatShown = (): What => param('of') || 'accelerators'
const addressOf = (queue: Queue) => href(['queues', queue.name], { of: param('of'), sort: param('sort') })
const jobsText = (count: number) => `${count} ${count === 1 ? 'job' : 'jobs'}`

/** Since when the first job of each project waits. */
function oldestWaits(waiting: readonly Job[]): Map<string, number> {
    const found = new Map<string, number>()
    for (const job of waiting.filter((one) => !one.is_held)) {
        const since = millis(job.queued_ms ?? job.created_ms)
        found.set(job.project, Math.min(since, found.get(job.project) ?? Infinity))
    }
    return found
}

interface Row extends Place {
    guarantee: number
    used: number
    borrowed: number
    waiting: number
    waitsSince: number | undefined
    lends: number
}

function rowsOf(all: readonly Queue[], what: What, waits: Map<string, number>): Row[] {
    const capacity = capacityOf(what)
    const isBorrowed = all.some((one) => amountOf(one.borrowed, what) > 0)
    return tree(all).map((place) => {
        const holds = amountOf(place.queue.guarantee, what) // by the time of the week
        const guarantee = shareOf(place.queue, what).guarantee === null || holds < 0 ? capacity : holds
        const used = amountOf(place.queue.used, what)
        return {
            ...place,
            guarantee,
            used,
            borrowed: amountOf(place.queue.borrowed, what),
            waiting: amountOf(place.queue.waiting, what),
            waitsSince: waits.get(place.queue.project ?? ''),
            lends: isBorrowed ? Math.max(0, guarantee - used) : 0,
        }
    })
}

function barLabel(row: Row, what: What): string {
    const limit = shareOf(row.queue, what).limit
    return [
        `${row.queue.name} uses ${amountText(row.used, what)} of a limit of ${limit === null ? 'none' : plainAmount(limit, what)}`,
        `guarantee ${plainAmount(row.guarantee, what)}`,
        row.borrowed > 0 ? `borrows ${plainAmount(row.borrowed, what)}` : '',
        row.waiting > 0 ? `waits for ${plainAmount(row.waiting, what)}` : '',
    ]
        .filter(Boolean)
        .join(', ')
}

function columns(what: What, isNarrow: boolean): Column<Row>[] {
    const zero = (value: number) => (value === 0 ? <span class="muted">0</span> : plainAmount(value, what))
    const wide = what === 'memory' ? '88px' : '64px'
    const all: (Column<Row> & { isWide?: boolean })[] = [
        {
            id: 'name',
            name: 'Queue',
            width: '168px',
            phone: 'name',
            sort: (row) => row.queue.name,
            render: (row) => (
                <span class="tree-name" style={{ paddingLeft: param('sort') ? undefined : `${16 * row.depth}px` }}>
                    <a class="main" href={addressOf(row.queue)}>
                        {row.queue.project ? <Owner project={row.queue.project} /> : row.queue.name}
                    </a>
                    {row.queue.project && row.queue.project !== row.queue.name && <span class="muted small">{row.queue.name}</span>}
                </span>
            ),
        },
        {
            id: 'bar',
            name: 'Used of limit; tick = guarantee',
            phone: 'more',
            render: (row) => (
                <QuotaBar
                    used={row.used}
                    guarantee={row.guarantee}
                    waiting={row.waiting}
                    whole={shareOf(row.queue, what).limit ?? capacityOf(what)}
                    project={row.queue.project}
                    label={barLabel(row, what)}
                />
            ),
        },
        { id: 'used', name: 'Used', width: wide, isNumber: true, phone: 'state', sort: (row) => -row.used, render: (row) => <b>{plainAmount(row.used, what)}</b> },
        { id: 'guarantee', name: 'Guarantee', width: '84px', isNumber: true, sort: (row) => -row.guarantee, render: (row) => (shareOf(row.queue, what).guarantee === null ? 'all' : plainAmount(row.guarantee, what)) },
        { id: 'borrows', name: 'Borrows', width: wide === '64px' ? '72px' : wide, isNumber: true, sort: (row) => -row.borrowed, render: (row) => zero(row.borrowed) },
        { id: 'lends', name: 'Lends', width: wide, isNumber: true, isWide: true, sort: (row) => -row.lends, render: (row) => zero(row.lends) },
        { id: 'limit', name: 'Limit', width: wide, isNumber: true, isWide: true, render: (row) => (shareOf(row.queue, what).limit === null ? <span class="muted">none</span> : plainAmount(shareOf(row.queue, what).limit ?? 0, what)) },
        { id: 'weight', name: 'Weight', width: '64px', isNumber: true, isWide: true, render: (row) => shareOf(row.queue, what).weight },
        {
            id: 'waiting',
            name: 'Waiting',
            width: '148px',
            isNumber: true,
            phone: 'more',
            sort: (row) => -row.waiting,
            render: (row) => (row.queue.n_waiting === 0 ? <span class="muted">none</span> : `${jobsText(row.queue.n_waiting)}, ${amountText(row.waiting, what)}`),
        },
        {
            id: 'oldest',
            name: 'Oldest wait',
            width: '108px',
            isNumber: true,
            isWide: true,
            sort: (row) => row.waitsSince ?? Infinity,
            render: (row) => {
                const ms = row.waitsSince === undefined ? NaN : now.value - row.waitsSince
                return Number.isNaN(ms) ? <span class="muted">{NONE}</span> : <span class={ms > LONG_WAIT_MS ? 'tone-warn-text' : ''}>{duration(ms)}</span>
            },
        },
    ]
    return all.filter((column) => !isNarrow || !column.isWide)
}

function summary(all: readonly Queue[], what: What): string {
    const capacity = capacityOf(what)
    const leaves = all.filter((one) => one.project)
    const count = leaves.reduce((sum, one) => sum + one.n_waiting, 0)
    const waiting = leaves.reduce((sum, one) => sum + amountOf(one.waiting, what), 0)
    const guaranteed = reserved(all, what)
    return [
        amountText(capacity, what),
        `guarantees ${Number.isFinite(guaranteed) ? plainAmount(guaranteed, what) : 'of all'} of ${plainAmount(capacity, what)}`,
        count === 0 ? 'nobody waits' : `${jobsText(count)} ${count === 1 ? 'waits' : 'wait'} for ${amountText(waiting, what)}`,
        others.value['n_queues'] ? `${others.value['n_queues']} queues of others: ${jobsText(others.value['n_running'] ?? 0)} run and ${others.value['n_waiting'] ?? 0} wait` : '',
    ]
        .filter(Boolean)
        .join(' · ')
}

const PRESETS = ['-1h', '-6h', '-24h', '-7d']
const USUAL = '-24h'

/** What queues had and waited for over time. */
function OverTime({ what }: { what: 'accelerators' | 'cpus' }) {
    const at = Math.floor(now.value / CHART_MS) * CHART_MS
    const toMs = (param('to') ? momentOf(param('to'), at) : null) ?? at
    const fromMs = momentOf(param('from') || USUAL, at) ?? at
    const series = useResource(`queue-series:${what} ${fromMs} ${toMs}`, () => queueSeries(what, { fromMs, toMs }))
    const span = rangeText(param('from') || USUAL, param('to'), '')
    const unit = what === 'cpus' ? 'CPUs' : 'devices'
    return (
        <Loaded resource={series} rows={4}>
            {(found) => {
                const window = `${unit} · ${duration(found.stepS * 1000)} means · ${span}`
                const owned = [...found.queues].sort((a, b) => a.queue.localeCompare(b.queue))
                const within = [fromMs, toMs] as const
                return found.times.length < 2 ? (
                    <div class="panel">
                        <p class="quiet">Use over time is sampled every 30 s, and drawn from the second step of 5 min on.</p>
                    </div>
                ) : (
                    <>
                        <TimeChart
                            title={`${sentence(unit)} in use`}
                            window={window}
                            times={found.times}
                            within={within}
                            lines={owned.map((one) => ({ name: one.queue, values: one.used, colour: colourOf(one.project) }))}
                            isStacked
                            top={capacityOf(what)}
                        />
                        <TimeChart
                            title={`${sentence(unit)} waited for`}
                            window={window}
                            times={found.times}
                            within={within}
                            lines={owned.map((one) => ({ name: one.queue, values: one.waiting, colour: colourOf(one.project) }))}
                        />
                    </>
                )
            }}
        </Loaded>
    )
}

function Queues({ args }: { args: Args }) {
    const [isNew, setNew] = useState(false)
    const waiting = useResource('waiting-jobs', () => getAll<Job>('/jobs', { state: 'PENDING', limit: 1000 }))
    const beat = Math.floor(now.value / 1000 / REFRESH_S)
    useEffect(() => {
        for (const one of [queues, waiting, nodes, devices]) {
            one.loadSoon(0)
        }
    }, [beat, jobs.data.value]) // what is used and waited for is no news on the stream
    const all = queues.data.value ?? []
    const what = whatShown()
    const wanted = args['queue']
    const chosen = all.find((one) => one.name === wanted)
    const rows = rowsOf(all, what, oldestWaits(waiting.data.value ?? []))
    return (
        <>
            <PageHead title="Queues and quotas" sub={queues.data.value && nodes.data.value ? summary(all, what) : ''}>
                <Choices
                    label="Resource"
                    items={[...Object.keys(NAMES), ...models()].map((one) => ({ name: NAMES[one] ?? one, address: hrefWith({ of: one === 'accelerators' ? '' : one }), isCurrent: one === what }))}
                />
                <TimeRange fallback={USUAL} presets={PRESETS} />
                <Act right="change queues" onClick={() => setNew(true)}>
                    New queue
                </Act>
            </PageHead>
            <Loaded resource={queues} rows={5}>
                {() =>
                    all.length === 0 ? (
                        <div class="panel">
                            <Empty icon="bars" title="No queue yet" command="weir queue create NAME --project PROJECT --guarantee accelerators=4">
                                Until there is one, all projects share alike: the first that submits a job appears here.
                            </Empty>
                        </div>
                    ) : (
                        <WithDrawer
                            listName="queues"
                            close={href('queues', { of: param('of') })}
                            drawer={chosen && <QueueDrawer key={chosen.name} queue={chosen} all={all} what={what} />}
                            list={
                                <>
                                <Panel
                                    title="All queues"
                                    window={`now · ${NAMES[what]?.toLowerCase() ?? what}`}
                                    foot={
                                        <span class="legend">
                                            <span>
                                                <i class="sw solid" /> used
                                            </span>
                                            <span>
                                                <i class="sw hatched" /> borrowed: may be reclaimed
                                            </span>
                                            <span>
                                                <i class="sw pale" /> waited for
                                            </span>
                                            <span>
                                                <i class="tick" /> guarantee
                                            </span>
                                        </span>
                                    }
                                >
                                    <Table label="Queues" rows={rows} columns={columns(what, chosen !== undefined)} keyOf={(row) => row.queue.name} hrefOf={(row) => addressOf(row.queue)} chosen={wanted} />
                                </Panel>
                                {(what === 'accelerators' || what === 'cpus') && may('read usage') && <OverTime what={what} />}
                                </>
                            }
                        />
                    )
                }
            </Loaded>
            {isNew && <NewQueue all={all} onClose={() => setNew(false)} />}
        </>
    )
}

export const queuesScreen: Screen = {
    id: 'queues',
    title: 'Queues & quotas',
    icon: 'queues',
    address: 'queues/:queue?',
    query: ['of', 'sort', 'from', 'to'],
    group: { science: 'Share', operations: 'Cluster' },
    load: [queues, nodes, devices, jobs, projectList],
    letter: 'q',
    render: Queues,
}
