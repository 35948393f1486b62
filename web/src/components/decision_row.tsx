/** One decision in a list: face, verdict, person or label, score against threshold, camera, what decided it, how fast and when. */
import { Component } from 'preact'
import type { Decision } from '../api'
import { clockTime, dayTime, fullTime, latency } from '../format'
import { Face } from './face'
import { isClassified, whoOf } from '../state/finding'
import { ScoreBar } from './score_bar'
import { VerdictWord } from './state'

function version(prefix: string, value: number | null | undefined): string {
    return typeof value === 'number' ? `${prefix} v${value}` : ''
}

interface Props {
    decision: Decision
    address: string // where its details are
    isChosen: boolean
    isNew: boolean // tinted while it comes in
    note?: string | undefined // instead of the versions
}

/** A decision never changes: a row is drawn once, and again when it is chosen. */
export class DecisionRow extends Component<Props> {
    override shouldComponentUpdate(next: Props): boolean {
        return next.decision !== this.props.decision || next.isChosen !== this.props.isChosen || next.address !== this.props.address
    }

    override render({ decision, address, isChosen, isNew, note }: Props) {
        const who = whoOf(decision)
        const clock = clockTime(decision.time_ms)
        const day = dayTime(decision.time_ms)
        return (
            <div class={`decision ${decision.verdict} ${isNew ? 'new' : ''} ${isChosen ? 'sel' : ''}`} data-decision={decision.id}>
                <a href={address} aria-current={isChosen ? 'true' : undefined}>
                    <Face decision={decision} size="small" />
                    <VerdictWord verdict={decision.verdict} />
                    <b class={`who clip ${decision.person || decision.label ? '' : 'nobody'}`} title={who}>
                        {who}
                    </b>
                    <ScoreBar decision={decision} />
                    <span class="place clip" title={decision.camera}>
                        {decision.camera}
                    </span>
                    <span class="versions clip muted">
                        {note ?? [version('model', decision.model_version), isClassified(decision) ? '' : version('gallery', decision.gallery_version)].filter(Boolean).join(' · ')}
                    </span>
                    <span class="speed num">{latency(decision.latency_us)}</span>
                    <time class="when num muted" title={fullTime(decision.time_ms)}>
                        {day === clock ? clock : day}
                    </time>
                </a>
            </div>
        )
    }
}
