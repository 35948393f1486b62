/** Deployments: who gets which version, is it fast, what answers, and a place to try it. */
import { useEffect, useState } from 'preact/hooks'
import type { Deployment, ModelVersion } from '../api'
import { COMMANDS } from '../commands'
import { Empty, Facts, Loaded, Owner, PageHead, Panel } from '../components/basics'
import { ComparisonPanel } from '../components/comparison'
import { DeployForm } from '../components/deploy_form'
import { FigureCharts, FiguresTable } from '../components/deployment_figures'
import { ReplicasPanel } from '../components/deployment_replicas'
import { rollbackQuestion, ShareBar, SharesPanel } from '../components/deployment_shares'
import { ask, type Question } from '../components/dialog'
import { Filter, filtered, NothingMatches, type FilterOf } from '../components/filter'
import { Form } from '../components/form'
import { Icon } from '../components/icon'
import { Act } from '../components/locked'
import { State } from '../components/state'
import { TryIt } from '../components/try_it'
import { bytes, dayTime, counted, plural, rateText, spanText } from '../format'
import type { Action, Args, Screen } from '../screen'
import { byNeed, change, inUse, undeploy, verdictOf } from '../state/deployments'
import { perSecond, useFigures, type FigureLog } from '../state/figures'
import { getAll, segment } from '../state/http'
import { inProject } from '../state/project'
import { useResource } from '../state/resource'
import { may } from '../state/rights'
import { go, href, hrefWith, param } from '../state/route'
import { deployments, models, now } from '../state/store'

const REFRESH_S = 5 // replicas report, and their reports age, without an event

const FILTER: FilterOf<Deployment> = {
    text: (one) => `${one.name} ${one.model}`,
    keys: { name: (one) => one.name, model: (one) => one.model, project: (one) => one.project, state: (one) => verdictOf(one).word },
}

function StateOf({ deployment }: { deployment: Deployment }) {
    const verdict = verdictOf(deployment)
    return (
        <State tone={verdict.tone} isKnown={verdict.isKnown} title={verdict.evidence}>
            {verdict.word}
        </State>
    )
}

function undeployQuestion(one: Deployment, rate: number): Question {
    return {
        title: `Undeploy ${one.name}?`,
        text: (
            <p>
                {rate > 0 ? `${rateText(rate)} requests/s come now; they` : 'Requests'} get 404 from then on, {one.replicas.length === 1 ? 'its replica stops' : `its ${one.replicas.length} replicas stop`}, and its figures and its previous
                shares are gone. {one.model} and its versions stay.
            </p>
        ),
        confirm: `Undeploy ${one.name}`,
        danger: true,
        done: `${one.name} is undeployed`,
        act: async () => {
            await undeploy(one.name)
            go(href('deployments'))
        },
    }
}

function ScaleForm({ deployment, onClose }: { deployment: Deployment; onClose: () => void }) {
    const fields = [
        { name: 'replicas', label: 'Replicas by load, A..B; 0..B goes down to none', value: `${deployment.replicas_min}..${deployment.replicas_max}` },
        { name: 'batch', label: 'Requests computed together at most', value: String(deployment.batch_max) },
        { name: 'delay', label: 'How long one waits for others (ms)', value: String(deployment.delay_max_us / 1000) },
        { name: 'queue', label: 'Requests that wait in one replica at most; more get 503', value: String(deployment.queue_max) },
    ]
    const act = async (values: Record<string, string>) => {
        await change(deployment.name, {
            replicas: values['replicas'],
            batch_max: Number(values['batch']),
            delay_max_us: Math.round(Number(values['delay']) * 1000),
            queue_max: Number(values['queue']),
        })
    }
    return <Form title={`Scale ${deployment.name}`} fields={fields} confirm="Change it" act={act} onClose={onClose} />
}


