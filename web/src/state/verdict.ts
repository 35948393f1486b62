/**
 * Does the ION work? Green is proven: by the server, while the page hears from it, and by a decision that is young;
 * what is merely wanted is never green.
 */
import type { Ion, Pipeline } from '../api'
import { is, type Tone } from '../components/state'
import { ago, clockTime, dayTime, millis } from '../format'
import { pendingCandidates } from './candidates'
import { asked, lastDecisions } from './evidence'
import { jobs, now, openAlerts } from './store'
import { connection } from './stream'

const YOUNG_MS = 30_000 // a decision that proves that decisions are made

export interface Verdict {
    tone: Tone
    title: string
    reason: string // the server's sentence, "" if there is none
    isKnown: boolean // false: nobody tells the page how it is
}

const BY_STATUS: Record<string, { tone: Tone; title: string }> = {
    ok: { tone: 'good', title: 'Serving' },
    waiting: { tone: 'plain', title: 'Waits for its first model' },
    degraded: { tone: 'warn', title: 'Needs you' }, // "Decides, needs you" where a decision proves it
    down: { tone: 'bad', title: 'Does not decide' },
}

const serves = (one: Pipeline) => one.state === 'SERVING' || (one.served_revision ?? 0) > 0
const jobOf = (pipeline: Pipeline) => jobs.data.value?.find((job) => job.id === pipeline.job)

type Plain = Omit<Verdict, 'isKnown'>

/** What the states of its pipelines and the alerts about it say, where the server gives no verdict of its own. */
function derived(ion: Ion, isYoung: boolean): Plain {
    const predictions = ion.pipelines.filter((pipeline) => pipeline.type === 'prediction')
    const failed = predictions.find((one) => one.state === 'DEPLOY_FAILED')
    if (failed) {
        const reason = failed.state_reason ?? 'A replica cannot apply what it was given.'
        return serves(failed) ? { ...BY_STATUS['degraded']!, reason } : { tone: 'bad', title: 'Deployment failed', reason }
    }
    const stopped = predictions.filter(serves).map((one) => jobOf(one)).find((job) => job !== undefined && !is(job.state, 'running'))
    if (stopped && !isYoung) {
        return { ...BY_STATUS['down']!, reason: stopped.reason ?? `Its replicas are ${stopped.state.toLowerCase()}.` }
    }
    if (!predictions.some(serves)) {
        const starts = predictions.some((one) => one.state === 'DEPLOYING')
        return { tone: starts ? 'busy' : 'plain', title: starts ? 'Deploying a model' : 'Nothing serves', reason: '' }
    }
    const alert = openAlerts.value.find((one) => one.subject === `ion/${ion.name}`)
    if (alert) {
        return { ...BY_STATUS['degraded']!, reason: alert.message }
    }
    return isYoung ? { ...BY_STATUS['ok']!, reason: '' } : { tone: 'plain', title: 'Nothing shows that it decides', reason: '' }
}

function heard(ion: Ion, isYoung: boolean): Plain {
    const given = ion.health ? BY_STATUS[ion.health.status] : undefined
    if (given === undefined || (given.tone === 'good' && !isYoung)) {
        return derived(ion, isYoung)
    }
    return { ...given, reason: ion.health?.reason ?? '' }
}

export function verdictOf(ion: Ion): Verdict {
    const current = connection.value
    if (current.state === 'lost') {
        return { tone: 'plain', title: `Unknown since ${clockTime(current.since)}`, reason: '', isKnown: false }
    }
    const isYoung = now.value - (lastDecisions.value[ion.name] ?? NaN) < YOUNG_MS
    const verdict = heard(ion, isYoung)
    const title = verdict.tone === 'warn' && isYoung ? 'Decides, needs you' : verdict.title
    return { ...verdict, title, isKnown: true }
}

/** "last decision 3 s ago" */
export function evidenceOf(ion: Ion): string {
    const last = lastDecisions.value[ion.name]
    if (last === undefined) {
        return asked.value.has(ion.name) ? 'no decision yet' : ''
    }
    return `last decision ${ago(last, now.value).replace(/^now$/, 'just now')}`
}

/** "since Mon 23 Nov, 20:17": of what is not well. */
export function sinceOf(ion: Ion, verdict: Verdict): string {
    const since = ion.health?.since
    return verdict.isKnown && verdict.tone !== 'good' && since && !Number.isNaN(millis(since)) ? `since ${dayTime(since)}` : ''
}

const NEED: Record<Tone, number> = { bad: 0, warn: 1, busy: 2, odd: 2, good: 3, plain: 4 }

/** Of a sandbox nothing real is touched, and nobody is called for it. */
export const isSandbox = (ion: Ion): boolean => ion.mode === 'sandbox'

/** It fails or waits for a person. */
export function needsYou(ion: Ion): boolean {
    return NEED[verdictOf(ion).tone] < 2 || pendingCandidates.value.some((one) => one.ion === ion.name)
}

/** The worst first: failed, needs you, changing, working, nothing expected. */
export function byNeed(all: readonly Ion[]): Ion[] {
    const need = new Map(all.map((ion) => [ion, Math.min(NEED[verdictOf(ion).tone], needsYou(ion) ? 1 : Infinity)]))
    return [...all].sort((a, b) => need.get(a)! - need.get(b)! || a.name.localeCompare(b.name))
}
