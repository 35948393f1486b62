/** An ION, live: its graph, what it decided, why which version is where, and what needs somebody. */
import { useEffect } from 'preact/hooks'
import type { DecisionSummary, Ion, PolicyDecision, WeirEvent } from '../api'
import type { Opt, Verdict } from '../types'
import { AlertRows, byUrgency, ionOf, TAKE, take } from '../components/alerts'
import { Loaded, Panel, Strip, Version, When } from '../components/basics'
import { EventList } from '../components/event_list'
import { Icon } from '../components/icon'
import { ionActions, IonTab, Waiting } from '../components/ion_head'
import { IonGraph } from '../components/ion_graph'
import { Act } from '../components/locked'
import { State, VERDICTS, VERSION_VERDICTS } from '../components/state'
import { Table, type Column } from '../components/table'
import { Thresholds } from '../components/threshold'
import { rangeText, TimeRange } from '../components/time_range'
import { VerdictChart } from '../components/verdict_chart'
import { clockTime, latency, millis, NONE, percent, plainValue, rateText, short, words } from '../format'
import type { Args, Screen } from '../screen'
import { candidates } from '../state/candidates'
import { getAll, segment } from '../state/http'
import { useResource } from '../state/resource'
import { href, hrefWith, param } from '../state/route'
import { alerts, candidatesVersion, deployments, events, ions, jobs, mergeEvents, now, openAlerts, runs } from '../state/store'
import { useSummary } from '../state/summaries'

const WINDOW = '-5m'
const BUCKETS = 60
const SHOWN_EVENTS = 5
const SHOWN_ALERTS = 4
const EDGE_MS = 15_000 // a count that begins so little after the window's begin covers it

/** Its own: the ION, its jobs and runs, and the models, deployments and data that its document names. */
function isOwn(subject: Opt<string>, ion: Ion): boolean {
    const [noun, ...rest] = (subject ?? '').split('/')
    const name = rest.join('/')
    if (noun === 'run') {
        return runs.data.value?.find((run) => run.id === name)?.ion === ion.name
    }
    if (noun === 'model') {
        return ion.links.some((link) => link.from === `model/${name}` || `${ion.name}.${link.from}` === name) || ion.pipelines.some((one) => `${ion.name}.${one.name}` === name || one.deployment?.model?.name === name)
    }
    if (noun === 'deployment') {
        return ion.links.some((link) => link.to === `deployment/${name}`)
    }
    if (noun === 'dataset') {
        return ion.pipelines.some((one) => [one.dataset, one.output, one.impostors, one.deployment?.gallery?.dataset].includes(name))
    }
    return ionOf(subject, jobs.data.value ?? []) === ion.name
}

/** Of this ION, or of everybody: a machine, the server. */
function concerns(subject: Opt<string>, ion: Ion): boolean {
    return ['node', 'server', 'platform', ''].includes((subject ?? '').split('/')[0]!) || isOwn(subject, ion)
}

const us = (ms: Opt<number>): Opt<number> => (typeof ms === 'number' ? ms * 1000 : ms)

/** "last 5 min", or since when, if what is counted begins later. */
function windowText(summary: DecisionSummary | undefined, from: string, to: string): string {
    const text = rangeText(from, to, '')
    const counted = millis(summary?.from_ms)
    const minutes = /^-(\d+)m$/.exec(from)
    const begin = minutes ? now.value - Number(minutes[1]) * 60_000 : NaN
    return !Number.isNaN(counted) && counted > begin + EDGE_MS ? `since ${clockTime(summary?.from_ms).slice(0, 5)}` : text
}

