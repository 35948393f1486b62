/**
 * What of a quota is used: solid up to the guarantee, hatched beyond it (borrowed), pale what is waited for; a tick at the
 * guarantee. The bar is the limit, or where there is none what there is at all.
 */
import type { Opt } from '../types'
import { ownerClass } from '../state/project'

export function QuotaBar(props: { used: number; guarantee: number; waiting?: number; whole: number; project: Opt<string>; label: string }) {
    const { used, guarantee, waiting = 0 } = props
    const whole = Math.max(props.whole, used, guarantee, 1e-9)
    const part = (value: number) => `${(100 * Math.min(1, Math.max(0, value / whole))).toFixed(2)}%`
    const own = Math.min(used, guarantee)
    return (
        <span class={`quota ${ownerClass(props.project)}`} role="img" aria-label={props.label} title={props.label}>
            <span class="bar">
                <i style={{ width: part(own) }} />
                <i class="hatch" style={{ width: part(used - own) }} />
                {waiting > 0 && used < whole && <i class="waits" style={{ width: part(Math.min(waiting, whole - used)) }} />}
            </span>
            {guarantee > 0 && Number.isFinite(guarantee) && <i class="tick" style={{ left: part(guarantee) }} />}
        </span>
    )
}
