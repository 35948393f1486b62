/** The ION at a glance: what needs a person, the live graph, the stream of decisions, alerts and events. */
import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Decision, DecisionSummary, Ion, Opt } from '../api'
import { COMMANDS } from '../commands'
import { Ago, Command, Empty, Loaded, Loading, PageHead, Panel } from '../components/basics'
import { VERDICTS } from '../components/chip'
import { DecisionRows, LiveControls } from '../components/decision_list'
import { Confirm, type Question } from '../components/dialog'
import { AcknowledgeAll, AlertList, byNeed, ionOf } from '../components/alert_list'
import { EventList } from '../components/event_list'
import { HealthBanner } from '../components/health'
import { Members } from '../components/members'
import { Icon } from '../components/icon'
import { IonGraph } from '../components/ion_graph'
import { Thresholds } from '../components/threshold'
import { clockTime, duration, latency, millis, NONE, percent, plainValue, short, words } from '../format'
import { pendingCandidates } from '../state/candidates'
import { DecisionList, NO_FILTER } from '../state/decisions'
import { get } from '../state/http'
import { useResource } from '../state/resource'
import { href } from '../state/route'
import { events, ion as chosenIon, ions, jobs, now, openAlerts } from '../state/store'
import { approveQuestion, canChange, rejectQuestion, triggerQuestion } from '../state/versions'

const SHOWN_DECISIONS = 12
const SHOWN_EVENTS = 9
const SHOWN_ALERTS = 4
const SUMMARY_REFRESH_S = 5
const SUMMARY_WINDOW_MS = 5 * 60_000

type Ask = (question: Question) => void

/** Of this ION, or of everybody: a machine, the server. Not what is about another ION, or another person's job. */
function concerns(subject: Opt<string>, ion: string): boolean {
    const about = ionOf(subject, jobs.data.value ?? [])
    return about !== undefined ? about === ion : !['job', 'ion', 'run'].includes((subject ?? '').split('/')[0]!)
}

function Waiting({ ion, ask }: { ion: Ion; ask: Ask }) {
    const waiting = pendingCandidates.value.filter((one) => one.ion === ion.name)
    if (waiting.length === 0) {
        return null
    }
    return (
        <ul class="attention" aria-label="Waiting for your approval">
            {waiting.slice(0, 3).map((one) => (
                <li key={one.id}>
                    <Icon name="models" />
                    <p>
                        <b>
                            {one.model} v{one.version}
                        </b>{' '}
                        waits for approval to go to <b>{one.link_to}</b>
                        <small class="muted">
                            {Object.entries(one.metrics ?? {})
                                .slice(0, 3)
                                .map(([key, value]) => `${words(key)} ${plainValue(value)} · `)}
                            <Ago time={one.created_ms} />
                        </small>
                    </p>
                    <span class="actions" hidden={!canChange()}>
                        <button type="button" class="button small primary" onClick={() => ask(approveQuestion(ion.name, one))}>
                            Approve<span class="hidden"> version {one.version}</span>
                        </button>
                        <button type="button" class="button small" onClick={() => ask(rejectQuestion(ion.name, one))}>
                            Reject<span class="hidden"> version {one.version}</span>
                        </button>
                    </span>
                </li>
            ))}
        </ul>
    )
}

const us = (ms: Opt<number>): Opt<number> => (typeof ms === 'number' ? ms * 1000 : ms)

/** "last 5 min", or since when, if what is counted begins later. */
function windowText(summary: DecisionSummary | undefined, nowMs: number): string {
    const from = millis(summary?.from_ms)
    const isWhole = Number.isNaN(from) || from <= nowMs - SUMMARY_WINDOW_MS + 2 * SUMMARY_REFRESH_S * 1000
    return isWhole ? `last ${duration(SUMMARY_WINDOW_MS)}` : `since ${clockTime(summary?.from_ms).slice(0, 5)}`
}

