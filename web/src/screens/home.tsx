/** Home: does it work, what needs me. One verdict, the IONs by need, three panels, two tables. */
import { useEffect } from 'preact/hooks'
import type { Ion } from '../api'
import { COMMANDS } from '../commands'
import { AlertRows, byUrgency, useProjectAlerts } from '../components/alerts'
import { Ago, Command, Count, Empty, Loaded, Owner, PageHead, Panel, Progress, Version } from '../components/basics'
import { PolicyDiamond } from '../components/diamond'
import { Icon } from '../components/icon'
import { Spark } from '../components/spark'
import { is, State, StateWord, toneOf } from '../components/state'
import { rangeText, TimeRange } from '../components/time_range'
import { counted, dayMinute, dayTime, NONE, nameIn, percent, plainValue, rateText, span, words } from '../format'
import type { Screen } from '../screen'
import { cameraNeedsYou, cameras } from '../state/cameras'
import { pendingCandidates } from '../state/candidates'
import { inProject, project, projects } from '../state/project'
import { useResource } from '../state/resource'
import { href, param } from '../state/route'
import { alerts, events, hasMoreJobs, ions, jobs, nodes, now, rate, runs } from '../state/store'
import { connection } from '../state/stream'
import { useSummary } from '../state/summaries'
import { summaryOf } from '../state/tracking'
import { byNeed, evidenceOf, needsYou, verdictOf } from '../state/verdict'
import { coresOf } from './nodes'

const CARDS = 5
const SHOWN = 5
const WINDOW = '-30m'
const VISIT_KEY = 'weir.visit'
const VISIT_MS = 10 * 60_000 // a look that soon after the last is the same visit

/** "2 of 5 IONs need you" */
function verdictText(all: Ion[]): string {
    const count = all.length === 1 ? '1 ION' : `${all.length} IONs`
    if (connection.value.state === 'lost') {
        return `Nobody tells how ${all.length === 1 ? 'the ION is' : `${all.length} IONs are`}`
    }
    const need = all.filter(needsYou).length
    if (need > 0) {
        return all.length === 1 ? 'The ION needs you' : `${need} of ${count} ${need === 1 ? 'needs' : 'need'} you`
    }
    const works = all.filter((ion) => verdictOf(ion).tone === 'good').length
    if (all.length === 1) {
        return works === 1 ? 'The ION works' : `${all[0]!.name}: ${verdictOf(all[0]!).title.toLowerCase()}`
    }
    return works === all.length ? `${works} of ${count} work` : `${works === 0 ? 'None' : works} of ${count} ${works === 0 ? 'is shown to work' : 'work'}, none needs you`
}

function IonCard({ ion }: { ion: Ion }) {
    const verdict = verdictOf(ion)
    const summary = useSummary(ion.name, param('from') || WINDOW, param('to'), 40).data.value
    return (
        <a class={`panel ioncard tone-${verdict.tone}`} href={href(['ions', ion.name, 'graph'])} data-ion={ion.name}>
            <span class="row">
                <b class="clip">{ion.name}</b>
                <span class="push small muted">
                    <Owner project={ion.project} />
                </span>
            </span>
            <State tone={verdict.tone} isKnown={verdict.isKnown}>
                {verdict.title}
            </State>
            <span class="row card-rate">
                <span class="big nowrap">
                    {summary ? rateText(summary.per_second ?? 0) : NONE} <small>decisions/s</small>
                </span>
                <Spark counts={(summary?.buckets ?? []).map((one) => one.grant + one.deny + one.unknown + one.error)} />
            </span>
            <span class={`small two ${verdict.reason ? `tone-${verdict.tone}-text` : 'muted'}`}>{verdict.reason || evidenceOf(ion) || 'no decision yet'}</span>
        </a>
    )
}

function Cards({ all }: { all: Ion[] }) {
    const sorted = byNeed(all)
    const shown = sorted.length > CARDS ? sorted.slice(0, CARDS - 1) : sorted
    const rest = sorted.slice(shown.length)
    return (
        <section class="grid cards" aria-label="IONs, the worst first">
            {shown.map((ion) => (
                <IonCard key={ion.name} ion={ion} />
            ))}
            {rest.length > 0 && (
                <a class="panel ioncard tone-plain" href={href('ions')}>
                    <b>and {rest.length} more</b>
                    <span class="small muted two">{rest.some(needsYou) ? `${rest.filter(needsYou).length} of them need you` : 'none of them needs you'}</span>
                </a>
            )}
        </section>
    )
}

