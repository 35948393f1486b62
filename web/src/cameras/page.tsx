/** Cameras: does every one see, and what does it see now. A wall of pictures or a table, what needs somebody first. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Camera } from '../api'
import { COMMANDS } from '../commands'
import { Choices, Empty, Loaded, PageHead, Panel } from '../components/basics'
import { openDialog } from '../components/dialog'
import { Filter, filtered, NothingMatches, type FilterOf } from '../components/filter'
import { Icon } from '../components/icon'
import { Act } from '../components/locked'
import { dayTime, fixed, short } from '../format'
import { wallKeys } from '../screens/cameras'
import { cameras } from '../state/cameras'
import { inProject, project } from '../state/project'
import { may } from '../state/rights'
import { href, hrefWith, param } from '../state/route'
import { now } from '../state/store'
import { connection } from '../state/stream'
import { kept } from '../state/view'
import { AddCamera, APPLY } from './add'
import style from './cameras.css'
import { byNeed, judge, verdictOf, type Judge } from './judge'
import { isHeld } from './live'
import { Passages } from './passages'
import { CameraTable } from './table'
import { Wall } from './wall'

const ASK_MS = 2_000
const SIZES = [4, 9, 16]
const MANY = 40 // then the table
const SEE_PEOPLE = 'read decisions'

const faces = kept('weir.faces', ['shown', 'hidden'])

const filterOf = (of: Judge): FilterOf<Camera> => ({
    text: (one) => `${one.name} ${one.ion}`,
    keys: {
        camera: (one) => one.name,
        ion: (one) => one.ion,
        state: (one) => of(one).word.replace(/\s+/g, '-'),
        kind: (one) => one.kind,
        project: (one) => one.project ?? '',
        mode: (one) => one.mode,
    },
})

/** "4 see as they should · 46.0 frames/s of 55" */
function factsOf(all: readonly Camera[], of: Judge): string {
    const well = all.filter((one) => of(one).rank > 3).length
    const sum = (value: (one: Camera) => number | null) => all.reduce((total, one) => total + (value(one) ?? 0), 0)
    const expected = sum((one) => one.fps_expected)
    return [
        well > 0 && well < all.length && `${well} ${well === 1 ? 'sees as it' : 'see as they'} should`,
        all.some((one) => one.fps !== null) && `${fixed(sum((one) => (one.state === 'lost' ? 0 : one.fps)), 1)} frames/s${expected > 0 ? ` of ${short(expected)}` : ''}`,
        dayTime(now.value),
    ]
        .filter(Boolean)
        .join(' · ')
}

const add = (address?: string) => openDialog((close) => <AddCamera {...(address ? { address } : {})} onClose={close} />)

/** What would stand here, and the three ways to it that work. */
function NoCamera() {
    const [address, setAddress] = useState('')
    return (
        <div class="panel">
            <Empty
                icon="camera"
                title="No camera yet"
                command={COMMANDS.demo}
                more={
                    <p>
                        {project.value ? `In ${project.value} none is known. ` : ''}A camera of a node (/dev/video0) and a video file have an address, too; a folder of pictures is a source that one draws in <a href={href(['ions', 'new'])}>the builder</a>.
                    </p>
                }
            >
                Each camera of a prediction pipeline is shown here with what it sees. Write the address of one, or see a building with cameras at work:
            </Empty>
            <form
                class="row first-camera"
                onSubmit={(event) => {
                    event.preventDefault()
                    add(address)
                }}
            >
                <input class="input grow" name="address" aria-label="Address of a camera" placeholder="rtsp://USER@HOST/PATH" autocomplete="off" value={address} onInput={(event) => setAddress(event.currentTarget.value)} />
                <Act right={APPLY} onClick={() => add(address)}>
                    Add a camera
                </Act>
            </form>
        </div>
    )
}

