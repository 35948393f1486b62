/** Events and alerts as lists, shared by the overview and their own screen. */
import type { Alert, WeirEvent } from '../api'
import { send, segment } from '../state/http'
import { alerts } from '../state/store'
import { words } from '../format'
import { Ago } from './basics'
import { Sentence, Subject } from './noun'
import { is, StateChip } from './chip'
import type { Question } from './dialog'
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

export function acknowledgeQuestion(alert: Alert): Question {
    return {
        title: 'Acknowledge this alert?',
        text: <p>{alert.message}</p>,
        confirm: 'Acknowledge',
        done: 'Alert acknowledged',
        act: async () => {
            await send('POST', `/alerts/${segment(alert.id)}/acknowledge`)
            await alerts.load()
        },
    }
}

export function AlertList({ items, onAsk }: { items: Alert[]; onAsk: (question: Question) => void }) {
    return (
        <ul class="alert-list">
            {items.map((alert) => (
                <li key={alert.id} class={`alert ${alert.state}`} data-alert={alert.id}>
                    <Icon name="warning" />
                    <div>
                        <p>
                            <Sentence text={alert.message} />
                        </p>
                        <small class="muted">
                            {words(alert.kind)}
                            {alert.subject && (
                                <>
                                    {' · '}
                                    <Subject subject={alert.subject} />
                                </>
                            )}
                            {(alert.count ?? 1) > 1 ? ` · ${alert.count} times` : ''} · <Ago time={alert.raised_ms} />
                        </small>
                    </div>
                    {is(alert.state, 'open') ? (
                        <button type="button" class="button small" onClick={() => onAsk(acknowledgeQuestion(alert))}>
                            Acknowledge
                        </button>
                    ) : (
                        <StateChip state={alert.state} />
                    )}
                </li>
            ))}
        </ul>
    )
}