function Approvals() {
    const names = new Set((ions.data.value ?? []).filter(inProject).map((ion) => ion.name))
    const waiting = pendingCandidates.value.filter((one) => names.has(one.ion))
    return (
        <Panel
            title="Waiting for a person"
            window={waiting.length > 0 && <Count count={waiting.length} tone="warn" />}
            foot={<SinceLastVisit />}
        >
            {waiting.length === 0 ? (
                <p class="quiet">
                    <Icon name="check" /> Nobody waits.
                </p>
            ) : (
                <ul class="list">
                    {waiting.slice(0, SHOWN - 1).map((one) => (
                        <li key={one.id}>
                            <PolicyDiamond policy="manual" tone="warn" />
                            <div class="grow">
                                <div>
                                    <a class="main" href={href(['ions', one.ion, 'review', `v${one.version}`])}>
                                        {one.ion}
                                    </a>{' '}
                                    <Version number={one.version} is="candidate" /> for {one.link_to}
                                </div>
                                <div class="small muted">
                                    {Object.entries(one.metrics ?? {})
                                        .slice(0, 2)
                                        .map(([key, value]) => `${words(key)} ${plainValue(value)} · `)}
                                    came <Ago time={one.created_ms} />
                                </div>
                            </div>
                            <a class="button small" href={href(['ions', one.ion, 'review', `v${one.version}`])}>
                                Review<span class="hidden"> version {one.version}</span>
                            </a>
                        </li>
                    ))}
                </ul>
            )}
        </Panel>
    )
}

/** When this browser looked last: of the visit before this one. */
let lastVisit: number | undefined

function visitBefore(): number {
    if (lastVisit === undefined) {
        lastVisit = 0
        try {
            const [before = 0, latest = 0] = (localStorage.getItem(VISIT_KEY) ?? '').split(' ').map(Number)
            const isSame = Date.now() - latest < VISIT_MS
            lastVisit = isSame ? before : latest
            localStorage.setItem(VISIT_KEY, `${lastVisit} ${Date.now()}`)
        } catch {
            // No storage: then every visit is the first.
        }
    }
    return lastVisit
}

const NEWS: [string, string, string][] = [
    ['model_registered', 'version made', 'versions made'],
    ['model_promoted', 'rolled out', 'rolled out'],
    ['model_rejected', 'refused by its link', 'refused by their links'],
    ['job_failed', 'job failed', 'jobs failed'],
    ['node_lost', 'node lost', 'nodes lost'],
]

function SinceLastVisit() {
    const since = visitBefore()
    const fresh = (events.data.value ?? []).filter((event) => Date.parse(String(event.time_ms)) > since)
    const news = NEWS.map(([kind, one, many]) => {
        const count = fresh.filter((event) => event.kind === kind).length
        return count > 0 ? `${count} ${count === 1 ? one : many}` : ''
    }).filter(Boolean)
    return (
        <span>
            {since > 0 ? `Since you were last here, ${dayMinute(new Date(since).toISOString())}: ` : 'Lately: '}
            <a href={href('events')}>{news.join(' · ') || 'nothing new'}</a>
        </span>
    )
}

function Firing() {
    const firing = useProjectAlerts().filter((alert) => is(alert.state, 'open')).sort(byUrgency)
    const taken = useProjectAlerts().filter((alert) => is(alert.state, 'acknowledged')).length
    return (
        <Panel
            title="Alerts that fire"
            window={firing.length > 0 && <Count count={firing.length} tone="bad" />}
            aside={<a href={href('alerts')}>All, and history</a>}
            foot={taken > 0 ? `Somebody looks after ${taken} more` : undefined}
        >
            <Loaded resource={alerts}>
                {() =>
                    firing.length > 0 ? (
                        <AlertRows items={firing.slice(0, SHOWN - 1)} />
                    ) : (
                        <p class="quiet">
                            <Icon name="check" /> Nothing fires. Drift, quality, deployments, machines and disk are watched.
                        </p>
                    )
                }
            </Loaded>
        </Panel>
    )
}

/** The page may not hold all of them. */
const atLeast = (count: number) => (hasMoreJobs.value && count > 0 ? `${count}+` : count)

