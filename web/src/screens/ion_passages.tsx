/** Passages of an ION, and one of them: addresses and keys. What they show is a file of its own. */
import { signal } from '@preact/signals'
import { WithLibrary } from '../components/library'
import { ionActions, IonTab } from '../components/ion_head'
import { TimeRange } from '../components/time_range'
import type { Args, Screen } from '../screen'
import { ions } from '../state/store'
import { KEYS } from './ion_decisions'

/** What keys do in the passage that is shown. */
export interface PassageKeys {
    step: (by: 1 | -1) => void // to another frame
    go: (by: 1 | -1) => void // to a later passage, or an earlier one
    was: (i: number) => void // the i-th answer to "This was …"
}

export const passageKeys = signal<PassageKeys | null>(null)

function IonPassages({ args }: { args: Args }) {
    return (
        <IonTab args={args} tools={<TimeRange fallback="all time" />}>
            {(ion) => <WithLibrary name="passage">{({ Passages }) => <Passages key={ion.name} ion={ion} />}</WithLibrary>}
        </IonTab>
    )
}

export const ionPassagesScreen: Screen = {
    id: 'ion-passages',
    title: 'Passages',
    icon: 'person',
    address: 'ions/:ion/passages',
    query: [...KEYS, 'view'],
    under: 'ions',
    tab: { of: 'ion', name: 'Passages' },
    load: [ions],
    actions: ionActions,
    render: IonPassages,
}

function IonPassage({ args }: { args: Args }) {
    return <WithLibrary name="passage">{({ Passage }) => <Passage key={args['id']} ion={args['ion']!} id={args['id']!} />}</WithLibrary>
}

export const ionPassageScreen: Screen = {
    id: 'ion-passage',
    title: 'Passage',
    icon: 'person',
    address: 'ions/:ion/passages/:id',
    query: ['frame'],
    under: 'ions',
    load: [ions],
    actions: ionActions,
    keys: () => [
        { key: 'ArrowLeft', name: 'frame before', run: () => passageKeys.value?.step(-1) },
        { key: 'ArrowRight', name: 'next frame', run: () => passageKeys.value?.step(1) },
        { key: 'j', name: 'later passage', run: () => passageKeys.value?.go(1) },
        { key: 'k', name: 'earlier passage', run: () => passageKeys.value?.go(-1) },
        ...['it was what was decided', 'it was somebody else', 'it was nobody known'].map((name, i) => ({ key: String(i + 1), name, run: () => passageKeys.value?.was(i) })),
    ],
    render: IonPassage,
}
