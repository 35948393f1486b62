/**
 * The face a decision was made on. Images are fetched, not linked: cameras may store portable graymaps, which browsers
 * do not draw, and one picture is kept once for all rows that show it. The cache is bounded; what leaves it is freed.
 */
import { useEffect, useState } from 'preact/hooks'
import type { Decision } from '../api'
import { isClassified, whoOf } from '../state/finding'
import { ApiError, apiUrl, request, segment } from '../state/http'
import { Icon } from './icon'
import { decodePortable, isPortable } from './portable'

const KEEP = 600
const AT_ONCE = 4 // a browser opens six connections to a host, and the event stream holds one

interface Entry {
    ready: Promise<void>
    /** Held, decoded: a row that shows it has it in its first frame. None: not there yet, or there is no picture. */
    image?: HTMLImageElement
}

const cache = new Map<string, Entry>()
const queue: (() => void)[] = []
let n_running = 0

/** What is shown: kept under a key, fetched from an address of the API. */
interface Source {
    key: string
    path: string
}

const faceOf = (decision: Decision): Source => ({ key: decision.image ?? decision.id, path: `/decisions/${segment(decision.id)}/image` })

/** Runs at most AT_ONCE at a time, the latest asked for first: that is what is looked at. */
async function limited(work: () => Promise<void>): Promise<void> {
    if (n_running >= AT_ONCE) {
        await new Promise<void>((resolve) => queue.push(resolve))
    }
    n_running++
    try {
        await work()
    } finally {
        n_running--
        queue.pop()?.()
    }
}

async function fetchImage(path: string): Promise<HTMLImageElement> {
    const response = await request(apiUrl(path))
    const blob = await response.blob()
    const head = new Uint8Array(await blob.slice(0, 2).arrayBuffer())
    const image = new Image()
    // By the bytes, not by Content-Type: the server does not look into a picture to name its kind.
    image.src = URL.createObjectURL(isPortable(head) ? decodePortable(new Uint8Array(await blob.arrayBuffer())) : blob)
    await image.decode()
    return image
}

function entryOf({ key, path }: Source): Entry {
    const known = cache.get(key)
    if (known !== undefined) {
        cache.delete(key) // put again at the end: least recently used goes first
        cache.set(key, known)
        return known
    }
    const entry: Entry = { ready: Promise.resolve() }
    entry.ready = limited(async () => {
        try {
            entry.image = await fetchImage(path)
        } catch (error) {
            if (!(error instanceof ApiError && error.httpStatus === 404)) {
                cache.delete(key) // tried again when it is asked for again; a picture that is gone is not
            }
        }
    })
    cache.set(key, entry)
    if (cache.size > KEEP) {
        const [oldest, old] = cache.entries().next().value!
        cache.delete(oldest)
        void old.ready.then(() => old.image && URL.revokeObjectURL(old.image.src))
    }
    return entry
}

/** Resolves when the face can be shown at once, or never will be; does not reject. */
export function preloadFace(decision: Decision): Promise<void> {
    return decision.image ? entryOf(faceOf(decision)).ready : Promise.resolve()
}

/** The address of a picture once it can be drawn; drawn again when it has come. */
function useImage(source: Source | null): string | undefined {
    const [, redraw] = useState(0)
    const url = source ? cache.get(source.key)?.image?.src : undefined
    useEffect(() => {
        let isCurrent = true
        if (source && url === undefined) {
            void entryOf(source).ready.then(() => isCurrent && redraw((n) => n + 1))
        }
        return () => {
            isCurrent = false
        }
    }, [source?.key])
    return url
}

export function Face({ decision, size }: { decision: Decision; size: 'small' | 'large' }) {
    const url = useImage(decision.image ? faceOf(decision) : null)
    const name = isClassified(decision) ? whoOf(decision) : (decision.person ?? 'unknown person')
    return (
        <span class={`face ${size}`}>
            {url ? (
                <img src={url} alt={`${isClassified(decision) ? 'Picture' : 'Face'} at ${decision.camera}: ${name}`} decoding="sync" />
            ) : (
                <Icon name={isClassified(decision) ? 'camera' : 'person'} size={size === 'small' ? 20 : 48} />
            )}
        </span>
    )
}

/** A picture at an address of the API; null: there is none. */
export function Shot({ path, name, size }: { path: string | null; name: string; size: string }) {
    const url = useImage(path === null ? null : { key: path, path })
    return <span class={`face ${size}`}>{url ? <img src={url} alt={name} decoding="sync" /> : <Icon name="camera" size={size === 'small' || size === 'picture' ? 20 : 48} />}</span>
}

/** The picture of a decision of which only the identifier is known; null: there is none. */
export const FrameFace = ({ decision, name }: { decision: string | null; name: string }) => <Shot path={decision === null ? null : `/decisions/${segment(decision)}/image`} name={name} size="large" />

/** A picture of a dataset, by its SHA-256. */
export function Picture({ sha256, name }: { sha256: string; name: string }) {
    const url = useImage({ key: sha256, path: `/blobs/${sha256}` })
    return (
        <span class="face picture" title={name}>
            {url ? <img src={url} alt={name} decoding="async" /> : <Icon name="camera" />}
        </span>
    )
}