function Cluster() {
    const all = nodes.data.value ?? []
    const isHeard = connection.value.state !== 'lost'
    const mine = (jobs.data.value ?? []).filter((job) => !is(job.state, 'succeeded', 'failed', 'cancelled'))
    const shares = projects.value
        .map((name) => {
            const its = mine.filter((job) => job.project === name)
            const waiting = its.filter((job) => is(job.state, 'pending')).length
            return { name, runs: its.length - waiting, waiting }
        })
        .filter((one) => one.runs + one.waiting > 0)
    return (
        <Panel title="Cluster" window="now" aside={<a href={href('nodes')}>Nodes</a>}>
            <Loaded resource={nodes}>
                {() =>
                    all.length === 0 ? (
                        <p class="quiet">No node has registered.</p>
                    ) : (
                        <ul class="list short">
                            {all.slice(0, SHOWN - 1).map((node) => (
                                <li key={node.name}>
                                    <a class="main clip grow" href={href(['nodes', node.name])}>
                                        {node.name}
                                    </a>
                                    <span class="small muted nowrap">{coresOf(node)} cores used</span>
                                    <StateWord state={isHeard ? (node.state ?? 'unknown') : 'unknown'} />
                                </li>
                            ))}
                        </ul>
                    )
                }
            </Loaded>
            {shares.length > 0 && (
                <table class="dense">
                    <thead>
                        <tr>
                            <th scope="col">Project</th>
                            <th scope="col" class="num">
                                Jobs that run
                            </th>
                            <th scope="col" class="num">
                                Waiting
                            </th>
                        </tr>
                    </thead>
                    <tbody>
                        {shares.slice(0, SHOWN - 1).map((one) => (
                            <tr key={one.name}>
                                <td>
                                    <Owner project={one.name} />
                                </td>
                                <td class="num">{atLeast(one.runs)}</td>
                                <td class="num">{atLeast(one.waiting)}</td>
                            </tr>
                        ))}
                    </tbody>
                </table>
            )}
        </Panel>
    )
}

function Runs() {
    const mine = (runs.data.value ?? []).filter(inProject)
    const total = useResource(`runs:${project.value ?? ''}`, () => summaryOf({ experiment: undefined, project: project.value, filter: '', isDeleted: false }))
    const newest = mine[0]?.id
    useEffect(() => {
        if (total.loadedAt > 0) {
            total.loadSoon() // there is a new one
        }
    }, [newest])
    return (
        <Panel title="Runs" window="newest first" aside={<a href={href('experiments')}>All{total.data.value ? ` ${total.data.value.n.toLocaleString('en')}` : ''}</a>}>
            <Loaded resource={runs}>
                {() =>
                    mine.length === 0 ? (
                        <p class="quiet">No runs yet.</p>
                    ) : (
                        <div class="table-wrap" tabIndex={0} role="group" aria-label="Runs">
                            <table class="dense">
                                <thead>
                                    <tr>
                                        <th scope="col">Run</th>
                                        <th scope="col">State</th>
                                        <th scope="col" class="desk">
                                            Progress
                                        </th>
                                        <th scope="col" class="num">
                                            Validation
                                        </th>
                                        <th scope="col" class="num desk">
                                            Took
                                        </th>
                                    </tr>
                                </thead>
                                <tbody>
                                    {mine.slice(0, SHOWN).map((run) => (
                                        <tr key={run.id}>
                                            <td class="clip-cell">
                                                <a class="main" href={href(['runs', run.id])} title={run.name}>
                                                    {nameIn(run.ion, run.name)}
                                                </a>
                                            </td>
                                            <td>
                                                <StateWord state={run.started_ms ? run.status : 'waits'} />
                                            </td>
                                            <td class="desk">
                                                {toneOf(run.status) === 'busy' ? (
                                                    <Progress value={run.progress} label={`Progress of ${run.name}`} />
                                                ) : (
                                                    <span class="muted">{run.epoch ? counted(run.epoch, 'epoch') : NONE}</span>
                                                )}
                                            </td>
                                            <td class="num">{percent(run.validation_accuracy)}</td>
                                            <td class="num desk">{run.started_ms ? span(run.started_ms, run.finished_ms, now.value) : NONE}</td>
                                        </tr>
                                    ))}
                                </tbody>
                            </table>
                        </div>
                    )
                }
            </Loaded>
        </Panel>
    )
}

