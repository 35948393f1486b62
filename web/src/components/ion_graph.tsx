/** The ION as a live graph: boxes are pipelines and their data, lines are links; a model that moves is seen moving. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Ion, Link, Pipeline, Run } from '../api'
import { duration, fixed, NONE, millis, percent, short, words } from '../format'
import { linkKey, TRANSITION_MS, transitions } from '../state/transitions'
import { href, hrefWith, param } from '../state/route'
import { deployments, jobs, now, rate, runs } from '../state/store'
import { Progress, Version } from './basics'
import { PolicyDiamond } from './diamond'
import { is, StateWord, toneOf, type Tone } from './state'
import { Icon, type IconName } from './icon'
import { connection } from '../state/stream'
import { WithLibrary, type Dagre } from './library'
import { layoutIon, reasonOf, type Box, type GraphEdge, type GraphNode } from './layout_graph'

const isPrediction = (pipeline: Pipeline) => pipeline.type === 'prediction'
const ICONS: Record<string, IconName> = { prediction: 'camera', preparation: 'data', evaluation: 'check', comparison: 'check' }

/** The run that a training pipeline is busy with, else its latest. */
export function runOf(ion: string, pipeline: Pipeline, all: Run[]): Run | undefined {
    const mine = (run: Run) => (run.pipeline ? run.ion === ion && run.pipeline === pipeline.name : run.name === pipeline.name)
    return all.find((run) => run.id === pipeline.run || (run.job && run.job === pipeline.job)) ?? all.find(mine)
}

/** The validation figure where there is one: that of the last batches of training flatters. */
function lastResult(run: Run): string {
    return typeof run.validation_accuracy === 'number' ? `last validation ${percent(run.validation_accuracy)}` : `last training accuracy ${percent(run.accuracy)}`
}

function TrainingBody({ ion, pipeline }: { ion: Ion; pipeline: Pipeline }) {
    const run = runOf(ion.name, pipeline, runs.data.value ?? [])
    const servers = pipeline.parameter_servers ? ` + ${pipeline.parameter_servers} ps` : ''
    const isRunning = run !== undefined && toneOf(run.status) === 'busy'
    const job = jobs.data.value?.find((one) => one.id === pipeline.job)
    const next = pipeline.next_fire_ms ? `next on schedule in ${duration(millis(pipeline.next_fire_ms) - now.value)}` : pipeline.new_data ? 'trains on new data' : 'trains when asked'
    return (
        <>
            <p class="node-line">
                {pipeline.model ?? 'model'} <span class="muted">·</span> {pipeline.workers ?? 1}{' '}
                {pipeline.workers === 1 ? 'worker' : 'workers'}
                {servers}
            </p>
            {isRunning ? (
                <>
                    <Progress value={run.progress} label={`Progress of ${pipeline.name}`} />
                    <p class="node-line small">
                        epoch {run.epoch ?? '–'}/{run.epochs ?? '–'} <span class="muted">·</span> {short(run.images_per_second)} img/s
                    </p>
                    <p class="node-line small">
                        loss {fixed(run.loss)} <span class="muted">·</span> training {percent(run.accuracy)}
                    </p>
                </>
            ) : (
                <>
                    <p class="node-line small muted">
                        {(toneOf(pipeline.state) === 'busy' && job?.reason) || (run ? lastResult(run) : runs.data.value ? 'not trained yet' : 'its runs are not known')}
                    </p>
                    <p class="node-line small muted">{next}</p>
                </>
            )}
        </>
    )
}

const BETTER: Record<string, string> = { '1': 'better than the live one', '0': 'no better, no worse', '-1': 'worse than the live one' }

/** What its last run came to. */
function resultOf(pipeline: Pipeline, run: Run | undefined): string {
    if (run === undefined) {
        return runs.data.value ? 'not run yet' : 'its runs are not known'
    }
    const better = BETTER[String(run.metrics['better'])]
    const accuracy = typeof run.metrics['accuracy'] === 'number' ? `accuracy ${percent(run.metrics['accuracy'])}` : `last run ${words(run.status).toLowerCase()}`
    return pipeline.type === 'comparison' && better ? `${accuracy}, ${better}` : accuracy
}

