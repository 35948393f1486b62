/** A passage as its decision tells it: frames in time, whom they are nearest to, the rule, and how often an unknown person came. Pure. */
import type { Decision, Time } from '../api'
import { counted, duration, fixed, millis } from '../format'
import type { Opt } from '../types'

export interface FilmFrame {
    time_ms: Time
    score: number | null
    person: string | null // whom the frame names: from the threshold on
    counts: boolean // it was compared
    why: string | null // it was not
    has_picture: boolean
    is_best?: boolean
}

export interface Near {
    person: string
    score: number
}

export interface Told {
    id: string
    first: Time
    last: Time
    n_frames: number
    n_counted: number // compared, and independent of each other
    n_named: number // of the last m of these: they name the person
    refused: Readonly<Record<string, number>> // not compared: why, how many
    frames?: readonly FilmFrame[]
    nearest?: readonly Near[]
    rule?: { n: number; m: number }
    stranger?: { id: string; times: number; first_ms: Time } | null
}

/** Null: it was decided from one frame. */
export const toldOf = (decision: Decision): Told | null => decision.passage as Told | null

export const framesOf = (decision: Decision): readonly FilmFrame[] => toldOf(decision)?.frames ?? []

/** It speaks for what was decided, or for somebody where nobody was known. */
export const isFor = (decision: Decision, frame: FilmFrame) => frame.counts && frame.person !== null && (decision.person === null || frame.person === decision.person)

const worthOf = (frame: FilmFrame | undefined) => (frame?.is_best ? Infinity : (frame?.score ?? -Infinity))

/** Numbers of the best frames that have a picture, at most so many, in time; without a score any is as good. */
export function bestOf(frames: readonly FilmFrame[], n: number): number[] {
    const shown = [...frames.keys()].filter((i) => frames[i]!.has_picture)
    return shown.sort((a, b) => (worthOf(frames[b]) > worthOf(frames[a]) ? 1 : -1)).slice(0, n).sort((a, b) => a - b)
}

/** Who decided verdicts are about: the person, else the nearest. */
export const candidateOf = (decision: Decision): string | undefined => decision.person ?? toldOf(decision)?.nearest?.[0]?.person

/** "3 too dark, 1 turned away" */
const refusalsOf = ({ refused }: Told) =>
    Object.entries(refused)
        .sort((a, b) => b[1] - a[1])
        .map(([why, n]) => `${n} ${why}`)
        .join(', ')

/** How the rule came out, and what was missing. */
export function ruleText(decision: Decision, told: Told): string {
    const { n_frames, n_counted, n_named, rule } = told
    const refused = refusalsOf(told)
    const not = refused && ` Of ${counted(n_frames, 'frame')} these were not compared: ${refused}.`
    const looked = Math.min(rule?.m ?? n_counted, n_counted)
    if (n_counted === 0) {
        return `None of ${counted(n_frames, 'frame')} could be compared with anybody.${not}`
    }
    const after = duration(millis(told.last) - millis(told.first))
    if (decision.verdict !== 'unknown') {
        return `${n_named} of the last ${looked} frames that count name ${decision.person ?? decision.label ?? 'it'}: decided after ${after}.${not}`
    }
    const best = told.nearest?.[0]
    const missing =
        rule && n_named < rule.n
            ? `${n_named} of the last ${looked} name one person: ${rule.n - n_named} more had to.`
            : 'Its frames do not agree enough on one person.'
    const near = best && decision.threshold !== null ? ` The nearest, ${best.person}, has ${fixed(best.score, 2)}; ${fixed(decision.threshold, 2)} is needed.` : ''
    return `${counted(n_counted, 'frame counts', 'frames count')}, in ${after}. ${missing}${near}${not}`
}

/** How far the next person is from the first. */
export function gapText(nearest: readonly Near[]): string {
    const [first, second] = nearest
    return first && second ? `${second.person} comes next, ${fixed(first.score - second.score, 2)} away.` : ''
}

/** How many frames name this person. */
export const nFramesOf = (frames: readonly FilmFrame[], person: string) => frames.filter((one) => one.person === person).length

/** "4 times" */
export const timesText = (n: Opt<number>) => `${n ?? 1} times`

export interface Stranger {
    id: string
    times: number
    first: Time
    passages: Decision[] // newest first: those that were fetched
}

/** Unknown people who came again, those who came most often first. @param passages Newest first. */
export function strangersOf(passages: readonly Decision[]): Stranger[] {
    const found = new Map<string, Stranger>()
    for (const passage of passages) {
        const stranger = toldOf(passage)?.stranger
        if (stranger) {
            const known = found.get(stranger.id) ?? { id: stranger.id, times: 0, first: stranger.first_ms, passages: [] }
            found.set(stranger.id, { ...known, times: Math.max(known.times, stranger.times), passages: [...known.passages, passage] })
        }
    }
    return [...found.values()].filter((one) => one.times > 1).sort((a, b) => b.times - a.times)
}
