/** What drifts, since when, and what it costs: signals by p-value, training beside live, over time, the worst frames; and the truth that came later. */
import type { DriftSignal, FarFrame as FarFrameRecord, Ion, IonDrift, IonHealth } from '../api'
import { Choices, Empty, Facts, Loaded, Panel, When } from '../components/basics'
import { HeatMap, OverlaidHistogram } from '../components/drift_charts'
import { FrameFace } from '../components/face'
import { ionActions, IonTab } from '../components/ion_head'
import { Spark } from '../components/spark'
import { State, type Tone } from '../components/state'
import { Table, type Column } from '../components/table'
import { rangeText, TimeRange } from '../components/time_range'
import { counted, dayMinute, dayTime, fullTime, percent, plainValue, plural, probability, short, words } from '../format'
import type { Args, Screen } from '../screen'
import { signalKey, useDrift, useLiveHealth } from '../state/drift'
import { href, hrefWith, param } from '../state/route'
import { alerts, ions, jobs, openAlerts } from '../state/store'

const WINDOW = '-6h'
const GROUPS = ['camera', 'truth', 'decided', 'model_version', 'pipeline', 'day']

const STATES: Record<string, { word: string; tone: Tone }> = {
    drifts: { word: 'drifts', tone: 'bad' },
    watch: { word: 'watch', tone: 'warn' },
    none: { word: 'none', tone: 'good' },
}

/** Higher means less likely: for a line, not to be read off. */
function line(signal: DriftSignal): number[] {
    return signal.cells.map((p) => (typeof p === 'number' ? Math.min(6, -Math.log10(Math.max(p, 1e-6))) : 0))
}

const COLUMNS: Column<DriftSignal>[] = [
    {
        id: 'signal',
        name: 'Signal',
        phone: 'name',
        sort: (one) => one.signal,
        render: (one) => (
            <a class="main" href={hrefWith({ feature: signalKey(one) })}>
                {words(one.signal)}, {one.pipeline}
            </a>
        ),
    },
    { id: 'test', name: 'Moved', width: '72px', phone: 'more', render: (one) => words(one.statistic) },
    { id: 'value', name: 'By', width: '68px', isNumber: true, phone: 'more', sort: (one) => -Math.abs(one.value ?? 0), render: (one) => short(one.value) },
    { id: 'p', name: 'p', width: '88px', isNumber: true, phone: 'more', sort: (one) => one.p_value ?? 1, render: (one) => <b>{probability(one.p_value)}</b> },
    {
        id: 'state',
        name: 'Drift',
        width: '84px',
        phone: 'state',
        render: (one) => <State tone={STATES[one.state]?.tone ?? 'plain'}>{STATES[one.state]?.word ?? one.state}</State>,
    },
    {
        id: 'line',
        name: 'Course',
        width: '112px',
        render: (one) => (
            <span class="cell-line">
                <Spark counts={line(one)} />
            </span>
        ),
    },
]

/** A frame of the farthest: its picture and figures, and the decision it led to, where that is kept. */
function FarFrame({ ion, frame }: { ion: string; frame: FarFrameRecord }) {
    const inside = (
        <>
            <FrameFace decision={frame.has_picture ? frame.decision : null} name={`Frame ${frame.frame} of ${frame.camera}`} />
            <span class="nowrap">
                <b>{short(frame.value)}</b> {frame.sigmas.toFixed(1)} σ
            </span>
            <small class="muted" title={fullTime(frame.time_ms)}>
                {frame.camera} · {dayTime(frame.time_ms)}
            </small>
        </>
    )
    return <li>{frame.decision ? <a href={href(['ions', ion, 'decisions'], { id: frame.decision })}>{inside}</a> : <span class="far" title="Its decision is not kept, or not here yet">{inside}</span>}</li>
}

/** Of the whole time: replicas name the farthest frames in each of their reports, and the server those of all reports. */
function WorstFrames({ ion, signal, span }: { ion: string; signal: DriftSignal; span: string }) {
    return (
        <Panel title={`Worst frames: ${words(signal.signal)}, ${signal.pipeline}`} window={`farthest from training · of ${counted(signal.n_windows, 'report')}, ${span}`}>
            <ul class="worst">
                {signal.farthest.map((frame) => (
                    <FarFrame key={`${frame.camera} ${frame.frame}`} ion={ion} frame={frame} />
                ))}
            </ul>
        </Panel>
    )
}

