/**
 * Pictures of cameras while somebody looks: each asked for as often as its period says, a few at once (a browser opens six
 * connections to a host, and the event stream holds one), the one that waits longest first. None in a hidden tab, and none
 * while the page is held.
 */
import { signal } from '@preact/signals'
import { ApiError, DRAFT, get, segment } from '../state/http'
import type { Camera, LivePicture } from '../api'

export interface Picture extends Omit<LivePicture, 'picture'> {
    url: string | null
    at: number // when it came, by this browser's clock
}

const TICK_MS = 50
const AT_ONCE = 4
const PAUSE_MS = 2_000 // after a refusal, and after a picture that is the last one still
const FIRST_WAIT_S = 2 // a replica sends none before somebody watches
const WAIT_S = 1 // for the next one; while none comes nobody is kept waiting for it

export const isHeld = signal(false)

/** Nothing is asked for. */
const isQuiet = () => document.hidden || isHeld.peek()

export class Feed {
    readonly picture = signal<Picture | null>(null)
    /** Why there is none, in the server's words; '': there is, or it was not asked for yet. */
    readonly trouble = signal('')
    periodMs = 500
    /** In view: what is scrolled away is not asked for. */
    isSeen = true
    /** It gives pictures, as far as the list says: what gives none is not asked for any. */
    isGiving = false
    private dueAt = 0
    private waitS = FIRST_WAIT_S
    private isBusy = false
    private isOver = false

    constructor(
        private readonly path: string,
        private readonly pipeline: string,
    ) {}

    get due(): number {
        return this.isBusy || !this.isSeen || !this.isGiving ? Infinity : this.dueAt
    }

    soon(): void {
        this.dueAt = 0
    }

    close(): void {
        this.isOver = true
        this.show(null)
    }

    private show(next: Picture | null): void {
        const old = this.picture.peek()
        this.picture.value = next
        if (old?.url) {
            window.setTimeout(() => URL.revokeObjectURL(old.url!), 1000) // once the next one is drawn
        }
    }

    async ask(nowMs: number): Promise<void> {
        this.isBusy = true
        this.dueAt = nowMs + this.periodMs
        try {
            const { picture, ...answer } = await get<LivePicture>(this.path, { pipeline: this.pipeline, after: this.picture.peek()?.seq, wait_s: this.waitS }, DRAFT) // one that is gone is an answer
            const isNew = answer.seq !== this.picture.peek()?.seq
            if (isNew && !this.isOver && !isQuiet()) {
                this.show({ ...answer, url: picture === null ? null : addressOf(picture), at: Date.now() })
            }
            this.waitS = isNew ? WAIT_S : 0
            this.dueAt = isNew ? this.dueAt : Date.now() + PAUSE_MS
            this.trouble.value = ''
        } catch (error) {
            this.dueAt = Date.now() + PAUSE_MS
            this.trouble.value = error instanceof ApiError ? error.message : String(error)
        } finally {
            this.isBusy = false
        }
    }
}

const addressOf = (base64: string) => URL.createObjectURL(new Blob([Uint8Array.from(atob(base64), (one) => one.charCodeAt(0))], { type: 'image/jpeg' }))

const feeds = new Set<Feed>()
let nAsked = 0
let timer = 0

function tick(): void {
    const nowMs = Date.now()
    while (nAsked < AT_ONCE && !isQuiet()) {
        const next = [...feeds].sort((a, b) => a.due - b.due)[0]
        if (next === undefined || next.due > nowMs) {
            return
        }
        nAsked++
        void next.ask(nowMs).finally(() => nAsked--)
    }
}

/** Its pictures, until it is given back to unwatch(). */
export function watch(camera: Camera): Feed {
    const feed = new Feed(`/ions/${segment(camera.ion)}/cameras/${segment(camera.name)}/live`, camera.pipeline)
    feeds.add(feed)
    timer ||= window.setInterval(tick, TICK_MS)
    return feed
}

export function unwatch(feed: Feed): void {
    feeds.delete(feed)
    feed.close()
    if (feeds.size === 0) {
        window.clearInterval(timer)
        timer = 0
    }
}
