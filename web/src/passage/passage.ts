/** A passage as its decision tells it: frames in time, the nearest people, the rule, and how often an unknown person came. Pure. */
import type { Decision, Time } from '../api'
import { counted, fixed, millis } from '../format'
import { toldOf, type FilmFrame, type Near, type Told } from '../state/film'
import type { Opt } from '../types'

/** It speaks for what was decided, or for somebody where nobody was known. */
export const isFor = (decision: Decision, frame: FilmFrame) => frame.counts && frame.person !== null && (decision.person === null || frame.person === decision.person)

/** The person, else the nearest. */
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
    const after = `${fixed((millis(told.last) - millis(told.first)) / 1000, 1)} s`
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

export interface Visitor {
    id: string
    times: number
    first: Time
    passages: Decision[] // newest first: those that were fetched
}

/** Unknown people who came again, those who came most often first. @param passages Newest first. */
export function visitorsOf(passages: readonly Decision[]): Visitor[] {
    const found = new Map<string, Visitor>()
    for (const passage of passages) {
        const visitor = toldOf(passage)?.visitor
        if (visitor) {
            const known = found.get(visitor.id) ?? { id: visitor.id, times: 0, first: visitor.first_ms, passages: [] }
            found.set(visitor.id, { ...known, times: Math.max(known.times, visitor.times), passages: [...known.passages, passage] })
        }
    }
    return [...found.values()].filter((one) => one.times > 1).sort((a, b) => b.times - a.times)
}
