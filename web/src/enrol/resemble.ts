/**
 * What replicas say about somebody's pictures: is one face in each, is it good enough to recognise, what people do they resemble. Asked
 * again when the pictures change, one question at a time, with copies of at most SIDE pixels. A replica compares; this page does not.
 */
import { call, messageOf, segment } from '../state/http'
import { fixed } from '../format'
import { change, draftOf, ownerOf, type Known, type Person, type Picture } from './enrolment'
import { smallCopy } from './look'

const AT_ONCE = 10 // pictures of a question, the server's maximum
const PICTURES_MAX = 30 // for each person, the first ones
const SHOWN = 5
const TIMEOUT_MS = 30_000

export interface Near {
    person: string
    score: number
}

/** About one picture. */
export interface Seen {
    faces: number | null // null: no detector looks
    usable: boolean
    why: string | null
    quality: { width: number; sharpness: number; yaw: number } | null
    nearest: readonly Near[]
}

/** About all pictures together. */
export interface Resemblance {
    key: string // names what was asked about
    nearest: readonly Near[]
    confusedFrom: number | null // two people are confused from this score on
    error: string // why it is not known; '': it is
}

interface Answer {
    pictures: Seen[]
    nearest: Near[]
    confused_from: number | null
}

const asked = (known: Known, person: Person): Picture[] => person.pictures.filter((one) => one.look.measures && ownerOf(known, one) === undefined).slice(0, PICTURES_MAX)

/** The person to leave out: somebody resembles themselves. */
const itself = (known: Known, person: Person) => (known.byPerson.has(person.name.trim()) ? person.name.trim() : null)

/** What is to be asked about; '': nothing. */
export function keyOf(known: Known, person: Person): string {
    const some = asked(known, person)
    return some.length === 0 ? '' : [itself(known, person) ?? '', ...some.map((one) => one.sha256)].join()
}

/** Is it still to be asked? */
export const isOpen = (known: Known, person: Person) => keyOf(known, person) !== (person.resembles?.key ?? '')

/** Whom they resemble too much, or undefined. */
export function confusedWith({ name, resembles }: Person): Near | undefined {
    const limit = resembles?.confusedFrom ?? null
    return limit === null ? undefined : resembles!.nearest.find((one) => one.score >= limit && one.person !== name.trim())
}

/** Why they resemble somebody too much; '': they do not. */
export function confusion(person: Person): string {
    const near = confusedWith(person)
    return near ? `Too much like ${near.person}: ${fixed(near.score, 2)}, and two people are confused from ${fixed(person.resembles!.confusedFrom, 2)}.` : ''
}

function merged(answers: readonly Answer[]): Near[] {
    const best = new Map<string, number>()
    for (const one of answers.flatMap((answer) => answer.nearest)) {
        best.set(one.person, Math.max(best.get(one.person) ?? -Infinity, one.score))
    }
    return [...best].map(([person, score]) => ({ person, score })).sort((a, b) => b.score - a.score).slice(0, SHOWN)
}

async function base64Of(blob: Blob): Promise<string> {
    const url = await new Promise<string>((resolve, reject) => {
        const reader = new FileReader()
        reader.onload = () => resolve(reader.result as string)
        reader.onerror = () => reject(new Error('The browser could not read the picture.'))
        reader.readAsDataURL(blob)
    })
    return url.slice(url.indexOf(',') + 1)
}

async function ask(ion: string, known: Known, person: Person): Promise<{ resembles: Resemblance; seen: ReadonlyMap<string, Seen> }> {
    const some = asked(known, person)
    const none = { key: keyOf(known, person), nearest: [], confusedFrom: null, error: '' }
    const seen = new Map<string, Seen>()
    const answers: Answer[] = []
    try {
        for (let i = 0; i < some.length; i += AT_ONCE) {
            const part = some.slice(i, i + AT_ONCE)
            const pictures = await Promise.all(part.map(async (one) => base64Of(await smallCopy(one.look.file))))
            const answer = await call<Answer>('POST', `/ions/${segment(ion)}/look`, { pictures, person: itself(known, person) }, TIMEOUT_MS)
            answers.push(answer)
            part.forEach((one, k) => seen.set(one.sha256, answer.pictures[k]!))
        }
        return { resembles: { ...none, nearest: merged(answers), confusedFrom: answers[0]?.confused_from ?? null }, seen }
    } catch (error) {
        return { resembles: { ...none, error: messageOf(error) }, seen: new Map() }
    }
}

const busy = new Set<string>()

/** Asks until nothing is open. A second call meanwhile does nothing. Does not reject. */
export async function lookAgain(ion: string, known: Known): Promise<void> {
    if (busy.has(ion)) {
        return
    }
    busy.add(ion)
    for (;;) {
        const { people, nToLook } = draftOf(ion)
        const at = nToLook > 0 ? -1 : people.findIndex((one) => isOpen(known, one))
        const person = people[at]
        if (!person) {
            break
        }
        const { resembles, seen } = keyOf(known, person) === '' ? { resembles: undefined, seen: new Map<string, Seen>() } : await ask(ion, known, person)
        const now = draftOf(ion).people
        const told = (one: Person): Person => {
            const { resembles: _before, ...rest } = one
            return { ...rest, ...(resembles && { resembles }), pictures: one.pictures.map((its) => (seen.has(its.sha256) ? { ...its, seen: seen.get(its.sha256)! } : its)) }
        }
        if (now[at]) {
            change(ion, { people: now.map((one, i) => (i === at ? told(one) : one)) }) // what changed meanwhile is asked next
        }
    }
    busy.delete(ion)
}
