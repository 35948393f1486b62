/** Pictures of passages for an enrolment: of one, the frames that the address names, else its best; of several, the best of each. */
import type { Decision } from '../api'
import { dayMinute } from '../format'
import { bestOf, framesOf } from '../state/film'
import { apiUrl, get, messageOf, request, segment } from '../state/http'
import { add, change, draftOf } from './enrolment'

const BEST = 3 // frames of one passage
const OF_EACH = 2 // where there are several
const PASSAGES_MAX = 15

async function picture(path: string): Promise<Blob> {
    return (await request(apiUrl(path))).blob()
}

async function take(ion: string, id: string, wanted: readonly number[] | null, most: number): Promise<void> {
    const decision = await get<Decision>(`/decisions/${segment(id)}`)
    const of = `/decisions/${segment(id)}`
    const film = framesOf(decision)
    const frames = wanted?.filter((i) => film[i]?.has_picture) ?? bestOf(film, most)
    const from = (i: number) => `${decision.camera}, ${dayMinute(film[i]?.time_ms ?? decision.time_ms)}${frames.length > 1 ? `, frame ${i + 1}` : ''}`
    if (frames.length === 0 && decision.image) {
        await add(ion, 0, await picture(`${of}/image`), from(0))
    }
    for (const i of frames) {
        await add(ion, 0, await picture(`${of}/frames/${i}`), from(i))
    }
}

/** @param ids As in the address: "ID" or "ID,ID". @param frames Of the only one: "0,3,5"; '': its best. Does not reject; what failed is said in the draft. */
export async function takePassages(ion: string, ids: string, frames: string): Promise<void> {
    const key = `${ids}/${frames}`
    const all = ids.split(',').filter(Boolean)
    if (all.length === 0 || draftOf(ion).taken === key) {
        return
    }
    change(ion, { taken: key, nToLook: draftOf(ion).nToLook + 1, refused: [] })
    const wanted = all.length === 1 && frames !== '' ? frames.split(',').map(Number) : null
    for (const id of all.slice(0, PASSAGES_MAX)) {
        try {
            await take(ion, id, wanted, all.length === 1 ? BEST : OF_EACH)
        } catch (error) {
            change(ion, { refused: [...draftOf(ion).refused, { path: `passage ${id.slice(-8)}`, why: messageOf(error) }] })
        }
    }
    change(ion, { nToLook: draftOf(ion).nToLook - 1 })
}
