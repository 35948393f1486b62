/** What was true then, and would other rules have caught it: snapshots of an ION, a slider through their time, and a replay. Nothing live changes. */
import { useEffect, useState } from 'preact/hooks'
import type { Ion, Snapshot } from '../api'
import { Empty, Loaded, Panel } from '../components/basics'
import { ask } from '../components/dialog'
import { Icon } from '../components/icon'
import { SNAPSHOT, SnapshotForm } from '../components/ion_acts'
import { ionActions, IonTab } from '../components/ion_head'
import { WithLibrary } from '../components/library'
import { Act } from '../components/locked'
import { toast } from '../components/toast'
import { bytes, counted, dayMinute, dayTime } from '../format'
import type { Args, Screen } from '../screen'
import { apiUrl, csrf, getAll, messageOf, request, segment, send } from '../state/http'
import { Resource, useResource } from '../state/resource'
import { may } from '../state/rights'
import { go, href } from '../state/route'
import { ions } from '../state/store'
import { connection } from '../state/stream'

const UPLOAD_MS = 600_000

const spanOfIt = (one: Snapshot) => `${dayMinute(one.from_ms)} – ${dayMinute(one.to_ms)}`

function List({ items, chosen, ion }: { items: readonly Snapshot[]; chosen: string | undefined; ion: string }) {
    return (
        <Panel title="Snapshots" window={`${items.length} · kept until deleted`} foot={`${bytes(items.reduce((sum, one) => sum + one.bytes, 0))} in all`}>
            <ul class="list picks">
                {items.map((one) => (
                    <li key={one.name}>
                        <a href={href(['ions', ion, 'snapshots', one.name])} aria-current={one.name === chosen ? 'true' : undefined}>
                            <b class="clip">{one.name}</b>
                            <small class="muted">
                                <span>{spanOfIt(one)}</span>
                            </small>
                            <small class="muted">
                                <span>
                                    {one.is_imported ? 'imported' : 'taken'} by {one.created_by ?? 'Weir'}
                                    {one.has_models && ', with models'}
                                </span>
                                <span>{bytes(one.bytes)}</span>
                            </small>
                        </a>
                    </li>
                ))}
            </ul>
        </Panel>
    )
}

async function importFile(file: File, ion: Ion): Promise<void> {
    const name = file.name.replace(/\.tar$/, '').toLowerCase().replace(/[^a-z0-9._-]+/g, '-')
    await request(apiUrl('/snapshots/import', { name, project: ion.project }), { method: 'POST', headers: { ...csrf(), 'Content-Type': 'application/x-tar' }, body: file }, UPLOAD_MS)
    toast(`${name} is here`)
}

function One({ snapshot, ion, onGone }: { snapshot: Snapshot; ion: Ion; onGone: () => void }) {
    const remove = () =>
        ask({
            title: `Delete ${snapshot.name}?`,
            text: (
                <p>
                    What {snapshot.ion} was from {dayTime(snapshot.from_ms)} to {dayTime(snapshot.to_ms)} is gone then: {counted(snapshot.n_rows, 'record')}, {bytes(snapshot.bytes)}. Models that only it
                    kept go by retention.
                </p>
            ),
            confirm: 'Delete it',
            danger: true,
            done: `${snapshot.name} is deleted`,
            act: async () => {
                await send('DELETE', `/snapshots/${segment(snapshot.name)}`)
                onGone()
                go(href(['ions', ion.name, 'snapshots']))
            },
        })
    return (
        <WithLibrary name="snapshots">
            {({ SnapshotReplay, SnapshotTime }) => (
                <div class="stack">
                    <SnapshotTime
                        key={snapshot.name}
                        snapshot={snapshot}
                        acts={
                            <>
                                <a class="button small" href={apiUrl(`/snapshots/${segment(snapshot.name)}/export`)} download={`${snapshot.name}.tar`}>
                                    <Icon name="download" /> Download
                                </a>
                                <Act right={SNAPSHOT} project={snapshot.project} isSmall tone="danger" onClick={remove}>
                                    Delete…
                                </Act>
                            </>
                        }
                    />
                    <SnapshotReplay key={`replay:${snapshot.name}`} snapshot={snapshot} />
                </div>
            )}
        </WithLibrary>
    )
}

function Snapshots({ ion, args }: { ion: Ion; args: Args }) {
    const [isTaking, setTaking] = useState(false)
    const [isBusy, setBusy] = useState(false)
    const list: Resource<Snapshot[]> = useResource(`snapshots:${ion.name}`, () => getAll<Snapshot>('/snapshots', { ion: ion.name, newest: 1, limit: 200 }))
    const items = list.data.value ?? []
    const chosen = items.find((one) => one.name === args['snapshot']) ?? (args['snapshot'] === undefined ? items[0] : undefined)
    useEffect(() => {
        if (args['snapshot'] !== undefined && list.data.value !== undefined && chosen === undefined) {
            list.loadSoon(0) // it was taken since
        }
    }, [args['snapshot']])
    const onFile = async (input: HTMLInputElement) => {
        const file = input.files?.[0]
        input.value = ''
        if (file === undefined) {
            return
        }
        setBusy(true)
        try {
            await importFile(file, ion)
            await list.load()
        } catch (failure) {
            toast(messageOf(failure), 'bad')
        } finally {
            setBusy(false)
        }
    }
    const acts = (
        <div class="row wrap snapshot-acts">
            <Act right={SNAPSHOT} project={ion.project} tone="primary" onClick={() => setTaking(true)}>
                Take a snapshot…
            </Act>
            <label class="button only-desk">
                <Icon name="plus" /> {isBusy ? 'Sending…' : 'Import a file'}
                <input class="hidden" type="file" accept=".tar" aria-label="Import a snapshot from a file" disabled={isBusy || !may(SNAPSHOT, ion.project) || connection.value.state === 'lost'} onChange={(event) => void onFile(event.currentTarget)} />
            </label>
        </div>
    )
    return (
        <>
            {isTaking && <SnapshotForm ion={ion} onClose={() => setTaking(false)} onTaken={() => list.loadSoon(0)} />}
            {acts}
            <Loaded resource={list} rows={6}>
                {(all) =>
                    all.length === 0 ? (
                        <div class="panel">
                            <Empty icon="clock" title="No snapshot yet" command={`weir snapshot create ${ion.name}`}>
                                A snapshot keeps what the ION was over a span of time: document, decisions, events, health and models, to look at again and to try other rules on.
                            </Empty>
                        </div>
                    ) : (
                        <div class="grid split-snapshots">
                            <List items={all} chosen={chosen?.name} ion={ion.name} />
                            {chosen ? (
                                <One snapshot={chosen} ion={ion} onGone={() => void list.load()} />
                            ) : (
                                <div class="panel">
                                    <Empty icon="question" title={`There is no snapshot ${args['snapshot']} of ${ion.name}`}>
                                        It may have been deleted. Choose one of the list.
                                    </Empty>
                                </div>
                            )}
                        </div>
                    )
                }
            </Loaded>
        </>
    )
}

function IonSnapshots({ args }: { args: Args }) {
    return <IonTab args={args}>{(ion) => <Snapshots key={ion.name} ion={ion} args={args} />}</IonTab>
}

export const ionSnapshotsScreen: Screen = {
    id: 'ion-snapshots',
    title: 'Snapshots',
    icon: 'clock',
    address: 'ions/:ion/snapshots/:snapshot?',
    query: ['at', 'sort'],
    under: 'ions',
    tab: { of: 'ion', name: 'Snapshots' },
    load: [ions],
    actions: ionActions,
    render: IonSnapshots,
}
