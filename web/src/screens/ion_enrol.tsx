/** Put a person into the gallery of an ION: its address and keys. What it shows is a file of its own. */
import { signal } from '@preact/signals'
import { Empty, Loaded } from '../components/basics'
import { ionActions } from '../components/ion_head'
import { WithLibrary } from '../components/library'
import type { Args, Screen } from '../screen'
import { go, hrefWith, href } from '../state/route'
import { datasets, ions } from '../state/store'

/** Takes a picture, while a camera is on. */
export const shutter = signal<(() => void) | null>(null)

function IonEnrol({ args }: { args: Args }) {
    return (
        <Loaded resource={ions} rows={6}>
            {(all) => {
                const ion = all.find((one) => one.name === args['ion'])
                return ion ? (
                    <WithLibrary key={ion.name} name="enrol">
                        {({ Enrol }) => <Enrol ion={ion} />}
                    </WithLibrary>
                ) : (
                    <div class="panel">
                        <Empty icon="question" title="There is no such ION" more={<a href={href('ions')}>All IONs</a>} />
                    </div>
                )
            }}
        </Loaded>
    )
}

export const ionEnrolScreen: Screen = {
    id: 'ion-enrol',
    title: 'Enrol a person',
    icon: 'person',
    address: 'ions/:ion/people/new',
    query: ['from', 'gallery', 'id', 'frames'],
    under: 'ions',
    load: [ions, datasets],
    actions: ionActions,
    keys: () => [
        { key: 'p', name: 'photos', run: () => go(hrefWith({ from: 'photo' })) },
        { key: 'w', name: 'webcam', run: () => go(hrefWith({ from: 'webcam' })) },
        { key: ' ', name: 'take a picture', run: () => shutter.value?.() },
    ],
    render: IonEnrol,
}
