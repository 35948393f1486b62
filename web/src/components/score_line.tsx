/** A bar of a score from 0 to 1 with a tick where a limit is; the figures stand beside it. */
import type { Tone } from './state'

export function ScoreLine(props: { score: number; limit: number | null; tone: Tone }) {
    const place = (value: number) => `${Math.min(100, Math.max(0, value * 100))}%`
    return (
        <span class={`score tone-${props.tone}`} aria-hidden="true">
            <i style={{ width: place(props.score) }} />
            {props.limit !== null && <u style={{ left: place(props.limit) }} />}
        </span>
    )
}
