/** Models: every version, where it came from, where it serves, and what can be done with it. */
import { useEffect, useState } from 'preact/hooks'
import type { ModelVersion } from '../api'
import { COMMANDS } from '../commands'
import { Ago, Command, Count, Empty, Facts, Loaded, Owner, PageHead, Panel, Tabs, Version, When } from '../components/basics'
import { ask } from '../components/dialog'
import { Filter, filtered, NothingMatches, type FilterOf } from '../components/filter'
import { Icon } from '../components/icon'
import { Description } from '../components/in_place'
import { Act } from '../components/locked'
import { Aliases, AliasForm, aliasesOf, changeVersion, removeQuestion } from '../components/model_aliases'
import { VersionLineageTab } from '../components/lineage_view'
import { ModelCardTab } from '../components/model_card'
import { PushForm } from '../components/model_push'
import { SignaturePanel } from '../components/model_signature'
import { Stage } from '../components/model_stage'
import { Step } from '../components/lineage'
import { DatasetLink } from '../components/noun'
import { placesOf } from '../components/run_lineage'
import { is, State, StateWord } from '../components/state'
import { Table, type Column } from '../components/table'
import { bytes, dayTime, millis, NONE, plainValue, plural, shortId, words } from '../format'
import type { Action, Args, Screen } from '../screen'
import type { Opt } from '../types'
import { candidates, pendingCandidates, type IonCandidate } from '../state/candidates'
import { apiUrl, getAll, segment } from '../state/http'
import { inProject } from '../state/project'
import { useResource } from '../state/resource'
import { go, href, param } from '../state/route'
import { candidatesVersion, deployments, ions, models, runs } from '../state/store'
import { connection } from '../state/stream'
import { approveQuestion, rejectQuestion, rollbackQuestion, servings } from '../state/versions'

function candidatesOf(version: ModelVersion): IonCandidate[] {
    return (candidates.data.value ?? []).filter((one) => one.model === version.model && one.version === version.version)
}

const isPending = (one: IonCandidate) => is(one.state, 'pending_review', 'pending')

type VersionAction = Action & { short: string; tone?: 'primary' | 'danger'; right: string; project: Opt<string> }

const ionProject = (name: string) => ions.data.value?.find((one) => one.name === name)?.project

/** What can be done with a version: let it through, refuse it, go back to it. */
function actionsOf(version: ModelVersion): VersionAction[] {
    const served = servings(ions.data.value ?? [], version.model)
    const mine = candidatesOf(version)
    const decide = mine.filter(isPending).flatMap((one) => [
        { short: 'Approve', name: `Approve version ${one.version} for ${one.ion}`, tone: 'primary' as const, right: 'review ions', project: ionProject(one.ion), run: () => ask(approveQuestion(one.ion, one)) },
        { short: 'Reject', name: `Reject version ${one.version} for ${one.ion}`, right: 'review ions', project: ionProject(one.ion), run: () => ask(rejectQuestion(one.ion, one)) },
    ])
    const back = mine
        .filter((one) => is(one.state, 'retired', 'rolled_back'))
        .flatMap((one) => {
            const place = served.find((it) => it.ion === one.ion && it.pipeline === one.link_to)
            const run = () => place && ask(rollbackQuestion(one.ion, one, place.version))
            return place ? [{ short: 'Roll back', name: `Roll back to v${one.version}`, tone: 'danger' as const, right: 'roll back ions', project: ionProject(one.ion), run }] : []
        })
    return [...decide, ...back]
}

/** Links of IONs, and deployments, that answer with it. */
function placeNames(version: ModelVersion): string[] {
    const links = servings(ions.data.value ?? [], version.model).filter((one) => one.version === version.version)
    return [...links.map((one) => `${one.ion} / ${one.pipeline}`), ...(version.deployments ?? []).map((name) => `deployment / ${name}`)]
}

