/**
 * The log of one task, followed as it grows by long polls from the last offset. Memory is bounded: the oldest lines go.
 */
import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { ApiError, apiUrl, messageOf, request, segment } from '../state/http'
import { Icon } from './icon'

const KEEP_CHARS = 256 * 1024
const WAIT_S = 20
const RETRY_MS = 3_000
const EMPTY_MS = 1_000 // it is empty so far, or the server did not wait
const LATE_MS = 10_000 // lines may still come after the end
const NEAR_END_PX = 24
const MARKS_MAX = 2_000

/** Terminal colours and carriage returns say nothing here. */
function clean(text: string): string {
    // eslint-disable-next-line no-control-regex
    return text.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, '').replace(/\r(?!\n)/g, '\n').replace(/\r\n/g, '\n')
}

/** Drops whole lines from the front until the text fits. */
export function keepTail(text: string): { text: string; dropped: boolean } {
    if (text.length <= KEEP_CHARS) {
        return { text, dropped: false }
    }
    const cut = text.indexOf('\n', text.length - KEEP_CHARS)
    return { text: cut < 0 ? text.slice(-KEEP_CHARS) : text.slice(cut + 1), dropped: true }
}

const pause = (ms: number, abort: AbortSignal) =>
    new Promise<void>((resolve) => {
        const timer = window.setTimeout(resolve, ms)
        abort.addEventListener('abort', () => {
            window.clearTimeout(timer)
            resolve()
        })
    })

/** Where to read on: more than what came where a line counts what is left out. */
function nextOffset(response: Response, fallback: number): number {
    const next = Number(response.headers.get('X-Weir-Offset') ?? NaN)
    return Number.isFinite(next) ? next : fallback
}

/** Reads the log for ever (until aborted), handing on what is new and what went wrong. */
async function follow(task: string, attempt: number | null, isOver: () => boolean, abort: AbortSignal, onText: (text: string) => void, onError: (text: string) => void) {
    const decoder = new TextDecoder()
    let offset = 0
    while (!abort.aborted) {
        try {
            const url = apiUrl(`/tasks/${segment(task)}/log`, { offset, attempt, wait_s: offset > 0 && !isOver() ? WAIT_S : 0 })
            const response = await request(url, { signal: abort })
            const bytes = new Uint8Array(await response.arrayBuffer())
            offset = nextOffset(response, offset + bytes.length)
            onError('')
            onText(decoder.decode(bytes, { stream: true }))
            if (bytes.length === 0) {
                await pause(isOver() ? LATE_MS : EMPTY_MS, abort)
            }
        } catch (error) {
            if (abort.aborted) {
                return
            }
            onError(error instanceof ApiError && error.httpStatus === 404 ? 'This task has no log yet.' : messageOf(error))
            await pause(RETRY_MS, abort)
        }
    }
}

/** The text with every place that contains the words marked; the chosen one by its number. */
function Marked({ text, words, chosen }: { text: string; words: string; chosen: number }) {
    const parts = useMemo(() => splitAt(text, words), [text, words])
    return (
        <>
            {parts.map((part, i) => (i % 2 === 0 ? part : <mark key={i} class={(i - 1) / 2 === chosen ? 'at' : ''}>{part}</mark>))}
        </>
    )
}

/** Plain text at even places, what was found at odd ones; capitals make no difference. */
export function splitAt(text: string, words: string): string[] {
    const [low, needle] = [text.toLowerCase(), words.toLowerCase()]
    const parts: string[] = []
    let from = 0
    for (let at = needle ? low.indexOf(needle) : -1; at >= 0 && parts.length < 2 * MARKS_MAX; at = low.indexOf(needle, from)) {
        parts.push(text.slice(from, at), text.slice(at, at + needle.length))
        from = at + needle.length
    }
    parts.push(text.slice(from))
    return parts
}

const SAVE_MAX_BYTES = 64 << 20

/** Hands the whole log to the browser as a file: the server gives it in parts. */
async function save(task: string, attempt: number | null, title: string): Promise<void> {
    const parts: ArrayBuffer[] = []
    let [offset, bytes] = [0, 0]
    while (bytes < SAVE_MAX_BYTES) {
        const response = await request(apiUrl(`/tasks/${segment(task)}/log`, { offset, attempt, wait_s: 0 }))
        const part = await response.arrayBuffer()
        if (part.byteLength === 0) {
            break
        }
        parts.push(part)
        bytes += part.byteLength
        offset = nextOffset(response, offset + part.byteLength)
    }
    const link = document.createElement('a')
    link.href = URL.createObjectURL(new Blob(parts, { type: 'text/plain' }))
    link.download = `${title.replace(/ /g, '-')}${attempt ? `-attempt-${attempt}` : ''}.log`
    link.click()
    window.setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}

