/** Lineage as the server finds it: back from a decision, a model version or a dataset version, and on to decisions. */
import type { ComponentChildren } from 'preact'
import type { DatasetLineage, Decision, DecisionLineage, LineageDataset, LineageDecisions, LineageFinder, LineageGallery, LineagePlace, LineageRun, LineageVersion, VersionLineage } from '../api'
import { bytes, dayTime, NONE, short, shortId } from '../format'
import { get, segment } from '../state/http'
import { useResource } from '../state/resource'
import { href } from '../state/route'
import { Facts, Loaded, Panel, When } from './basics'
import { Step, type Stop } from './lineage'
import { Table, type Column } from './table'

const datasetLink = (name: string, version: number) => <a href={href(['datasets', name], { v: `v${version}` })}>{`${name} v${version}`}</a>

function datasetStop(one: LineageDataset): Stop {
    const gone = one.forgotten.length > 0 ? `, ${one.forgotten.length === 1 ? 'one person was' : `${one.forgotten.length} people were`} forgotten` : ''
    return {
        key: `${one.dataset}@${one.version}`,
        name: datasetLink(one.dataset, one.version),
        note: one.is_there ? `made by ${one.created_by ?? 'nobody known'}, ${short(one.n_files)} files${gone}` : 'is not there',
    }
}

function runStop(one: LineageRun): Stop {
    const code = one.code.commit ?? one.code.version
    return {
        key: one.id,
        name: <a href={href(['runs', one.id], { tab: 'lineage' })}>{one.name}</a>,
        note: `${one.kind} by ${one.created_by ?? 'nobody known'}${code ? `, code ${code.slice(0, 12)}` : ''}${one.trigger ? `, because of ${one.trigger}` : ''}`,
    }
}

const versionStop = (one: LineageVersion): Stop => ({
    key: one.id,
    name: one.deleted_ms ? `${one.model} v${one.version}` : <a href={href(['models', one.model, `v${one.version}`])}>{`${one.model} v${one.version}`}</a>,
    note: `${one.deleted_ms ? `deleted by ${one.deleted_by ?? 'nobody known'}` : `registered by ${one.created_by ?? 'nobody known'}`}, ${bytes(one.bytes)}`,
})

const placeName = (one: LineagePlace) =>
    one.deployment ? <a href={href(['deployments', one.deployment])}>{one.deployment}</a> : <a href={href(['ions', one.ion, 'graph'], { link: one.link })}>{`${one.ion} / ${one.pipeline}`}</a>

/** The detector that found what a decision is about. */
const detectorStop = (one: LineageVersion): Stop => ({ ...versionStop(one), note: 'found what it is about' })

/** A pipeline that finds with a version, or did. */
const finderStop = (one: LineageFinder): Stop => ({
    key: `finder ${one.ion} ${one.pipeline} ${one.since_ms}`,
    name: <a href={href(['ions', one.ion, 'graph'])}>{`${one.ion} / ${one.pipeline}`}</a>,
    note: one.until_ms ? `found with it until ${dayTime(one.until_ms)}` : `finds with it since ${dayTime(one.since_ms)}`,
})

const placeStop = (one: LineagePlace): Stop => ({ key: one.candidate, name: placeName(one), note: `link ${one.link}, ${one.state.toLowerCase().replace(/_/g, ' ')}` })

/** What policies and people said, in order: who, which rule, why. */
function Policies({ place }: { place: LineagePlace }) {
    return place.are_policies_gone ? (
        <p class="muted">What the policies said is no longer kept.</p>
    ) : (
        <ol class="list" aria-label={`Policies of ${place.link}`}>
            {place.policies.map((one) => (
                <li key={one.id}>
                    <span>
                        <b>{`${one.policy}: ${one.verdict}`}</b> by {one.actor}
                        <br />
                        <small class="muted">
                            {one.rule}
                            {one.note ? `: “${one.note}”` : ''}, {dayTime(one.time_ms)}
                        </small>
                    </span>
                </li>
            ))}
        </ol>
    )
}

