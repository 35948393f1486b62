/** The audit log: who was let in, who was refused, who changed what users, tokens and sessions may do. For admins. */
import type { WeirEvent } from '../api'
import { Empty, Loaded, PageHead } from '../components/basics'
import type { Screen } from '../screen'
import { getAll, session } from '../state/http'
import { Resource, useResource } from '../state/resource'
import { events, KEEP_EVENTS } from '../state/store'
import { FilteredEvents } from './events'

function Log() {
    const log: Resource<WeirEvent[]> = useResource('audit', () => getAll<WeirEvent>('/events', { topic: 'audit', limit: KEEP_EVENTS }))
    return (
        <Loaded resource={log} rows={6}>
            {(items) => <FilteredEvents items={items} hint="text, or kind:login by:mara" empty="Logins, refusals and changes of users, tokens and sessions are written here." />}
        </Loaded>
    )
}

function Audit() {
    return (
        <>
            <PageHead title="Audit log" sub="Who did what to users, tokens and sessions, and who was refused. Nothing here can be changed." />
            {session.value?.role === 'admin' ? (
                <Log />
            ) : (
                <div class="panel">
                    <Empty icon="lock" title="The audit log is not yours to see">
                        An admin may read it, and can give you that role. You are {session.value?.user}, {session.value?.role}.
                    </Empty>
                </div>
            )}
        </>
    )
}

export const auditScreen: Screen = {
    id: 'audit',
    title: 'Audit log',
    icon: 'audit',
    address: 'audit',
    query: ['q', 'severity'],
    group: { science: 'Watch', operations: 'Watch' },
    load: [events],
    letter: 'l',
    render: Audit,
}
