/** Events as a list, shared by the overview and their own screen. */
import type { WeirEvent } from '../api'
import { words } from '../format'
import { Ago } from './basics'
import { Sentence, Subject } from './noun'
import { Icon, type IconName } from './icon'

type Severity = 'info' | 'warning' | 'error'

const SEVERITY: Record<Severity, { icon: IconName; label: string }> = {
    info: { icon: 'info', label: 'Info' },
    warning: { icon: 'warning', label: 'Warning' },
    error: { icon: 'warning', label: 'Error' },
}

/** How much an event matters. */
export function severityOf(event: WeirEvent): Severity {
    return event.severity === 'error' || event.severity === 'warning' ? event.severity : 'info'
}

export function EventList({ events }: { events: WeirEvent[] }) {
    return (
        <ul class="event-list">
            {events.map((event) => {
                const level = severityOf(event)
                const severity = SEVERITY[level]!
                return (
                    <li key={event.seq} class={`event ${level}`}>
                        <Icon name={severity.icon} />
                        <div>
                            <p>
                                <span class="hidden">{severity.label}: </span>
                                <Sentence text={event.message} />
                            </p>
                            <small class="muted">
                                {words(event.kind)}
                                {event.subject && (
                                    <>
                                        {' · '}
                                        <Subject subject={event.subject} />
                                    </>
                                )}
                                {event.actor && event.actor !== 'system' ? ` · ${event.actor}` : ''}
                            </small>
                        </div>
                        <small class="muted when">
                            <Ago time={event.time_ms} />
                        </small>
                    </li>
                )
            })}
        </ul>
    )
}
