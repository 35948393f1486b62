/** Datasets: where they lie, their versions with their pictures, who uses them. */
import { useMemo, useState } from 'preact/hooks'
import type { Dataset, DatasetVersion, Ion } from '../api'
import { COMMANDS } from '../commands'
import { Empty, Facts, Loaded, Owner, PageHead, Panel, When } from '../components/basics'
import { Drawer, WithDrawer } from '../components/drawer'
import { Picture } from '../components/face'
import { DatasetLineageView } from '../components/lineage_view'
import { Filter, filtered, NothingMatches, type FilterOf } from '../components/filter'
import { Icon } from '../components/icon'
import { WithLibrary } from '../components/library'
import { Act } from '../components/locked'
import { Table, type Column } from '../components/table'
import { bytes, dayTime, millis, NONE, short } from '../format'
import type { Args, Screen } from '../screen'
import { getAll, segment } from '../state/http'
import { byClass, FILES_MAX, manifestOf } from '../state/manifest'
import type { Found } from '../state/dataset_upload'
import { inProject } from '../state/project'
import { useResource } from '../state/resource'
import { CHANGE_DATASETS, may } from '../state/rights'
import { href, hrefWith, param, setQuery } from '../state/route'
import { datasets, ions } from '../state/store'

const USES: Record<string, string> = { training: 'trains', prediction: 'gallery of', preparation: 'prepared by', evaluation: 'measured on by', comparison: 'measured on by' }

/** "trains training of building-security", "gallery of …": the pipelines that name this dataset. */
export function usesOf(dataset: string, all: readonly Ion[]): { ion: string; as: string }[] {
    return all.flatMap((ion) =>
        ion.pipelines.flatMap((pipeline) => {
            const uses = []
            if (pipeline.dataset === dataset) {
                uses.push({ ion: ion.name, as: `${USES[pipeline.type] ?? 'used by'} ${pipeline.name}` })
            }
            if (pipeline.output === dataset) {
                uses.push({ ion: ion.name, as: `made by ${pipeline.name}` })
            }
            if (pipeline.impostors === dataset) {
                uses.push({ ion: ion.name, as: `impostors of ${pipeline.name}` })
            }
            return uses
        }),
    )
}

const PAGE = 40

const FILTER: FilterOf<Dataset> = {
    text: (one) => `${one.name} ${one.path ?? ''}`,
    keys: {
        name: (one) => one.name,
        project: (one) => one.project ?? '',
        kind: (one) => one.kind ?? '',
        by: (one) => one.created_by ?? '',
    },
}

const COLUMNS: Column<Dataset>[] = [
    {
        id: 'name',
        name: 'Dataset',
        phone: 'name',
        sort: (one) => one.name,
        render: (one) => (
            <a class="main" href={href(['datasets', one.name], { q: param('q') })}>
                {one.name}
            </a>
        ),
    },
    { id: 'project', name: 'Project', width: '120px', phone: 'state', sort: (one) => one.project ?? '', render: (one) => <Owner project={one.project} /> },
    { id: 'files', name: 'Files', width: '120px', phone: 'more', render: (one) => (one.is_uploaded ? 'uploaded' : (one.kind ?? 'folder')) },
    {
        id: 'uses',
        name: 'Used by',
        phone: 'more',
        render: (one) => {
            const text = usesOf(one.name, ions.data.value ?? []).map((use) => `${use.ion}: ${use.as}`).join(', ')
            return <span title={text}>{text || <span class="muted">no ION</span>}</span>
        },
    },
    { id: 'made', name: 'Made', width: '136px', sort: (one) => -millis(one.created_ms), render: (one) => <When time={one.created_ms} /> },
]

const VERSION_COLUMNS: Column<DatasetVersion>[] = [
    { id: 'version', name: 'Version', width: '72px', phone: 'name', render: (one) => <a href={hrefWith({ v: `v${one.version}` })}>v{one.version}</a> },
    { id: 'files', name: 'Files', width: '72px', isNumber: true, phone: 'more', render: (one) => short(one.n_files) },
    { id: 'classes', name: 'Classes', width: '72px', isNumber: true, phone: 'more', render: (one) => short(one.n_classes) },
    { id: 'size', name: 'Size', width: '88px', isNumber: true, phone: 'more', render: (one) => bytes(one.bytes) },
    { id: 'digest', name: 'Digest', render: (one) => <code title={one.digest}>{one.digest.slice(0, 12)}</code> },
]

