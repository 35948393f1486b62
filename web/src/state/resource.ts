/**
 * A resource is one answer of the server that the page shows: its data, whether it is being fetched, and what went
 * wrong last. A failed refresh keeps the old data: stale and marked beats blank.
 */
import { signal, type Signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { ApiError } from './http'

export class Resource<T> {
    readonly data: Signal<T | undefined> = signal<T | undefined>(undefined)
    readonly error: Signal<ApiError | null> = signal<ApiError | null>(null)
    readonly loading = signal(false)
    /** Somebody has looked at it. */
    isWanted = false
    /** When it last came, and when it last failed; ms since 1970, 0: never. */
    loadedAt = 0
    failedAt = 0
    private again = false
    private timer = 0

    constructor(private readonly loader: () => Promise<T>) {}

    /** Fetches. A call during a fetch queues exactly one more, so that the last change is always seen. */
    async load(): Promise<void> {
        this.isWanted = true
        if (this.loading.peek()) {
            this.again = true
            return
        }
        this.loading.value = true
        try {
            do {
                this.again = false
                this.data.value = await this.loader()
            } while (this.again)
            this.loadedAt = Date.now()
            this.error.value = null
        } catch (error) {
            this.failedAt = Date.now()
            this.error.value = error instanceof ApiError ? error : new ApiError(-1, 'PAGE', String(error))
        } finally {
            this.again = false
            this.loading.value = false
        }
    }

    /** load() after a pause in which further calls are merged: many events, one request. */
    loadSoon(delayMs = 300): void {
        if (this.timer === 0) {
            this.timer = window.setTimeout(() => {
                this.timer = 0
                void this.load()
            }, delayMs)
        }
    }

    /** The caller may not see it: asking again changes nothing. */
    get isDenied(): boolean {
        return this.error.peek()?.httpStatus === 403
    }

    /** It has changed: fetched again soon if somebody has looked at it. */
    refresh(): void {
        if (this.isWanted && !this.isDenied) {
            this.loadSoon()
        }
    }

    /** Fetches what was never fetched. */
    need(): void {
        if (!this.isWanted) {
            void this.load()
        }
    }

    cancel(): void {
        window.clearTimeout(this.timer)
        this.timer = 0
    }
}

/** A resource that belongs to the component: fetched when `key` changes, dropped with it. */
export function useResource<T>(key: string, loader: () => Promise<T>): Resource<T> {
    const resource = useMemo(() => new Resource<T>(loader), [key])
    useEffect(() => {
        void resource.load()
        return () => resource.cancel()
    }, [resource])
    return resource
}
