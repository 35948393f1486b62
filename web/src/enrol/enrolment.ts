/** A person is put into a gallery, from the first picture until doors know them. It goes on on every screen, until the tab is closed. */
import { signal } from '@preact/signals'
import type { Dataset, Ion, Member, Pipeline } from '../api'
import { forget, freeze, sendAll, uploads, type FreezeView, type Picked, type Refused } from '../state/dataset_upload'
import { ApiError, getAll, messageOf, segment, send } from '../state/http'
import type { Manifest } from '../state/manifest'
import { sha256Of } from '../state/sha256'
import { lookAt, type Look } from './look'
import { confusion, type Resemblance, type Seen } from './resemble'

export const LEAST = 3 // usable pictures that a person needs, with those that the gallery has
const NAME_MAX = 60 // the part that a name keeps from the old one

export interface Picture {
    sha256: string
    from: string // "photo-1.jpg", "webcam, ahead"
    look: Look
    seen?: Seen // what a replica said of it
}

export interface Person {
    name: string
    pictures: readonly Picture[]
    resembles?: Resemblance
}

export type ListName = 'allow' | 'deny' | 'none'
export type Doing = '' | 'files' | 'list' | 'freeze' | 'undo' | 'done' | 'undone'

/** What an enrolment changed: what it takes to undo it. */
interface Made {
    dataset: string
    files: readonly Picked[]
    lists: readonly { person: string; before: ListName; now: ListName }[]
    version: number // 0: not frozen yet
    startedMs: number
}

export interface Draft {
    people: readonly Person[]
    isMany: boolean // they came as folders
    list: ListName
    refused: readonly Refused[] // files that cannot be sent
    nToLook: number // pictures that are still to be looked at
    taken?: string // passages that pictures were taken from, as the address names them
    doing: Doing
    error: string // why it went no further
    frozen?: FreezeView
    made?: Made
}

const EMPTY: Draft = { people: [{ name: '', pictures: [] }], isMany: false, list: 'none', refused: [], nToLook: 0, doing: '', error: '' }

const drafts = signal<Readonly<Record<string, Draft>>>({})

export const draftOf = (ion: string): Draft => drafts.value[ion] ?? EMPTY

export function change(ion: string, news: Partial<Draft>): void {
    drafts.value = { ...drafts.peek(), [ion]: { ...(drafts.peek()[ion] ?? EMPTY), ...news } }
}

export function begin(ion: string, news: Partial<Draft> = {}): void {
    drafts.value = { ...drafts.peek(), [ion]: { ...EMPTY, ...news } }
}

/** Looks at one more picture of somebody; one that they have already is left away. */
export async function add(ion: string, person: number, file: Blob, from: string): Promise<void> {
    const look = await lookAt(file)
    const sha256 = await sha256Of(look.file, () => undefined)
    const { people } = drafts.peek()[ion] ?? EMPTY
    change(ion, { people: people.map((one, i) => (i !== person || one.pictures.some((its) => its.sha256 === sha256) ? one : { ...one, pictures: [...one.pictures, { sha256, from, look }] })) })
}

export function remove(ion: string, person: number, sha256: string): void {
    change(ion, { people: draftOf(ion).people.map((one, i) => (i === person ? { ...one, pictures: one.pictures.filter((its) => its.sha256 !== sha256) } : one)) })
}

/** Files of one person, or of many: a folder each. @param picked A class "": they lie in no folder. */
export async function addFiles(ion: string, picked: readonly Picked[]): Promise<void> {
    const names = [...new Set(picked.map((one) => one.className))]
    const draft = drafts.peek()[ion] ?? EMPTY
    const isMany = draft.isMany || names.length > 1
    const before = draft.isMany ? draft.people : draft.people.filter((one) => one.pictures.length > 0)
    const people = isMany
        ? [...before, ...names.filter((name) => !before.some((one) => one.name === name)).map((name) => ({ name, pictures: [] }))]
        : draft.people.map((one) => ({ ...one, name: one.name || (names[0] ?? '') }))
    change(ion, { people, isMany, nToLook: draft.nToLook + picked.length })
    for (const one of picked) {
        await add(ion, isMany ? people.findIndex((person) => person.name === one.className) : 0, one.file, one.name)
        change(ion, { nToLook: (drafts.peek()[ion] ?? EMPTY).nToLook - 1 })
    }
}

export interface Known {
    byPerson: ReadonlyMap<string, Manifest['files']>
    bySha256: ReadonlyMap<string, string> // the person in the picture
}

/** The person that the gallery has this picture of; undefined: it has it not. */
export const ownerOf = (known: Known, picture: Picture): string | undefined => known.bySha256.get(picture.sha256)

export const usableOf = (known: Known, person: Person): Picture[] => person.pictures.filter((one) => one.look.grade !== 'out' && one.seen?.usable !== false && ownerOf(known, one) === undefined)

/** Why somebody cannot be enrolled yet; '': they can. */
export function lackOf(known: Known, person: Person): string {
    const name = person.name.trim()
    const n = usableOf(known, person).length
    const has = known.byPerson.get(name)?.length ?? 0
    return name === ''
        ? 'A name is missing.'
        : n === 0
          ? 'There is no usable picture that the gallery does not have.'
          : n + has < LEAST
            ? `${n + has} usable: at least ${LEAST} are needed, of different light and poses.`
            : confusion(person)
}

/** Another spelling of the name that the gallery has. */
export const alikeOf = (known: Known, name: string): string | undefined =>
    known.byPerson.has(name.trim()) ? undefined : [...known.byPerson.keys()].find((one) => one.toLowerCase() === name.trim().toLowerCase())

