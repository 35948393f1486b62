/** Alerts by what they are about: whoever looks after all of a group says so once; what is resolved moves away. */
import type { Alert, Job, Opt } from '../api'
import { dayTime, millis, words } from '../format'
import { messageOf, segment, send } from '../state/http'
import { alerts, jobs } from '../state/store'
import { canChange } from '../state/versions'
import { Ago } from './basics'
import { is, StateChip } from './chip'
import { Icon } from './icon'
import { Sentence, Subject } from './noun'
import { toast } from './toast'

const AT_ONCE = 4

/** The ION that something is about: by name, or because a job or a training works for it. */
export function ionOf(subject: Opt<string>, all: Job[]): string | undefined {
    const [noun, name] = (subject ?? '').split('/')
    return noun === 'ion' ? name : noun === 'job' ? (all.find((job) => job.id === name)?.ion ?? undefined) : undefined
}

/** Nothing is lost by it and it can be seen at once: no question is asked. */
async function acknowledge(items: Alert[]): Promise<void> {
    const left = [...items]
    let n = 0
    const work = async () => {
        for (let one = left.shift(); one !== undefined; one = left.shift()) {
            await send('POST', `/alerts/${segment(one.id)}/acknowledge`)
            n++
        }
    }
    try {
        await Promise.all(Array.from({ length: AT_ONCE }, work))
        toast(n === 1 ? 'Alert acknowledged' : `${n} alerts acknowledged`)
    } catch (error) {
        toast(`${n} of ${items.length} acknowledged: ${messageOf(error)}`, 'bad')
    }
    await alerts.load()
}

function AlertItem({ alert, withSubject }: { alert: Alert; withSubject: boolean }) {
    return (
        <li class={`alert ${alert.state} ${alert.severity ?? ''}`} data-alert={alert.id}>
            <Icon name="warning" />
            <div>
                <p>
                    <Sentence text={alert.message} />
                </p>
                <small class="muted">
                    {alert.severity ? `${alert.severity} · ` : ''}
                    {words(alert.kind)}
                    {withSubject && alert.subject && (
                        <>
                            {' · '}
                            <Subject subject={alert.subject} />
                        </>
                    )}
                    {(alert.count ?? 1) > 1 ? ` · ${alert.count} times` : ''} · <Ago time={alert.raised_ms} />
                    {alert.state === 'acknowledged' && alert.acknowledged_by ? ` · ${alert.acknowledged_by} looks after it` : ''}
                    {alert.state === 'resolved' && alert.resolved_ms ? ` · over since ${dayTime(alert.resolved_ms)}` : ''}
                </small>
            </div>
            {!is(alert.state, 'open') ? (
                <StateChip state={alert.state} />
            ) : (
                canChange() && (
                    <button type="button" class="button small" onClick={() => void acknowledge([alert])}>
                        Acknowledge
                    </button>
                )
            )}
        </li>
    )
}

export function AlertList({ items, withSubject = true }: { items: Alert[]; withSubject?: boolean }) {
    return (
        <ul class="alert-list">
            {items.map((alert) => (
                <AlertItem key={alert.id} alert={alert} withSubject={withSubject} />
            ))}
        </ul>
    )
}

const SEVERITIES = ['critical', 'error', 'warning']
const rank = (alert: Alert) => (SEVERITIES.indexOf(alert.severity ?? '') + SEVERITIES.length + 1) % (SEVERITIES.length + 1)

/** The worst first, then the newest. */
export function byNeed(a: Alert, b: Alert): number {
    return Number(is(b.state, 'open')) - Number(is(a.state, 'open')) || rank(a) - rank(b) || millis(b.raised_ms) - millis(a.raised_ms)
}

export function AcknowledgeAll({ items }: { items: Alert[] }) {
    const open = items.filter((alert) => is(alert.state, 'open'))
    return open.length > 1 && canChange() ? (
        <button type="button" class="button small" onClick={() => void acknowledge(open)}>
            Acknowledge all {open.length}
        </button>
    ) : null
}

interface Group {
    key: string
    title: string
    items: Alert[]
}

/** IONs first, each with what its own jobs raised; then machines; other people's jobs last. */
function groupsOf(items: Alert[], all: Job[]): Group[] {
    const groups = new Map<string, Group>()
    for (const alert of [...items].sort(byNeed)) {
        const ion = ionOf(alert.subject, all)
        const noun = (alert.subject ?? '').split('/')[0]
        const key = ion !== undefined ? `0 ${ion}` : noun === 'job' ? '2 jobs' : '1 platform'
        const title = ion !== undefined ? `ION ${ion}` : noun === 'job' ? 'Jobs of no ION' : 'Machines and server'
        const group = groups.get(key) ?? { key, title, items: [] }
        group.items.push(alert)
        groups.set(key, group)
    }
    return [...groups.values()].sort((a, b) => (a.key < b.key ? -1 : 1))
}

export function AlertGroups({ items }: { items: Alert[] }) {
    const resolved = items.filter((alert) => is(alert.state, 'resolved'))
    const unresolved = items.filter((alert) => !is(alert.state, 'resolved'))
    return (
        <>
            {groupsOf(unresolved, jobs.data.value ?? []).map((group) => (
                <section key={group.key} class="alert-group" aria-label={group.title}>
                    <header>
                        <h3>{group.title}</h3>
                        <AcknowledgeAll items={group.items} />
                    </header>
                    <AlertList items={group.items} />
                </section>
            ))}
            {unresolved.length === 0 && (
                <p class="quiet">
                    <Icon name="check" /> Nothing needs you. Drift, quality, deployments, machines and disk are watched; a finding appears here.
                </p>
            )}
            {resolved.length > 0 && (
                <details class="resolved">
                    <summary>Resolved ({resolved.length})</summary>
                    <AlertList items={resolved} />
                </details>
            )}
        </>
    )
}