/** A preparation, an evaluation or a comparison: what it runs with, and what came of it. */
function JobBody({ ion, pipeline }: { ion: Ion; pipeline: Pipeline }) {
    const job = jobs.data.value?.find((one) => one.id === pipeline.job)
    const again = millis(pipeline.restart_ms) > now.value ? `starts again in ${duration(millis(pipeline.restart_ms) - now.value)}` : ''
    const next = pipeline.next_fire_ms ? `next on schedule in ${duration(millis(pipeline.next_fire_ms) - now.value)}` : pipeline.type === 'preparation' ? (pipeline.new_data ? 'runs on new data' : 'runs when asked') : 'runs for each model'
    return (
        <>
            <p class="node-line">
                {pipeline.type === 'preparation' ? (
                    <>
                        makes <b>{pipeline.output}</b>
                    </>
                ) : pipeline.measured_model ? (
                    <>
                        {pipeline.measured_model} <Version number={pipeline.measured_version} />
                    </>
                ) : (
                    <span class="muted">no model yet</span>
                )}
            </p>
            <p class="node-line small muted">{(toneOf(pipeline.state) === 'busy' && (job?.reason || pipeline.cause)) || resultOf(pipeline, runOf(ion.name, pipeline, runs.data.value ?? []))}</p>
            <p class="node-line small muted">{again || next}</p>
        </>
    )
}

function PredictionBody({ ion, pipeline }: { ion: Ion; pipeline: Pipeline }) {
    const perSecond = rate.perSecond(ion.name, pipeline.name)
    const deployment = pipeline.deployment
    return (
        <>
            <p class="node-line" title={deployment?.model ? `${deployment.model.name} v${deployment.model.version}` : undefined}>
                {deployment?.model ? (
                    <>
                        {deployment.model.name} <Version number={deployment.model.version} is={connection.value.state === 'lost' ? undefined : 'live'} />
                    </>
                ) : (
                    <span class="muted">no model yet</span>
                )}
            </p>
            <p class="node-line small">
                {deployment?.gallery ? `gallery ${deployment.gallery.dataset} v${deployment.gallery.version}` : pipeline.dataset ? `gallery ${pipeline.dataset}` : <span class="muted">classifies</span>}
                <span class="muted"> · </span>
                {pipeline.replicas ?? 1} {(pipeline.replicas ?? 1) === 1 ? 'replica' : 'replicas'}
            </p>
            {reasonOf(pipeline) && (
                <p class="small node-reason" title={reasonOf(pipeline)}>
                    {reasonOf(pipeline)}
                </p>
            )}
            <p class="node-rate">
                <span class="big">{perSecond === null ? NONE : perSecond >= 10 ? Math.round(perSecond) : perSecond.toFixed(1)}</span>{' '}
                <span class="small muted">decisions/s · last 10 s</span>
            </p>
        </>
    )
}

function place(box: Box) {
    return {
        left: `${box.x - box.width / 2}px`,
        top: `${box.y - box.height / 2}px`,
        width: `${box.width}px`,
        height: `${box.height}px`,
    }
}

const PILLS: Record<'data' | 'model' | 'deployment', { icon: IconName; screen: string }> = {
    data: { icon: 'data', screen: 'datasets' },
    model: { icon: 'models', screen: 'models' },
    deployment: { icon: 'bolt', screen: 'deployments' },
}

function NodeBox({ ion, node }: { ion: Ion; node: GraphNode }) {
    if (node.kind === 'source' || node.kind === 'sink') {
        return (
            <div class="node data" style={place(node)} title={`${node.name}: ${node.roles.join(', ')}`} data-end={node.kind}>
                <Icon name={node.kind === 'source' ? 'camera' : 'sink'} />
                <span>
                    <b>{node.name}</b>
                    <small class="muted">{node.roles.join(', ')}</small>
                </span>
            </div>
        )
    }
    if (node.kind !== 'pipeline') {
        const served = node.kind === 'deployment' ? deployments.data.value?.find((one) => one.name === node.name) : undefined
        const { icon, screen } = PILLS[node.kind]
        return (
            <a class="node data" style={place(node)} href={href([screen, node.name])} title={node.name} {...{ [`data-${node.kind === 'data' ? 'dataset' : node.kind}`]: node.name }}>
                <Icon name={icon} />
                <span>
                    <b>{node.name}</b>
                    <small class="muted">{served && served.traffic !== 'none' ? served.traffic : node.roles.join(', ')}</small>
                </span>
            </a>
        )
    }
    const { pipeline } = node
    // What serves is a job: while that is started again, nothing is served, whatever was served last.
    const job = jobs.data.value?.find((one) => one.id === pipeline.job)
    const known = pipeline.state === 'SERVING' && job?.state === 'RESTARTING' ? job.state : pipeline.state
    const state = connection.value.state === 'lost' ? 'unknown' : known
    const run = isPrediction(pipeline) ? undefined : runOf(ion.name, pipeline, runs.data.value ?? [])
    const target = isPrediction(pipeline) ? href(['ions', ion.name, 'decisions']) : run ? href(['runs', run.id]) : href('experiments')
    return (
        <article class={`node pipe tone-${toneOf(state)}`} style={place(node)} data-pipeline={pipeline.name}>
            <header>
                <Icon name={ICONS[pipeline.type] ?? 'runs'} />
                <h3>
                    <a href={target}>{pipeline.name}</a>
                </h3>
                <StateWord state={state} />
            </header>
            {isPrediction(pipeline) ? <PredictionBody ion={ion} pipeline={pipeline} /> : pipeline.type === 'training' ? <TrainingBody ion={ion} pipeline={pipeline} /> : <JobBody ion={ion} pipeline={pipeline} />}
        </article>
    )
}