function stateOf(version: ModelVersion): string {
    return placeNames(version).length > 0 ? 'serving' : (candidatesOf(version)[0]?.state ?? 'registered')
}

/** The measure that stands in the table: the one of validation if there is one, else the first number. */
function mainMeasure(versions: readonly ModelVersion[]): string | undefined {
    const keys = Object.entries(versions[0]?.metrics ?? {}).filter(([, value]) => typeof value === 'number').map(([key]) => key)
    return keys.find((key) => key.includes('validation_accuracy')) ?? keys.find((key) => key.includes('accuracy')) ?? keys[0]
}

function metricDelta(version: ModelVersion, serving: ModelVersion | undefined, key: string): string {
    const mine = version.metrics?.[key]
    const theirs = serving?.metrics?.[key]
    if (typeof mine !== 'number' || typeof theirs !== 'number' || serving!.version === version.version) {
        return ''
    }
    const delta = mine - theirs
    return `${delta >= 0 ? '+' : '−'}${plainValue(Math.abs(delta))} to v${serving!.version}`
}

const ACTS: Column<ModelVersion> = {
    id: 'acts',
    name: '',
    width: '192px', // room for two that are locked
    isNumber: true,
    render: (one) => (
        <span class="acts">
            {actionsOf(one).map((action) => (
                <Act key={action.name} right={action.right} project={action.project} isSmall {...(action.tone ? { tone: action.tone } : {})} onClick={action.run}>
                    {action.short}
                    <span class="hidden">{action.name.slice(action.short.length)}</span>
                </Act>
            ))}
        </span>
    ),
}

function versionColumns(versions: readonly ModelVersion[]): Column<ModelVersion>[] {
    const measure = mainMeasure(versions)
    const isHeard = connection.value.state !== 'lost'
    const hasActs = versions.some((one) => actionsOf(one).length > 0)
    const all: Column<ModelVersion>[] = [
        {
            id: 'version',
            name: 'Version',
            width: '80px',
            phone: 'name',
            sort: (one) => -one.version,
            render: (one) => (
                <a href={href(['models', one.model, `v${one.version}`])} aria-label={`Version ${one.version}`}>
                    <Version number={one.version} is={candidatesOf(one).some(isPending) ? 'candidate' : placeNames(one).length > 0 && isHeard ? 'live' : undefined} />
                </a>
            ),
        },
        {
            id: 'where',
            name: 'Where it is',
            phone: 'state',
            render: (one) => {
                const places = placeNames(one)
                const state = stateOf(one)
                return places.length > 0 ? (
                    <State tone={isHeard ? 'good' : 'plain'} isKnown={isHeard}>
                        <span class="clip" title={places.join(', ')}>
                            {isHeard ? 'serving' : 'served last'} {places.map((place) => place.split(' / ')[1]).join(', ')}
                        </span>
                    </State>
                ) : (
                    <StateWord state={is(state, 'pending_review') ? 'waits for review' : state} tone={is(state, 'pending_review') ? 'warn' : is(state, 'retired', 'registered') ? 'plain' : undefined} />
                )
            },
        },
        { id: 'alias', name: 'Alias', width: '84px', phone: 'more', sort: (one) => aliasesOf(one).join(' '), render: (one) => <Aliases version={one} /> },
        ...(measure
            ? [
                  {
                      id: 'measure',
                      name: words(measure),
                      width: '92px',
                      isNumber: true,
                      phone: 'more' as const,
                      sort: (one: ModelVersion) => -Number(one.metrics?.[measure] ?? -1),
                      render: (one: ModelVersion) => <b>{plainValue(one.metrics?.[measure])}</b>,
                  },
              ]
            : []),
        { id: 'executor', name: 'Runs on', width: '76px', sort: (one) => one.executor ?? '', render: (one) => one.executor ?? NONE },
        { id: 'size', name: 'Size', width: '76px', isNumber: true, sort: (one) => -(one.bytes ?? 0), render: (one) => bytes(one.bytes) },
        {
            id: 'run',
            name: 'Made by',
            width: '108px',
            render: (one) => (one.run ? <a href={href(['runs', one.run])}>{runs.data.value?.find((run) => run.id === one.run)?.name ?? shortId(one.run)}</a> : NONE),
        },
        { id: 'made', name: 'Made', width: '96px', phone: 'more', sort: (one) => -millis(one.created_ms), render: (one) => <When time={one.created_ms} /> },
        ...(hasActs ? [ACTS] : []),
    ]
    // Beside acts there is no room for what stands with the version below.
    return all.filter((one) => !hasActs || !['executor', 'size', 'run'].includes(one.id))
}

