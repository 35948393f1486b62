/** Everything known about one decision. */
import { useState } from 'preact/hooks'
import type { Decision } from '../api'
import { fixed, fullTime, latency, NONE } from '../format'
import { canChange, memberQuestion } from '../state/versions'
import { Facts } from './basics'
import { VerdictChip } from './chip'
import { Confirm, Dialog, type Question } from './dialog'
import { Face } from './face'
import { Icon } from './icon'
import { ScoreBar } from './score_bar'

function versionText(value: number | null | undefined): string {
    return typeof value === 'number' ? `v${value}` : NONE
}

export function DecisionDialog({ decision, onClose }: { decision: Decision; onClose: () => void }) {
    const [question, setQuestion] = useState<Question | null>(null)
    const { ion, person } = decision
    if (question) {
        return <Confirm question={question} onClose={onClose} />
    }
    return (
        <Dialog title={`Decision at ${decision.camera}, frame ${decision.frame}`} onClose={onClose} wide>
            <div class="decision-detail">
                <Face decision={decision} size="large" />
                <div>
                    <p class="decision-head">
                        <VerdictChip verdict={decision.verdict} />
                        <b>{decision.person ?? 'nobody known'}</b>
                    </p>
                    <ScoreBar decision={decision} />
                    {decision.error && <p class="failed">{decision.error}</p>}
                    <Facts
                        items={[
                            ['Time', fullTime(decision.time_ms)],
                            ['ION', `${decision.ion} / ${decision.pipeline}`],
                            ['Replica', decision.replica ?? NONE],
                            ['Model', versionText(decision.model_version)],
                            ['Gallery', versionText(decision.gallery_version)],
                            ['Allow and deny lists', typeof decision.list_revision === 'number' ? `revision ${decision.list_revision}` : NONE],
                            ['Latency', latency(decision.latency_us)],
                            ['Durable after', latency(decision.durable_us)],
                            ['Brightness', fixed(decision.brightness, 2)],
                            ['Decision', <code>{decision.id}</code>],
                            ['Picture', decision.image ? <code>{decision.image.slice(0, 16)}…</code> : 'not kept'],
                        ]}
                    />
                    {person && canChange() && (
                        <p class="actions">
                            <button type="button" class="button small" onClick={() => setQuestion(memberQuestion(ion, person, 'allow'))}>
                                <Icon name="check" size={14} />
                                Always allow<span class="hidden"> {person}</span>
                            </button>
                            <button type="button" class="button small" onClick={() => setQuestion(memberQuestion(ion, person, 'deny'))}>
                                <Icon name="ban" size={14} />
                                Bar<span class="hidden"> {person}</span>
                            </button>
                        </p>
                    )}
                </div>
            </div>
        </Dialog>
    )
}
