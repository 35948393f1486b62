/** Cameras in an ION's document: where they stand, and the document with one more, or with another secret. Pure. */
import { isPrediction, nameOf, type IonDoc, type Part, type Values } from '../state/ion_doc'

/** What each kind of source calls the address of its cameras, and how such an address begins. */
const KINDS = [
    { kind: 'rtsp', key: 'url', is: /^rtsp:\/\//i, hasPassword: true },
    { kind: 'mjpeg', key: 'url', is: /^http:\/\//i, hasPassword: true },
    { kind: 'v4l2', key: 'device', is: /^\/dev\//, hasPassword: false },
    { kind: 'video', key: 'path', is: /^\//, hasPassword: false },
] as const

export type CameraKind = (typeof KINDS)[number]

/** Undefined: no source takes cameras of such an address. */
export const kindOfAddress = (address: string): CameraKind | undefined => KINDS.find((one) => one.is.test(address.trim()))

const sourceOf = (pipeline: Part) => (typeof pipeline['source'] === 'object' && pipeline['source'] !== null ? (pipeline['source'] as Values) : {})
const camerasOf = (source: Values) => (Array.isArray(source['cameras']) ? (source['cameras'] as Values[]) : [])

/** The pipelines of a document that take cameras, by the kind of their source. */
export const pipelinesOf = (doc: IonDoc): { pipeline: string; kind: string }[] =>
    doc.pipelines.filter(isPrediction).flatMap((one) => (KINDS.some(({ kind }) => kind === sourceOf(one)['kind']) ? [{ pipeline: nameOf(one), kind: String(sourceOf(one)['kind']) }] : []))

export interface NewCamera {
    address: string // without a password
    name: string
    secret: string // its name in the project; '': none
}

const OPTION = 'password='

function withChange(doc: IonDoc, pipeline: string, change: (cameras: Values[]) => Values[]): IonDoc {
    const changed = (one: Part): Part => ({ ...one, source: { ...sourceOf(one), cameras: change(camerasOf(sourceOf(one))) } })
    return { ...doc, pipelines: doc.pipelines.map((one) => (nameOf(one) === pipeline ? changed(one) : one)) }
}

export function withCamera(doc: IonDoc, pipeline: string, { address, name, secret }: NewCamera): IonDoc {
    const key = kindOfAddress(address)?.key ?? 'url'
    return withChange(doc, pipeline, (cameras) => [...cameras, { name, [key]: address, ...(secret && { secrets: [OPTION + secret] }) }])
}

/** That camera gets its password from another secret; what stood there as its password goes. */
export function withSecret(doc: IonDoc, pipeline: string, name: string, secret: string): IonDoc {
    return withChange(doc, pipeline, (cameras) =>
        cameras.map((one) => {
            if (one['name'] !== name) {
                return one
            }
            const { password: _, ...rest } = one
            const others = (Array.isArray(one['secrets']) ? (one['secrets'] as string[]) : []).filter((it) => !it.startsWith(OPTION))
            return { ...rest, secrets: [...others, OPTION + secret] }
        }),
    )
}

/** The secret that it has now; '': none is named. */
export function secretOf(doc: IonDoc, pipeline: string, name: string): string {
    const source = sourceOf(doc.pipelines.find((one) => nameOf(one) === pipeline) ?? {})
    const named = [camerasOf(source).find((one) => one['name'] === name), source].flatMap((one) => (Array.isArray(one?.['secrets']) ? (one['secrets'] as string[]) : []))
    return named.find((one) => one.startsWith(OPTION))?.slice(OPTION.length) ?? ''
}

/** An address as people copy it has its password: it is taken out, for a document is shown to many. */
export function withoutPassword(address: string): { address: string; password: string } {
    const found = /^(\w+:\/\/[^:@/?#]*):([^@/?#]*)@(.*)$/.exec(address.trim())
    if (!found) {
        return { address: address.trim(), password: '' }
    }
    try {
        return { address: `${found[1]}@${found[3]}`, password: decodeURIComponent(found[2]!) }
    } catch {
        return { address: `${found[1]}@${found[3]}`, password: found[2]! }
    }
}

/** "cam-3" of rtsp://cam-3.plant/stream, "video0" of /dev/video0: what one would call it; '' of an address of digits. */
export function nameOfAddress(address: string): string {
    const host = /^\w+:\/\/(?:[^@/]*@)?([^:/?#]+)/.exec(address)?.[1]
    const word = host === undefined ? (address.split('/').pop() ?? '').replace(/\.\w+$/, '') : /^[\d.]+$/.test(host) ? '' : host.split('.')[0]!
    return word.toLowerCase().replace(/[^a-z0-9_-]+/g, '-')
}
