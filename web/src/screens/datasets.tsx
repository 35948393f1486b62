/** Datasets, to look at: where they lie, their versions, and who uses them. */
import type { Dataset, DatasetVersion, Ion } from '../api'
import { COMMANDS } from '../commands'
import { Ago, Empty, Facts, Loaded, PageHead, Panel } from '../components/basics'
import { Split } from '../components/split'
import { bytes, dayTime, NONE, short } from '../format'
import { getAll, segment } from '../state/http'
import { useResource } from '../state/resource'
import { href, route } from '../state/route'
import { ions } from '../state/store'

/** "training of building-security", "gallery of …": the pipelines that name this dataset. */
export function usesOf(dataset: string, all: Ion[]): { ion: string; as: string }[] {
    return all.flatMap((ion) =>
        ion.pipelines.flatMap((pipeline) => {
            const uses = []
            if (pipeline.dataset === dataset) {
                uses.push({ ion: ion.name, as: pipeline.type === 'training' ? `trains ${pipeline.name}` : `gallery of ${pipeline.name}` })
            }
            if (pipeline.strangers === dataset) {
                uses.push({ ion: ion.name, as: `impostors of ${pipeline.name}` })
            }
            return uses
        }),
    )
}

function Versions({ dataset }: { dataset: string }) {
    const versions = useResource(`dataset:${dataset}`, () => getAll<DatasetVersion>(`/datasets/${segment(dataset)}/versions`))
    return (
        <Loaded resource={versions}>
            {(items) =>
                items.length === 0 ? (
                    <p class="quiet">No version yet: one is made when the files are frozen.</p>
                ) : (
                    <div class="table-scroll" tabIndex={0} role="region" aria-label="Versions">
                        <table class="table">
                            <thead>
                                <tr>
                                    <th scope="col">Version</th>
                                    <th scope="col" class="number">Files</th>
                                    <th scope="col" class="number">Classes</th>
                                    <th scope="col" class="number">Size</th>
                                    <th scope="col">Made</th>
                                    <th scope="col">Digest</th>
                                </tr>
                            </thead>
                            <tbody>
                                {items.map((one) => (
                                    <tr key={one.id}>
                                        <th scope="row">v{one.version}</th>
                                        <td class="number">{short(one.n_files)}</td>
                                        <td class="number">{short(one.n_classes)}</td>
                                        <td class="number">{bytes(one.bytes)}</td>
                                        <td class="date">{dayTime(one.created_ms)}</td>
                                        <td>
                                            <code title={one.digest ?? undefined}>{one.digest?.slice(0, 12) ?? NONE}</code>
                                        </td>
                                    </tr>
                                ))}
                            </tbody>
                        </table>
                    </div>
                )
            }
        </Loaded>
    )
}

function DatasetDetail({ dataset }: { dataset: Dataset }) {
    const uses = usesOf(dataset.name, ions.data.value ?? [])
    return (
        <Panel title={dataset.name} id="dataset-title">
            <div class="panel-body">
                <Facts
                    items={[
                        ['Kind', dataset.kind ?? NONE],
                        ['Files', dataset.is_uploaded ? 'uploaded' : 'a folder of the server'],
                        ['Folder', <code>{dataset.path ?? NONE}</code>],
                        ['Project', dataset.project ?? NONE],
                        ['Made', dayTime(dataset.created_ms)],
                        ['By', dataset.created_by ?? NONE],
                        [
                            'Used by',
                            uses.length === 0
                                ? 'no ION'
                                : uses.map((use, i) => (
                                      <span key={i} class="use">
                                          <a href={href('overview', use.ion)}>{use.ion}</a> {use.as}
                                      </span>
                                  )),
                        ],
                    ]}
                />
                <Versions key={dataset.name} dataset={dataset.name} />
            </div>
        </Panel>
    )
}

export function Datasets() {
    const wanted = route.value.args[0]
    const datasets = useResource('datasets', () => getAll<Dataset>('/datasets', { limit: 200 }))
    return (
        <>
            <PageHead title="Datasets" sub="What models are trained with and people are recognised by" />
            <Loaded resource={datasets}>
                {(items) => {
                    if (items.length === 0) {
                        return (
                            <Empty icon="data" title="No datasets yet" command={COMMANDS.createDataset}>
                                A dataset is a folder with a folder of pictures for each class:
                            </Empty>
                        )
                    }
                    const dataset = items.find((one) => one.name === wanted) ?? (wanted === undefined ? items[0] : undefined)
                    return (
                        <Split
                            label="Datasets"
                            back={href('datasets')}
                            chosen={wanted}
                            list={items.map((one) => (
                                <li key={one.name}>
                                    <a class="item" href={href('datasets', one.name)} aria-current={one.name === dataset?.name ? 'true' : undefined}>
                                        <b>{one.name}</b>
                                        <small class="muted">
                                            {one.is_uploaded ? 'uploaded' : one.path} · <Ago time={one.created_ms} />
                                        </small>
                                    </a>
                                </li>
                            ))}
                        >
                            {dataset ? <DatasetDetail dataset={dataset} /> : <Empty icon="question" title="No such dataset">Choose one from the list.</Empty>}
                        </Split>
                    )
                }}
            </Loaded>
        </>
    )
}
