/** How a camera is, in words of the page, and which of them needs somebody first. Pure. */
import { ago, clockTime, counted, duration, fixed, millis, short } from '../format'
import type { Tone } from '../components/state'
import type { Camera } from '../api'

export interface Judgement {
    rank: number // the least first
    tone: Tone
    isKnown: boolean
    word: string
    evidence: string
}

/** @param seenMs When its newest picture came to the page. */
export type Judge = (camera: Camera, seenMs?: number) => Judgement

const REPORT_MS = 30_000 // a replica that was silent for longer proves nothing
const FRESH_MS = 30_000 // so long a decision is news
const HEALTH: Record<string, string> = { dark: 'too dark', black: 'too dark', clock: 'wrong clock' }

/** The words of what is wrong with its picture: "too dark, blurred". */
export const healthOf = (camera: Camera): string => [...new Set(camera.health.map((one) => HEALTH[one] ?? one))].join(', ')

/** How old its newest frame is: that of the last report, or of the picture that the page has; NaN: nobody says. */
function ageOf(camera: Camera, nowMs: number, seenMs: number): number {
    const ages = [camera.age_ms === null || camera.reported_ms === null ? NaN : camera.age_ms + Math.max(0, nowMs - millis(camera.reported_ms)), nowMs - seenMs]
    const known = ages.filter((age) => !Number.isNaN(age))
    return known.length > 0 ? Math.max(0, Math.min(...known)) : NaN
}

/** "0.2 s ago", "3 min ago" */
const agoText = (ms: number) => (ms < 10_000 ? `${fixed(ms / 1000, 1)} s ago` : `${duration(ms)} ago`)

/** How far apart its pictures are, at least. */
export const periodOf = (camera: Camera): number => Math.max(1000, 1000 / (camera.fps_expected || camera.fps || 1))

const since = (camera: Camera, nowMs: number) => (camera.since_ms ? `for ${duration(Math.max(0, nowMs - millis(camera.since_ms)))}` : '')

/** Sources of files and requests tell of no cameras: decisions do. */
const isOfFiles = (camera: Camera): boolean => camera.state === 'unknown' && !['rtsp', 'mjpeg', 'v4l2', 'video'].includes(camera.kind)

/** By its decisions alone. */
function byDecisions(camera: Camera, nowMs: number, own: string): Judgement {
    const isYoung = nowMs - millis(camera.last_decision_ms) < FRESH_MS
    const evidence = `${own}last decision ${ago(camera.last_decision_ms, nowMs)}`
    return isYoung ? { rank: 4, tone: 'good', isKnown: true, word: 'decided', evidence } : { rank: 5, tone: 'plain', isKnown: true, word: 'nothing came', evidence }
}

/** @param isHeard The page hears from the server. @param seenMs When its newest picture came to the page; NaN: none has. */
export function judge(camera: Camera, nowMs: number, isHeard: boolean, seenMs = NaN): Judgement {
    const age = ageOf(camera, nowMs, seenMs)
    const frame = Number.isNaN(age) ? '' : `frame ${agoText(age)}`
    const own = camera.mode === 'sandbox' ? 'sandbox, opens no door · ' : ''
    const unknown = (word: string, evidence: string) => ({ rank: 2, tone: 'plain' as const, isKnown: false, word, evidence: own + evidence })
    if (!isHeard) {
        return unknown('unknown', 'the server does not answer')
    }
    if (isOfFiles(camera) && camera.last_decision_ms !== null) {
        return byDecisions(camera, nowMs, own)
    }
    if (camera.state === 'lost') {
        return { rank: 0, tone: 'bad', isKnown: true, word: 'fails', evidence: `${own}${since(camera, nowMs)} · tried again within a minute`.replace(/^ · /, '') }
    }
    if (camera.state !== 'unknown' && camera.reported_ms !== null && nowMs - millis(camera.reported_ms) > REPORT_MS) {
        return unknown(`unknown since ${clockTime(camera.reported_ms)}`, 'its replica is silent')
    }
    if (camera.state === 'connecting') {
        return { rank: 3, tone: 'busy', isKnown: true, word: 'connecting', evidence: own + since(camera, nowMs) }
    }
    if (camera.state === 'unwell') {
        return { rank: 1, tone: 'warn', isKnown: true, word: healthOf(camera) || 'unwell', evidence: own + [since(camera, nowMs), frame].filter(Boolean).join(' · ') }
    }
    if (camera.state !== 'sees') {
        return unknown('unknown', 'no replica has told of it')
    }
    if (Number.isNaN(age) || age > 3 * periodOf(camera) + REPORT_MS) {
        return unknown('unknown', Number.isNaN(age) ? 'nobody says when it sent a frame' : `last ${frame}`)
    }
    if (camera.n_decided === 0) {
        const person = camera.last_decision_ms ? `last person ${ago(camera.last_decision_ms, nowMs)} · ` : ''
        return { rank: 5, tone: 'plain', isKnown: true, word: 'nobody there', evidence: own + person + frame }
    }
    return { rank: 4, tone: 'good', isKnown: true, word: 'sees', evidence: `${own}last ${frame}` }
}