function SignalFacts({ signal }: { signal: DriftSignal }) {
    const distances = Object.entries(signal.distances ?? {})
    return (
        <Panel title={`${words(signal.signal)}: the last report`} window={dayMinute(signal.time_ms)}>
            <div class="panel-body">
                <Facts
                    items={[
                        ['Windows with drift', `${signal.n_drifted} of ${signal.n_windows} reported, of ${counted(signal.n_samples, 'value')}`],
                        signal.began_ms ? ['Drifts since', <When time={signal.began_ms} />] : null,
                        ['Effect', short(signal.effect)],
                        ['Live', `mean ${short(signal.live_mean)}, deviation ${short(signal.live_stddev)}`],
                        ['Training', `mean ${short(signal.baseline_mean)}, deviation ${short(signal.baseline_stddev)}`],
                        distances.length > 0 ? ['Distances', distances.map(([name, value]) => `${name} ${short(value)}`).join(' · ')] : null,
                        signal.cameras && signal.cameras.length > 0 ? ['Cameras', signal.cameras.join(', ')] : null,
                        signal.replica ? ['Replica', <code>{signal.replica}</code>] : null,
                    ]}
                />
            </div>
        </Panel>
    )
}

function Drift({ ion, drift, from, to }: { ion: Ion; drift: IonDrift; from: string; to: string }) {
    const chosen = drift.signals.find((one) => signalKey(one) === param('feature')) ?? drift.signals[0]
    const span = rangeText(from, to, '')
    if (chosen === undefined) {
        return (
            <div class="panel">
                <Empty icon="runs" title="No window was reported in this time">
                    A replica compares live values with what its model learned from, in windows of 200, and reports when a drift begins or ends, and after each window, of one signal once in 10 s at most. A model from
                    outside has nothing to compare with.
                </Empty>
            </div>
        )
    }
    const [drifting, watched] = ['drifts', 'watch'].map((state) => drift.signals.filter((one) => one.state === state))
    const alert = openAlerts.value.find((one) => one.kind === 'drift' && one.subject === `ion/${ion.name}`)
    return (
        <>
            <div class={`banner tone-${drifting!.length > 0 ? 'warn' : 'good'}`}>
                <State tone={drifting!.length > 0 ? 'warn' : 'good'}>{drifting!.length > 0 ? `${drifting!.length} of ${counted(drift.signals.length, 'signal')} ${plural(drifting!.length, 'drifts', 'drift')}` : 'No signal drifts'}</State>
                <p>
                    {drifting!.slice(0, 3).map((one) => `${words(one.signal)} at ${one.pipeline}${one.began_ms ? ` since ${dayMinute(one.began_ms)}` : ''}, in ${one.n_drifted} of ${counted(one.n_windows, 'report')}`).join('; ')}{drifting!.length > 0 && '.'}
                    {watched!.length > 0 && ` ${watched!.length} more ${watched!.length === 1 ? 'is' : 'are'} worth a look.`}
                    {drift.is_cut && ' There are more reports than were looked at: take a shorter time.'}
                </p>
                {alert && (
                    <a class="button small" href={href('alerts', { id: alert.id })}>
                        The alert
                    </a>
                )}
            </div>
            <div class="grid g2">
                <div class="stack">
                    <Panel
                        title="Drift by signal"
                        window="what drifts first, then lowest p"
                        foot="p holds for the window's size; “watch” bounds false discoveries among all signals to 5 % (Benjamini–Hochberg)."
                    >
                        <Table label="Drift by signal" rows={drift.signals} columns={COLUMNS} keyOf={signalKey} hrefOf={(one) => hrefWith({ feature: signalKey(one) })} chosen={signalKey(chosen)} isDense />
                    </Panel>
                    <SignalFacts signal={chosen} />
                </div>
                <div class="stack">
                    <OverlaidHistogram key={signalKey(chosen)} signal={chosen} span={span} />
                    <HeatMap drift={drift} chosen={signalKey(chosen)} span={span} />
                </div>
            </div>
            {chosen.farthest.length > 0 && <WorstFrames ion={ion.name} signal={chosen} span={span} />}
        </>
    )
}

