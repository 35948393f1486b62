/** Training beside live as overlaid bars; and each signal's p-values over time as a heat map. */
import type { DriftSignal, IonDrift } from '../api'
import { counted, dayMinute, percent, short, words } from '../format'
import { histogramOf, signalKey, type Bin } from '../state/drift'
import { hrefWith } from '../state/route'
import { ChartWithTable } from './chart_table'

const HEIGHT = 140
const LABELS = 6
const ROWS_MAX = 50

const binText = (bin: Bin) => (bin.from === -Infinity ? `below ${short(bin.to)}` : bin.to === Infinity ? `${short(bin.from)} and above` : `${short(bin.from)} to ${short(bin.to)}`)

export function OverlaidHistogram({ signal, span }: { signal: DriftSignal; span: string }) {
    const found = histogramOf(signal)
    if (found === null) {
        return <p class="panel quiet">No histogram: the replica told none for {words(signal.signal)}.</p>
    }
    const { bins, nTraining, nLive } = found
    const top = Math.max(...bins.map((bin) => Math.max(bin.training, bin.live)), 1e-9)
    const every = Math.ceil(bins.length / LABELS)
    const moved = typeof signal.baseline_mean === 'number' && typeof signal.live_mean === 'number' ? `mean ${short(signal.baseline_mean)} → ${short(signal.live_mean)} in the last window` : ''
    return (
        <ChartWithTable
            title={`${words(signal.signal)}, ${signal.pipeline}`}
            window={`share of values · ${span}`}
            legend={
                <>
                    <span>
                        <i class="sw" style={{ background: 'var(--series-6)' }} aria-hidden="true" />
                        training of v{signal.model_version}, n {short(nTraining)}
                    </span>
                    <span>
                        <i class="sw" style={{ background: 'var(--series-2)' }} aria-hidden="true" />
                        live, n {short(nLive)}
                    </span>
                    {moved && <span>{moved}</span>}
                </>
            }
            heads={['Values', 'Training', 'Live']}
            rows={() => bins.map((bin) => [binText(bin), percent(bin.training), percent(bin.live)])}
        >
            <div class="histogram" role="img" aria-label={`${words(signal.signal)}: training beside live, ${span}`}>
                <svg viewBox={`0 0 ${bins.length} ${HEIGHT}`} preserveAspectRatio="none" style={{ height: `${HEIGHT}px` }}>
                    {bins.map((bin, i) => (
                        <g key={i}>
                            <title>{`${binText(bin)}: training ${percent(bin.training)}, live ${percent(bin.live)}`}</title>
                            <rect class="training" x={i + 0.05} width={0.9} y={HEIGHT * (1 - bin.training / top)} height={(HEIGHT * bin.training) / top} />
                            <rect class="live" x={i + 0.2} width={0.6} y={HEIGHT * (1 - bin.live / top)} height={(HEIGHT * bin.live) / top} />
                        </g>
                    ))}
                </svg>
                <div class="histogram-axis muted" aria-hidden="true">
                    {bins.map((bin, i) => (
                        <small key={i}>{i % every === 0 ? (bin.from === -Infinity ? `< ${short(bin.to)}` : short(bin.from)) : ''}</small>
                    ))}
                </div>
                <small class="muted histogram-top">{percent(top)}</small>
            </div>
        </ChartWithTable>
    )
}

const STEPS: readonly { above: number; text: string }[] = [
    { above: 0.3, text: '> 0.3' },
    { above: 0.1, text: '> 0.1' },
    { above: 0.05, text: '> 0.05' },
    { above: 0.01, text: '> 0.01' },
    { above: 0.001, text: '> 0.001' },
    { above: -1, text: '≤ 0.001' },
]

const stepOf = (p: number) => STEPS.findIndex((step) => p > step.above)
const cellsOf = (signal: DriftSignal) => signal.cells.map((cell) => (typeof cell === 'number' ? cell : null))

export function HeatMap({ drift, chosen, span }: { drift: IonDrift; chosen: string; span: string }) {
    const shown = drift.signals.slice(0, ROWS_MAX)
    const ends = [drift.times[0], drift.times[Math.floor(drift.times.length / 2)], drift.until_ms]
    return (
        <ChartWithTable
            title="Drift over time"
            window={`smallest p-value of each of ${counted(drift.times.length, 'part')} · ${span}${drift.signals.length > ROWS_MAX ? ` · ${ROWS_MAX} of ${drift.signals.length} signals` : ''}`}
            legend={
                <>
                    <span>p-value</span>
                    {STEPS.map((step, i) => (
                        <span key={step.text}>
                            <i class={`sw heat h${i}`} aria-hidden="true" />
                            {step.text}
                        </span>
                    ))}
                    <span>
                        <i class="sw heat none" aria-hidden="true" />
                        no report
                    </span>
                </>
            }
            heads={['From', ...shown.map((signal) => `${words(signal.signal)}, ${signal.pipeline}`)]}
            rows={() => drift.times.map((time, i) => [dayMinute(time), ...shown.map((signal) => (typeof signal.cells[i] === 'number' ? short(signal.cells[i]) : '–'))])}
        >
            <div class="heat-map">
                {shown.map((signal) => {
                    const cells = cellsOf(signal)
                    const key = signalKey(signal)
                    return (
                        <div key={key} class={`heat-row ${key === chosen ? 'is-on' : ''}`}>
                            <a class="clip" href={hrefWith({ feature: key })} title={key}>
                                {words(signal.signal)}, {signal.pipeline}
                            </a>
                            <span class="heat-cells" role="img" aria-label={`${key}: ${cells.filter((p) => p !== null && p <= 0.01).length} of ${cells.filter((p) => p !== null).length} parts with a p-value of at most 0.01`}>
                                {cells.map((p, i) => (
                                    <i key={i} class={p === null ? 'none' : `h${stepOf(p)}`} title={`${dayMinute(drift.times[i])}: ${p === null ? 'no report' : `p ${short(p)}`}`} />
                                ))}
                            </span>
                        </div>
                    )
                })}
                <div class="heat-row heat-ends muted" aria-hidden="true">
                    <span />
                    <span class="heat-times">
                        {ends.map((time, i) => (
                            <small key={i}>{dayMinute(time)}</small>
                        ))}
                    </span>
                </div>
            </div>
        </ChartWithTable>
    )
}