function Summary({ ion }: { ion: Ion }) {
    const summary = useResource(`summary:${ion.name}`, () =>
        get<DecisionSummary>('/decisions/summary', { ion: ion.name, since: new Date(Date.now() - SUMMARY_WINDOW_MS).toISOString() }),
    )
    const beat = Math.floor(now.value / 1000 / SUMMARY_REFRESH_S)
    useEffect(() => summary.loadSoon(0), [beat])
    const data = summary.data.value
    const total = data?.decisions ?? 0
    const span = windowText(data, now.value)
    return (
        <dl class="tiles" aria-label={`Decisions, ${span}`}>
            {Object.entries(VERDICTS).map(([verdict, { label, icon, tone }]) => {
                const count = data?.verdicts?.[verdict as Decision['verdict']] ?? 0
                return (
                    <div key={verdict} class={`tile tone-${tone}`}>
                        <dt>
                            <Icon name={icon} size={14} />
                            {label} <span class="window">{span}</span>
                        </dt>
                        <dd>
                            {data ? short(count) : NONE} <small class="muted">{total > 0 ? percent(count / total, 0) : ''}</small>
                        </dd>
                    </div>
                )
            })}
            <div class="tile">
                <dt>
                    <Icon name="decisions" size={14} />
                    Rate <span class="window">{span}</span>
                </dt>
                <dd>
                    {data ? rateText(data.per_second ?? 0) : NONE} <small class="muted">decisions/s</small>
                </dd>
            </div>
            <div class="tile wide">
                <dt>
                    <Icon name="clock" size={14} />
                    Latency <span class="window">{span}</span>
                </dt>
                <dd>
                    {latency(us(data?.latency_ms?.p50))} <small class="muted">median</small> {latency(us(data?.latency_ms?.p99))}{' '}
                    <small class="muted">p99</small>
                </dd>
            </div>
        </dl>
    )
}

const rateText = (perSecond: number) => (perSecond >= 10 ? String(Math.round(perSecond)) : perSecond.toFixed(perSecond > 0 && perSecond < 0.1 ? 3 : 1))

function LiveDecisions({ ion, list }: { ion: Ion; list: DecisionList }) {
    const rows = list.rows.value
    return (
        <Panel
            title="Live decisions"
            class="live"
            aside={
                <>
                    <LiveControls list={list} />
                    <a class="more" href={`${href('decisions')}?ion=${encodeURIComponent(ion.name)}`}>
                        All decisions
                    </a>
                </>
            }
        >
            {rows === undefined ? (
                <Loading rows={6} />
            ) : rows.length === 0 ? (
                <Empty icon="camera" title="No decisions yet">
                    {ion.pipelines.some((pipeline) => pipeline.deployment?.model)
                        ? 'They appear here the moment a camera frame is decided.'
                        : ion.pipelines.some((pipeline) => pipeline.state === 'TRAINING')
                          ? 'The first model is being trained; it serves when its link lets it through.'
                          : 'Nothing is served yet: press “Train now”, and let the first model through when it waits for approval.'}
                </Empty>
            ) : (
                <DecisionRows list={list} withIon={false} isLong={false} />
            )}
        </Panel>
    )
}

/** As it was applied, to read. */
function IonDocument({ ion }: { ion: Ion }) {
    return ion.document ? (
        <Panel title="Document" aside={<span class="muted">revision {ion.revision}</span>}>
            <details class="panel-body">
                <summary>Show what was applied</summary>
                <pre class="document" tabIndex={0}>
                    {JSON.stringify(ion.document, null, 2)}
                </pre>
            </details>
        </Panel>
    ) : null
}

function IonPicker({ all, current }: { all: Ion[]; current: Ion }) {
    if (all.length < 2) {
        return <>{current.name}</>
    }
    return (
        <label class="ion-picker">
            <span class="hidden">ION</span>
            <select
                value={current.name}
                onChange={(event) => {
                    location.hash = href('overview', event.currentTarget.value)
                }}
            >
                {all.map((one) => (
                    <option key={one.name} value={one.name}>
                        {one.name}
                    </option>
                ))}
            </select>
        </label>
    )
}

