/** An ION as it was applied, to read and to copy. */
import { Panel } from '../components/basics'
import { COMMANDS } from '../commands'
import { Command, Empty } from '../components/basics'
import { ionActions, IonTab } from '../components/ion_head'
import type { Args, Screen } from '../screen'
import { ions } from '../state/store'

function IonDocument({ args }: { args: Args }) {
    return (
        <IonTab args={args}>
            {(ion) => (
                <Panel title="Document" window={`revision ${ion.revision}`} aside={<Command text={COMMANDS.applyIon} />}>
                    {ion.document ? (
                        <pre class="log document" tabIndex={0}>
                            {JSON.stringify(ion.document, null, 2)}
                        </pre>
                    ) : (
                        <Empty icon="audit" title="No document">
                            The server gave none for this ION.
                        </Empty>
                    )}
                </Panel>
            )}
        </IonTab>
    )
}

export const ionDocumentScreen: Screen = {
    id: 'ion-document',
    title: 'Document',
    icon: 'audit',
    address: 'ions/:ion/document',
    query: [],
    under: 'ions',
    tab: { of: 'ion', name: 'Document' },
    load: [ions],
    actions: ionActions,
    render: IonDocument,
}
