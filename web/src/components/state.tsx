/** States and verdicts: never a colour alone, always a glyph of its own shape and the word. */
import type { ComponentChildren } from 'preact'
import type { Opt } from '../types'
import { words } from '../format'

export type Tone = 'good' | 'bad' | 'warn' | 'busy' | 'plain' | 'odd'

const BY_TONE: Record<Exclude<Tone, 'plain'>, string> = {
    good: 'ready serving succeeded finished active approved resolved',
    busy: 'running training freezing starting deploying shadow canary ab',
    warn: 'silent pending_review waiting restarting draining stopping acknowledged warning',
    bad: 'unhealthy failed deploy_failed lost killed rejected open critical error',
    odd: '',
}
const TONES: Record<string, Tone> = {}
for (const [tone, names] of Object.entries(BY_TONE)) {
    for (const name of names.split(' ')) {
        TONES[name] = tone as Tone
    }
}

/** Disc with a check, octagon with a cross, triangle, two arcs, diamond, ring; and a broken ring for what nobody knows. */
const GLYPHS: Record<Tone | 'unknown', string> = {
    good: 'M6 0a6 6 0 1 1 0 12A6 6 0 0 1 6 0zM5.2 8.7l4-4.3-1-.9-3 3.2-1.5-1.4-.9 1z',
    bad: 'M3.5 0h5L12 3.5v5L8.5 12h-5L0 8.5v-5zM3.3 4.2L5.1 6 3.3 7.8l.9.9L6 6.9l1.8 1.8.9-.9L6.9 6l1.8-1.8-.9-.9L6 5.1 4.2 3.3z',
    warn: 'M6 .5l6 11H0zM5.3 4.5v3.5h1.4V4.5zM5.3 9v1.4h1.4V9z',
    busy: 'M6 0a6 6 0 0 1 6 6h-2a4 4 0 0 0-4-4zM6 12a6 6 0 0 1-6-6h2a4 4 0 0 0 4 4z',
    odd: 'M6 0l6 6-6 6-6-6z',
    plain: 'M6 0a6 6 0 1 1 0 12A6 6 0 0 1 6 0zM6 2a4 4 0 1 0 0 8 4 4 0 0 0 0-8z',
    unknown: 'M5 0h2v2H5zM5 10h2v2H5zM0 5h2v2H0zM10 5h2v2h-2zM1.5 2.9l1.4-1.4 1.2 1.2-1.4 1.4zM7.9 9.3l1.4-1.4 1.2 1.2-1.4 1.4zM9.1 1.5l1.4 1.4-1.2 1.2-1.4-1.4zM2.7 7.9l1.4 1.4-1.2 1.2-1.4-1.4z',
}

export function is(state: string, ...words: string[]): boolean {
    return words.includes(state.toLowerCase())
}

export function toneOf(state: string): Tone {
    return TONES[state.toLowerCase()] ?? 'plain'
}

export function Glyph({ tone }: { tone: Tone | 'unknown' }) {
    return (
        <svg class="glyph" viewBox="0 0 12 12" aria-hidden="true" focusable="false">
            <path d={GLYPHS[tone]} fill-rule="evenodd" />
        </svg>
    )
}

/** A state in words of the page: its glyph, the word, and beside it the evidence. */
export function State(props: { tone: Tone; isKnown?: boolean; class?: string; title?: string | undefined; children: ComponentChildren }) {
    return (
        <span class={`state tone-${props.tone} ${props.class ?? ''}`} title={props.title}>
            <Glyph tone={props.isKnown === false ? 'unknown' : props.tone} />
            {props.children}
        </span>
    )
}

/** A state as the server names it: "DEPLOY_FAILED". */
export function StateWord({ state, tone }: { state: Opt<string>; tone?: Tone }) {
    const text = (state || 'unknown').toLowerCase()
    return (
        <State tone={tone ?? toneOf(text)} isKnown={text !== 'unknown'}>
            {words(text)}
        </State>
    )
}

export const VERDICTS: Record<string, { label: string; tone: Tone }> = {
    grant: { label: 'Grant', tone: 'good' },
    label: { label: 'Label', tone: 'plain' },
    deny: { label: 'Deny', tone: 'bad' },
    unknown: { label: 'Unknown', tone: 'warn' },
    error: { label: 'Error', tone: 'odd' },
}

export function VerdictWord({ verdict }: { verdict: string }) {
    const known = VERDICTS[verdict]
    return (
        <State tone={known?.tone ?? 'plain'} class="verdict">
            {known?.label ?? verdict}
        </State>
    )
}

/** What a policy said of a version. */
export const VERSION_VERDICTS: Record<string, { word: string; tone: Tone }> = {
    pass: { word: 'passed', tone: 'good' },
    promote: { word: 'passed, goes live', tone: 'good' },
    wait: { word: 'waits', tone: 'warn' },
    skip: { word: 'skipped', tone: 'plain' },
    reject: { word: 'refused', tone: 'bad' },
    rollback: { word: 'rolled back', tone: 'bad' },
    set: { word: 'set by hand', tone: 'warn' },
}