/** Where a link's version stands: at each policy of the chain its tone and a fact; the furthest version counts. */
export function chainStates(link: Link, isHeard: boolean): { policy: string; tone: Tone; fact: string; why: string }[] {
    const policies = link.policies.length > 0 ? link.policies : [link.policy]
    const waiting = link.waiting ?? []
    const furthest = waiting.reduce((most, one) => Math.max(most, one.position), -1)
    const isWanted = typeof link.wanted_version === 'number' && link.wanted_version !== link.serving_version
    const isServing = typeof link.serving_version === 'number'
    return policies.map((policy, i) => {
        const here = waiting.filter((one) => one.position === i).sort((a, b) => b.version - a.version)[0]
        if (here !== undefined) {
            const approved = here.approvals.length > 0 ? `, ${here.approvals.length} approved` : ''
            const facts: Record<string, string> = { PENDING_REVIEW: `asks${approved}`, SHADOW: 'gets copies', CANARY: 'is tried', AB: 'is compared' }
            return { policy, tone: is(here.state, 'shadow', 'canary', 'ab') ? ('busy' as const) : ('warn' as const), fact: `v${here.version} ${facts[here.state] ?? 'waits for its time'}`, why: here.why ?? '' }
        }
        if (i < furthest) {
            const passed = waiting.find((one) => one.position === furthest)!
            return { policy, tone: 'good' as const, fact: `v${passed.version} passed`, why: '' }
        }
        if (furthest >= 0) {
            return { policy, tone: 'plain' as const, fact: 'not reached', why: '' }
        }
        if (link.deployment_state === 'DEPLOY_FAILED') {
            return { policy, tone: i === policies.length - 1 ? ('bad' as const) : ('good' as const), fact: i === policies.length - 1 ? 'cannot be deployed' : 'passed', why: '' }
        }
        return isWanted ? { policy, tone: 'busy' as const, fact: 'goes on', why: '' } : { policy, tone: isServing && isHeard ? ('good' as const) : ('plain' as const), fact: isServing ? 'passed' : '', why: '' }
    })
}

/** What a link does with versions: the one that serves, those that wait; its chain of policies; and what each says now. */
function LinkLabel({ ion, link, box, direction }: { ion: Ion; link: Link; box: Box; direction: 'LR' | 'TB' }) {
    const move = transitions.value[linkKey(ion.name, link.from, link.to)]
    const isFresh = move !== undefined && now.value - move.at < TRANSITION_MS + 4_000
    const pending = link.pending_versions ?? []
    const isHeard = connection.value.state !== 'lost'
    const key = `${link.from}>${link.to}`
    const isWanted = typeof link.wanted_version === 'number' && link.wanted_version !== link.serving_version
    const [chosen, policy] = [param('link'), param('policy')]
    return (
        <div class={`link-label ${direction} ${link.policies.length > 1 ? 'chain-of' : ''}`} style={place(box)} data-link={key}>
            <span class="above">
                {typeof link.serving_version === 'number' ? (
                    <span class={isFresh && move.kind === 'serving' ? 'fresh' : ''}>
                        {isHeard ? 'live' : 'served last'} <Version number={link.serving_version} is={isHeard ? 'live' : undefined} />
                    </span>
                ) : (
                    <span class="muted">nothing served</span>
                )}
                {pending.slice(-1).map((version) => (
                    <span key={version} class={isFresh && move.version === version ? 'fresh' : ''}>
                        waits <Version number={version} is="candidate" />
                        {pending.length > 1 && ` +${pending.length - 1}`}
                    </span>
                ))}
                {isWanted && (
                    <span>
                        <Version number={link.wanted_version!} /> {words(link.deployment_state ?? 'wanted').toLowerCase()}
                    </span>
                )}
            </span>
            <span class="gates">
                {chainStates(link, isHeard).map((one, i) => {
                    const isOn = chosen === key && policy === one.policy
                    return (
                        <a
                            key={i}
                            class={`policy ${isOn ? 'is-on' : ''}`}
                            href={hrefWith({ link: key, policy: isOn ? '' : one.policy })}
                            title={one.why || undefined}
                        >
                            <PolicyDiamond policy={one.policy} tone={one.tone} />
                            <span>
                                <span class="hidden">{`Policy of the link from ${link.from} to ${link.to}: `}</span>
                                <b>{words(one.policy)}</b> <span class="muted">{one.fact}</span>
                            </span>
                        </a>
                    )
                })}
            </span>
        </div>
    )
}

