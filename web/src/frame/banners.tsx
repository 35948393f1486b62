/** What stands above every screen: that the page hears nothing, and that the platform itself is not well. */
import { Icon } from '../components/icon'
import { Sentence, Subject } from '../components/noun'
import { Glyph, type Tone } from '../components/state'
import { clockTime, duration, millis } from '../format'
import { current } from '../registry'
import { href } from '../state/route'
import { now, platform, stream } from '../state/store'
import { connection } from '../state/stream'

function OfflineBanner() {
    const state = connection.value
    if (state.state !== 'lost') {
        return null
    }
    const seconds = Math.max(0, Math.ceil((state.retryAt - now.value) / 1000))
    return (
        <div class="banner tone-warn offline" role="alert">
            <Icon name="offline" />
            <p>
                <b>Offline since {clockTime(state.since)}.</b> What you see is {duration(Math.max(0, now.value - state.since))} old, so nothing is
                green. Weir itself goes on: replicas decide without the console.
            </p>
            <button type="button" class="button small" onClick={() => stream.retryNow()}>
                Try now
            </button>
            <small aria-hidden="true">{seconds > 0 ? `again in ${seconds} s` : 'trying'}</small>
        </div>
    )
}

const TONES: Record<string, Tone> = { degraded: 'warn', down: 'bad' }

/** What is wrong with the machines and the server: an ION's own troubles stand with the ION. */
function PlatformBanner() {
    const summary = platform.data.value
    const reasons = (summary?.reasons ?? []).filter((one) => !/^(ion|job|run)\//.test(one.subject ?? ''))
    const first = reasons.find((one) => one.status === 'down') ?? reasons[0]
    if (first === undefined || connection.value.state === 'lost' || current.value?.screen.id === 'alerts') {
        return null
    }
    const tone = TONES[first.status] ?? 'warn'
    return (
        <div class={`banner tone-${tone} platform`} role="status">
            <Glyph tone={tone} />
            <p>
                <b>
                    <Subject subject={first.subject} />
                </b>{' '}
                <Sentence text={first.reason ?? ''} />
                {first.since && !Number.isNaN(millis(first.since)) && <span class="muted"> · since {clockTime(first.since)}</span>}
            </p>
            <a class="button small" href={href('alerts')}>
                {reasons.length > 1 ? `All ${reasons.length} alerts of the platform` : 'Its alert'}
            </a>
        </div>
    )
}

export function Banners() {
    return (
        <>
            <OfflineBanner />
            <PlatformBanner />
        </>
    )
}
