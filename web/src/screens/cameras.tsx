/** Cameras: its address, keys and badge. What it shows is a file of its own. */
import { signal } from '@preact/signals'
import { WithLibrary } from '../components/library'
import { plural } from '../format'
import type { Screen } from '../screen'
import { cameraNeedsYou, cameras } from '../state/cameras'
import { inProject } from '../state/project'
import { alerts, ions } from '../state/store'

/** What keys do, while the page is shown. */
export interface WallKeys {
    pause: () => void
    enlarge: () => void
    walk: (columns: number, rows: number) => void
}
export const wallKeys = signal<WallKeys | null>(null)

const walk = (key: string, name: string, columns: number, rows: number) => ({ key, name, run: () => wallKeys.value?.walk(columns, rows) })

export const camerasScreen: Screen = {
    id: 'cameras',
    title: 'Cameras',
    icon: 'camera',
    address: 'cameras',
    query: ['view', 'q', 'size', 'page', 'sort', 'verdict'],
    group: { science: 'Watch', operations: 'Watch' },
    load: [cameras, ions, alerts],
    badge: () => {
        const count = (cameras.data.value ?? []).filter(inProject).filter(cameraNeedsYou).length
        return { count, tone: 'warn', what: plural(count, 'needs you', 'need you') }
    },
    letter: 'v',
    keys: () => [
        { key: ' ', name: 'pause', run: () => wallKeys.value?.pause() },
        { key: 'f', name: 'full screen', run: () => wallKeys.value?.enlarge() },
        walk('ArrowLeft', 'the camera before', -1, 0),
        walk('ArrowRight', 'the next camera', 1, 0),
        walk('ArrowUp', 'the camera above', 0, -1),
        walk('ArrowDown', 'the camera below', 0, 1),
    ],
    render: () => <WithLibrary name="cameras">{({ Cameras }) => <Cameras />}</WithLibrary>,
}