function IonOverview({ ion, all }: { ion: Ion; all: Ion[] }) {
    const [question, setQuestion] = useState<Question | null>(null)
    const list = useMemo(() => new DecisionList({ ...NO_FILTER, ion: ion.name }, SHOWN_DECISIONS), [ion.name])
    useEffect(() => list.start(), [list])
    const trainings = ion.pipelines.filter((pipeline) => pipeline.type === 'training')
    const raised = openAlerts.value.filter((alert) => concerns(alert.subject, ion.name)).sort(byNeed)
    return (
        <>
            <PageHead
                title={<IonPicker all={all} current={ion} />}
                sub={
                    <>
                        revision {ion.revision} · project {ion.project} · created <Ago time={ion.created_ms} />
                    </>
                }
            >
                {(canChange() ? trainings : []).map((pipeline) => (
                    <button key={pipeline.name} type="button" class="button" onClick={() => setQuestion(triggerQuestion(ion.name, pipeline.name))}>
                        <Icon name="play" size={14} />
                        {trainings.length > 1 ? `Train ${pipeline.name}` : 'Train now'}
                    </button>
                ))}
            </PageHead>
            <HealthBanner ion={ion} lastMs={list.lastMs.value} />
            <Waiting ion={ion} ask={setQuestion} />
            <section class="panel graph-panel" aria-labelledby="graph-title">
                <h2 id="graph-title" class="hidden">
                    Pipelines and links
                </h2>
                <IonGraph ion={ion} />
            </section>
            <Summary key={ion.name} ion={ion} />
            <div class="columns">
                <div class="stack">
                    <LiveDecisions key={ion.name} ion={ion} list={list} />
                    <Thresholds ion={ion} />
                </div>
                <div class="stack side">
                    <Panel
                        title="Alerts"
                        aside={
                            <>
                                <AcknowledgeAll items={raised} />
                                {raised.length > 0 && <span class="count">{raised.length}</span>}
                            </>
                        }
                    >
                        {raised.length > 0 ? (
                            <>
                                <AlertList items={raised.slice(0, SHOWN_ALERTS)} />
                                {raised.length > SHOWN_ALERTS && (
                                    <p class="quiet">
                                        <a href={href('events')}>{raised.length - SHOWN_ALERTS} more</a>
                                    </p>
                                )}
                            </>
                        ) : (
                            <p class="quiet">
                                <Icon name="check" /> Nothing needs you.
                            </p>
                        )}
                    </Panel>
                    <Panel title="Events" aside={<a class="more" href={href('events')}>All events</a>}>
                        <Loaded resource={events}>
                            {(items) => {
                                const shown = items.filter((event) => concerns(event.subject, ion.name)).slice(0, SHOWN_EVENTS)
                                return shown.length > 0 ? <EventList events={shown} /> : <p class="quiet">Nothing has happened yet.</p>
                            }}
                        </Loaded>
                    </Panel>
                </div>
            </div>
            <div class="pair">
                <Members key={ion.name} ion={ion.name} />
                <IonDocument ion={ion} />
            </div>
            {question && <Confirm question={question} onClose={() => setQuestion(null)} />}
        </>
    )
}

export function Overview() {
    return (
        <Loaded resource={ions} rows={6}>
            {(all) => {
                const ion = chosenIon.value
                return ion ? (
                    <IonOverview ion={ion} all={all} />
                ) : (
                    <>
                        <PageHead title="Overview" />
                        <Empty
                            icon="overview"
                            title="No ION yet"
                            command={COMMANDS.applyIon}
                            more={
                                <>
                                    <p>Or see one at work, with faces and a camera of its own:</p>
                                    <Command text={COMMANDS.demo} />
                                </>
                            }
                        >
                            An ION links a training pipeline to a prediction pipeline, under a policy. Describe one in a file and apply it:
                        </Empty>
                    </>
                )
            }}
        </Loaded>
    )
}
