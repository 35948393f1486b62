/** The frames of a passage, as its decision has them. */
import type { Decision, Time } from '../api'

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
    n_named: number // so many among the last m name the person
    refused: Readonly<Record<string, number>> // not compared: why, how many
    frames?: readonly FilmFrame[]
    nearest?: readonly Near[]
    rule?: { n: number; m: number }
    visitor?: { id: string; times: number; first_ms: Time } | null
}

/** Null: it was decided from one frame. */
export const toldOf = (decision: Decision): Told | null => decision.passage as Told | null

export const framesOf = (decision: Decision): readonly FilmFrame[] => toldOf(decision)?.frames ?? []

const worthOf = (frame: FilmFrame | undefined) => (frame?.is_best ? Infinity : (frame?.score ?? -Infinity))

/** Numbers of the best frames that have a picture, at most so many, in time; without a score any is as good. */
export function bestOf(frames: readonly FilmFrame[], n: number): number[] {
    const shown = [...frames.keys()].filter((i) => frames[i]!.has_picture)
    return shown.sort((a, b) => Number(worthOf(frames[b]) > worthOf(frames[a])) - Number(worthOf(frames[a]) > worthOf(frames[b]))).slice(0, n).sort((a, b) => a - b)
}