/** Dataset → run with code and parameters, or the file → this version → where it serves. */
function Lineage({ version }: { version: ModelVersion }) {
    const run = runs.data.value?.find((one) => one.id === version.run)
    const { links, deployments } = placesOf(version)
    return (
        <ol class="lineage" aria-label="Lineage">
            <Step icon="data" stops={version.dataset ? [{ key: 'data', name: <DatasetLink name={version.dataset} version={version.dataset_version} />, note: 'dataset version' }] : []} />
            <Step
                icon={version.run ? 'runs' : 'data'}
                stops={[
                    version.run
                        ? {
                              key: 'run',
                              name: <a href={href(['runs', version.run], { tab: 'lineage' })}>{run?.name ?? shortId(version.run)}</a>,
                              note: `run, code ${version.code_version ? version.code_version.slice(0, 12) : NONE}`,
                          }
                        : { key: 'file', name: `a file, sha ${version.blob.slice(0, 8)}`, note: `registered by ${version.created_by ?? 'nobody known'}` },
                ]}
            />
            <Step icon="models" isHere stops={[{ key: 'here', name: `v${version.version}`, note: `${version.model} · ${bytes(version.bytes)}` }]} />
            {links.map((stop) => (
                <Step key={stop.key} icon="camera" stops={[stop]} />
            ))}
            {deployments.map((stop) => (
                <Step key={stop.key} icon="sink" stops={[stop]} />
            ))}
        </ol>
    )
}

function VersionActs({ version, project }: { version: ModelVersion; project: string | undefined }) {
    const [isNaming, setNaming] = useState(false)
    return (
        <>
            {version.blob && (
                <a class="button small" href={apiUrl(`/blobs/${version.blob}`)} download={`${version.model}-v${version.version}.${(version.signature as { format?: string } | null)?.format === 'onnx' ? 'onnx' : 'safetensors'}`}>
                    <Icon name="download" />
                    Download<span class="hidden"> version {version.version}</span>
                </a>
            )}
            <Act right="label models" project={project} isSmall onClick={() => setNaming(true)}>
                Set alias
            </Act>
            {aliasesOf(version).map((alias) => (
                <Act key={alias} right="label models" project={project} isSmall onClick={() => ask(removeQuestion(version, alias))}>
                    Remove @{alias}
                </Act>
            ))}
            <Act right="change deployments" project={project} isSmall onClick={() => go(href('deployments', { new: `${version.model}@v${version.version}` }))}>
                <Icon name="sink" />
                Deploy…
            </Act>
            {isNaming && <AliasForm version={version} onClose={() => setNaming(false)} />}
        </>
    )
}

const TABS = [
    { id: '', name: 'Overview' },
    { id: 'lineage', name: 'Lineage' },
    { id: 'card', name: 'Card' },
]

function VersionTabs({ version }: { version: ModelVersion }) {
    const address = (tab: string) => href(['models', version.model, `v${version.version}`], { q: param('q'), tab })
    return <Tabs label={`Views of v${version.version}`} items={TABS.map((one) => ({ name: one.name, address: address(one.id), isCurrent: param('tab') === one.id }))} />
}