function SetupPanel({ deployment }: { deployment: Deployment }) {
    return (
        <Panel title="Set up" window={`last changed ${dayTime(deployment.updated_ms)}`}>
            <div class="panel-body">
                <Facts
                    items={[
                        ['Model', <a href={href(['models', deployment.model])}>{deployment.model}</a>],
                        ['Project', <Owner project={deployment.project} />],
                        ['Batches', `up to ${deployment.batch_max}, after ${deployment.delay_max_us / 1000} ms at most`],
                        ['Queue', `${deployment.queue_max} requests a replica, then 503`],
                        ['Each replica', `${counted(deployment.cpus, 'CPU')}${deployment.gpus > 0 ? `, ${counted(deployment.gpus, 'accelerator')}` : ''}${deployment.memory_bytes > 0 ? `, ${bytes(deployment.memory_bytes)}` : ''}`],
                        ['Fewer replicas', `after ${spanText(deployment.idle_after_ms)} of load that they could bear`],
                        ['Made by', `${deployment.created_by ?? 'nobody known'}, ${dayTime(deployment.created_ms)}`],
                    ]}
                />
            </div>
        </Panel>
    )
}

function rateOf(log: FigureLog, one: Deployment): number {
    return inUse(one).reduce((sum, it) => sum + (log.latest(it.version) ? perSecond(log.latest(it.version)!) : 0), 0)
}

function Detail({ deployment }: { deployment: Deployment }) {
    const [isScaling, setScaling] = useState(false)
    const versions = useResource(`deployment:${deployment.model}`, () => getAll<ModelVersion>(`/models/${segment(deployment.model)}/versions`, { limit: 200 }))
    useEffect(() => versions.refresh(), [models.data.value])
    const { log, error } = useFigures(deployment.name)
    const verdict = verdictOf(deployment)
    const all = versions.data.value ?? []
    return (
        <div class="stack" data-deployment={deployment.name}>
            <Panel
                title={deployment.name}
                id="deployment-title"
                window={`model ${deployment.model} · ${rateText(rateOf(log, deployment))} requests/s in the last 60 s`}
                class="wraps"
                aside={
                    <>
                        <Act right="change deployments" project={deployment.project} isSmall onClick={() => setScaling(true)}>
                            Scale
                        </Act>
                        <Act right="change deployments" project={deployment.project} isSmall tone="danger" onClick={() => ask(undeployQuestion(deployment, rateOf(log, deployment)))}>
                            Undeploy
                        </Act>
                    </>
                }
            >
                <p class="panel-note deployment-state">
                    <StateOf deployment={deployment} /> <span>{verdict.evidence}</span>
                </p>
            </Panel>
            <SharesPanel key={deployment.name} deployment={deployment} versions={all} />
            {(deployment.comparisons ?? []).map((one) => (
                <ComparisonPanel key={one.link} one={one} />
            ))}
            <div class="grid deployment-parts">
                <TryIt key={deployment.name} deployment={deployment} versions={all} />
                <div class="stack">
                    <FiguresTable deployment={deployment} log={log} error={error} />
                    <FigureCharts deployment={deployment} log={log} />
                    <SetupPanel deployment={deployment} />
                </div>
            </div>
            <ReplicasPanel deployment={deployment} />
            {isScaling && <ScaleForm deployment={deployment} onClose={() => setScaling(false)} />}
        </div>
    )
}

function List({ all, chosen }: { all: readonly Deployment[]; chosen: string | undefined }) {
    const found = byNeed(filtered(all, FILTER))
    return (
        <>
            <Filter label="Filter deployments" rows={all} of={FILTER} hint="name, or state:failed" />
            <Panel title="All" window="needs you first">
                {found.length === 0 ? (
                    <NothingMatches rows={all} of={FILTER} what="deployment" />
                ) : (
                    <ul class="list picks" aria-label="Deployments">
                        {found.map((one) => (
                            <li key={one.name}>
                                <a href={href(['deployments', one.name], { q: param('q') })} aria-current={one.name === chosen ? 'true' : undefined}>
                                    <b class="clip" title={one.name}>
                                        {one.name}
                                    </b>
                                    <StateOf deployment={one} />
                                    <small class="muted">
                                        <span class="clip">{one.model}</span>
                                        <ShareBar deployment={one} />
                                    </small>
                                </a>
                            </li>
                        ))}
                    </ul>
                )}
            </Panel>
        </>
    )
}

