/**
 * The server-sent event stream, read with fetch instead of EventSource: that lets a reconnect carry Last-Event-ID
 * after any failure (EventSource gives up on an HTTP error), and lets us choose the back-off.
 *
 * Life: start() → connecting → live → (failure) lost, with a countdown → connecting … → stop().
 * A tab that is hidden for a while disconnects, because browsers allow six connections to a host over all tabs;
 * it resumes from the last id when it is looked at again.
 */
import { signal } from '@preact/signals'
import { ApiError, apiUrl, request } from './http'

export interface Message {
    topic: string
    id: string
    data: string
}

export type Connection =
    | { state: 'idle' }
    | { state: 'connecting' }
    | { state: 'live' }
    | { state: 'lost'; retryAt: number; since: number } // since: when it was heard last, ms since 1970

export const connection = signal<Connection>({ state: 'idle' })

const FIRST_RETRY_MS = 1_000
const MAX_RETRY_MS = 30_000
const SILENCE_MS = 60_000 // the server sends a comment every 15 s: this long without a byte is a dead peer
const HIDDEN_MS = 60_000
const MAX_MESSAGE_CHARS = 1 << 20

/** Splits the bytes of an event stream into messages. Keeps what is incomplete for the next call. */
export class Parser {
    private rest = ''
    private topic = ''
    private data: string[] = []
    lastId = ''

    push(text: string): Message[] {
        const messages: Message[] = []
        this.rest += text
        if (this.rest.length > MAX_MESSAGE_CHARS) {
            throw new Error('event longer than the limit')
        }
        const lines = this.rest.split(/\r?\n/)
        this.rest = lines.pop() ?? ''
        for (const line of lines) {
            if (line === '') {
                if (this.data.length > 0) {
                    messages.push({ topic: this.topic || 'message', id: this.lastId, data: this.data.join('\n') })
                }
                this.topic = ''
                this.data = []
            } else {
                this.field(line)
            }
        }
        return messages
    }

    private field(line: string): void {
        const colon = line.indexOf(':')
        if (colon === 0) {
            return // a comment: the server's keep-alive
        }
        const name = colon < 0 ? line : line.slice(0, colon)
        const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
        if (name === 'event') {
            this.topic = value
        } else if (name === 'data') {
            this.data.push(value)
        } else if (name === 'id') {
            this.lastId = value
        }
    }
}

export class Stream {
    private lastId = ''
    private abort: AbortController | null = null
    private retryTimer = 0
    private silenceTimer = 0
    private hiddenTimer = 0
    private failures = 0
    private heardAt = Date.now()
    private running = false

    constructor(
        private readonly topics: string[],
        private readonly onMessages: (messages: Message[]) => void,
        private readonly onConnect: (isResume: boolean) => void,
    ) {
        document.addEventListener('visibilitychange', () => this.visibilityChanged())
        window.addEventListener('online', () => this.retryNow())
        // A page that is left may be kept by the browser, and its stream would hold one of six connections.
        window.addEventListener('pagehide', () => this.disconnect())
        window.addEventListener('pageshow', (event) => {
            if (event.persisted && this.running) {
                void this.connect()
            }
        })
    }

    start(): void {
        if (!this.running) {
            this.running = true
            void this.connect()
        }
    }

    stop(): void {
        this.running = false
        this.disconnect()
        connection.value = { state: 'idle' }
    }

    retryNow(): void {
        if (this.running && connection.value.state === 'lost') {
            window.clearTimeout(this.retryTimer)
            void this.connect()
        }
    }

    private disconnect(): void {
        window.clearTimeout(this.retryTimer)
        window.clearTimeout(this.silenceTimer)
        this.abort?.abort()
        this.abort = null
    }

    private visibilityChanged(): void {
        window.clearTimeout(this.hiddenTimer)
        if (document.hidden) {
            this.hiddenTimer = window.setTimeout(() => this.stop(), HIDDEN_MS)
        } else if (!this.running && connection.value.state === 'idle') {
            this.start()
        }
    }

    private async connect(): Promise<void> {
        const abort = new AbortController()
        this.abort = abort
        if (connection.value.state !== 'lost') {
            connection.value = { state: 'connecting' } // while lost, the banner stays until it really is back
        }
        try {
            const headers: Record<string, string> = { Accept: 'text/event-stream' }
            if (this.lastId) {
                headers['Last-Event-ID'] = this.lastId
            }
            const url = apiUrl('/stream', { topics: this.topics.join(',') })
            const response = await request(url, { headers, signal: abort.signal, cache: 'no-store' })
            const isResume = this.lastId !== '' || this.failures > 0
            this.failures = 0
            connection.value = { state: 'live' }
            this.onConnect(isResume)
            await this.read(response, abort)
            this.retryLater(abort) // the server ended the stream: it restarts, or drains
        } catch (error) {
            if (error instanceof ApiError && error.httpStatus === 401) {
                this.stop()
                return
            }
            this.retryLater(abort)
        }
    }

    private async read(response: Response, abort: AbortController): Promise<void> {
        const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
        const parser = new Parser()
        parser.lastId = this.lastId
        for (;;) {
            window.clearTimeout(this.silenceTimer)
            this.silenceTimer = window.setTimeout(() => this.silence(abort), SILENCE_MS)
            const { done, value } = await reader.read()
            if (done) {
                return
            }
            this.heardAt = Date.now()
            const messages = parser.push(value)
            this.lastId = parser.lastId
            if (messages.length > 0) {
                this.onMessages(messages)
            }
        }
    }

    private silence(abort: AbortController): void {
        if (this.abort === abort && this.running) {
            abort.abort()
        }
    }

    private retryLater(abort: AbortController): void {
        window.clearTimeout(this.silenceTimer)
        if (!this.running || this.abort !== abort) {
            return
        }
        // Full jitter on the upper half: a restarted server is not met by every tab in the same millisecond.
        const ceiling = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** this.failures)
        const wait = ceiling / 2 + Math.random() * (ceiling / 2)
        this.failures++
        connection.value = { state: 'lost', retryAt: Date.now() + wait, since: this.heardAt }
        this.retryTimer = window.setTimeout(() => void this.connect(), wait)
    }
}