function VersionDetail({ version, serving, project }: { version: ModelVersion; serving: ModelVersion | undefined; project: string | undefined }) {
    const tab = param('tab')
    return (
        <div class="stack" data-version={version.version}>
            <VersionTabs version={version} />
            {tab === 'lineage' && <VersionLineageTab key={version.id} model={version.model} version={version.version} />}
            {tab === 'card' && <ModelCardTab key={version.id} model={version.model} version={version.version} />}
            {tab === '' && <VersionOverview version={version} serving={serving} project={project} />}
        </div>
    )
}

function VersionOverview({ version, serving, project }: { version: ModelVersion; serving: ModelVersion | undefined; project: string | undefined }) {
    const parameters = Object.entries(version.parameters ?? {})
    const metrics = Object.entries(version.metrics ?? {})
    return (
        <>
            <Panel title={`Lineage of v${version.version}`} window="where it comes from, and what it reaches" class="dotted">
                <Lineage version={version} />
            </Panel>
            <SignaturePanel version={version} />
            <Panel title={`${version.model} v${version.version}`} window={`made ${dayTime(version.created_ms)}`} aside={<VersionActs version={version} project={project} />} class="wraps">
                <div class="panel-body stack mid version-words" key={version.id}>
                    <Description text={version.description} of={`${version.model} v${version.version}`} right="label models" project={project} put={(description) => changeVersion(version, { description })} />
                    <Facts items={[['Stage', <Stage version={version} project={project} />]]} />
                </div>
                <div class="panel-body grid g2">
                    <div class="stack mid">
                        <h3>Measured</h3>
                        {metrics.length === 0 && <p class="muted">Nobody has said how good it is.</p>}
                        <Facts
                            items={metrics.map(([key, value]) => [
                                words(key),
                                <>
                                    {plainValue(value)} <small class="muted">{metricDelta(version, serving, key)}</small>
                                </>,
                            ])}
                        />
                    </div>
                    <div class="stack mid">
                        <h3>Parameters ({parameters.length})</h3>
                        <Facts items={parameters.map(([key, value]) => [words(key), plainValue(value)])} />
                    </div>
                </div>
            </Panel>
        </>
    )
}

function Versions({ model, wanted, onPush }: { model: string; wanted: string | undefined; onPush: () => void }) {
    const listed = models.data.value?.find((one) => one.name === model)
    const project = listed?.project
    const versions = useResource(`versions:${model}`, async () => {
        const items = await getAll<ModelVersion>(`/models/${segment(model)}/versions`, { limit: 200 })
        return items.sort((a, b) => b.version - a.version)
    })
    useEffect(() => versions.loadSoon(), [candidatesVersion.value, candidates.data.value, deployments.data.value])
    const served = servings(ions.data.value ?? [], model)[0]
    return (
        <Loaded resource={versions} rows={6}>
            {(items) => {
                const serving = items.find((one) => one.version === served?.version)
                const chosen = items.find((one) => `v${one.version}` === wanted) ?? (wanted === undefined ? (serving ?? items[0]) : undefined)
                return (
                    <>
                        <Panel title={model} id="model-title" window={items.length === 1 ? 'one version' : `${items.length} versions · newest first`}
                            aside={
                                <Act right="register models" project={project} isSmall onClick={onPush}>
                                    New version
                                </Act>
                            }
                        >
                            {listed && (
                                <div class="panel-body">
                                    <Description text={listed.description} of={model} right="label models" project={project} put={(description) => changeVersion({ model }, { description })} />
                                </div>
                            )}
                            {items.length === 0 ? (
                                <Empty icon="models" title="No versions yet">
                                    The first one appears when a training run ends, or when a file is registered.
                                </Empty>
                            ) : (
                                <Table
                                    label={`Versions of ${model}`}
                                    rows={items}
                                    columns={versionColumns(items)}
                                    keyOf={(one) => `v${one.version}`}
                                    hrefOf={(one) => href(['models', model, `v${one.version}`], { q: param('q') })}
                                    chosen={chosen && `v${chosen.version}`}
                                />
                            )}
                        </Panel>
                        {chosen && <VersionDetail version={chosen} serving={serving} project={project} />}
                        {items.length > 0 && !chosen && (
                            <div class="panel">
                                <Empty icon="question" title={`There is no ${wanted} of ${model}`}>
                                    Choose one from the list.
                                </Empty>
                            </div>
                        )}
                    </>
                )
            }}
        </Loaded>
    )
}