/** The pictures of a version, a class at a time (?class=). */
function Pictures({ version }: { version: DatasetVersion }) {
    const manifest = useResource(`manifest:${version.blob}`, () => manifestOf(version))
    const [shown, setShown] = useState(PAGE)
    const classes = useMemo(() => [...byClass(manifest.data.value?.files ?? [])], [manifest.data.value])
    return (
        <Loaded resource={manifest}>
            {() => {
                const [name, files] = classes.find(([name]) => name === param('class')) ?? classes[0] ?? ['', []]
                return (
                    <>
                        <label class="row">
                            <span class="muted">Class</span>
                            <select class="input grow" name="class" value={name} onChange={(event) => setQuery({ class: event.currentTarget.value })}>
                                {classes.map(([one, its]) => (
                                    <option key={one} value={one}>
                                        {one} ({its.length})
                                    </option>
                                ))}
                            </select>
                        </label>
                        <ul class="pictures" aria-label={`Pictures of ${name}`}>
                            {files.slice(0, shown).map((one) => (
                                <li key={one.file}>
                                    <Picture sha256={one.sha256} name={`${one.class}/${one.file}`} />
                                </li>
                            ))}
                        </ul>
                        {files.length > shown && (
                            <button type="button" class="button small" onClick={() => setShown(shown + PAGE)}>
                                {short(files.length - shown)} more
                            </button>
                        )}
                    </>
                )
            }}
        </Loaded>
    )
}

function Versions({ dataset }: { dataset: Dataset }) {
    const versions = useResource(`dataset:${dataset.name}`, () => getAll<DatasetVersion>(`/datasets/${segment(dataset.name)}/versions`))
    return (
        <Loaded resource={versions}>
            {(items) => {
                const version = items.find((one) => `v${one.version}` === param('v')) ?? items[0]
                const freeze = <WithLibrary name="enrol">{({ Freeze }) => <Freeze dataset={dataset} onDone={() => void versions.load()} />}</WithLibrary>
                return version === undefined ? (
                    <>
                        <p class="quiet">No version yet: one is made when the files are frozen. From then on nobody can change it.</p>
                        {freeze}
                    </>
                ) : (
                    <>
                        {freeze}
                        <Table
                            label="Versions"
                            rows={items}
                            columns={VERSION_COLUMNS}
                            keyOf={(one) => `v${one.version}`}
                            hrefOf={(one) => hrefWith({ v: `v${one.version}` })}
                            chosen={`v${version.version}`}
                            isDense
                        />
                        <h3>Lineage of v{version.version}</h3>
                        <DatasetLineageView key={`${version.dataset}@${version.version}`} dataset={version.dataset} version={version.version} />
                        <h3>Pictures of v{version.version}</h3>
                        {!dataset.is_uploaded ? (
                            <p class="quiet">They lie in the folder of the server; pictures of uploaded datasets are shown here.</p>
                        ) : version.n_files > FILES_MAX ? (
                            <p class="quiet">More than {short(FILES_MAX)} files: too many to list in the page.</p>
                        ) : (
                            <Pictures key={version.blob} version={version} />
                        )}
                    </>
                )
            }}
        </Loaded>
    )
}

