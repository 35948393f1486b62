/** The same as a table: figures of each camera beside each other. */
import type { Camera } from '../api'
import { State } from '../components/state'
import { Table, type Column } from '../components/table'
import { Ago, Owner } from '../components/basics'
import { fixed, millis, NONE, short } from '../format'
import { cameraHref } from '../state/cameras'
import { href } from '../state/route'
import { rateOf, shareOf, type Judge } from './judge'

const columnsOf = (of: Judge): Column<Camera>[] => [
    {
        id: 'state',
        name: 'State and evidence',
        width: '220px',
        phone: 'state',
        render: (one) => (
            <>
                <State tone={of(one).tone} isKnown={of(one).isKnown}>
                    {of(one).word}
                </State>
                <span class="sub clip" title={one.error ?? one.cure ?? undefined}>
                    {one.error ?? of(one).evidence}
                </span>
            </>
        ),
    },
    {
        id: 'name',
        name: 'Camera',
        phone: 'name',
        sort: (one) => one.name,
        render: (one) => (
            <a class="main" href={cameraHref(one.ion, one.name, { view: 'wall' })}>
                {one.name}
            </a>
        ),
    },
    {
        id: 'ion',
        name: 'ION',
        sort: (one) => one.ion,
        render: (one) => (
            <>
                <a href={href(['ions', one.ion, 'graph'])}>{one.ion}</a>
                <span class="sub">
                    <Owner project={one.project} />
                </span>
            </>
        ),
    },
    { id: 'rate', name: 'Frames/s', isNumber: true, width: '92px', phone: 'more', sort: (one) => one.fps ?? 0, render: rateOf },
    { id: 'unknown', name: 'Unknown', isNumber: true, width: '92px', phone: 'more', sort: (one) => one.n_unknown / (one.n_decided || 1), render: (one) => shareOf(one) || NONE },
    { id: 'last', name: 'Last decision', width: '104px', sort: (one) => -millis(one.last_decision_ms), render: (one) => <Ago time={one.last_decision_ms} /> },
    { id: 'picture', name: 'Picture', width: '136px', render: (one) => (one.width ? `${one.width} × ${one.height} ${one.codec ?? ''}` : NONE) },
    { id: 'dropped', name: 'Dropped', isNumber: true, width: '76px', sort: (one) => one.dropped, render: (one) => short(one.dropped) },
    { id: 'damaged', name: 'Damaged, lost', isNumber: true, width: '112px', sort: (one) => one.damaged + one.lost, render: (one) => `${short(one.damaged)}, ${short(one.lost)}` },
    { id: 'clock', name: 'Clock off', isNumber: true, width: '80px', render: (one) => (one.clock_off_ms === null ? NONE : `${fixed(one.clock_off_ms / 1000, 1)} s`) },
]

export function CameraTable({ rows, of }: { rows: readonly Camera[]; of: Judge }) {
    return <Table label="Cameras" rows={rows} columns={columnsOf(of)} keyOf={(one) => one.id} hrefOf={(one) => cameraHref(one.ion, one.name, { view: 'wall' })} rowPx={48} minPx={1100} />
}
