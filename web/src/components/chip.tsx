/** Small labels for states and verdicts: never colour alone, always an icon or a dot and the word. */
import type { Opt } from '../api'
import { words } from '../format'
import { Icon, type IconName } from './icon'

export type Tone = 'good' | 'bad' | 'warn' | 'busy' | 'plain' | 'odd'

const TONES: Record<string, Tone> = {}
const BY_TONE: Record<Exclude<Tone, 'plain'>, string> = {
    good: 'ready serving succeeded finished active approved resolved',
    busy: 'running training starting deploying',
    warn: 'silent pending pending_review waiting restarting draining stopping acknowledged',
    bad: 'failed deploy_failed lost killed rejected open',
    odd: '',
}
for (const [tone, names] of Object.entries(BY_TONE)) {
    for (const name of names.split(' ')) {
        TONES[name] = tone as Tone
    }
}

export function is(state: string, ...words: string[]): boolean {
    return words.includes(state.toLowerCase())
}

export function toneOf(state: string): Tone {
    return TONES[state.toLowerCase()] ?? 'plain'
}

export function StateChip({ state, tone }: { state: Opt<string>; tone?: Tone }) {
    const text = (state || 'unknown').toLowerCase()
    return (
        <span class={`chip tone-${tone ?? toneOf(text)}`}>
            <span class="dot" aria-hidden="true" />
            {words(text)}
        </span>
    )
}

export const VERDICTS: Record<string, { label: string; icon: IconName; tone: Tone }> = {
    grant: { label: 'Grant', icon: 'check', tone: 'good' },
    deny: { label: 'Deny', icon: 'ban', tone: 'bad' },
    unknown: { label: 'Unknown', icon: 'question', tone: 'warn' },
    error: { label: 'Error', icon: 'warning', tone: 'odd' },
}

export function VerdictChip({ verdict }: { verdict: string }) {
    const known = VERDICTS[verdict]
    return (
        <span class={`chip verdict tone-${known?.tone ?? 'plain'}`}>
            <Icon name={known?.icon ?? 'question'} size={14} />
            {known?.label ?? verdict}
        </span>
    )
}
