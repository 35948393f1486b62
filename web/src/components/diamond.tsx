/** A policy on a link: the tone says passed, waits, goes on, not reached or refused; the glyph says which policy. */
import type { Tone } from './state'

const GLYPHS: Record<string, string> = {
    manual: 'M8 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM3 13.5c.5-3 2.5-4 5-4s4.5 1 5 4',
    'always-update': 'M3.5 8h9M9 4.5L12.5 8 9 11.5',
}
const ANY = 'M3.5 8.5l3 3 6-7' // a rule that measures

export function PolicyDiamond({ policy, tone }: { policy: string; tone: Tone }) {
    return (
        <span class="gate">
            <svg viewBox="0 0 36 36" class={`tone-${tone}`} aria-hidden="true" focusable="false">
                <path d="M18 2L34 18 18 34 2 18z" />
                <path class="g2" transform="translate(10 10)" d={GLYPHS[policy.toLowerCase()] ?? ANY} />
            </svg>
        </span>
    )
}
