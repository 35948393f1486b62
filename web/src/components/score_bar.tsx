/** A score against its threshold: a bar with a tick, and the two numbers in words. */
import type { Decision } from '../api'
import { fixed } from '../format'

export function ScoreBar({ decision }: { decision: Decision }) {
    const { score, threshold } = decision
    if (typeof score !== 'number') {
        return <span class="muted">no score</span>
    }
    // Scores are similarities: within -1..1 in practice only the upper part is seen; anything larger widens the scale.
    const low = Math.min(0, score, threshold ?? 0)
    const high = Math.max(1, score, threshold ?? 0)
    const place = (value: number) => `${((value - low) / (high - low)) * 100}%`
    const isAbove = typeof threshold === 'number' && score >= threshold
    const text =
        typeof threshold === 'number' ? `Score ${fixed(score, 2)}, threshold ${fixed(threshold, 2)}` : `Score ${fixed(score, 2)}`
    const tone = decision.verdict === 'grant' ? 'good' : decision.verdict === 'deny' ? 'bad' : decision.verdict === 'unknown' ? 'warn' : 'odd'
    return (
        <span class="score-cell" role="img" aria-label={text} title={text}>
            <span class={`score tone-${tone}`}>
                <i style={{ width: place(score) }} />
                {typeof threshold === 'number' && <u style={{ left: place(threshold) }} />}
            </span>
            <span class="score-text" aria-hidden="true">
                {fixed(score, 2)}
                {typeof threshold === 'number' && (
                    <span class="muted">
                        {' '}
                        {isAbove ? '≥' : '<'} {fixed(threshold, 2)}
                    </span>
                )}
            </span>
        </span>
    )
}
