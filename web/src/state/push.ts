/** A file becomes a model version: its bytes are stored under their SHA-256, then the server looks at them. */
import type { ModelVersion } from '../api'
import { apiUrl, ApiError, auth, call, csrf, segment } from './http'
import { sha256Of } from './sha256'
import { models } from './store'

const LOOK_MS = 180_000 // longer than the server lets one look take

export interface Push {
    model: string
    file: Blob
    labels: string[] | undefined
    preprocess: Record<string, unknown> | undefined
    alias: string | undefined
    project: string | undefined
}

export type Step = { doing: 'reads the file' | 'uploads' | 'looks at the file'; part: number }

/** fetch() does not tell how much has gone. */
export function sendBytes(path: string, file: Blob, onProgress: (part: number) => void, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
        signal?.throwIfAborted() // what was called off before hears nothing of it later
        const request = new XMLHttpRequest()
        signal?.addEventListener('abort', () => request.abort())
        request.onabort = () => reject(new DOMException('It was cancelled.', 'AbortError'))
        request.open('PUT', path)
        for (const [name, value] of Object.entries(csrf())) {
            request.setRequestHeader(name, value)
        }
        request.upload.onprogress = (event) => onProgress(event.total > 0 ? event.loaded / event.total : 0)
        request.onerror = () => reject(new ApiError(0, 'NETWORK', 'The connection broke while the file was sent.'))
        request.onload = () => {
            if (request.status >= 200 && request.status < 300) {
                resolve()
                return
            }
            if (request.status === 401) {
                auth.value = 'signed-out'
            }
            let error = { status: `HTTP ${request.status}`, message: request.statusText || 'The server gave no reason.' }
            try {
                error = (JSON.parse(request.responseText) as { error?: typeof error }).error ?? error
            } catch {
                // Not the server's own answer: the status line has to do.
            }
            reject(new ApiError(request.status, error.status, error.message))
        }
        request.send(file)
    })
}

/** An identifier for this version: sent again after a lost answer it is still the same version. */
export function newId(): string {
    const bytes = crypto.getRandomValues(new Uint8Array(16))
    bytes[6] = (bytes[6]! & 0x0f) | 0x40
    bytes[8] = (bytes[8]! & 0x3f) | 0x80
    const hex = [...bytes].map((one) => one.toString(16).padStart(2, '0')).join('')
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

export async function push(id: string, one: Push, onStep: (step: Step) => void): Promise<ModelVersion> {
    const blob = await sha256Of(one.file, (part) => onStep({ doing: 'reads the file', part }))
    await sendBytes(apiUrl(`/blobs/${blob}?as=model`), one.file, (part) => onStep({ doing: 'uploads', part }))
    onStep({ doing: 'looks at the file', part: 1 })
    const { labels, preprocess, alias, project } = one
    const version = await call<ModelVersion>('POST', `/models/${segment(one.model)}/versions`, { id, blob, labels, preprocess, alias, project }, LOOK_MS)
    await models.load()
    return version
}

/** Names of classes: a JSON array, or one a line. */
export function labelsOf(text: string): string[] | undefined {
    const trimmed = text.trim()
    if (trimmed === '') {
        return undefined
    }
    if (trimmed.startsWith('[')) {
        const list: unknown = JSON.parse(trimmed)
        if (Array.isArray(list) && list.every((one) => typeof one === 'string')) {
            return list
        }
        throw new Error('The labels are no JSON array of texts.')
    }
    return trimmed.split(/\r?\n/).map((line) => line.trim())
}

const numbersOf = (text: string) => text.split(/[\s,]+/).filter(Boolean).map(Number)

/** What a form says of the picture rule, as the server takes it; undefined: nothing is said. */
export function ruleOf(values: Readonly<Record<string, string>>): Record<string, unknown> | undefined {
    const rule: Record<string, unknown> = {}
    for (const [key, text] of Object.entries(values)) {
        const value = text.trim()
        if (value === '') {
            continue
        }
        if (key === 'mean' || key === 'std') {
            const numbers = numbersOf(value)
            if (numbers.some(Number.isNaN)) {
                throw new Error(`${key === 'mean' ? 'Mean' : 'Deviation'}: "${value}" are no numbers.`)
            }
            rule[key] = numbers
        } else {
            rule[key] = /^\d+(\.\d+)?$/.test(value) ? Number(value) : value
        }
    }
    return Object.keys(rule).length > 0 ? rule : undefined
}
