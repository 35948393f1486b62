/**
 * The face a decision was made on. Images are fetched, not linked: cameras may store portable graymaps, which browsers
 * do not draw, and one picture is kept once for all rows that show it. The cache is bounded; what leaves it is freed.
 */
import { useEffect, useState } from 'preact/hooks'
import type { Decision } from '../api'
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

const keyOf = (decision: Decision): string => decision.image ?? decision.id

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

async function fetchImage(id: string): Promise<HTMLImageElement> {
    const response = await request(apiUrl(`/decisions/${segment(id)}/image`))
    const blob = await response.blob()
    const head = new Uint8Array(await blob.slice(0, 2).arrayBuffer())
    const image = new Image()
    // By the bytes, not by Content-Type: the server does not look into a picture to name its kind.
    image.src = URL.createObjectURL(isPortable(head) ? decodePortable(new Uint8Array(await blob.arrayBuffer())) : blob)
    await image.decode()
    return image
}

function entryOf(decision: Decision): Entry {
    const key = keyOf(decision)
    const known = cache.get(key)
    if (known !== undefined) {
        cache.delete(key) // put again at the end: least recently used goes first
        cache.set(key, known)
        return known
    }
    const entry: Entry = { ready: Promise.resolve() }
    entry.ready = limited(async () => {
        try {
            entry.image = await fetchImage(decision.id)
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
    return decision.image ? entryOf(decision).ready : Promise.resolve()
}

export function Face({ decision, size }: { decision: Decision; size: 'small' | 'large' }) {
    const [, redraw] = useState(0)
    const url = decision.image ? cache.get(keyOf(decision))?.image?.src : undefined
    useEffect(() => {
        let isCurrent = true
        if (url === undefined) {
            void preloadFace(decision).then(() => isCurrent && redraw((n) => n + 1))
        }
        return () => {
            isCurrent = false
        }
    }, [keyOf(decision)])
    const name = decision.person ?? 'unknown person'
    return (
        <span class={`face ${size}`}>
            {url ? (
                <img src={url} alt={`Face at ${decision.camera}: ${name}`} decoding="sync" />
            ) : (
                <Icon name="person" size={size === 'small' ? 20 : 48} />
            )}
        </span>
    )
}
