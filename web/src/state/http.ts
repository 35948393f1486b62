/**
 * Requests to /api/v1. One place adds the CSRF header, turns every failure into an ApiError with a sentence for
 * people, and notices that the session has ended.
 */
import { signal } from '@preact/signals'
import type { Caller, ErrorBody, List } from '../api'
import type { Opt } from '../types'

export type Auth = 'checking' | 'signed-in' | 'signed-out'

export const auth = signal<Auth>('checking')
export const session = signal<Caller | null>(null)

export class ApiError extends Error {
    constructor(
        readonly httpStatus: number, // 0: no answer at all
        readonly code: string,
        message: string,
    ) {
        super(message)
    }

    get isNetwork(): boolean {
        return this.httpStatus === 0
    }
}

export type Params = Record<string, Opt<string | number>>

const BASE = '/api/v1'
const TIMEOUT_MS = 30_000

export function apiUrl(path: string, params: Params = {}): string {
    const query = new URLSearchParams()
    for (const [key, value] of Object.entries(params)) {
        if (value !== null && value !== undefined && value !== '') {
            query.set(key, String(value))
        }
    }
    const text = query.toString()
    return BASE + path + (text ? '?' + text : '')
}

/** What is asked while somebody types may be wrong: the server then says so in an answer, which a browser does not report as a failure. */
export const DRAFT = { 'X-Weir-Draft': '1' }

const statusOf = (response: Response) => Number(response.headers.get('X-Weir-Status') ?? response.status)

async function errorOf(response: Response): Promise<ApiError> {
    let code = `HTTP ${response.status}`
    let message = response.statusText || 'the server gave no reason'
    try {
        const { error } = (await response.json()) as { error?: ErrorBody['error'] | string } // a text: the inference protocols' form
        code = typeof error === 'object' ? error.status : code
        message = (typeof error === 'object' ? error.message : error) ?? message
    } catch {
        // Not one of our error bodies (a proxy in between): the status line has to do.
    }
    return new ApiError(statusOf(response), code, message)
}

/** fetch that throws ApiError for anything but 2xx. The caller may pass its own signal for long polls. */
export async function request(path: string, init: RequestInit = {}, timeoutMs = TIMEOUT_MS): Promise<Response> {
    let response: Response
    try {
        response = await fetch(path, {
            credentials: 'same-origin',
            ...init,
            signal: init.signal ?? AbortSignal.timeout(timeoutMs),
        })
    } catch (cause) {
        if (init.signal?.aborted) {
            throw cause
        }
        throw new ApiError(0, 'NETWORK', 'The server does not answer.')
    }
    if (response.status === 401) {
        auth.value = 'signed-out'
    }
    if (statusOf(response) >= 400) {
        throw await errorOf(response)
    }
    return response
}

export async function get<T>(path: string, params: Params = {}, more: Record<string, string> = {}): Promise<T> {
    const response = await request(apiUrl(path, params), { headers: { Accept: 'application/json', ...more } })
    return (await response.json()) as T
}

/** All pages of a list, up to maxPages: the bound keeps a huge list from filling the tab. */
export async function getAll<T>(path: string, params: Params = {}, maxPages = 1): Promise<T[]> {
    const items: T[] = []
    let cursor: Opt<string | number>
    for (let page = 0; page < maxPages; page++) {
        const list = await get<List<T>>(path, { ...params, cursor })
        items.push(...list.items)
        cursor = list.next
        if (cursor === null || cursor === undefined) {
            break
        }
    }
    return items
}

/** What each change must carry: the CSRF value of the session. */
export function csrf(): Record<string, string> {
    return { 'X-Weir-Csrf': session.value?.csrf ?? '' }
}

/** A change, or a question with a body. */
async function post(method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: unknown, timeoutMs = TIMEOUT_MS): Promise<Response> {
    const headers = csrf()
    if (body !== undefined) {
        headers['Content-Type'] = 'application/json'
    }
    return request(apiUrl(path), { method, headers, body: body === undefined ? null : JSON.stringify(body) }, timeoutMs)
}

export async function send(method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<void> {
    await post(method, path, body)
}

/** A question about what somebody types: nothing is changed, and that it is wrong is an answer. */
export async function askDraft<T>(path: string, body: unknown): Promise<T> {
    const headers = { ...csrf(), ...DRAFT, 'Content-Type': 'application/json' }
    return (await (await request(apiUrl(path), { method: 'POST', headers, body: JSON.stringify(body) })).json()) as T
}

/** As send(), and what the server answers. */
export async function call<T>(method: 'POST' | 'PUT' | 'PATCH', path: string, body?: unknown, timeoutMs = TIMEOUT_MS): Promise<T> {
    return (await (await post(method, path, body, timeoutMs)).json()) as T
}

/** Reads the session; false when nobody is signed in. Network failures are thrown. */
export async function openSession(): Promise<boolean> {
    try {
        session.value = await get<Caller>('/session')
        auth.value = 'signed-in'
        return true
    } catch (error) {
        if (error instanceof ApiError && (error.httpStatus === 401 || error.httpStatus === 403)) {
            auth.value = 'signed-out'
            return false
        }
        throw error
    }
}

export function segment(name: string): string {
    return encodeURIComponent(name)
}

export function messageOf(error: unknown): string {
    return error instanceof Error ? error.message : String(error)
}