export function LogView(props: {
    task: string
    attempt: number | null // null: the newest
    isOver: boolean // nothing more will come
    title: string
    children?: ComponentChildren
}) {
    const { task, attempt, title } = props
    const [log, setLog] = useState({ text: '', dropped: false })
    const [error, setError] = useState('')
    const [following, setFollowing] = useState(true)
    const [words, setWords] = useState('')
    const [chosen, setChosen] = useState(-1)
    const [shows, setShows] = useState(0) // grows when the browser shows the page again that it kept
    const [isWrapped, setWrapped] = useState(false)
    const pre = useRef<HTMLPreElement>(null)
    const found = useMemo(() => (splitAt(log.text, words).length - 1) / 2, [log.text, words])

    const isOver = useRef(props.isOver)
    isOver.current = props.isOver
    useEffect(() => {
        const abort = new AbortController()
        setLog({ text: '', dropped: false })
        void follow(
            task,
            attempt,
            () => isOver.current,
            abort.signal,
            (more) =>
                more &&
                setLog((old) => {
                    const tail = keepTail(old.text + clean(more))
                    return { text: tail.text, dropped: old.dropped || tail.dropped }
                }),
            setError,
        )
        const end = () => abort.abort()
        window.addEventListener('pagehide', end) // kept by the browser, it would hold a connection
        return () => {
            window.removeEventListener('pagehide', end)
            end()
        }
    }, [task, attempt, shows])
    useEffect(() => {
        const again = (event: PageTransitionEvent) => event.persisted && setShows((n) => n + 1)
        window.addEventListener('pageshow', again)
        return () => window.removeEventListener('pageshow', again)
    }, [])

    useEffect(() => {
        if (following && pre.current) {
            pre.current.scrollTop = pre.current.scrollHeight
        }
    }, [log, following])

    useEffect(() => {
        pre.current?.querySelector('mark.at')?.scrollIntoView({ block: 'nearest' })
    }, [chosen, words])

    /** The next match, or the one before; what was followed stands still. */
    const step = (by: 1 | -1) => {
        if (found > 0) {
            setFollowing(false)
            setChosen((chosen + by + found) % found)
        }
    }
    const onSearchKey = (event: KeyboardEvent) => {
        if (event.key === 'Enter') {
            event.preventDefault()
            step(event.shiftKey ? -1 : 1)
        }
    }
    const onScroll = (event: Event) => {
        const element = event.currentTarget as HTMLElement // pre.current is null once the page is left
        setFollowing(element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_END_PX)
    }
    return (
        <section class="log-view" aria-label={`Log of ${title}`}>
            <header>
                <h3>{title}</h3>
                {error && (
                    <small class="muted" role="status">
                        {error}
                    </small>
                )}
                {props.children}
                <label class="input log-search">
                    <Icon name="search" />
                    <input
                        type="text"
                        aria-label={`Search in the log of ${title}`}
                        placeholder="Search"
                        value={words}
                        onInput={(event) => {
                            setWords(event.currentTarget.value)
                            setChosen(-1)
                        }}
                        onKeyDown={onSearchKey}
                    />
                    {words !== '' && (
                        <span class="small muted nowrap" role="status">
                            {chosen >= 0 ? `${chosen + 1} of ` : ''}
                            {found === MARKS_MAX ? `${MARKS_MAX} or more` : found} {found === 1 ? 'place' : 'places'}
                        </span>
                    )}
                </label>
                <button type="button" class="button small" aria-pressed={isWrapped} onClick={() => setWrapped(!isWrapped)}>
                    Wrap
                </button>
                <button type="button" class="button small" onClick={() => void save(task, attempt, title).catch((failure) => setError(messageOf(failure)))}>
                    <Icon name="download" size={14} />
                    Download<span class="hidden"> the log of {title}</span>
                </button>
                <button type="button" class="button small" aria-pressed={following} onClick={() => setFollowing(!following)}>
                    <Icon name={following ? 'pause' : 'play'} size={14} />
                    {following ? 'Following' : 'Follow'}
                </button>
            </header>
            <pre ref={pre} class={`log ${isWrapped ? 'is-wrapped' : ''}`} tabIndex={0} role="log" aria-live="off" aria-label={`Log of ${title}`} onScroll={onScroll}>
                {log.dropped && <span class="muted">… earlier lines are not kept in the page; `weir logs` has them all{'\n'}</span>}
                {(log.text && (words ? <Marked text={log.text} words={words} chosen={chosen} /> : log.text)) || (error ? '' : props.isOver ? 'It printed nothing.' : 'Waiting for the first line…')}
            </pre>
        </section>
    )
}
