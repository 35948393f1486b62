/** Alerts to acknowledge, and everything that happened. */
import { useState } from 'preact/hooks'
import { AlertGroups } from '../components/alert_list'
import { Empty, Loaded, PageHead, Panel } from '../components/basics'
import { EventList, severityOf } from '../components/event_list'
import { alerts, events, KEEP_EVENTS, openAlerts } from '../state/store'

export function Events() {
    const [text, setText] = useState('')
    const [important, setImportant] = useState(false)
    const needle = text.toLowerCase()
    return (
        <>
            <PageHead title="Alerts and events" sub="What needs a person, and what happened" />
            <Panel title="Alerts" aside={openAlerts.value.length > 0 && <span class="count">{openAlerts.value.length} open</span>}>
                <Loaded resource={alerts}>
                    {(items) => <AlertGroups items={items} />}
                </Loaded>
            </Panel>
            <Panel
                title="Events"
                aside={
                    <form class="inline-filter" role="search" aria-label="Filter events" onSubmit={(event) => event.preventDefault()}>
                        <label class="check">
                            <input type="checkbox" checked={important} onChange={(event) => setImportant(event.currentTarget.checked)} />
                            Warnings only
                        </label>
                        <input
                            type="search"
                            aria-label="Text in events"
                            placeholder="Search"
                            value={text}
                            onInput={(event) => setText(event.currentTarget.value)}
                        />
                    </form>
                }
            >
                <Loaded resource={events} rows={6}>
                    {(items) => {
                        const shown = items.filter(
                            (event) =>
                                (!important || severityOf(event) !== 'info') &&
                                (needle === '' || `${event.message} ${event.kind} ${event.subject ?? ''} ${event.actor ?? ''}`.toLowerCase().includes(needle)),
                        )
                        if (shown.length > 0) {
                            return (
                                <>
                                    <EventList events={shown} />
                                    <p class="quiet">The latest {KEEP_EVENTS} are kept in the page.</p>
                                </>
                            )
                        }
                        return items.length > 0 ? (
                            <Empty icon="question" title="No event matches">Change the filter.</Empty>
                        ) : (
                            <Empty icon="events" title="Nothing has happened yet">Every change of a pipeline, a model or a node is written here.</Empty>
                        )
                    }}
                </Loaded>
            </Panel>
        </>
    )
}