/** What is not known, in the server's sentences. */
function Unknown({ of }: { of: { unknown: string[]; is_cut: boolean } }) {
    return of.unknown.length === 0 && !of.is_cut ? null : (
        <ul class="panel-body muted" aria-label="Not known">
            {of.unknown.map((one) => (
                <li key={one}>{one}</li>
            ))}
            {of.is_cut && <li>There is more than is named here.</li>}
        </ul>
    )
}

/** In a decision's drawer: data → run → version → link, and what let it through. */
export function DecisionLineageView({ decision }: { decision: Decision }) {
    const lineage = useResource(`decision lineage:${decision.id}`, () => get<DecisionLineage>(`/decisions/${segment(decision.id)}/lineage`))
    return (
        <Loaded resource={lineage}>
            {(found) => {
                const gallery = found.gallery
                const isGallery = (one: LineageDataset) => one.dataset === gallery?.dataset && one.version === gallery.version
                return (
                    <>
                        {found.forgotten && (
                            <p>
                                <b>{decision.person}</b> was forgotten, {dayTime(found.forgotten.time_ms)}, by {found.forgotten.actor ?? 'nobody known'}.
                            </p>
                        )}
                        <ol class="lineage down" aria-label="Lineage">
                            <Step icon="data" stops={found.datasets.map((one) => (isGallery(one) ? { ...datasetStop(one), note: `gallery, ${String(datasetStop(one).note)}` } : datasetStop(one)))} />
                            <Step icon="runs" stops={found.runs.map(runStop)} />
                            <Step icon="models" stops={[...(found.version ? [versionStop(found.version)] : []), ...(found.detector ? [detectorStop(found.detector)] : [])]} />
                            <Step icon="camera" stops={found.place ? [placeStop(found.place)] : []} />
                        </ol>
                        {found.place && (
                            <>
                                <h3>Let through by</h3>
                                <Policies place={found.place} />
                            </>
                        )}
                        {found.revision && (
                            <p class="muted">
                                Revision {found.revision.revision} of {decision.ion}, applied by {found.revision.actor ?? 'nobody known'}, {dayTime(found.revision.time_ms)}
                            </p>
                        )}
                        <Unknown of={found} />
                    </>
                )
            }}
        </Loaded>
    )
}

/* ---- forward ---- */

const made = (one: LineageDecisions | null | undefined) => (one ? (one.n_made === null || one.n_made === undefined ? 'not known' : `${one.is_whole ? '' : 'at least '}${short(one.n_made)}`) : NONE)

interface Reached {
    key: string
    name: ComponentChildren
    what: string
    decisions: LineageDecisions | null | undefined
}

const COLUMNS: Column<Reached>[] = [
    { id: 'where', name: 'Where', phone: 'name', render: (one) => one.name },
    { id: 'what', name: 'What', phone: 'more', render: (one) => one.what },
    { id: 'made', name: 'Decisions', width: '104px', isNumber: true, phone: 'state', render: (one) => <span title={one.decisions?.why ?? ''}>{made(one.decisions)}</span> },
    { id: 'kept', name: 'Kept', width: '80px', isNumber: true, phone: 'more', render: (one) => short(one.decisions?.n_kept) },
    { id: 'first', name: 'First', width: '120px', render: (one) => <When time={one.decisions?.first_ms} /> },
    { id: 'last', name: 'Last', width: '120px', phone: 'more', render: (one) => <When time={one.decisions?.last_ms} /> },
]

const reachedBy = (places: LineagePlace[], galleries: LineageGallery[]): Reached[] => [
    ...places.map((one) => ({ key: one.candidate, name: placeName(one), what: `${one.model} v${one.version}, ${one.state.toLowerCase().replace(/_/g, ' ')}`, decisions: one.decisions })),
    ...galleries.map((one) => ({
        key: `gallery ${one.ion} ${one.pipeline} ${one.dataset} ${one.version}`,
        name: <a href={href(['ions', one.ion, 'graph'])}>{`${one.ion} / ${one.pipeline}`}</a>,
        what: `gallery ${one.dataset} v${one.version}`,
        decisions: one.decisions,
    })),
]

