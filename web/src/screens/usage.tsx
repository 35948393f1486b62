/** Usage: device hours by project, person, model or job: what was guaranteed, borrowed, idle; and the table as a file. */
import { useEffect } from 'preact/hooks'
import type { ClusterUsage, UsageFigures, UsageRow } from '../api'
import { Choices, Empty, Loaded, Owner, PageHead, Panel, Strip } from '../components/basics'
import { Icon } from '../components/icon'
import { StackedBars } from '../components/stacked_bars'
import { Table, type Column } from '../components/table'
import { momentOf, rangeText, TimeRange } from '../components/time_range'
import { NONE, percent, short } from '../format'
import type { Screen } from '../screen'
import { devices } from '../state/devices'
import { colourOf, project, projectList } from '../state/project'
import { capacityOf } from '../state/queues'
import { useResource } from '../state/resource'
import { href, hrefWith, param } from '../state/route'
import { nodes, now } from '../state/store'
import { csvAddress, HOUR_MS, hoursByDay, usageBy, type Span } from '../state/usage'

const USUAL = '-30d'
const BY = { project: 'Project', user: 'Person', model: 'Model', job: 'Job' }
const PARTS_MAX = 8 // of a bar
const IDLE_MUCH = 0.1
const REFRESH_MS = 60_000

function spanNow(): Span {
    const at = Math.floor(now.value / REFRESH_MS) * REFRESH_MS
    const toMs = (param('to') ? momentOf(param('to'), at) : null) ?? at
    return { fromMs: momentOf(param('from') || USUAL, at) ?? toMs - HOUR_MS, toMs }
}

/** To the hundredth: 0.58, 12.4, 1,402. */
function hours(seconds: number): string {
    const value = seconds / 3600
    return value >= 100 ? short(value) : String(Number(value.toFixed(value >= 10 ? 1 : 2)))
}

function busy(row: UsageFigures): string {
    const known = row.given_device_s - row.unknown_device_s
    return row.used_device_s === null || known <= 0 ? NONE : percent(row.used_device_s / known, 0)
}

function columns(by: string, whole: number): Column<UsageRow>[] {
    return [
        {
            id: 'key',
            name: BY[by as keyof typeof BY],
            phone: 'name',
            sort: (row) => row.name ?? row.key ?? '',
            render: (row) =>
                by === 'project' ? (
                    <Owner project={row.key} />
                ) : by === 'job' && row.key ? (
                    <a class="main" href={href('jobs', { job: row.key })}>
                        {row.name ?? row.key.slice(-8)}
                    </a>
                ) : (
                    <b>{row.key || 'none'}</b>
                ),
        },
        ...(by === 'job' ? [{ id: 'project', name: 'Project', width: '112px', phone: 'more' as const, render: (row: UsageRow) => <Owner project={row.project} /> }] : []),
        { id: 'given', name: 'Device hours', width: '112px', isNumber: true, phone: 'state', sort: (row) => -row.given_device_s, render: (row) => <b>{hours(row.given_device_s)}</b> },
        { id: 'part', name: 'of capacity', width: '96px', isNumber: true, phone: 'more', render: (row) => (whole > 0 ? percent(row.given_device_s / 3600 / whole, 1) : NONE) },
        { id: 'guaranteed', name: 'guaranteed', width: '96px', isNumber: true, render: (row) => hours(row.given_device_s - row.borrowed_device_s) },
        { id: 'borrowed', name: 'borrowed', width: '88px', isNumber: true, phone: 'more', sort: (row) => -row.borrowed_device_s, render: (row) => hours(row.borrowed_device_s) },
        {
            id: 'idle',
            name: 'idle while held',
            width: '116px',
            isNumber: true,
            sort: (row) => -row.idle_device_s,
            render: (row) => <span class={row.given_device_s > 0 && row.idle_device_s / row.given_device_s > IDLE_MUCH ? 'tone-warn-text' : ''}>{hours(row.idle_device_s)}</span>,
        },
        { id: 'busy', name: 'busy', width: '72px', isNumber: true, render: (row) => <span title="By what the devices said while they were held">{busy(row)}</span> },
        { id: 'waited', name: 'waited for', width: '92px', isNumber: true, sort: (row) => -(row.asked_device_s - row.given_device_s), render: (row) => hours(row.asked_device_s - row.given_device_s) },
        { id: 'cpu', name: 'Core hours', width: '96px', isNumber: true, phone: 'more', sort: (row) => -row.given_cpu_s, render: (row) => hours(row.given_cpu_s) },
    ]
}

