/**
 * The face a decision was made on. Images are fetched, not linked: cameras may store portable graymaps, which browsers
 * do not draw, and one picture is kept once for all rows that show it. The cache is bounded; what leaves it is freed.
 */
import { useEffect, useState } from 'preact/hooks'
import type { Decision } from '../api'
import { apiUrl, request, segment } from '../state/http'
import { Icon } from './icon'
import { decodePortable, isPortable } from './portable'

const KEEP = 240 // a little over the decisions kept, so that a visible row is never evicted
const cache = new Map<string, Promise<string>>()

function free(url: Promise<string>): void {
    url.then((text) => URL.revokeObjectURL(text)).catch(() => undefined)
}

async function fetchImage(id: string): Promise<string> {
    const response = await request(apiUrl(`/decisions/${segment(id)}/image`))
    const blob = await response.blob()
    const bytes = new Uint8Array(await blob.arrayBuffer())
    // By the bytes, not by Content-Type: the server does not look into a picture to name its kind.
    return URL.createObjectURL(isPortable(bytes) ? await decodePortable(bytes) : blob)
}

function imageUrl(decision: Decision): Promise<string> {
    const key = decision.image ?? decision.id
    let url = cache.get(key)
    if (url === undefined) {
        url = fetchImage(decision.id)
        url.catch(() => cache.delete(key)) // a failure is not remembered
    } else {
        cache.delete(key) // put again at the end: least recently used goes first
    }
    cache.set(key, url)
    if (cache.size > KEEP) {
        const [oldest, value] = cache.entries().next().value!
        cache.delete(oldest)
        free(value)
    }
    return url
}

export function Face({ decision, size }: { decision: Decision; size: 'small' | 'large' }) {
    const [url, setUrl] = useState('')
    useEffect(() => {
        let isCurrent = true
        setUrl('')
        if (decision.image) {
            imageUrl(decision).then(
                (text) => isCurrent && setUrl(text),
                () => undefined, // the placeholder stays
            )
        }
        return () => {
            isCurrent = false
        }
    }, [decision.image ?? decision.id])
    const name = decision.person ?? 'unknown person'
    return (
        <span class={`face ${size}`}>
            {url ? <img src={url} alt={`Face at ${decision.camera}: ${name}`} /> : <Icon name="person" size={size === 'small' ? 20 : 48} />}
        </span>
    )
}