const EXTENSIONS: Record<number, string> = { 0xff: 'jpg', 0x89: 'png', 0x50: 'pnm' }

/** Its name in the dataset: of its bytes, so that nothing of another picture is replaced, and sent again it is the same. */
async function fileOf(person: Person, { from, look, sha256 }: Picture): Promise<Picked> {
    const head = new Uint8Array(await look.file.slice(0, 1).arrayBuffer())
    const stem = from.replace(/\.[a-z0-9]+$/i, '').replace(/[^a-zA-Z0-9_-]+/g, '-').slice(0, NAME_MAX)
    const name = `${stem}-${sha256.slice(0, 12)}.${EXTENSIONS[head[0]!] ?? 'jpg'}`
    return { className: person.name.trim(), name, file: new File([look.file], name) }
}

async function putOn(ion: string, person: string, list: ListName): Promise<void> {
    const path = `/ions/${segment(ion)}/members/${segment(person)}`
    if (list !== 'none') {
        await send('PUT', path, { list, not_enrolled: true })
        return
    }
    try {
        await send('DELETE', path)
    } catch (error) {
        if (!(error instanceof ApiError && error.httpStatus === 404)) {
            throw error
        }
    }
}

async function madeOf(ion: Ion, dataset: string, people: readonly Person[], known: Known, list: ListName): Promise<Made> {
    const members = list === 'none' ? [] : await getAll<Member>(`/ions/${segment(ion.name)}/members`, {}, 100)
    const files = await Promise.all(people.flatMap((person) => usableOf(known, person).map((picture) => fileOf(person, picture))))
    const before = (person: string) => (members.find((one) => one.person === person)?.list ?? 'none') as ListName
    const lists = list === 'none' ? [] : people.map((one) => ({ person: one.name.trim(), before: before(one.name.trim()), now: list }))
    return { dataset, files, lists, version: 0, startedMs: Date.now() }
}

async function sendFiles(dataset: string, files: readonly Picked[]): Promise<void> {
    const before = uploads.peek()[dataset]
    if (before?.isOver === false) {
        throw new Error(`Other files are on their way to ${dataset}: enrol when they are there.`)
    }
    await sendAll(dataset, files, [])
    const refused = uploads.peek()[dataset]?.refused ?? []
    if (refused.length > 0) {
        throw new Error(`${refused.length} of ${files.length} pictures are not taken. ${refused[0]!.path}: ${refused[0]!.why}`)
    }
    forget(dataset) // nothing is left to be shown of it
}

/** Runs its steps until one fails: what is done is done again without harm. */
async function through(ion: string, steps: readonly [Doing, () => Promise<void>][], end: Doing): Promise<void> {
    try {
        for (const [doing, act] of steps) {
            change(ion, { doing, error: '' })
            await act()
        }
        change(ion, { doing: end })
    } catch (error) {
        change(ion, { error: messageOf(error) })
    }
}

const freezeNow = (ion: string, made: Made) => async () => {
    const frozen = await freeze(made.dataset, (view) => change(ion, { frozen: view }))
    change(ion, { made: { ...made, version: frozen.version?.version ?? 0 } })
}

/** Files, then lists, then a version: a person is barred before a door knows them. After a failure: all of it again. */
export async function enrol(ion: Ion, dataset: Dataset, known: Known): Promise<void> {
    const draft = draftOf(ion.name)
    const people = draft.people.filter((one) => lackOf(known, one) === '')
    await through(ion.name, [
        [
            'files',
            async () => {
                const made = draft.made ?? (await madeOf(ion, dataset.name, people, known, draft.list))
                change(ion.name, { made })
                await sendFiles(dataset.name, made.files)
            },
        ],
        [
            'list',
            async () => {
                for (const { person, now } of draftOf(ion.name).made!.lists) {
                    await putOn(ion.name, person, now)
                }
            },
        ],
        ['freeze', () => freezeNow(ion.name, draftOf(ion.name).made!)()],
    ], 'done')
}

/** Takes out what enrol() put in: files, then a version, then lists, so that no barred person passes in between. */
export async function undo(ion: string, made: Made): Promise<void> {
    await through(ion, [
        [
            'undo',
            async () => {
                for (const one of made.files) {
                    await send('DELETE', `/datasets/${segment(made.dataset)}/files/${segment(one.className)}/${segment(one.name)}`).catch((error: unknown) => {
                        if (!(error instanceof ApiError && error.httpStatus === 404)) {
                            throw error
                        }
                    })
                }
                await freezeNow(ion, made)()
                for (const { person, before } of made.lists) {
                    await putOn(ion, person, before)
                }
            },
        ],
    ], 'undone')
}

/** The prediction pipelines of an ION that know people by this dataset. */
export const galleryOf = (pipeline: Pipeline) => pipeline.deployment?.gallery?.dataset ?? pipeline.gallery_dataset ?? pipeline.dataset

export const doorsOf = (ion: Ion, dataset?: string): Pipeline[] =>
    ion.pipelines.filter((one) => one.type === 'prediction' && galleryOf(one) && (dataset === undefined || galleryOf(one) === dataset))

/** Whether replicas decide by this version of the gallery, or a later one. */
export const knows = (pipeline: Pipeline, version: number): boolean =>
    (pipeline.deployment?.gallery?.version ?? pipeline.gallery_version) >= version && pipeline.served_revision > 0 && pipeline.served_revision >= (pipeline.deployment_revision ?? 0)
