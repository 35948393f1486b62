/** Files that a page puts with a run: small ones whole, large ones in parts, of which those that came before a break are not sent again. */
import type { Upload } from '../api'
import { apiUrl, call, getAll, segment, send } from './http'
import { sendBytes } from './push'
import { sha256Of } from './sha256'

export const PART_BYTES = 8 << 20

export const artifactPath = (run: string, path: string): string => `/runs/${segment(run)}/artifacts/${path.split('/').map(encodeURIComponent).join('/')}`

const uploadsPath = (run: string) => `/runs/${segment(run)}/uploads`

export interface Sending {
    run: string
    path: string
    file: File
    signal: AbortSignal
    onPart: (part: number) => void
}

/** One that a break has left, else a new one. */
async function uploadOf({ run, path }: Sending, nParts: number): Promise<Upload> {
    const left = await getAll<Upload>(uploadsPath(run))
    return left.find((one) => one.path === path && one.n_parts === nParts) ?? call<Upload>('POST', uploadsPath(run), { path, n_parts: nParts })
}

async function sendParts(sending: Sending, upload: Upload, nParts: number): Promise<void> {
    const { run, file, signal, onPart } = sending
    for (let number = 1; number <= nParts; number++) {
        const part = file.slice((number - 1) * PART_BYTES, number * PART_BYTES)
        const there = upload.parts.find((one) => one.number === number && one.bytes === part.size)
        const progress = (done: number) => onPart(((number - 1) * PART_BYTES + done * part.size) / file.size)
        if (!there || there.sha256 !== (await sha256Of(part, () => undefined))) {
            await sendBytes(apiUrl(`${uploadsPath(run)}/${segment(upload.id!)}/parts/${number}`), part, progress, signal)
        }
        progress(1)
    }
}

/** Throws what the server says, or AbortError: then nothing of it stays. After a break the same again goes on with it. */
export async function putArtifact(sending: Sending): Promise<void> {
    const { run, path, file, signal, onPart } = sending
    if (file.size <= PART_BYTES) {
        await sendBytes(apiUrl(artifactPath(run, path)), file, onPart, signal)
        return
    }
    const nParts = Math.ceil(file.size / PART_BYTES)
    const upload = await uploadOf(sending, nParts)
    try {
        await sendParts(sending, upload, nParts)
        signal.throwIfAborted()
        await call('POST', `${uploadsPath(run)}/${segment(upload.id!)}/complete`, undefined, JOIN_MS)
    } catch (error) {
        if (signal.aborted) {
            await send('DELETE', `${uploadsPath(run)}/${segment(upload.id!)}`)
        }
        throw error
    }
}

const JOIN_MS = 600_000 // the server reads and writes the whole file once more