function Truth({ health, by }: { health: IonHealth; by: string }) {
    const { accuracy } = health
    return (
        <div class="grid g2">
            <Panel
                title="By the truth that came later"
                window={`decisions since ${dayMinute(health.since_ms)}`}
                aside={<Choices label="Groups" items={GROUPS.map((one) => ({ name: words(one), address: hrefWith({ by: one === 'camera' ? '' : one }), isCurrent: one === by }))} />}
            >
                {accuracy.n === 0 ? (
                    <p class="quiet">
                        Nobody has told what a decision should have been. <code>weir feedback DECISION TRUTH</code> does.
                    </p>
                ) : (
                    <>
                        <p class="panel-body">
                            <b class="big">{percent(accuracy.accuracy)}</b> right · {accuracy.right} of {accuracy.n}, 95 % between {percent(accuracy.low)} and {percent(accuracy.high)}
                        </p>
                        <div class="table-wrap" tabIndex={0} role="group" aria-label={`Accuracy by ${words(by)}`}>
                            <table>
                                <thead>
                                    <tr>
                                        <th scope="col">{words(by)}</th>
                                        <th scope="col" class="num">
                                            Taken for another
                                        </th>
                                        <th scope="col" class="num">
                                            Not recognised
                                        </th>
                                        <th scope="col" class="num">
                                            Of
                                        </th>
                                        <th scope="col" class="num">
                                            Right
                                        </th>
                                        <th scope="col" class="num">
                                            95 % interval
                                        </th>
                                    </tr>
                                </thead>
                                <tbody>
                                    {health.groups.map((one) => (
                                        <tr key={one.name}>
                                            <td>{one.name}</td>
                                            <td class="num">{one.taken}</td>
                                            <td class="num">{one.missed}</td>
                                            <td class="num">{one.n}</td>
                                            <td class="num">{percent(one.accuracy)}</td>
                                            <td class="num">
                                                {percent(one.low)} – {percent(one.high)}
                                            </td>
                                        </tr>
                                    ))}
                                </tbody>
                            </table>
                        </div>
                    </>
                )}
            </Panel>
            <Panel title="Business figures" window="the newest of each">
                {health.kpis.length === 0 ? (
                    <p class="quiet">
                        None was told. <code>weir kpi ION NAME VALUE</code> does, or a pipeline.
                    </p>
                ) : (
                    <ul class="list">
                        {health.kpis.map((one) => (
                            <li key={`${one.name} ${one.model ?? ''} ${one.model_version}`}>
                                <span class="grow">
                                    {one.name}
                                    {one.model_version > 0 && <span class="quiet">{` ${one.model} v${one.model_version}`}</span>}
                                </span>
                                <b>
                                    {plainValue(one.value)} {one.unit ?? ''}
                                </b>
                                <span class="small">
                                    <When time={one.time_ms} />
                                </span>
                            </li>
                        ))}
                    </ul>
                )}
            </Panel>
        </div>
    )
}

function Health({ ion }: { ion: Ion }) {
    const [from, to] = [param('from') || WINDOW, param('to')]
    const by = GROUPS.includes(param('by')) ? param('by') : 'camera'
    const drift = useDrift(ion.name, from, to)
    const health = useLiveHealth(ion.name, by)
    return (
        <>
            <Loaded resource={drift} rows={6}>
                {(found) => <Drift ion={ion} drift={found} from={from} to={to} />}
            </Loaded>
            <Loaded resource={health}>{(found) => <Truth health={found} by={by} />}</Loaded>
        </>
    )
}

function IonHealthTab({ args }: { args: Args }) {
    const isSaid = (reason: string) => openAlerts.value.some((one) => one.kind === 'drift' && one.subject === `ion/${args['ion']}` && one.message === reason)
    return (
        <IonTab args={args} tools={<TimeRange fallback={WINDOW} />} isSaid={isSaid}>
            {(ion) => <Health key={ion.name} ion={ion} />}
        </IonTab>
    )
}

export const ionHealthScreen: Screen = {
    id: 'ion-health',
    title: 'Health',
    icon: 'runs',
    address: 'ions/:ion/health',
    query: ['feature', 'by', 'sort', 'from', 'to'],
    under: 'ions',
    tab: {
        of: 'ion',
        name: 'Health',
        badge: (args) => ({ count: openAlerts.value.filter((one) => one.kind === 'drift' && one.subject === `ion/${args['ion'] ?? ''}`).length, tone: 'warn', what: 'drifts' }),
    },
    load: [ions, alerts, jobs],
    actions: ionActions,
    render: IonHealthTab,
}
