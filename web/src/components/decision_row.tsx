/** One decision in a list: face, verdict, person and where, score against threshold, what decided it, when and how fast. */
import { Component } from 'preact'
import type { Decision } from '../api'
import { clockTime, dayTime, fullTime, latency, NONE } from '../format'
import { VerdictChip } from './chip'
import { Face } from './face'
import { ScoreBar } from './score_bar'

function version(prefix: string, value: number | null | undefined): string {
    return typeof value === 'number' ? `${prefix} v${value}` : `${prefix} ${NONE}`
}

interface Props {
    decision: Decision
    onOpen: (decision: Decision) => void
    withIon: boolean // lists over several IONs name each
    isNew: boolean // tinted while it comes in
}

/** A decision never changes: a row is drawn once. */
export class DecisionRow extends Component<Props> {
    override shouldComponentUpdate(next: Props): boolean {
        return next.decision !== this.props.decision || next.withIon !== this.props.withIon
    }

    override render({ decision, onOpen, withIon, isNew }: Props) {
        const who = decision.verdict === 'error' ? decision.error || 'not decided' : (decision.person ?? 'nobody known')
        const place = withIon ? `${decision.camera} · ${decision.ion}` : decision.camera
        const clock = clockTime(decision.time_ms)
        const day = dayTime(decision.time_ms)
        return (
            <div class={`decision ${decision.verdict} ${isNew ? 'new' : ''}`} data-decision={decision.id}>
                <button type="button" onClick={() => onOpen(decision)} aria-haspopup="dialog">
                    <Face decision={decision} size="small" />
                    <VerdictChip verdict={decision.verdict} />
                    <span class="who">
                        <b class={decision.person ? '' : 'nobody'} title={who}>
                            {who}
                        </b>
                        <small class="muted" title={place}>
                            {place}
                        </small>
                    </span>
                    <ScoreBar decision={decision} />
                    <span class="versions muted">
                        <span>{version('model', decision.model_version)}</span>
                        <span>{version('gallery', decision.gallery_version)}</span>
                    </span>
                    <span class="speed">
                        <time title={fullTime(decision.time_ms)}>{clock}</time>
                        <small class="muted">{day === clock ? latency(decision.latency_us) : day.slice(0, -clock.length - 2)}</small>
                    </span>
                </button>
            </div>
        )
    }
}