const FILTER: FilterOf<{ name: string; project?: string | null | undefined }> = {
    text: (model) => model.name,
    keys: { name: (model) => model.name, project: (model) => model.project ?? '' },
}

function Models({ args }: { args: Args }) {
    const all = (models.data.value ?? []).filter(inProject)
    const found = filtered(all, FILTER)
    const wanted = args['model']
    const model = wanted ?? found[0]?.name
    const [pushing, setPushing] = useState<string | null>(null) // the model that gets a version; "": a new one
    return (
        <>
            <PageHead title="Models" sub={models.data.value && `${all.length === 1 ? '1 model' : `${all.length} models`} · every version, where it came from, and where it serves`}>
                <Act right="register models" onClick={() => setPushing('')}>
                    <Icon name="plus" />
                    Register a file
                </Act>
            </PageHead>
            {pushing !== null && <PushForm model={pushing} onClose={() => setPushing(null)} />}
            <Loaded resource={models}>
                {() =>
                    all.length === 0 && !wanted ? (
                        <div class="panel">
                            <Empty icon="models" title="No models yet" command={COMMANDS.pushModel} more={<Command text={COMMANDS.train} />}>
                                A training registers the model it made, and a file from elsewhere, ONNX or Weir's own, is registered here or by a command:
                            </Empty>
                        </div>
                    ) : (
                        <div class={`grid split-l ${wanted ? 'is-open' : ''}`}>
                            <div class="stack list-side">
                                <Filter label="Filter models" rows={all} of={FILTER} hint="name, or project:vision" />
                                <Panel title="Registry" window={`${found.length} of ${all.length}`}>
                                    {found.length === 0 ? (
                                        <NothingMatches rows={all} of={FILTER} what="model" />
                                    ) : (
                                        <ul class="list picks" aria-label="Models">
                                            {found.map((one) => {
                                                const waits = pendingCandidates.value.filter((it) => it.model === one.name).length
                                                return (
                                                    <li key={one.name}>
                                                        <a href={href(['models', one.name], { q: param('q') })} aria-current={one.name === model ? 'true' : undefined}>
                                                            <b class="clip" title={one.name}>
                                                                {one.name}
                                                            </b>
                                                            {waits > 0 && <Count count={waits} tone="warn" what={plural(waits, 'version waits for approval', 'versions wait for approval')} />}
                                                            <small class="muted">
                                                                <Owner project={one.project} />
                                                                <Ago time={one.created_ms} />
                                                            </small>
                                                        </a>
                                                    </li>
                                                )
                                            })}
                                        </ul>
                                    )}
                                </Panel>
                            </div>
                            <div class="stack drawer-side">
                                <a class="back" href={href('models', { q: param('q') })}>
                                    <Icon name="back" /> All models
                                </a>
                                {model && <Versions key={model} model={model} wanted={args['version']} onPush={() => setPushing(model)} />}
                            </div>
                        </div>
                    )
                }
            </Loaded>
        </>
    )
}

export const modelsScreen: Screen = {
    id: 'models',
    title: 'Models',
    icon: 'models',
    address: 'models/:model?/:version?',
    query: ['q', 'sort', 'tab'],
    group: { science: 'Serve', operations: 'Build' },
    load: [models, ions, runs, candidates, deployments],
    badge: () => ({ count: pendingCandidates.value.length, tone: 'warn', what: 'waiting for approval' }),
    letter: 'm',
    render: Models,
}
