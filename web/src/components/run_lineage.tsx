/** What a run read, what came of it, and where that serves: each leads to its page, and back from there. */
import { useEffect } from 'preact/hooks'
import type { Job, ModelVersion, Run, RunLineage } from '../api'
import { bytes } from '../format'
import { verdictOf } from '../state/deployments'
import { get, segment } from '../state/http'
import { specOf } from '../state/job_wants'
import { useResource } from '../state/resource'
import { href } from '../state/route'
import { candidatesVersion, datasets, deployments, ions } from '../state/store'
import { servings } from '../state/versions'
import { Empty, Loaded, Panel } from './basics'
import { Step, type Stop } from './lineage'
import { DatasetLink } from './noun'
import { toneOf } from './state'

/** "faces:3" or "faces", as a job names what it reads. */
const datasetOf = (text: string): [string, number | undefined] => {
    const [name = '', version] = text.split(':')
    return [name, version ? Number(version) : undefined]
}

function readBy(run: Run, job: Job | undefined, lineage: RunLineage): Stop[] {
    const own = run.dataset ? [[run.dataset, run.dataset_version] as const] : []
    const listed = job ? specOf(job)['datasets'] : undefined
    const asked = Array.isArray(listed) ? listed.map((one) => datasetOf(String(one))).filter(([name]) => name !== run.dataset) : []
    const noted = new Set(lineage.inputs.map((one) => one.name))
    const known = new Set((datasets.data.value ?? []).map((one) => one.name))
    return [
        ...[...own, ...asked.filter(([name]) => !noted.has(name))].map(([name, version]) => ({ key: name, name: <DatasetLink name={name} version={version} />, note: 'dataset version' })),
        ...lineage.inputs
            .filter((one) => one.name !== run.dataset)
            .map((one) => one.source_type === 'weir' && one.source ? { key: one.source, name: <DatasetLink name={one.name} version={Number(one.source.split('@v')[1])} />, note: 'dataset version' } : ({
                key: `${one.name} ${one.digest}`,
                name: known.has(one.name) ? <DatasetLink name={one.name} /> : one.name,
                note: `read${one.context ? ` for ${one.context}` : ''}, digest ${one.digest.slice(0, 8)}${one.source_type ? `, ${one.source_type}` : ''}`,
            })),
    ]
}

const versionOf = (one: ModelVersion): Stop => ({
    key: `${one.model} ${one.version}`,
    name: (
        <a href={href(['models', one.model!, `v${one.version}`])}>
            {one.model} v{one.version}
        </a>
    ),
    note: [bytes(one.bytes), one.stage && one.stage !== 'None' ? one.stage : '', ...(one.aliases ?? []).map((alias) => `@${alias}`), one.unservable ?? ''].filter(Boolean).join(' · '),
})

/** Deployments and links of IONs that answer with a version. */
export function placesOf(one: ModelVersion): { links: Stop[]; deployments: Stop[] } {
    const links = servings(ions.data.value ?? [], one.model!).filter((place) => place.version === one.version)
    return {
        links: links.map((place) => ({
            key: `${place.ion}/${place.pipeline}`,
            name: (
                <a href={href(['ions', place.ion, 'graph'])}>
                    {place.ion} / {place.pipeline}
                </a>
            ),
            note: 'link, serving',
        })),
        deployments: (one.deployments ?? []).map((name) => {
            const found = deployments.data.value?.find((it) => it.name === name)
            const its = found?.versions.find((it) => it.version === one.version)
            return { key: name, name: <a href={href(['deployments', name])}>{name}</a>, note: found ? `deployment ${verdictOf(found).word}${its?.is_mirror ? ', mirror' : its ? `, ${its.live_percent} %` : ''}` : 'deployment' }
        }),
    }
}

export function RunLineageTab({ run, job }: { run: Run; job: Job | undefined }) {
    const lineage = useResource(`lineage ${run.id}`, () => get<RunLineage>(`/runs/${segment(run.id)}/lineage`))
    useEffect(() => [ions, deployments, datasets].forEach((one) => one.need()), [])
    useEffect(() => lineage.loadSoon(), [run.status, candidatesVersion.value, deployments.data.value])
    return (
        <Loaded resource={lineage}>
            {(found) => {
                const read = readBy(run, job, found)
                const of = (one: ModelVersion, stop: Stop): Stop => (found.versions.length > 1 ? { ...stop, key: `${one.id} ${stop.key}`, note: `${one.model} v${one.version}, ${String(stop.note)}` } : stop)
                const places = found.versions.map((one) => ({ one, ...placesOf(one) }))
                const code = run.tags['mlflow.source.git.commit'] ?? run.code_version
                return (
                    <Panel title="Lineage" window="what it read, what came of it, and where that serves" class="dotted">
                        <ol class="lineage" aria-label="Lineage">
                            <Step icon="data" stops={read} />
                            <Step icon="runs" isHere stops={[{ key: run.id, name: run.name, note: `run${code ? `, code ${code.slice(0, 12)}` : ''}${run.ion ? `, of ION ${run.ion} / ${run.pipeline}` : ''}` }]} />
                            <Step icon="models" stops={found.versions.map(versionOf)} />
                            <Step icon="camera" stops={places.flatMap(({ one, links }) => links.map((stop) => of(one, stop)))} />
                            <Step icon="sink" stops={places.flatMap(({ one, deployments }) => deployments.map((stop) => of(one, stop)))} />
                        </ol>
                        {read.length === 0 && <p class="panel-body muted">It did not say what it read: a program names its data with mlflow.log_input, a job with its option datasets.</p>}
                        {found.versions.length === 0 && (
                            <Empty icon="models" title={toneOf(run.status) === 'busy' ? 'Nothing came of it yet' : 'Nothing came of it'}>
                                No model version names this run. Register makes one of its model artifact.
                            </Empty>
                        )}
                        {found.versions.length > 0 && places.every((one) => one.links.length + one.deployments.length === 0) && <p class="panel-body muted">Nothing serves what came of it.</p>}
                    </Panel>
                )
            }}
        </Loaded>
    )
}