/** What needs somebody first; sandboxes after all of production that is alike. */
export function byNeed(all: readonly Camera[], of: Judge): Camera[] {
    const place = (one: Camera) => of(one).rank + (one.mode === 'sandbox' ? 0.5 : 0)
    return [...all].sort((a, b) => place(a) - place(b) || a.name.localeCompare(b.name, undefined, { numeric: true }) || a.id.localeCompare(b.id))
}

/** "1 of 6 cameras gives no picture, 1 is too dark" */
export function verdictOf(all: readonly Camera[], of: Judge): string {
    const total = counted(all.length, 'camera')
    const lost = all.filter((one) => of(one).rank === 0).length
    const unwell = all.filter((one) => of(one).rank === 1)
    const unknown = all.filter((one) => of(one).rank === 2).length
    const words = [...new Set(unwell.map((one) => of(one).word))]
    const one = words.length !== 1 || words[0]!.includes(',') ? '' : words[0] === HEALTH['clock'] ? `a ${words[0]}` : words[0]!
    const [is, are] = one === '' ? ['sees badly', 'see badly'] : one.startsWith('a ') ? [`has ${one}`, `have ${one}`] : [`is ${one}`, `are ${one}`]
    const found: [number, string, string][] = [
        [lost, 'gives no picture', 'give no picture'],
        [unwell.length, is!, are!],
        [unknown, 'is unknown', 'are unknown'],
    ]
    const parts = found.filter(([n]) => n > 0)
    if (parts.length === 0) {
        return all.length === 1 ? 'The camera sees' : `All ${total} see`
    }
    if (all.length === 1) {
        return `The camera ${parts[0]![1]}`
    }
    return parts.map(([n, one, many], i) => `${n}${i === 0 ? ` of ${total}` : ''} ${n === 1 ? one : many}`).join(', ')
}

/** It gives pictures, as far as its replica says. */
export const givesPictures = (camera: Camera): boolean => camera.state === 'sees' || camera.state === 'unwell' || isOfFiles(camera)

/** "10.4 of 10": frames a second. */
export const rateOf = (camera: Camera): string => `${fixed(camera.state === 'lost' ? 0 : givesPictures(camera) ? camera.fps : null, 1)}${camera.fps_expected ? ` of ${short(camera.fps_expected)}` : ''}`

/** The share of unknown people, in 30 min: "12 %"; '': nothing was decided. */
export const shareOf = (camera: Camera): string => (camera.n_decided ? `${Math.round((100 * camera.n_unknown) / camera.n_decided)} %` : '')

/** It refuses our name or password: another password helps. */
export const wantsSecret = (camera: Camera): boolean => ['rtsp', 'mjpeg'].includes(camera.kind) && /40[13]|password|secret|unauthori|credential|denied/i.test(`${camera.error ?? ''} ${camera.cure ?? ''}`)
