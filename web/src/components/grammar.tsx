/**
 * The filter of runs, in MLflow's grammar. The server reads it; what it refuses is underlined where it stands, with its
 * sentence below. Names and words are completed. Its text is in the address (?q=).
 */
import type { ComponentChildren } from 'preact'
import { useId, useRef } from 'preact/hooks'
import type { ApiError } from '../state/http'
import { param, setQuery } from '../state/route'
import { Icon } from './icon'

const COMPLETIONS = 100
const WORDS = /[\w./`"'-]*$/

/** Where the server's sentence says that it is wrong: "filter, character 17: …"; it counts bytes. */
export function placeOf(message: string, text: string): [number, number] | undefined {
    const found = /(?:character|column|position) (\d+)/i.exec(message)
    if (!found) {
        return undefined
    }
    const before = new TextDecoder().decode(new TextEncoder().encode(text).slice(0, Number(found[1]) - 1))
    const from = Math.min(before.length, Math.max(0, text.length - 1))
    const length = /^[^\s]*/.exec(text.slice(from))![0].length
    return [from, from + Math.max(1, length)]
}

export function Grammar(props: { names: readonly string[]; error: ApiError | null; said: ComponentChildren; children?: ComponentChildren }) {
    const text = param('q')
    const id = useId()
    const marks = useRef<HTMLDivElement>(null)
    const place = props.error && placeOf(props.error.message, text)
    const cut = text.search(WORDS)
    const [before, last] = [text.slice(0, cut), text.slice(cut).toLowerCase()]
    const likely = props.names.filter((name) => name.toLowerCase().includes(last)).slice(0, COMPLETIONS)
    return (
        <form class="filter" role="search" aria-label="Filter runs" onSubmit={(event) => event.preventDefault()}>
            <label class="input">
                <Icon name="filter" />
                <span class="grammar">
                    {place && (
                        <div class="query" ref={marks} aria-hidden="true">
                            {text.slice(0, place[0])}
                            <u>{text.slice(...place) || ' '}</u>
                            {text.slice(place[1])}
                        </div>
                    )}
                    <input
                        type="search"
                        name="q"
                        class={`query ${place ? 'is-marked' : ''}`}
                        aria-label="Filter runs"
                        aria-invalid={props.error !== null}
                        aria-describedby={`${id}-why`}
                        autocomplete="off"
                        spellcheck={false}
                        placeholder={'metrics.accuracy > 0.9 and params.lr = "0.1"'}
                        list={id}
                        value={text}
                        onInput={(event) => setQuery({ q: event.currentTarget.value }, true)}
                        onScroll={(event) => marks.current && (marks.current.scrollLeft = event.currentTarget.scrollLeft)}
                    />
                </span>
                <span class="small muted nowrap">{props.said}</span>
                <datalist id={id}>
                    {likely.map((name) => (
                        <option key={name} value={before + name} />
                    ))}
                </datalist>
            </label>
            {props.children}
            <p class="small wrong" role="status" id={`${id}-why`}>
                {props.error?.message}
            </p>
        </form>
    )
}
