/**
 * One line that narrows a list: words, and key:value for what is exact. It completes keys and values, says how many match,
 * and what to write instead of a key that does not exist. Its text is in the address (?q=).
 */
import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import { short } from '../format'
import { param, setQuery } from '../state/route'
import { Icon } from './icon'

export interface FilterOf<T> {
    /** What a word is looked for in. */
    text: (row: T) => string
    /** The value of each key; compared without regard to case, "*" stands for anything. */
    keys: Readonly<Record<string, (row: T) => string>>
}

interface Term {
    text: string // as it was typed
    key: string // "" for a word
    value: string
}

function termsOf(query: string): Term[] {
    return query
        .split(/\s+/)
        .filter(Boolean)
        .map((text) => {
            const colon = text.indexOf(':')
            return { text, key: colon > 0 ? text.slice(0, colon).toLowerCase() : '', value: (colon > 0 ? text.slice(colon + 1) : text).toLowerCase() }
        })
}

function isLike(value: string, pattern: string): boolean {
    const parts = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
    return new RegExp(`^${parts.join('.*')}$`).test(value)
}

function matchesTerm<T>(row: T, term: Term, of: FilterOf<T>): boolean {
    const valueOf = of.keys[term.key]
    if (term.key !== '' && valueOf === undefined) {
        return true // it is said to be wrong, and hides nothing
    }
    return valueOf === undefined
        ? of.text(row).toLowerCase().includes(term.value)
        : term.value === '' || isLike(valueOf(row).toLowerCase(), term.value)
}

export function filtered<T>(rows: readonly T[], of: FilterOf<T>, query = param('q')): T[] {
    const terms = termsOf(query)
    return rows.filter((row) => terms.every((term) => matchesTerm(row, term, of)))
}

/** How many letters one has to change to make b of a. */
function distance(a: string, b: string): number {
    let row = Array.from({ length: b.length + 1 }, (_, i) => i)
    for (let i = 1; i <= a.length; i++) {
        const next = [i]
        for (let j = 1; j <= b.length; j++) {
            next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)))
        }
        row = next
    }
    return row[b.length]!
}

function nearest(word: string, among: string[]): string {
    return [...among].sort((a, b) => distance(word, a) - distance(word, b))[0] ?? ''
}

const replaced = (query: string, term: Term, by: string) => query.split(/\s+/).map((text) => (text === term.text ? by : text)).filter(Boolean).join(' ')

/** The keys, and for a key that is begun the values that the rows have. */
function completions<T>(rows: readonly T[], of: FilterOf<T>, query: string): string[] {
    const cut = query.search(/\S*$/)
    const [before, last] = [query.slice(0, cut), query.slice(cut)]
    const valueOf = of.keys[last.split(':')[0]!.toLowerCase()]
    if (last.includes(':') && valueOf) {
        const values = [...new Set(rows.map((row) => valueOf(row).toLowerCase()))].filter((value) => value && !/\s/.test(value)).sort()
        return values.slice(0, 50).map((value) => `${before}${last.split(':')[0]}:${value}`)
    }
    return Object.keys(of.keys).map((key) => `${before}${key}:`)
}

export function Filter<T>(props: { label: string; rows: readonly T[]; of: FilterOf<T>; hint: string; children?: ComponentChildren }) {
    const { rows, of } = props
    const query = param('q')
    const id = useId()
    const wrong = termsOf(query).filter((term) => term.key !== '' && !(term.key in of.keys))
    const cure = wrong[0] && nearest(wrong[0].key, Object.keys(of.keys))
    return (
        <form class="filter" role="search" aria-label={props.label} onSubmit={(event) => event.preventDefault()}>
            <label class="input">
                <Icon name="filter" />
                <input
                    type="search"
                    name="q"
                    class={`query ${wrong.length > 0 ? 'is-wrong' : ''}`}
                    aria-label={props.label}
                    aria-invalid={wrong.length > 0}
                    autocomplete="off"
                    spellcheck={false}
                    placeholder={props.hint}
                    list={id}
                    value={query}
                    onInput={(event) => setQuery({ q: event.currentTarget.value }, true)}
                />
                {query !== '' && <span class="small muted nowrap">{short(filtered(rows, of).length)} match</span>}
                <datalist id={id}>
                    {completions(rows, of, query).map((text) => (
                        <option key={text} value={text} />
                    ))}
                </datalist>
            </label>
            {props.children}
            {wrong[0] && (
                <p class="small wrong" role="status">
                    There is no <code>{wrong[0].key}:</code> here. Did you mean{' '}
                    <button type="button" class="link" onClick={() => setQuery({ q: replaced(query, wrong[0]!, `${cure}:${wrong[0]!.value}`) })}>
                        {cure}:{wrong[0].value}
                    </button>
                    ?
                </p>
            )}
        </form>
    )
}

/** Nothing matches: the part to drop, with the count that there would be without it. */
export function NothingMatches<T>({ rows, of, what }: { rows: readonly T[]; of: FilterOf<T>; what: string }) {
    const query = param('q')
    const best = termsOf(query)
        .map((term) => ({ term, count: filtered(rows, of, replaced(query, term, '')).length }))
        .sort((a, b) => b.count - a.count)[0]
    return (
        <div class="empty">
            <Icon name="question" size={24} />
            <h2>No {what} matches</h2>
            <p>
                0 of {short(rows.length)}.{' '}
                {best && (
                    <>
                        Without <code>{best.term.text}</code> there would be {short(best.count)}.
                    </>
                )}
            </p>
            <button type="button" class="button small" onClick={() => setQuery({ q: best ? replaced(query, best.term, '') : '' })}>
                Remove that part
            </button>
        </div>
    )
}