function Figures({ ion }: { ion: Ion }) {
    const [from, to] = [param('from') || WINDOW, param('to')]
    const data = useSummary(ion.name, from, to, BUCKETS).data.value
    const total = data?.decisions ?? 0
    const span = windowText(data, from, to)
    // People are granted and denied, labels are not: who has none of one kind is not shown its nought.
    const isClassifier = (data?.verdicts.label ?? 0) > 0
    const isShown = (verdict: string) => (verdict === 'label' ? isClassifier : !(isClassifier && (verdict === 'grant' || verdict === 'deny')))
    const shown = Object.entries(VERDICTS).filter(([verdict]) => isShown(verdict))
    const verdicts = shown.map(([verdict, { label, tone }]) => {
        const count = data?.verdicts[verdict as Verdict] ?? 0
        return {
            name: <State tone={tone}>{label}</State>,
            value: data ? short(count) : NONE,
            note: [total > 0 ? percent(count / total) : '', span].filter(Boolean).join(' · '),
        }
    })
    const p99 = data?.latency_ms?.p99
    const last = {
        name: 'Decisions/s · p50 · p99',
        value: data ? rateText(data.per_second ?? 0) : NONE,
        note: `${latency(us(data?.latency_ms?.p50))} · ${latency(us(p99))} · ${span}`,
    }
    return (
        <>
            <Strip label={`Decisions, ${span}`} items={[...verdicts, last]} />
            {data?.buckets && data.buckets.length > 1 && (
                <VerdictChart title="Decisions/s" buckets={data.buckets} window={span} />
            )}
        </>
    )
}

function historyColumns(ion: Ion): Column<PolicyDecision>[] {
    const live = new Set(ion.links.map((link) => link.serving_version))
    return [
        {
            id: 'version',
            name: 'Version',
            width: '72px',
            phone: 'name',
            render: (one) => <Version number={one.version} is={one.verdict === 'wait' ? 'candidate' : live.has(one.version) ? 'live' : undefined} />,
        },
        {
            id: 'verdict',
            name: 'Policy and verdict',
            width: '228px',
            phone: 'state',
            render: (one) => (
                <State tone={VERSION_VERDICTS[one.verdict]?.tone ?? 'plain'}>
                    {words(one.policy)}: {VERSION_VERDICTS[one.verdict]?.word ?? one.verdict}
                </State>
            ),
        },
        {
            id: 'rule',
            name: 'Rule and note',
            phone: 'more',
            render: (one) => {
                const text = [one.rule, one.note && `“${one.note}”`].filter(Boolean).join(' · ')
                return <span title={text}>{text || NONE}</span>
            },
        },
        { id: 'by', name: 'By', width: '96px', render: (one) => <span class="muted">{one.actor ?? NONE}</span> },
        { id: 'when', name: 'When', width: '144px', render: (one) => <When time={one.time_ms} /> },
    ]
}

const HISTORY_PAGES = 10 // of 100: a link that has not had a version for long is looked for, too

/** Why which version is where: what the policy of the chosen link said of each version. */
function History({ ion }: { ion: Ion }) {
    const history = useResource(`policy:${ion.name}`, () => getAll<PolicyDecision>(`/ions/${segment(ion.name)}/policy-decisions`, {}, HISTORY_PAGES))
    useEffect(() => history.loadSoon(), [candidatesVersion.value])
    const chosen = param('link')
    const link = ion.links.find((one) => `${one.from}>${one.to}` === chosen)
    const policy = link ? param('policy') : ''
    const name = link ? `Link ${link.from} → ${link.to}${policy ? `, ${words(policy)}` : ''}` : 'Links'
    return (
        <Panel
            title={`${name}: decision history`}
            id="history"
            window="newest first"
            aside={
                chosen && (
                    <>
                        {policy && <a href={hrefWith({ policy: '' })}>All policies</a>}
                        {ion.links.length > 1 && <a href={hrefWith({ link: '', policy: '' })}>All links</a>}
                    </>
                )
            }
        >
            <Loaded resource={history}>
                {(items) => {
                    const shown = items.filter((one) => !link || (one.link === `${link.from}:${link.to}` && (policy === '' || one.policy === policy))).slice(0, 50)
                    return shown.length === 0 ? (
                        <p class="quiet">No version has come to {policy ? 'this policy' : link ? 'this link' : 'a link'} yet. The first is decided when a training ends.</p>
                    ) : (
                        <Table label="Decision history" rows={shown} columns={historyColumns(ion)} keyOf={(one) => one.id} isDense />
                    )
                }}
            </Loaded>
        </Panel>
    )
}