function titleOf(all: readonly Deployment[]): string {
    const need = all.filter((one) => verdictOf(one).rank === 0).length
    const good = all.filter((one) => verdictOf(one).tone === 'good').length
    return all.length === 0 ? 'Deployments' : need > 0 ? `${need} of ${all.length} deployments ${need === 1 ? 'needs' : 'need'} you` : `${good} of ${all.length} deployments ${good === 1 ? 'serves' : 'serve'}`
}

function Deployments({ args }: { args: Args }) {
    const all = (deployments.data.value ?? []).filter(inProject)
    const wanted = args['deployment']
    const chosen = wanted ?? byNeed(filtered(all, FILTER))[0]?.name
    const deployment = deployments.data.value?.find((one) => one.name === chosen)
    const asked = param('new')
    const beat = Math.floor(now.value / 1000 / REFRESH_S)
    useEffect(() => deployments.refresh(), [beat])
    return (
        <>
            <PageHead title={titleOf(all)} sub="who gets which version, is it fast, and what answers">
                <Act right="change deployments" onClick={() => go(hrefWith({ new: '1' }))}>
                    <Icon name="plus" />
                    New deployment
                </Act>
            </PageHead>
            {asked && models.data.value && <DeployForm wanted={asked === '1' ? '' : asked} onClose={() => param('new') && go(hrefWith({ new: undefined }), true)} />}
            <Loaded resource={deployments}>
                {() =>
                    all.length === 0 && !wanted ? (
                        <div class="panel">
                            <Empty icon="sink" title="No deployments yet" command={COMMANDS.deploy}>
                                A deployment puts the versions of a model behind an address that answers requests. Make one here, from a model, or by a command:
                            </Empty>
                        </div>
                    ) : (
                        <div class={`grid split-l ${wanted ? 'is-open' : ''}`}>
                            <div class="stack list-side">
                                <List all={all} chosen={chosen} />
                            </div>
                            <div class="stack drawer-side">
                                <a class="back" href={href('deployments', { q: param('q') })}>
                                    <Icon name="back" /> All deployments
                                </a>
                                {deployment ? (
                                    <Detail key={deployment.name} deployment={deployment} />
                                ) : (
                                    <div class="panel">
                                        <Empty icon="question" title={`There is no deployment ${wanted}`} more={<a href={href('events')}>See what happened</a>}>
                                            It was undeployed, or never made, or is another project's.
                                        </Empty>
                                    </div>
                                )}
                            </div>
                        </div>
                    )
                }
            </Loaded>
        </>
    )
}

function actionsOf(args: Args): Action[] {
    const one = deployments.data.value?.find((it) => it.name === args['deployment'])
    const back = one && rollbackQuestion(one)
    const mayIt = one !== undefined && may('change deployments', one.project)
    return mayIt ? [...(back ? [{ name: `Roll back ${one.name}`, run: () => ask(back) }] : []), { name: `Undeploy ${one.name}`, run: () => ask(undeployQuestion(one, 0)) }] : []
}

/** The way back of each, wherever one is. */
const waysBack = (): Action[] =>
    (deployments.data.value ?? [])
        .filter((one) => inProject(one) && may('change deployments', one.project))
        .flatMap((one) => {
            const back = rollbackQuestion(one)
            return back ? [{ name: `Roll back ${one.name}`, run: () => ask(back) }] : []
        })

export const deploymentsScreen: Screen = {
    id: 'deployments',
    title: 'Deployments',
    icon: 'sink',
    address: 'deployments/:deployment?',
    query: ['q', 'new'],
    group: { science: 'Serve', operations: '' },
    load: [deployments, models],
    badge: () => {
        const count = (deployments.data.value ?? []).filter((one) => verdictOf(one).rank === 0).length
        return { count, tone: 'bad', what: plural(count, 'needs you', 'need you') }
    },
    actions: actionsOf,
    always: waysBack,
    keys: (args) => {
        const one = deployments.data.value?.find((it) => it.name === args['deployment'])
        const back = one && rollbackQuestion(one)
        return back && may('change deployments', one.project) ? [{ key: 'b', name: 'Roll back', run: () => ask(back) }] : []
    },
    render: Deployments,
}
