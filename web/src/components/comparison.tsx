/** Two versions that share the requests of a deployment: what came of them so far, and whether that says which is better. */
import type { AbComparison, Arm } from '../api'
import { Facts, Panel, Version, When } from './basics'
import { State } from './state'
import { duration, NONE, percent, plainValue, short } from '../format'
import { href } from '../state/route'

const meanText = (one: AbComparison, mean: number | null): string => (one.is_rate ? percent(mean) : mean === null ? NONE : plainValue(mean))

/** The difference in the metric's own unit, with its sign. */
function differenceText(one: AbComparison, value: number | null): string {
    if (value === null) {
        return NONE
    }
    const size = one.is_rate ? `${(Math.abs(value) * 100).toFixed(1)} points` : plainValue(Math.abs(value))
    return `${value < 0 ? '−' : '+'}${size}`
}

/** A probability, of which what is small enough is only that. */
const chance = (p: number | null): string => (p === null ? NONE : p < 0.0001 ? 'under 0.0001' : String(Number(p.toPrecision(2))))

function intervalText(one: AbComparison, arm: Arm): string {
    return arm.low !== null && arm.high !== null && one.is_rate ? `${percent(arm.low)} to ${percent(arm.high)}` : NONE
}

/** How far it is from a verdict, in words. */
function Standing({ one }: { one: AbComparison }) {
    const least = Math.min(...one.arms.map((arm) => arm.n))
    if (least < one.min_samples) {
        return (
            <State tone="busy">
                compared from {short(one.min_samples)} outcomes of each on; the fewer are {short(least)}
            </State>
        )
    }
    const limit = 1 - one.confidence
    const better = (one.p_better ?? 1) <= (one.p_worse ?? 1)
    const p = better ? one.p_better : one.p_worse
    return (
        <State tone="busy">
            {better ? 'looks better' : 'looks worse'}: p = {chance(p)}, decided at {chance(limit)} or less
        </State>
    )
}

export function ComparisonPanel({ one }: { one: AbComparison }) {
    const candidate = one.arms.find((arm) => !arm.is_live)
    return (
        <Panel
            title={`${one.metric} of ${one.arms.map((arm) => `v${arm.version}`).join(' and ')}`}
            window={
                <>
                    v{candidate?.version} answers {percent(one.share_percent / 100)} of the requests since <When time={one.begun_ms} />
                </>
            }
            class="wraps"
        >
            <p class="panel-note">
                <Standing one={one} />
            </p>
            <div class="table-wrap" tabIndex={0} role="group" aria-label={`${one.metric} by version`}>
                <table class="plain inset">
                    <thead>
                        <tr>
                            <th scope="col">Version</th>
                            <th scope="col" class="num">
                                Outcomes
                            </th>
                            <th scope="col" class="num">
                                {one.is_rate ? 'Rate' : 'Mean'}
                            </th>
                            <th scope="col" class="num">
                                95 % interval
                            </th>
                        </tr>
                    </thead>
                    <tbody>
                        {one.arms.map((arm) => (
                            <tr key={arm.version} data-row={`arm-${arm.version}`}>
                                <td>
                                    <Version number={arm.version} is={arm.is_live ? 'live' : undefined} />
                                </td>
                                <td class="num">{short(arm.n)}</td>
                                <td class="num">
                                    <b>{meanText(one, arm.mean)}</b>
                                </td>
                                <td class="num">{intervalText(one, arm)}</td>
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
            <div class="panel-body">
                <Facts
                    items={[
                        ['Uplift', one.uplift === null ? NONE : `${one.uplift < 0 ? '−' : '+'}${percent(Math.abs(one.uplift))}`],
                        ['Difference', `${differenceText(one, one.difference)}, between ${differenceText(one, one.difference_low)} and ${differenceText(one, one.difference_high)}`],
                        ['Better by chance', chance(one.p_better)],
                        ['Worse by chance', chance(one.p_worse)],
                        ['Time left', duration(one.left_s * 1000)],
                        ['Link', <a href={href(['ions', one.ion])}>{one.link}</a>],
                    ]}
                />
                <p class="small muted">{one.is_less_better ? 'Less is better. ' : ''}These hold however often one looks.</p>
            </div>
        </Panel>
    )
}
