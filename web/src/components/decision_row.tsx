/** One decision in a list: face, verdict, person, score against threshold, what decided it, and how fast. */
import type { Decision } from '../api'
import { latency, NONE } from '../format'
import { Ago } from './basics'
import { VerdictChip } from './chip'
import { Face } from './face'
import { ScoreBar } from './score_bar'

function version(prefix: string, value: number | null | undefined): string {
    return typeof value === 'number' ? `${prefix} v${value}` : `${prefix} ${NONE}`
}

export function DecisionRow({ decision, onOpen }: { decision: Decision; onOpen: (decision: Decision) => void }) {
    const who = decision.verdict === 'error' ? decision.error || 'not decided' : (decision.person ?? 'nobody known')
    return (
        <li class={`decision ${decision.verdict}`} data-decision={decision.id}>
            <button type="button" onClick={() => onOpen(decision)} aria-haspopup="dialog">
                <Face decision={decision} size="small" />
                <VerdictChip verdict={decision.verdict} />
                <span class="who">
                    <b class={decision.person ? '' : 'nobody'}>{who}</b>
                    <small class="muted">
                        {decision.camera} · frame {decision.frame}
                    </small>
                </span>
                <ScoreBar decision={decision} />
                <span class="versions muted">
                    <span>{version('model', decision.model_version)}</span>
                    <span>{version('gallery', decision.gallery_version)}</span>
                </span>
                <span class="speed">
                    <span>{latency(decision.latency_us)}</span>
                    <small class="muted">
                        <Ago time={decision.time_ms} />
                    </small>
                </span>
            </button>
        </li>
    )
}