function Tools({ view, size, n, isHidden, isForced }: { view: string; size: number; n: number; isHidden: boolean; isForced: boolean }) {
    return (
        <>
            <Choices label="View" items={['wall', 'table'].map((one) => ({ name: one === 'wall' ? 'Wall' : 'Table', address: hrefWith({ view: one, page: undefined }), isCurrent: view === one }))} />
            {view === 'wall' && n > SIZES[0]! && (
                <span class="only-desk">
                    <Choices label="Tiles of a page" items={SIZES.map((one) => ({ name: String(one), address: hrefWith({ size: one === 9 ? undefined : String(one), page: undefined }), isCurrent: size === one }))} />
                </span>
            )}
            {!isForced && (
                <button type="button" class="button" aria-pressed={isHidden} title="Silhouettes instead of faces, and no names" onClick={() => (faces.value = isHidden ? 'shown' : 'hidden')}>
                    <Icon name="person" /> Hide faces
                </button>
            )}
            <span class="only-desk">
                <Act right={APPLY} onClick={() => add()}>
                    <Icon name="plus" /> Add a camera
                </Act>
            </span>
        </>
    )
}

export function Cameras() {
    const all = (cameras.data.value ?? []).filter(inProject)
    const isHeard = connection.value.state !== 'lost'
    const of: Judge = (one, seenMs) => judge(one, now.value, isHeard, seenMs)
    const filter = filterOf(of)
    const found = byNeed(filtered(all, filter), of)
    const view = param('view') || (all.length > MANY ? 'table' : 'wall')
    const size = SIZES.find((one) => String(one) === param('size')) ?? 9
    const isForced = !all.some((one) => may(SEE_PEOPLE, one.project))
    const isHidden = isForced || faces.value === 'hidden'
    const wall = useRef<HTMLDivElement>(null)
    useEffect(() => {
        const timer = window.setInterval(() => document.hidden || cameras.refresh(), ASK_MS)
        return () => {
            window.clearInterval(timer)
            isHeld.value = false
        }
    }, [])
    useEffect(() => {
        const tiles = () => [...(wall.current?.querySelectorAll<HTMLElement>('.cam > .frame') ?? [])]
        const chosen = () => tiles().findIndex((one) => one.contains(document.activeElement))
        wallKeys.value = {
            pause: () => (isHeld.value = !isHeld.peek()),
            enlarge: () => void (document.fullscreenElement ? document.exitFullscreen() : (tiles()[chosen()]?.parentElement ?? wall.current)?.requestFullscreen()),
            walk: (columns, rows) => {
                const across = wall.current ? getComputedStyle(wall.current).gridTemplateColumns.split(' ').length : 1
                const next = chosen() < 0 ? 0 : chosen() + columns + rows * across
                tiles()[next]?.focus()
            },
        }
        return () => {
            wallKeys.value = null
        }
    }, [])
    return (
        <div class="cameras stack">
            <style>{style}</style>
            <PageHead title={all.length === 0 || !isHeard ? 'Cameras' : verdictOf(all, of)} sub={all.length > 0 && factsOf(all, of)}>
                {all.length > 0 && <Tools view={view} size={size} n={all.length} isHidden={isHidden} isForced={isForced} />}
            </PageHead>
            <Loaded resource={cameras} rows={6}>
                {() =>
                    all.length === 0 ? (
                        <NoCamera />
                    ) : (
                        <>
                            {(view === 'table' || all.length > size || param('q') !== '') && <Filter label="Filter cameras" rows={all} of={filter} hint="name, or state:fails ion:building" />}
                            {found.length === 0 ? (
                                <div class="panel">
                                    <NothingMatches rows={all} of={filter} what="camera" />
                                </div>
                            ) : view === 'table' ? (
                                <Panel title="All cameras" window={`${param('sort') ? '' : 'what needs you first · '}shares of 30 min`}>
                                    <CameraTable rows={found} of={of} />
                                </Panel>
                            ) : (
                                <Wall host={wall} found={found} of={of} size={size} isHidden={isHidden} />
                            )}
                            <Passages all={found} isHidden={isHidden} isHeld={isHeld.value} onHold={() => (isHeld.value = !isHeld.peek())} />
                        </>
                    )
                }
            </Loaded>
        </div>
    )
}