function Decided({ of, rows }: { of: string; rows: Reached[] }) {
    return rows.length === 0 ? (
        <p class="panel-body muted">No link has it, and no decision came of it.</p>
    ) : (
        <Table label={`Where ${of} decided`} rows={rows} columns={COLUMNS} keyOf={(one) => one.key} isDense />
    )
}

/** Tab of a model version. */
export function VersionLineageTab({ model, version }: { model: string; version: number }) {
    const lineage = useResource(`version lineage:${model}:${version}`, () => get<VersionLineage>(`/models/${segment(model)}/versions/${version}/lineage`))
    return (
        <Loaded resource={lineage}>
            {(found) => (
                <>
                    <Panel title={`Lineage of v${version}`} window="back to data, code and people, and on to where it serves" class="dotted">
                        <ol class="lineage" aria-label="Lineage">
                            <Step icon="data" stops={found.datasets.map(datasetStop)} />
                            <Step icon="runs" stops={found.runs.map(runStop)} />
                            <Step icon="models" isHere stops={[versionStop(found.version)]} />
                            <Step icon="camera" stops={[...found.places.map(placeStop), ...found.finders.map(finderStop)]} />
                            <Step icon="sink" stops={found.deployments.map((name) => ({ key: name, name: <a href={href(['deployments', name])}>{name}</a>, note: 'deployment' }))} />
                        </ol>
                        <Unknown of={found} />
                    </Panel>
                    <Panel title="Decisions that it made" window="by link; those that were deleted are counted too">
                        <Decided of={`${model} v${version}`} rows={reachedBy(found.places, [])} />
                    </Panel>
                    {found.places.map((place) => (
                        <Panel key={place.candidate} title={`Policies of ${place.ion} / ${place.link}`} window={place.state.toLowerCase().replace(/_/g, ' ')}>
                            <div class="panel-body">
                                <Policies place={place} />
                            </div>
                        </Panel>
                    ))}
                </>
            )}
        </Loaded>
    )
}

/** Of a dataset version, in its drawer. */
export function DatasetLineageView({ dataset, version }: { dataset: string; version: number }) {
    const lineage = useResource(`dataset lineage:${dataset}:${version}`, () => get<DatasetLineage>(`/datasets/${segment(dataset)}/versions/${version}/lineage`))
    return (
        <Loaded resource={lineage}>
            {(found) => {
                const rows = reachedBy(found.places, found.galleries)
                return (
                    <>
                        <ol class="lineage down" aria-label="Lineage">
                            <Step icon="data" stops={found.datasets.slice(1).map(datasetStop)} />
                            <Step icon="runs" stops={found.runs.map(runStop)} />
                            <Step icon="data" isHere stops={[datasetStop(found.dataset)]} />
                            <Step
                                icon="runs"
                                stops={found.read_by.map((one) => ({ key: one.id, name: <a href={href(['runs', one.id], { tab: 'lineage' })}>{one.name}</a>, note: `${one.kind} by ${one.created_by ?? 'nobody known'}` }))}
                            />
                            <Step icon="data" stops={found.made.map((one) => ({ key: `${one.dataset}@${one.version}`, name: datasetLink(one.dataset, one.version), note: 'made of it' }))} />
                            <Step icon="models" stops={found.versions.map(versionStop)} />
                        </ol>
                        {rows.length === 0 ? (
                            <p class="muted">No link has a model of it, and no decision came of it.</p>
                        ) : (
                            <Facts items={rows.map((one) => [one.what, <>{one.name}: {made(one.decisions)} decisions{one.decisions?.last_ms ? `, last ${dayTime(one.decisions.last_ms)}` : ''}</>])} />
                        )}
                        {found.dataset.forgotten.length > 0 && (
                            <>
                                <h3>Forgotten</h3>
                                <Facts items={found.dataset.forgotten.map((one) => [one.person ?? shortId(null), `${short(one.n_files)} files, by ${one.actor ?? 'nobody known'}, ${dayTime(one.time_ms)}`])} />
                            </>
                        )}
                        <Unknown of={found} />
                    </>
                )
            }}
        </Loaded>
    )
}
