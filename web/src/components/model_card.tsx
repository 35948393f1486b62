/** The card of a model version: what is known of it on one page, and as a file. */
import type { ComponentChildren } from 'preact'
import type { CardAccuracy, CardLive, ModelCard } from '../api'
import { bytes, dayTime, fixed, NONE, percent, plainValue, short, words } from '../format'
import { apiUrl, get, segment } from '../state/http'
import { useResource } from '../state/resource'
import { href } from '../state/route'
import { Facts, Loaded, Panel } from './basics'
import { Icon } from './icon'
import { Table, type Column } from './table'

type Fact = [string, ComponentChildren] | null

const fact = (name: string, value: unknown): Fact => (value === null || value === undefined || value === '' ? null : [name, plainValue(value)])

function Section({ title, window, children }: { title: string; window?: string; children: ComponentChildren }) {
    return (
        <Panel title={title} window={window}>
            <div class="panel-body stack mid">{children}</div>
        </Panel>
    )
}

function About({ card }: { card: ModelCard }) {
    const { version, model } = card
    const signature = version.signature as { format?: string; output_kind?: string; labels?: string[] } | null
    return (
        <Section title="What it is" window={`project ${model.project}`}>
            {version.description ? <p class="card-text">{version.description}</p> : <p class="muted">Nobody has described it.</p>}
            <Facts
                items={[
                    fact('Architecture', card.architecture),
                    fact('Format', signature?.format),
                    ['Size', bytes(version.bytes)],
                    fact('Gives', signature?.output_kind),
                    card.n_labels ? ['Labels', `${short(card.n_labels)}: ${(signature?.labels ?? []).slice(0, 8).join(', ')}${card.n_labels > 8 ? ' …' : ''}`] : null,
                    fact('Stage', version.stage),
                    ['Registered by', `${version.created_by ?? 'nobody known'}, ${dayTime(version.created_ms)}`],
                    ...Object.entries(version.tags ?? {}).map(([key, value]): Fact => [`tag ${key}`, value]),
                ]}
            />
        </Section>
    )
}

function Data({ card }: { card: ModelCard }) {
    const { data } = card
    return (
        <Section title="Data" window={data.dataset ? `${data.dataset}${data.version ? ` v${data.version}` : ''}` : 'not known'}>
            <Facts
                items={[
                    ...card.lineage.datasets.map((one): Fact => [`${one.dataset} v${one.version}`, `${short(one.n_files)} files, ${short(one.n_classes)} classes, by ${one.created_by ?? 'nobody known'}${one.forgotten.length > 0 ? `; ${one.forgotten.length} people were forgotten` : ''}`]),
                    card.baseline.length > 0 ? ['Baseline of', card.baseline.join(', ')] : null,
                ]}
            />
            {data.classes.length > 0 && (
                <details>
                    <summary>Files by class</summary>
                    <Facts items={[...data.classes.map((one): Fact => [one.name, short(one.n_files)]), data.n_others > 0 ? ['more classes', short(data.n_others)] : null]} />
                </details>
            )}
            {data.why && <p class="muted">Classes are not counted: {data.why}.</p>}
        </Section>
    )
}

function Training({ card }: { card: ModelCard }) {
    const run = card.lineage.runs[0]
    const parameters = Object.entries(run?.parameters ?? card.version.parameters ?? {})
    return (
        <Section title="Training and code" window={run ? `run ${run.name}` : 'no run of this server'}>
            {run && (
                <Facts
                    items={[
                        ['Run', <a href={href(['runs', run.id])}>{run.name}</a>],
                        fact('Started by', run.created_by),
                        fact('Because of', run.trigger),
                        fact('Weights it began with', run.weights),
                        ...Object.entries(run.code).map(([key, value]) => fact(words(key), value)),
                    ]}
                />
            )}
            <details>
                <summary>{parameters.length} parameters</summary>
                <Facts items={parameters.map(([key, value]): Fact => [key, plainValue(value)])} />
            </details>
        </Section>
    )
}

function Measured({ card }: { card: ModelCard }) {
    return (
        <Section title="Measured">
            <Facts items={Object.entries(card.version.metrics ?? {}).map(([key, value]): Fact => [words(key), plainValue(value)])} />
            {card.evaluations.map((one) => (
                <div key={one.run}>
                    <h3>
                        On {one.dataset ?? 'data that is not known'} {one.dataset_version ? `v${one.dataset_version}` : ''}, <a href={href(['runs', one.run])}>{one.name}</a>, {dayTime(one.created_ms)}
                    </h3>
                    <Facts items={Object.entries(one.metrics).map(([key, value]): Fact => [words(key), plainValue(value)])} />
                </div>
            ))}
        </Section>
    )
}

const ACCURACY: Column<CardAccuracy>[] = [
    { id: 'camera', name: 'Camera', phone: 'name', render: (one) => one.name ?? 'all' },
    { id: 'n', name: 'Truth known of', width: '120px', isNumber: true, phone: 'more', render: (one) => short(one.n) },
    { id: 'accuracy', name: 'Right', width: '88px', isNumber: true, phone: 'state', render: (one) => percent(one.accuracy) },
    { id: 'interval', name: '95 %', width: '136px', isNumber: true, render: (one) => (one.n > 0 ? `${percent(one.low)} – ${percent(one.high)}` : NONE) },
]

function Live({ live }: { live: CardLive }) {
    return (
        <Section title={`Live at ${live.ion} / ${live.pipeline}`} window="last 7 days">
            {live.accuracy.n > 0 && <Table label="Live accuracy" rows={[live.accuracy, ...live.cameras]} columns={ACCURACY} keyOf={(one) => one.name ?? ''} isDense />}
            <Facts items={live.signals.map((one): Fact => [`drift of ${one.signal}`, `${one.drifted ? 'drifts' : 'no drift'}, ${one.statistic} ${fixed(one.value, 3)}, p ${fixed(one.p_value, 3)}, ${short(one.n_samples)} samples`])} />
        </Section>
    )
}

export function ModelCardTab({ model, version }: { model: string; version: number }) {
    const path = `/models/${segment(model)}/versions/${version}/card`
    const card = useResource(`card:${model}:${version}`, () => get<ModelCard>(path))
    return (
        <Loaded resource={card} rows={6}>
            {(found) => (
                <>
                    <Panel
                        title={`Model card of v${version}`}
                        window={dayTime(found.made_ms)}
                        aside={
                            <a class="button small" href={apiUrl(path, { format: 'markdown' })} download={`${model}-v${version}.md`}>
                                <Icon name="download" />
                                Download Markdown
                            </a>
                        }
                    >
                        <div class="panel-body">
                            <h3>What is not known</h3>
                            {found.limits.length === 0 ? (
                                <p class="muted">Nothing of what this card asks for.</p>
                            ) : (
                                <ul class="plain" aria-label="Known limits">
                                    {found.limits.map((one) => (
                                        <li key={one}>{one}</li>
                                    ))}
                                </ul>
                            )}
                        </div>
                    </Panel>
                    <About card={found} />
                    <Data card={found} />
                    <Training card={found} />
                    <Measured card={found} />
                    {found.live.map((one) => (
                        <Live key={`${one.ion}/${one.pipeline}`} live={one} />
                    ))}
                    <p class="muted">
                        Policies, approvals and where it serves: <a href={href(['models', model, `v${version}`], { tab: 'lineage' })}>Lineage</a>
                    </p>
                </>
            )}
        </Loaded>
    )
}