function EdgeLine({ ion, edge }: { ion: Ion; edge: GraphEdge }) {
    const owner = ion.pipelines.find((pipeline) => pipeline.name === edge.owner)
    const isFlowing = edge.link === null && owner !== undefined && (isPrediction(owner) ? edge.key.startsWith('s:') && (rate.perSecond(ion.name, owner.name) ?? 0) > 0 : toneOf(owner.state) === 'busy')
    return (
        <path
            class={`edge ${edge.link ? 'link' : 'flow'} ${isFlowing ? 'flowing' : ''}`}
            d={edge.path}
            marker-end={`url(#arrow-${edge.link ? 'link' : 'flow'})`}
        />
    )
}

/** Arrows go to the nearest thing that way. */
function walk(event: KeyboardEvent & { currentTarget: HTMLElement }): void {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key]
    const from = document.activeElement
    if (way === undefined || from === null || event.ctrlKey || event.altKey || event.metaKey) {
        return
    }
    const middle = (element: Element) => {
        const box = element.getBoundingClientRect()
        return [box.left + box.width / 2, box.top + box.height / 2] as const
    }
    const [x, y] = middle(from)
    let [best, least]: [HTMLElement | null, number] = [null, Infinity]
    for (const one of event.currentTarget.querySelectorAll<HTMLElement>('a[href]')) {
        const [toX, toY] = middle(one)
        const along = (toX - x) * way[0]! + (toY - y) * way[1]!
        const aside = Math.abs((toX - x) * way[1]!) + Math.abs((toY - y) * way[0]!)
        if (along > 8 && along + 2 * aside < least) {
            ;[best, least] = [one, along + 2 * aside]
        }
    }
    if (best !== null) {
        best.focus()
        event.preventDefault()
    }
}

/** The version that travels along a link after a move. Keyed by time, so that each move starts again. */
function Traveller({ ion, edge }: { ion: Ion; edge: GraphEdge }) {
    const move = edge.link ? transitions.value[linkKey(ion.name, edge.link.from, edge.link.to)] : undefined
    const [done, setDone] = useState(0)
    useEffect(() => {
        if (move === undefined) {
            return undefined
        }
        const timer = window.setTimeout(() => setDone(move.at), Math.max(0, move.at + TRANSITION_MS - Date.now()))
        return () => window.clearTimeout(timer)
    }, [move?.at])
    if (move === undefined || done === move.at || Date.now() - move.at > TRANSITION_MS) {
        return null
    }
    return (
        <span key={move.at} class={`traveller ${move.kind}`} style={{ offsetPath: `path("${edge.path}")` }} aria-hidden="true">
            v{move.version}
        </span>
    )
}

export const IonGraph = ({ ion }: { ion: Ion }) => <WithLibrary name="dagre">{(dagre) => <Graph ion={ion} dagre={dagre} />}</WithLibrary>

function Graph({ ion, dagre }: { ion: Ion; dagre: Dagre }) {
    const host = useRef<HTMLDivElement>(null)
    const [width, setWidth] = useState(0)
    useEffect(() => {
        const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)))
        observer.observe(host.current!)
        return () => observer.disconnect()
    }, [])
    const placed = useMemo(() => (width > 0 ? layoutIon(dagre, ion, width) : null), [dagre, ion, width])
    return (
        <div class="graph-host" ref={host} role="group" onKeyDown={walk} aria-label={`Pipelines and links of ${ion.name}`}>
            {placed && (
                <div class={`graph ${placed.direction}`} style={{ width: `${placed.width}px`, height: `${placed.height}px` }}>
                    <svg width={placed.width} height={placed.height} aria-hidden="true">
                        <defs>
                            {['link', 'flow'].map((kind) => (
                                <marker key={kind} id={`arrow-${kind}`} class={`arrow ${kind}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">
                                    <path d="M0 0L8 4L0 8z" />
                                </marker>
                            ))}
                        </defs>
                        {placed.edges.map((edge) => (
                            <EdgeLine key={edge.key} ion={ion} edge={edge} />
                        ))}
                    </svg>
                    {placed.nodes.map((node) => (
                        <NodeBox key={node.kind !== 'pipeline' ? `${node.kind}:${node.name}:${node.x}:${node.y}` : node.pipeline.name} ion={ion} node={node} />
                    ))}
                    {placed.edges.map((edge) => edge.link && edge.label && <LinkLabel key={edge.key} ion={ion} link={edge.link} box={edge.label} direction={placed.direction} />)}
                    {placed.edges.map((edge) => (
                        <Traveller key={edge.key} ion={ion} edge={edge} />
                    ))}
                </div>
            )}
        </div>
    )
}
