/** Everything known about one decision. */
import type { Decision } from '../api'
import { fixed, fullTime, latency, NONE } from '../format'
import { Facts } from './basics'
import { VerdictChip } from './chip'
import { Dialog } from './dialog'
import { Face } from './face'
import { ScoreBar } from './score_bar'

function versionText(value: number | null | undefined): string {
    return typeof value === 'number' ? `v${value}` : NONE
}

export function DecisionDialog({ decision, onClose }: { decision: Decision; onClose: () => void }) {
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
                </div>
            </div>
        </Dialog>
    )
}
