/** The registry: versions with their lineage, and the decisions a person takes about them. */
import { useEffect, useState } from 'preact/hooks'
import type { ModelVersion } from '../api'
import { COMMANDS } from '../commands'
import { Ago, Empty, Facts, Loaded, PageHead, Panel } from '../components/basics'
import { is, StateChip } from '../components/chip'
import { Confirm, type Question } from '../components/dialog'
import { Icon } from '../components/icon'
import { DatasetLink } from '../components/noun'
import { Split } from '../components/split'
import { bytes, fullTime, NONE, plainValue, shortId, words } from '../format'
import { candidates, type IonCandidate } from '../state/candidates'
import { apiUrl, getAll, segment } from '../state/http'
import { useResource } from '../state/resource'
import { href, route } from '../state/route'
import { candidatesVersion, ions, models, runs } from '../state/store'
import { approveQuestion, canChange, rejectQuestion, rollbackQuestion, servings } from '../state/versions'

type Ask = (question: Question) => void

function candidatesOf(version: ModelVersion): IonCandidate[] {
    return (candidates.data.value ?? []).filter((one) => one.model === version.model && one.version === version.version)
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

/** Dataset → run with code and parameters → this version → where it serves. */
function Lineage({ version, places }: { version: ModelVersion; places: string[] }) {
    const run = runs.data.value?.find((one) => one.id === version.run)
    return (
        <ol class="lineage" aria-label="Lineage">
            <li>
                <Icon name="data" />
                <span>
                    <small class="muted">dataset version</small>
                    <DatasetLink name={version.dataset} version={version.dataset_version} />
                </span>
            </li>
            <li>
                <Icon name="training" />
                <span>
                    <small class="muted">run, code {version.code_version ? version.code_version.slice(0, 12) : NONE}</small>
                    {version.run ? <a href={href('training', version.run)}>{run?.name ?? shortId(version.run)}</a> : NONE}
                </span>
            </li>
            <li class="here">
                <Icon name="models" />
                <span>
                    <small class="muted">version</small>v{version.version}
                </span>
            </li>
            {places.length > 0 && (
                <li>
                    <Icon name="camera" />
                    <span>
                        <small class="muted">serving</small>
                        {places.join(', ')}
                    </span>
                </li>
            )}
        </ol>
    )
}

function VersionActions({ version, ask }: { version: ModelVersion; ask: Ask }) {
    const mine = candidatesOf(version)
    const pending = mine.filter((one) => is(one.state, 'pending_review', 'pending'))
    const past = mine.filter((one) => is(one.state, 'retired', 'rolled_back'))
    const served = servings(ions.data.value ?? [], version.model)
    if (!canChange()) {
        return null
    }
    return (
        <>
            {pending.map((one) => (
                <span key={one.id} class="actions">
                    <button type="button" class="button small primary" onClick={() => ask(approveQuestion(one.ion, one))}>
                        <Icon name="check" size={14} />
                        Approve<span class="hidden"> version {one.version} for {one.ion}</span>
                    </button>
                    <button type="button" class="button small" onClick={() => ask(rejectQuestion(one.ion, one))}>
                        <Icon name="cross" size={14} />
                        Reject<span class="hidden"> version {one.version} for {one.ion}</span>
                    </button>
                </span>
            ))}
            {past.map((one) => {
                const now = served.find((place) => place.ion === one.ion && place.pipeline === one.link_to)
                return (
                    now && (
                        <button key={one.id} type="button" class="button small" onClick={() => ask(rollbackQuestion(one.ion, one, now.version))}>
                            <Icon name="undo" size={14} />
                            Roll back to v{version.version}
                        </button>
                    )
                )
            })}
        </>
    )
}

function VersionCard({ version, serving, ask }: { version: ModelVersion; serving: ModelVersion | undefined; ask: Ask }) {
    const places = servings(ions.data.value ?? [], version.model).filter((one) => one.version === version.version)
    const state = places.length > 0 ? 'serving' : (candidatesOf(version)[0]?.state ?? version.state ?? 'registered')
    const metrics = Object.entries(version.metrics ?? {})
    const parameters = Object.entries(version.parameters ?? {})
    return (
        <li class={`version ${places.length > 0 ? 'is-serving' : ''}`} data-version={version.version}>
            <header>
                <h3>v{version.version}</h3>
                <StateChip state={state} />
                <small class="muted" title={fullTime(version.created_ms)}>
                    <Ago time={version.created_ms} /> · {bytes(version.bytes)}
                </small>
                <span class="actions">
                    <VersionActions version={version} ask={ask} />
                    {version.blob && (
                        <a class="button small" href={apiUrl(`/blobs/${version.blob}`)} download={`${version.model}-v${version.version}.safetensors`}>
                            <Icon name="download" size={14} />
                            Download<span class="hidden"> version {version.version}</span>
                        </a>
                    )}
                </span>
            </header>
            <Lineage version={version} places={places.map((one) => `${one.ion} / ${one.pipeline}`)} />
            {metrics.length > 0 && (
                <dl class="metrics">
                    {metrics.map(([key, value]) => (
                        <div key={key}>
                            <dt>{words(key)}</dt>
                            <dd>
                                {plainValue(value)} <small class="muted">{metricDelta(version, serving, key)}</small>
                            </dd>
                        </div>
                    ))}
                </dl>
            )}
            {parameters.length > 0 && (
                <details>
                    <summary>Parameters ({parameters.length})</summary>
                    <Facts items={parameters.map(([key, value]) => [words(key), plainValue(value)])} />
                </details>
            )}
        </li>
    )
}

function Versions({ model }: { model: string }) {
    const [question, setQuestion] = useState<Question | null>(null)
    const versions = useResource(`versions:${model}`, async () => {
        const items = await getAll<ModelVersion>(`/models/${segment(model)}/versions`, { limit: 200 })
        return items.sort((a, b) => b.version - a.version)
    })
    useEffect(() => versions.loadSoon(), [candidatesVersion.value, candidates.data.value])
    const served = servings(ions.data.value ?? [], model)[0]
    return (
        <Panel title={model} id="model-title" aside={versions.data.value && <span class="muted">{versions.data.value.length === 1 ? 'one version' : `${versions.data.value.length} versions`}</span>}>
            <Loaded resource={versions} rows={6}>
                {(items) =>
                    items.length === 0 ? (
                        <Empty icon="models" title="No versions yet">The first one appears when a training run ends.</Empty>
                    ) : (
                        <ul class="versions-list">
                            {items.map((version) => (
                                <VersionCard
                                    key={version.id}
                                    version={version}
                                    serving={items.find((one) => one.version === served?.version)}
                                    ask={setQuestion}
                                />
                            ))}
                        </ul>
                    )
                }
            </Loaded>
            {question && <Confirm question={question} onClose={() => setQuestion(null)} />}
        </Panel>
    )
}

export function Models() {
    const wanted = route.value.args[0]
    return (
        <>
            <PageHead title="Models" sub="Every version, where it came from, and where it serves" />
            <Loaded resource={models}>
                {(items) => {
                    const model = wanted ?? items[0]?.name
                    if (items.length === 1 && (wanted ?? model) === items[0]!.name) {
                        return <Versions model={items[0]!.name} />
                    }
                    if (model === undefined) {
                        return (
                            <Empty icon="models" title="No models yet" command={COMMANDS.train}>
                                A training registers the model it made. One begins when a training pipeline of an ION trains, or when a job of kind train is submitted:
                            </Empty>
                        )
                    }
                    return (
                        <Split
                            label="Models"
                            back={href('models')}
                            chosen={wanted}
                            list={items.map((one) => (
                                <li key={one.name}>
                                    <a class="item" href={href('models', one.name)} aria-current={one.name === model ? 'true' : undefined}>
                                        <b>{one.name}</b>
                                        <small class="muted">
                                            {one.project ?? ''} {one.description ?? ''}
                                        </small>
                                    </a>
                                </li>
                            ))}
                        >
                            <Versions key={model} model={model} />
                        </Split>
                    )
                }}
            </Loaded>
        </>
    )
}