function DatasetDrawer({ dataset }: { dataset: Dataset }) {
    const uses = usesOf(dataset.name, ions.data.value ?? [])
    return (
        <Drawer title={dataset.name} id="dataset-title" close={href('datasets', { q: param('q'), sort: param('sort') })}>
            <Facts
                items={[
                    ['Kind', dataset.kind ?? NONE],
                    ['Files', dataset.is_uploaded ? 'uploaded' : 'a folder of the server'],
                    ['Folder', <code class="wrap">{dataset.path ?? NONE}</code>],
                    ['Project', <Owner project={dataset.project} />],
                    ['Made', dayTime(dataset.created_ms)],
                    ['By', dataset.created_by ?? NONE],
                    [
                        'Used by',
                        uses.length === 0
                            ? 'no ION'
                            : uses.map((use, i) => (
                                  <span key={i} class="use">
                                      <a href={href(['ions', use.ion, 'graph'])}>{use.ion}</a> {use.as}
                                  </span>
                              )),
                    ],
                ]}
            />
            <p>
                <a href={href('experiments', { q: `dataset = "${dataset.name}" or dataset.name = "${dataset.name}"` })}>Runs that read it</a>
            </p>
            {dataset.is_uploaded && may(CHANGE_DATASETS, dataset.project) && (
                <>
                    <h3>Files</h3>
                    <WithLibrary name="enrol">{({ UploadFiles }) => <UploadFiles key={dataset.name} dataset={dataset} />}</WithLibrary>
                </>
            )}
            <h3>Versions</h3>
            <Versions key={dataset.name} dataset={dataset} />
        </Drawer>
    )
}

function Datasets({ args }: { args: Args }) {
    const [making, setMaking] = useState<Found[]>() // files that a new one begins with
    const all = (datasets.data.value ?? []).filter(inProject)
    const found = filtered(all, FILTER)
    const wanted = args['dataset']
    const dataset = (datasets.data.value ?? []).find((one) => one.name === wanted)
    const close = href('datasets', { q: param('q'), sort: param('sort') })
    const missing = wanted && datasets.data.value && !dataset && (
        <Drawer title={wanted} id="dataset-title" close={close}>
            <p class="quiet">The server has no dataset of this name.</p>
        </Drawer>
    )
    return (
        <>
            <PageHead title="Datasets" sub="What models are trained with and people are recognised by">
                <Act right={CHANGE_DATASETS} tone="primary" onClick={() => setMaking([])}>
                    <Icon name="plus" /> New dataset
                </Act>
            </PageHead>
            {making && <WithLibrary name="enrol">{({ NewDataset }) => <NewDataset files={making} onClose={() => setMaking(undefined)} />}</WithLibrary>}
            <Loaded resource={datasets} rows={6}>
                {() =>
                    all.length === 0 && !wanted ? (
                        <div class="panel">
                            <Empty icon="data" title="No datasets yet" command={COMMANDS.createDataset}>
                                A dataset is a folder with a folder of pictures for each class. Drop one here, or name a folder of the server:
                            </Empty>
                            {may(CHANGE_DATASETS) && (
                                <div class="panel-body">
                                    <WithLibrary name="enrol">{({ DropFiles }) => <DropFiles hint="A folder is a class: its name is what the pictures show." onFiles={setMaking} />}</WithLibrary>
                                </div>
                            )}
                        </div>
                    ) : (
                        <>
                            <Filter label="Filter datasets" rows={all} of={FILTER} hint="name, or project:vision" />
                            <WithDrawer
                                listName="datasets"
                                close={close}
                                drawer={dataset ? <DatasetDrawer key={dataset.name} dataset={dataset} /> : missing}
                                list={
                                    <Panel title="All datasets" window={found.length}>
                                        {found.length > 0 ? (
                                            <Table
                                                label="Datasets"
                                                rows={found}
                                                columns={wanted ? COLUMNS.slice(0, 3) : COLUMNS}
                                                keyOf={(one) => one.name}
                                                hrefOf={(one) => href(['datasets', one.name], { q: param('q'), sort: param('sort') })}
                                                chosen={wanted}
                                            />
                                        ) : (
                                            <NothingMatches rows={all} of={FILTER} what="dataset" />
                                        )}
                                    </Panel>
                                }
                            />
                        </>
                    )
                }
            </Loaded>
        </>
    )
}

export const datasetsScreen: Screen = {
    id: 'datasets',
    title: 'Datasets',
    icon: 'data',
    address: 'datasets/:dataset?',
    query: ['q', 'sort', 'v', 'class'],
    group: { science: 'Build', operations: 'Build' },
    load: [datasets, ions],
    letter: 'd',
    render: Datasets,
}