function Troubles({ ion }: { ion: Ion }) {
    const raised = openAlerts.value.filter((alert) => concerns(alert.subject, ion)).sort(byUrgency)
    return (
        <Panel
            title="Alerts"
            window={raised.length > 0 && raised.length}
            aside={
                <>
                    {raised.length > 1 && (
                        <Act right={TAKE} project={ion.project} isSmall onClick={() => void take(raised)}>
                            Take all {raised.length}
                        </Act>
                    )}
                    <a href={href('alerts')}>All alerts</a>
                </>
            }
        >
            {raised.length > 0 ? (
                <AlertRows items={raised.slice(0, SHOWN_ALERTS)} withTake />
            ) : (
                <p class="quiet">
                    <Icon name="check" /> Nothing needs you.
                </p>
            )}
        </Panel>
    )
}

function News({ ion }: { ion: Ion }) {
    useEffect(() => events.need(), [])
    // Of the ION itself also what is older than the events that the page holds.
    const own = useResource(`events:${ion.name}`, () => getAll<WeirEvent>('/events', { subject: `ion/${ion.name}`, limit: SHOWN_EVENTS }))
    return (
        <Panel title="Events" window="of this ION" aside={<a href={href('events', { q: `subject:ion/${ion.name}` })}>All of them</a>}>
            <Loaded resource={own}>
                {(older) => {
                    const fresh = (events.data.value ?? []).filter((event) => isOwn(event.subject, ion))
                    const shown = mergeEvents(older, fresh).slice(0, SHOWN_EVENTS)
                    return shown.length > 0 ? <EventList events={shown} /> : <p class="quiet">Nothing has happened yet.</p>
                }}
            </Loaded>
        </Panel>
    )
}

function Parameters({ ion }: { ion: Ion }) {
    const metrics = (candidates.data.value ?? []).find((one) => one.ion === ion.name && one.state === 'SERVING')?.metrics
    return metrics && Object.keys(metrics).length > 0 ? (
        <Panel title="Measured on the version that serves">
            <dl class="facts panel-body">
                {Object.entries(metrics).map(([key, value]) => (
                    <div key={key}>
                        <dt>{words(key)}</dt>
                        <dd>{plainValue(value)}</dd>
                    </div>
                ))}
            </dl>
        </Panel>
    ) : null
}

function IonLive({ args }: { args: Args }) {
    return (
        <IonTab args={args} tools={<TimeRange fallback={WINDOW} />}>
            {(ion) => (
                <>
                    <Waiting ion={ion} />
                    <section class="canvas" aria-labelledby="graph-title">
                        <h2 id="graph-title" class="hidden">
                            Pipelines and links
                        </h2>
                        <IonGraph ion={ion} />
                    </section>
                    <Figures key={ion.name} ion={ion} />
                    <div class="grid split-r">
                        <div class="stack">
                            <History ion={ion} />
                            <Thresholds ion={ion} />
                        </div>
                        <div class="stack side">
                            <Troubles ion={ion} />
                            <Parameters ion={ion} />
                            <News ion={ion} />
                        </div>
                    </div>
                </>
            )}
        </IonTab>
    )
}

export const ionGraphScreen: Screen = {
    id: 'ion-graph',
    title: 'Live graph',
    icon: 'ions',
    address: 'ions/:ion/graph',
    query: ['link', 'policy', 'from', 'to'],
    under: 'ions',
    tab: { of: 'ion', name: 'Live graph' },
    load: [ions, runs, jobs, alerts, deployments],
    actions: ionActions,
    render: IonLive,
}
