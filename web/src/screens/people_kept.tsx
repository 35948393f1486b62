/** How long each project keeps what is its own: by kind, within what the platform allows; changed after one has seen what would go. */
import { useState } from 'preact/hooks'
import type { Project, ProjectRetention, ProjectTime, RetentionPreview } from '../api'
import { Empty, Loaded, Panel } from '../components/basics'
import { ask, type Question } from '../components/dialog'
import { Form } from '../components/form'
import { Act } from '../components/locked'
import { Table, type Column } from '../components/table'
import { bytes, NONE } from '../format'
import { get, segment, send } from '../state/http'
import { inProject, projectList } from '../state/project'
import { useResource } from '../state/resource'
import { href } from '../state/route'

const RIGHT = 'grant projects'

const pathOf = (project: string) => `/projects/${segment(project)}/retention`

function changeQuestion(project: string, kind: string, age: string, preview: RetentionPreview, again: () => void): Question {
    const found = preview.items[0]
    const going = found?.n_going ?? 0
    return {
        title: `Keep ${kind} of ${project} for ${age === 'default' ? 'as long as the platform' : age}?`,
        text:
            going > 0 ? (
                <p>
                    <b>
                        {going} {found?.unit}
                    </b>{' '}
                    ({bytes(found?.bytes_going ?? 0)}) are older than {found?.keep} and go with the next sweep. Nothing brings them back.
                </p>
            ) : (
                <p>Nothing goes now: nothing of it is older than {found?.keep}.</p>
            ),
        confirm: 'Keep it so long',
        danger: going > 0,
        done: `${kind} of ${project} are kept for ${found?.keep}`,
        act: async () => {
            await send('PUT', pathOf(project), { [kind]: age })
            again()
        },
    }
}

function Kept({ project }: { project: Project }) {
    const kept = useResource(`kept of ${project.name}`, () => get<ProjectRetention>(pathOf(project.name)))
    const [changed, setChanged] = useState<ProjectTime | null>(null)
    const columns: Column<ProjectTime>[] = [
        {
            id: 'kind',
            name: 'What',
            phone: 'name',
            sort: (one) => one.kind,
            render: (one) => (
                <>
                    <b>{one.kind}</b>
                    <span class="sub" title={one.rule}>
                        {one.what}
                    </span>
                </>
            ),
        },
        { id: 'keep', name: 'Kept for', width: '104px', phone: 'state', render: (one) => <code>{one.keep}</code> },
        { id: 'own', name: 'Set here', width: '104px', phone: 'more', render: (one) => (one.own ? <code>{one.own}</code> : <span class="muted">{NONE}</span>) },
        { id: 'bounds', name: 'May be', width: '136px', render: (one) => <code>{one.bounds}</code> },
        { id: 'platform', name: 'Platform', width: '104px', render: (one) => <code>{one.platform}</code> },
        {
            id: 'change',
            name: '',
            width: '96px',
            phone: 'more',
            render: (one) => (
                <Act right={RIGHT} project={project.name} isSmall onClick={() => setChanged(one)}>
                    Change
                    <span class="hidden">
                        {' '}
                        how long {one.kind} of {project.name} are kept
                    </span>
                </Act>
            ),
        },
    ]
    return (
        <Panel title={`What ${project.name} keeps`} window="by kind" foot="Beyond the sizes of the platform the oldest goes, whosever it is. Versions in service, the runs that made them and snapshots stay.">
            <Loaded resource={kept} rows={6}>
                {(found) => (
                    <>
                        <Table label={`What ${project.name} keeps`} rows={found.items} columns={columns} keyOf={(one) => one.kind} rowPx={48} />
                        {found.pipelines.length > 0 && (
                            <ul class="panel-body" aria-label={`Pipelines of ${project.name} that keep less`}>
                                {found.pipelines.map((one) => (
                                    <li key={`${one.ion}/${one.pipeline}/${one.kind}`}>
                                        {one.kind} of <a href={href(['ions', one.ion, 'graph'])}>{`${one.ion} / ${one.pipeline}`}</a>: <code>{one.keep}</code>
                                    </li>
                                ))}
                            </ul>
                        )}
                    </>
                )}
            </Loaded>
            {changed && (
                <Form
                    title={`How long ${project.name} keeps ${changed.kind}`}
                    confirm="See what would go"
                    fields={[{ name: 'age', label: `An age within ${changed.bounds}, such as 30d, 12h or forever; default: as the platform, ${changed.platform}`, value: changed.own ?? 'default' }]}
                    act={async ({ age = '' }) => {
                        const preview = await get<RetentionPreview>(`${pathOf(project.name)}/preview?kind=${segment(changed.kind)}&keep=${segment(age.trim())}`)
                        ask(changeQuestion(project.name, changed.kind, age.trim(), preview, () => void kept.load()))
                    }}
                    onClose={() => setChanged(null)}
                />
            )}
        </Panel>
    )
}

/** Of the project that is chosen, or of all that one sees. */
export function AllKept() {
    const list = (projectList.data.value ?? []).filter((one) => inProject({ project: one.name }))
    return list.length === 0 ? (
        <div class="panel">
            <Empty icon="lock" title="You are in no project yet">
                Each project says how long its decisions, pictures and logs are kept.
            </Empty>
        </div>
    ) : (
        <div class="stack">
            {list.map((one) => (
                <Kept key={one.name} project={one} />
            ))}
        </div>
    )
}
