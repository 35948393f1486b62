/**
 * Does the ION work? One line with its evidence. Green is proven: by the server, while the page hears from it, and by a
 * decision that is young; what is merely wanted is never green.
 */
import type { Ion, Opt, Pipeline } from '../api'
import { ago, dayTime, millis } from '../format'
import { jobs, now, openAlerts } from '../state/store'
import { connection } from '../state/stream'
import { is, type Tone } from './chip'
import { Icon, type IconName } from './icon'
import { Sentence } from './noun'

const YOUNG_MS = 30_000 // a decision that proves that decisions are made

export interface Verdict {
    tone: Tone
    title: string
    reason: string
}

const BY_STATUS: Record<string, { tone: Tone; title: string }> = {
    ok: { tone: 'good', title: 'It works' },
    waiting: { tone: 'plain', title: 'It waits for its first model' },
    degraded: { tone: 'warn', title: 'It needs you' }, // "It decides, and needs you" where a decision proves it
    down: { tone: 'bad', title: 'It does not decide' },
}

const jobOf = (pipeline: Pipeline) => jobs.data.value?.find((job) => job.id === pipeline.job)

function evidence(lastMs: number, nowMs: number): string {
    return Number.isNaN(lastMs) ? 'no decision yet' : `last decision ${ago(lastMs, nowMs).replace(/^now$/, 'just now')}`
}

/** What the states of its pipelines and the alerts about it say, where the server gives no verdict of its own. */
function derived(ion: Ion, lastMs: number, nowMs: number): Verdict {
    const doors = ion.pipelines.filter((pipeline) => pipeline.type !== 'training')
    const failed = doors.find((one) => one.state === 'DEPLOY_FAILED')
    const serves = (one: Pipeline) => one.state === 'SERVING' || (one.served_revision ?? 0) > 0
    if (failed) {
        const reason = failed.state_reason ?? 'a replica cannot apply what it was given'
        return { ...BY_STATUS[serves(failed) ? 'degraded' : 'down']!, reason }
    }
    const stopped = doors.filter(serves).map((one) => jobOf(one)).find((job) => job !== undefined && !is(job.state, 'running'))
    if (stopped && !(nowMs - lastMs < YOUNG_MS)) {
        return { ...BY_STATUS['down']!, reason: stopped.reason ?? `its replicas are ${stopped.state.toLowerCase()}` }
    }
    if (!doors.some(serves)) {
        const starts = doors.some((one) => one.state === 'DEPLOYING')
        return { tone: starts ? 'busy' : 'plain', title: starts ? 'A model is being deployed' : 'Nothing serves', reason: 'no replica decides frames yet' }
    }
    const alert = openAlerts.value.find((one) => one.subject === `ion/${ion.name}`)
    if (alert) {
        return { ...BY_STATUS['degraded']!, reason: alert.message }
    }
    return nowMs - lastMs < YOUNG_MS
        ? { tone: 'good', title: BY_STATUS['ok']!.title, reason: '' }
        : { tone: 'plain', title: 'It serves, and nothing shows that it decides', reason: 'no frame has been decided lately' }
}

/** @param lastMs When the newest decision was made; NaN: there is none. */
export function verdictOf(ion: Ion, lastMs: number, nowMs: number): Verdict {
    const verdict = unproven(ion, lastMs, nowMs)
    const decides = verdict.tone === 'warn' && nowMs - lastMs < YOUNG_MS
    return decides ? { ...verdict, title: 'It decides, and needs you' } : verdict
}

function unproven(ion: Ion, lastMs: number, nowMs: number): Verdict {
    if (connection.value.state === 'lost') {
        return { tone: 'plain', title: 'Unknown', reason: 'the page does not hear from the server; Weir itself goes on' }
    }
    const given = ion.health ? BY_STATUS[ion.health.status] : undefined
    if (given === undefined) {
        return derived(ion, lastMs, nowMs)
    }
    if (given.tone === 'good' && !(nowMs - lastMs < YOUNG_MS)) {
        return derived(ion, lastMs, nowMs)
    }
    return { ...given, reason: ion.health?.reason ?? '' }
}

const ICONS: Record<Tone, IconName> = { good: 'check', bad: 'ban', warn: 'warning', busy: 'clock', plain: 'question', odd: 'question' }

export function HealthBanner({ ion, lastMs }: { ion: Ion; lastMs: number }) {
    const verdict = verdictOf(ion, lastMs, now.value)
    const since: Opt<string | number> = ion.health?.since
    const isHeard = connection.value.state !== 'lost' // else the verdict is not the server's, nor is its beginning
    return (
        <section class={`health tone-${verdict.tone}`} aria-label="Health" data-health={verdict.tone}>
            <Icon name={ICONS[verdict.tone]} size={20} />
            <p>
                <b>{verdict.title}</b>
                <span class="health-reason">
                    {verdict.reason && <Sentence text={`${verdict.reason} · `} />}
                    {evidence(lastMs, now.value)}
                    {isHeard && verdict.tone !== 'good' && since && !Number.isNaN(millis(since)) && ` · since ${dayTime(since)}`}
                </span>
            </p>
        </section>
    )
}
