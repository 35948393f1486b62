/** Everything that happened. */
import type { WeirEvent } from '../api'
import { Choices, Empty, Loaded, PageHead, Panel } from '../components/basics'
import { EventList, severityOf } from '../components/event_list'
import { Filter, filtered, NothingMatches, type FilterOf } from '../components/filter'
import type { Screen } from '../screen'
import { hrefWith, param } from '../state/route'
import { events, jobs, KEEP_EVENTS, runs } from '../state/store'

export const EVENT_FILTER: FilterOf<WeirEvent> = {
    text: (event) => `${event.message} ${event.kind} ${event.subject ?? ''} ${event.actor ?? ''}`,
    keys: {
        kind: (event) => event.kind,
        subject: (event) => event.subject ?? '',
        topic: (event) => event.topic ?? '',
        severity: (event) => event.severity,
        by: (event) => event.actor ?? '',
    },
}

/** A list of events with its filter: of all, or of the audit log. */
export function FilteredEvents({ items, hint, empty }: { items: WeirEvent[]; hint: string; empty: string }) {
    const isImportant = param('severity') === 'warning'
    const some = isImportant ? items.filter((event) => severityOf(event) !== 'info') : items
    const found = filtered(some, EVENT_FILTER)
    if (items.length === 0) {
        return (
            <div class="panel">
                <Empty icon="audit" title="Nothing has happened yet">
                    {empty}
                </Empty>
            </div>
        )
    }
    return (
        <>
            <Filter label="Filter events" rows={some} of={EVENT_FILTER} hint={hint}>
                <Choices
                    label="By severity"
                    items={[
                        { name: 'All', address: hrefWith({ severity: '' }), isCurrent: !isImportant },
                        { name: 'Warnings only', address: hrefWith({ severity: 'warning' }), isCurrent: isImportant },
                    ]}
                />
            </Filter>
            <Panel title="Events" window="newest first" foot={`The latest ${KEEP_EVENTS} are kept in the page; weir get events has all.`}>
                {found.length > 0 ? <EventList events={found} /> : <NothingMatches rows={some} of={EVENT_FILTER} what="event" />}
            </Panel>
        </>
    )
}

function Events() {
    return (
        <>
            <PageHead title="Events" sub="What happened, and by whom" />
            <Loaded resource={events} rows={6}>
                {(items) => <FilteredEvents items={items} hint="text, or kind:model_promoted subject:ion/door" empty="Every change of a pipeline, a model or a node is written here." />}
            </Loaded>
        </>
    )
}

export const eventsScreen: Screen = {
    id: 'events',
    title: 'Events',
    icon: 'bars',
    address: 'events',
    query: ['q', 'severity'],
    group: { science: 'Watch', operations: 'Watch' },
    load: [events, jobs, runs],
    render: Events,
}
