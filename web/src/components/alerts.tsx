/** Alerts: whose they are, which is worst, and how somebody takes one. */
import type { Alert, Ion, Job } from '../api'
import type { Opt } from '../types'
import { dayTime, duration, millis, words } from '../format'
import { cameraHref } from '../state/cameras'
import { messageOf, segment, send } from '../state/http'
import { project } from '../state/project'
import { may } from '../state/rights'
import { href } from '../state/route'
import { alerts, ions, jobs, now } from '../state/store'
import { Act } from './locked'
import { Sentence, Subject } from './noun'
import { Glyph, is, type Tone } from './state'
import { toast } from './toast'

const AT_ONCE = 4

/** The ION that something is about: by name, or because a job or a training works for it. */
export function ionOf(subject: Opt<string>, all: readonly Job[]): string | undefined {
    const [noun, name] = (subject ?? '').split('/')
    return noun === 'ion' ? name : noun === 'job' ? (all.find((job) => job.id === name)?.ion ?? undefined) : undefined
}

/** The project that something is about; undefined: none, it is everybody's. */
function projectOf(subject: Opt<string>, all: readonly Job[], known: readonly Ion[]): string | undefined {
    const ion = ionOf(subject, all)
    const job = all.find((one) => subject === `job/${one.id}`)
    return (ion !== undefined ? known.find((one) => one.name === ion)?.project : job?.project) ?? undefined
}

export const TAKE = 'acknowledge alerts'

/** The project that an alert is about, as far as the page knows. */
export const alertProject = (alert: Alert) => projectOf(alert.subject, jobs.data.value ?? [], ions.data.value ?? [])

export const mayTake = (alert: Alert) => may(TAKE, alertProject(alert))

/** Those of the project that is chosen, and those of the platform. */
export function useProjectAlerts(): Alert[] {
    const chosen = project.value
    const all = alerts.data.value ?? []
    if (chosen === undefined) {
        return [...all]
    }
    return all.filter((alert) => {
        const its = alertProject(alert)
        return its === undefined || its === chosen
    })
}

/** Nothing is lost by it and it can be seen at once: no question is asked. */
export async function take(items: readonly Alert[]): Promise<void> {
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
        toast(n === 1 ? 'You look after the alert' : `You look after ${n} alerts`)
    } catch (error) {
        toast(`${n} of ${items.length} taken: ${messageOf(error)}`, 'bad')
    }
    await alerts.load()
}

const SEVERITIES = ['critical', 'error', 'warning']
const rank = (alert: Alert) => (SEVERITIES.indexOf(alert.severity ?? '') + SEVERITIES.length + 1) % (SEVERITIES.length + 1)

/** What nobody has taken first, then the worst, then the newest. */
export function byUrgency(a: Alert, b: Alert): number {
    return Number(is(b.state, 'open')) - Number(is(a.state, 'open')) || rank(a) - rank(b) || millis(b.raised_ms) - millis(a.raised_ms) || b.id.localeCompare(a.id)
}

export function severityTone(alert: Alert): Tone {
    return is(alert.state, 'resolved') ? 'plain' : rank(alert) < 2 ? 'bad' : rank(alert) === 2 ? 'warn' : 'plain'
}

export function TakeButton({ alert }: { alert: Alert }) {
    return is(alert.state, 'open') ? (
        <Act right={TAKE} project={alertProject(alert)} isSmall onClick={() => void take([alert])}>
            Take it<span class="hidden">: {alert.message}</span>
        </Act>
    ) : null
}

/** What it is about, as a link: of an ION the camera, where it is one that gives no picture or a bad one. */
export function About({ alert }: { alert: Alert }) {
    const [, ion, camera] = /^camera_\w+:([^:]+):[^:]+:(.+)$/.exec(alert.key) ?? []
    return camera ? <a href={cameraHref(ion!, camera)}>camera {camera}</a> : <Subject subject={alert.subject} />
}

/** A few alerts in a panel: what, about what, since when. */
export function AlertRows({ items, withTake = false }: { items: readonly Alert[]; withTake?: boolean }) {
    return (
        <ul class="list">
            {items.map((alert) => (
                <li key={alert.id} data-alert={alert.id}>
                    <span class={`state tone-${severityTone(alert)}`}>
                        <Glyph tone={severityTone(alert)} />
                        <span class="hidden">{alert.severity}</span>
                    </span>
                    <div class="grow">
                        <a class="main two" href={href('alerts', { id: alert.id })}>
                            <Sentence text={alert.message} />
                        </a>
                        <div class="small muted clip">
                            {words(alert.kind)} · <About alert={alert} />
                        </div>
                    </div>
                    <span class="small muted nowrap" title={dayTime(alert.raised_ms)}>
                        {duration(now.value - millis(alert.raised_ms))}
                    </span>
                    {withTake && <TakeButton alert={alert} />}
                </li>
            ))}
        </ul>
    )
}
