/** How a run is: what it trains at, or how it ended. */
import type { Run } from '../api'
import { State, StateWord, toneOf } from './state'

export function RunState({ run }: { run: Run }) {
    if (toneOf(run.status) === 'busy') {
        return run.started_ms ? <State tone="busy">{run.epoch && run.epochs ? `epoch ${run.epoch} of ${run.epochs}` : 'running'}</State> : <State tone="plain">waits</State>
    }
    return <StateWord state={run.status} />
}