/** Days are the server's, and as one's own only where the clock is UTC. */
const isUtc = () => new Date(now.peek()).getTimezoneOffset() === 0

function Bars({ found, span }: { found: ClusterUsage; span: Span }) {
    const names = project.value ? [project.value] : found.items.slice(0, PARTS_MAX).map((row) => row.key ?? '').filter(Boolean)
    const days = useResource(`days:${names.join()} ${span.fromMs} ${span.toMs}`, () => hoursByDay(names, span, !project.value))
    const isHourly = span.toMs - span.fromMs <= 48 * HOUR_MS
    const top = capacityOf('accelerators') * (isHourly ? 1 : 24)
    return (
        <Loaded resource={days} rows={4}>
            {(one) => (
                <StackedBars
                    title="Device hours"
                    window={`per ${isHourly ? 'hour' : isUtc() ? 'day' : 'day of UTC'} · ${rangeText(param('from') || USUAL, param('to'), '')} · the devices of now could give ${short(top)}`}
                    labels={one.labels}
                    parts={one.parts.map((part) => ({ ...part, colour: colourOf(part.name) }))}
                    unit="h"
                    top={top}
                />
            )}
        </Loaded>
    )
}

function Usage() {
    const by = (Object.keys(BY) as (keyof typeof BY)[]).find((one) => one === param('by')) ?? 'project'
    const span = spanNow()
    const within = { project: project.value }
    const key = `${by} ${project.value ?? ''} ${span.fromMs} ${span.toMs}`
    const table = useResource(`usage:${key}`, () => usageBy(by, span, within))
    const owners = useResource(`owners:${key}`, () => usageBy('project', span, within))
    useEffect(() => projectList.need(), [])
    const whole = (capacityOf('accelerators') * (Math.min(span.toMs, now.peek()) - span.fromMs)) / HOUR_MS
    const total = table.data.value?.total
    return (
        <>
            <PageHead title="Usage" sub="What was given, borrowed, left idle and waited for. Counted by the hour.">
                <TimeRange fallback={USUAL} presets={['-24h', '-7d', '-30d', '-90d']} />
                <a class="button" href={csvAddress(by, span, project.value)} download={`weir-usage-by-${by}.csv`}>
                    <Icon name="download" /> Download CSV
                </a>
            </PageHead>
            {total && (
                <Strip
                    label="All of it"
                    items={[
                        { name: 'Device hours given', value: hours(total.given_device_s), note: whole > 0 ? `${percent(total.given_device_s / 3600 / whole, 1)} of capacity` : '' },
                        { name: 'of them borrowed', value: hours(total.borrowed_device_s), note: 'above guarantees' },
                        { name: 'idle while held', value: hours(total.idle_device_s), note: `busy ${busy(total)}` },
                        { name: 'waited for', value: hours(total.asked_device_s - total.given_device_s), note: 'device hours' },
                        { name: 'Core hours given', value: hours(total.given_cpu_s) },
                    ]}
                />
            )}
            <Loaded resource={owners} rows={4}>{(found) => found.items.length > 0 && <Bars found={found} span={span} />}</Loaded>
            <Loaded resource={table} rows={5}>
                {(found) => (
                    <Panel
                        title={`By ${BY[by].toLowerCase()}`}
                        window={`most device hours first · ${rangeText(param('from') || USUAL, param('to'), '')}`}
                        aside={<Choices label="Add up by" items={(Object.keys(BY) as (keyof typeof BY)[]).map((one) => ({ name: BY[one], address: hrefWith({ by: one === 'project' ? '' : one, sort: '' }), isCurrent: one === by }))} />}
                        foot={`All: ${hours(found.total.given_device_s)} device hours, ${hours(found.total.borrowed_device_s)} borrowed, ${hours(found.total.idle_device_s)} idle · hours are whole; the file has seconds`}
                    >
                        {found.items.length === 0 ? (
                            <Empty icon="usage" title="Nothing was used in this time">
                                What jobs ask for and get is counted from the moment they wait.
                            </Empty>
                        ) : (
                            <Table label={`Usage by ${by}`} rows={found.items} columns={columns(by, whole)} keyOf={(row) => `${row.key ?? ''} ${row.project ?? ''}`} />
                        )}
                    </Panel>
                )}
            </Loaded>
        </>
    )
}

export const usageScreen: Screen = {
    id: 'usage',
    title: 'Usage',
    icon: 'usage',
    address: 'usage',
    query: ['by', 'from', 'to', 'sort'],
    group: { science: 'Share', operations: 'Cluster' },
    load: [projectList, nodes, devices],
    render: Usage,
}
