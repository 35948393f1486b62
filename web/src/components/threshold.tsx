/** From which score on a prediction pipeline takes a face for known, how sure that figure is, and what it costs. */
import type { ComponentChildren } from 'preact'
import type { Ion, Pipeline, Claim, Threshold } from '../api'
import type { Opt } from '../types'
import { counted, dayTime, fixed, NONE, percent, short } from '../format'
import { Facts, Panel } from './basics'

const PRICE_LIMIT = 0.1 // the server raises threshold_price above it

const isFigure = (value: Opt<number>): value is number => typeof value === 'number' && Number.isFinite(value)

/** A share as people compare it: 0.8%, 12%. */
const share = (value: Opt<number>) => percent(value, isFigure(value) && value >= 0.1 ? 0 : 1)

function setBy(found: Threshold): ComponentChildren {
    const count = `${counted(found.scores, 'score')} of ${short(found.people)}`
    if (found.rule === 'blind') {
        return 'nothing to go by'
    }
    return found.rule === 'gallery' ? `${count} people in the gallery` : `${count} impostors${found.rule === 'both' ? ', and the gallery' : ''}`
}

function impostorsOf(found: Threshold): ComponentChildren {
    if (!isFigure(found.expected_rate)) {
        return <span class="muted">not known: the gallery names no impostors</span>
    }
    return (
        <>
            {share(found.expected_rate)} <small class="muted">expected{isFigure(found.asked_rate) ? `, ${share(found.asked_rate)} asked` : ''}</small>
        </>
    )
}

function factsOf(found: Threshold): [string, ComponentChildren][] {
    const hasInterval = isFigure(found.threshold_low) && isFigure(found.threshold_high)
    const isDear = isFigure(found.refused_share) && found.refused_share > PRICE_LIMIT
    return [
        ['Known from a score of', <b>{fixed(found.threshold)}</b>],
        ['90 % interval', hasInterval ? `${fixed(found.threshold_low)} to ${fixed(found.threshold_high)}` : NONE],
        ['Own photos refused', <span class={isDear ? 'dear' : ''}>{share(found.refused_share)}</span>],
        ['Impostors accepted', impostorsOf(found)],
        ['Deny list from', fixed(found.deny_threshold ?? found.threshold)],
        ['Set by', setBy(found)],
    ]
}

function versionsOf(found: Threshold): string {
    const versions = [isFigure(found.model_version) && `model v${found.model_version}`, isFigure(found.gallery_version) && `gallery v${found.gallery_version}`]
    return [...versions, found.time_ms && dayTime(found.time_ms)].filter(Boolean).join(' · ')
}

const CLAIM_NAMES = new Map([
    ['gallery_people', 'People in the gallery'],
    ['impostor_searches', 'Searches with impostors'],
    ['claimable_rate', 'Not known below'],
    ['measured_rate', 'Impostors accepted, as measured'],
    ['unknown_a_day', 'Unknown people a day'],
    ['false_admits_a_day', 'Unknown people let in a day, at most'],
])

const claimValue = ({ value, unit }: Claim) => (isFigure(value) && unit === 'share' ? share(value) : isFigure(value) ? short(value) : 'not known')

/** What can be claimed, and how many admissions a day that means. Each figure says what it rests on. */
function Claims({ figures }: { figures: Claim[] }) {
    return (
        <div class="table-wrap claims" tabIndex={0} role="group" aria-label="What the threshold can claim">
            <table>
                <tbody>
                    {figures.map((one) => (
                        <tr key={one.name}>
                            <th scope="row">{CLAIM_NAMES.get(one.name) ?? one.name}</th>
                            <td class="num">
                                <b>{claimValue(one)}</b>
                            </td>
                            <td class="muted">{one.rests_on}</td>
                        </tr>
                    ))}
                </tbody>
            </table>
        </div>
    )
}

function ThresholdPanel({ pipeline, found }: { pipeline: Pipeline; found: Threshold }) {
    return (
        <Panel title={`Threshold of ${pipeline.name}`} class="threshold" aside={<span class="muted">{versionsOf(found)}</span>}>
            <div class="panel-body">
                <Facts items={factsOf(found)} />
            </div>
            {(pipeline.claims ?? []).length > 0 && <Claims figures={pipeline.claims} />}
        </Panel>
    )
}

export function Thresholds({ ion }: { ion: Ion }) {
    return (
        <>
            {ion.pipelines.map((one) => one.threshold && isFigure(one.threshold.threshold) && <ThresholdPanel key={one.name} pipeline={one} found={one.threshold} />)}
        </>
    )
}