function Serving({ all }: { all: Ion[] }) {
    const serving = all.flatMap((ion) => ion.pipelines.filter((one) => one.type === 'prediction').map((pipeline) => ({ ion, pipeline })))
    return (
        <Panel title="Predictions" window="decisions/s · last 10 s" aside={<a href={href('ions')}>IONs</a>}>
            {serving.length === 0 ? (
                <p class="quiet">No ION has a prediction pipeline yet.</p>
            ) : (
                <div class="table-wrap" tabIndex={0} role="group" aria-label="Predictions">
                    <table class="dense">
                        <thead>
                            <tr>
                                <th scope="col">Pipeline</th>
                                <th scope="col">Version</th>
                                <th scope="col" class="desk">
                                    Gallery
                                </th>
                                <th scope="col" class="num">
                                    Decisions/s
                                </th>
                            </tr>
                        </thead>
                        <tbody>
                            {serving.slice(0, SHOWN).map(({ ion, pipeline }) => {
                                const perSecond = rate.perSecond(ion.name, pipeline.name)
                                const served = ion.links.find((link) => link.to === pipeline.name)?.serving_version
                                return (
                                    <tr key={`${ion.name}/${pipeline.name}`}>
                                        <td class="clip-cell">
                                            <a class="main" href={href(['ions', ion.name, 'decisions'])}>
                                                {pipeline.name}
                                            </a>{' '}
                                            <span class="muted">{ion.name}</span>
                                        </td>
                                        <td>{typeof served === 'number' ? <Version number={served} is={connection.value.state === 'lost' ? undefined : 'live'} /> : NONE}</td>
                                        <td class="desk">{pipeline.deployment?.gallery ? `${pipeline.deployment.gallery.dataset} v${pipeline.deployment.gallery.version}` : NONE}</td>
                                        <td class="num">{perSecond === null ? NONE : rateText(perSecond)}</td>
                                    </tr>
                                )
                            })}
                        </tbody>
                    </table>
                </div>
            )}
        </Panel>
    )
}

function FirstSteps() {
    return (
        <>
            <PageHead title="Nothing serves yet" sub="Three first steps" />
            <div class="panel">
                <Empty
                    icon="ions"
                    title="No ION yet"
                    command={COMMANDS.demo}
                    more={
                        <>
                            <p>An ION of your own links a training pipeline to a prediction pipeline, under a policy. Describe one in a file and apply it:</p>
                            <Command text={COMMANDS.applyIon} />
                            <p>Or train a model alone:</p>
                            <Command text={COMMANDS.train} />
                        </>
                    }
                >
                    See one at work, with faces and a camera of its own:
                </Empty>
            </div>
        </>
    )
}

function Home() {
    useEffect(() => events.need(), [])
    return (
        <Loaded resource={ions} rows={6}>
            {(items) => {
                const all = items.filter(inProject)
                if (all.length === 0) {
                    return <FirstSteps />
                }
                const names = new Set(all.map((ion) => ion.name))
                const approvals = pendingCandidates.value.filter((one) => names.has(one.ion)).length
                const works = all.filter((ion) => verdictOf(ion).tone === 'good').length
                const unseen = (cameras.data.value ?? []).filter((one) => names.has(one.ion) && cameraNeedsYou(one)).length
                return (
                    <>
                        <PageHead
                            title={verdictText(all)}
                            sub={
                                <>
                                    {unseen > 0 && (
                                        <>
                                            <a href={href('cameras')}>{counted(unseen, 'camera needs you', 'cameras need you')}</a> ·{' '}
                                        </>
                                    )}
                                    {[
                                        works > 0 && works < all.length && `${works} ${works === 1 ? 'works' : 'work'} as they should`,
                                        approvals > 0 && (approvals === 1 ? '1 approval waits' : `${approvals} approvals wait`),
                                        dayTime(now.value),
                                    ]
                                        .filter(Boolean)
                                        .join(' · ')}
                                </>
                            }
                        >
                            <span class="small muted desk">Rates are means of the {rangeText(param('from') || WINDOW, param('to'), '')}</span>
                            <TimeRange fallback={WINDOW} />
                        </PageHead>
                        <Cards all={all} />
                        <div class="grid fill g3">
                            <Approvals />
                            <Firing />
                            <Cluster />
                        </div>
                        <div class="grid fill g2">
                            <Runs />
                            <Serving all={all} />
                        </div>
                    </>
                )
            }}
        </Loaded>
    )
}

export const homeScreen: Screen = {
    id: 'home',
    title: 'Home',
    icon: 'home',
    address: 'home',
    query: ['from', 'to'],
    group: { science: '', operations: '' },
    load: [ions, alerts, nodes, runs],
    letter: 'h',
    render: Home,
}
