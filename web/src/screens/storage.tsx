/** What the server's state folder takes, by kind, how full its disk is, and what goes next. */
import type { StoreUsage, Usage } from '../api'
import { Loaded, PageHead, Panel, Strip, When } from '../components/basics'
import { Table, type Column } from '../components/table'
import { bytes, millis, NONE, percent, short } from '../format'
import type { Screen } from '../screen'
import { get } from '../state/http'
import { useResource } from '../state/resource'
import { href } from '../state/route'
import { nodes } from '../state/store'
import { DiskMeter, diskOf } from './nodes'

const COLUMNS: Column<Usage>[] = [
    {
        id: 'kind',
        name: 'What grows',
        phone: 'name',
        sort: (one) => one.kind,
        render: (one) => (
            <>
                <b>{one.kind}</b>
                <span class="sub" title={one.what}>
                    {one.what}
                </span>
            </>
        ),
    },
    { id: 'used', name: 'Size', width: '96px', isNumber: true, phone: 'state', sort: (one) => -(one.used_bytes ?? 0), render: (one) => <b>{bytes(one.used_bytes)}</b> },
    { id: 'count', name: 'How many', width: '120px', isNumber: true, phone: 'more', sort: (one) => -(one.n ?? 0), render: (one) => `${short(one.n)} ${one.unit ?? ''}` },
    { id: 'limit', name: 'Limit', width: '112px', phone: 'more', render: (one) => (one.limit ? <code>{one.limit}</code> : NONE) },
    { id: 'oldest', name: 'Oldest that may go', width: '160px', sort: (one) => millis(one.oldest_ms), render: (one) => <When time={one.oldest_ms} /> },
    {
        id: 'next',
        name: 'What goes next',
        render: (one) => {
            const text = one.next ?? one.rule ?? ''
            return (
                <span class="muted" title={text}>
                    {text || NONE}
                </span>
            )
        },
    },
]

function Figures({ usage }: { usage: StoreUsage }) {
    const biggest = [...usage.items].sort((a, b) => (b.used_bytes ?? 0) - (a.used_bytes ?? 0))[0]
    return (
        <Strip
            label="Disk of the server"
            items={[
                {
                    name: 'Free on the disk',
                    value: bytes(usage.disk_free_bytes),
                    note: `of ${bytes(usage.disk_bytes)} · ${percent(usage.disk_free_bytes / usage.disk_bytes, 0)}`,
                },
                { name: 'Weir takes', value: bytes(usage.total_bytes), note: 'in the state folder' },
                { name: 'Others take', value: bytes(Math.max(0, usage.disk_bytes - usage.disk_free_bytes - usage.total_bytes)), note: 'of the same disk' },
                ...(biggest ? [{ name: 'Biggest', value: bytes(biggest.used_bytes), note: biggest.kind }] : []),
            ]}
        />
    )
}

function Disks() {
    const reported = (nodes.data.value ?? []).filter((node) => diskOf(node))
    return reported.length > 0 ? (
        <Panel title="Disks of the nodes" window="as their agents report them" aside={<a href={href('nodes')}>Nodes</a>}>
            <ul class="list">
                {reported.map((node) => {
                    const disk = diskOf(node)!
                    return (
                        <li key={node.name}>
                            <a class="main node-name clip" href={href(['nodes', node.name])}>
                                {node.name}
                            </a>
                            <div class="grow">
                                <DiskMeter total={disk.bytes} free={disk.free} label={`Disk of ${node.name}`} />
                            </div>
                        </li>
                    )
                })}
            </ul>
        </Panel>
    ) : null
}

function Storage() {
    const usage = useResource('storage', () => get<StoreUsage>('/store/usage'))
    return (
        <>
            <PageHead title="Storage" sub="What Weir keeps, for how long, and how full the disks are" />
            <Loaded resource={usage} rows={6}>
                {(found) => (
                    <>
                        <Figures usage={found} />
                        <Disks />
                        <Panel title="What is kept" window="by kind" foot="Limits are changed with weir store retain, and hold at once.">
                            <Table label="What is kept" rows={found.items} columns={COLUMNS} keyOf={(one) => one.kind} rowPx={48} />
                        </Panel>
                    </>
                )}
            </Loaded>
        </>
    )
}

export const storageScreen: Screen = {
    id: 'storage',
    title: 'Storage',
    icon: 'data',
    address: 'storage',
    query: ['sort'],
    group: { science: 'Share', operations: 'Manage' },
    load: [nodes],
    letter: 's',
    render: Storage,
}
