/** Secrets of projects: their names, who set them, what uses them; set and deleted, and never shown. */
import { useState } from 'preact/hooks'
import type { Project, Secret, SecretUse } from '../api'
import { Command, Empty, Loaded, Panel, When } from '../components/basics'
import { ask, type Question } from '../components/dialog'
import { Form } from '../components/form'
import { Icon } from '../components/icon'
import { Act } from '../components/locked'
import { toast } from '../components/toast'
import { getAll, segment, send } from '../state/http'
import { inProject, projectList } from '../state/project'
import { useResource } from '../state/resource'
import { may } from '../state/rights'
import { href } from '../state/route'

const RIGHT = 'change secrets'

const pathOf = (project: string, name = '') => `/projects/${segment(project)}/secrets${name ? `/${segment(name)}` : ''}`

function Use({ use }: { use: SecretUse }) {
    const address = use.kind === 'job' ? href('jobs', { job: use.id }) : use.kind === 'sweep' ? href(['sweeps', use.id]) : href('notebooks')
    return (
        <a class="use" href={address}>
            {use.kind} {use.name}
        </a>
    )
}

function deleteQuestion(project: string, secret: Secret, again: () => void): Question {
    const uses = secret.used_by ?? []
    return {
        title: `Delete ${secret.name} of ${project}?`,
        text: (
            <>
                <p>{uses.length === 0 ? 'No job that is not over, no service and no sweep that runs names it.' : 'These name it, and do not start any more, nor start again, until somebody sets it anew; what runs keeps the value that it has:'}</p>
                {uses.length > 0 && (
                    <ul>
                        {uses.map((use) => (
                            <li key={use.id}>
                                <Use use={use} />
                            </li>
                        ))}
                    </ul>
                )}
                <p>The value cannot be brought back.</p>
            </>
        ),
        confirm: `Delete ${secret.name}`,
        danger: true,
        done: `${secret.name} is deleted`,
        act: async () => {
            await send('DELETE', pathOf(project, secret.name!))
            again()
        },
    }
}

/** @param secret Which gets another value; null: a new one. */
function SetForm({ project, secret, onClose, onDone }: { project: string; secret: Secret | null; onClose: () => void; onDone: () => void }) {
    return (
        <Form
            title={secret ? `Another value for ${secret.name}` : `A secret for ${project}`}
            confirm="Set it"
            fields={[
                ...(secret ? [] : [{ name: 'name', label: 'Name: jobs name it, and get it as a variable of that name in capitals' }]),
                { name: 'value', label: secret ? 'Value; what runs keeps the one that it has' : 'Value; nobody is shown it again', type: 'password' as const },
            ]}
            act={async ({ name = secret?.name ?? '', value = '' }) => {
                await send('PUT', pathOf(project, name.trim()), { value })
                toast(`${name} is set`)
                onDone()
            }}
            onClose={onClose}
        />
    )
}

function Secrets({ project }: { project: Project }) {
    const isAllowed = may(RIGHT, project.name)
    const secrets = useResource(`secrets of ${project.name} ${isAllowed}`, () => (isAllowed ? getAll<Secret>(pathOf(project.name)) : Promise.resolve([])))
    const [changed, setChanged] = useState<Secret | null | undefined>(undefined)
    const again = () => void secrets.load()
    const setNew = (
        <Act right={RIGHT} project={project.name} isSmall onClick={() => setChanged(null)}>
            Set a secret<span class="hidden"> of {project.name}</span>
        </Act>
    )
    return (
        <Panel title={`Secrets of ${project.name}`} window={secrets.data.value && isAllowed ? secrets.data.value.length : undefined} aside={setNew}>
            <Loaded resource={secrets}>
                {(all) =>
                    !isAllowed ? (
                        <p class="quiet">You may not see which secrets it has: that takes the right to change secrets.</p>
                    ) : all.length === 0 ? (
                        <p class="quiet">
                            None yet. A job gets one by its name: <Command text={`weir job run --project ${project.name} --secret NAME -- COMMAND`} />
                        </p>
                    ) : (
                        <ul class="list secrets" aria-label={`Secrets of ${project.name}`}>
                            {all.map((one) => (
                                <li key={one.name}>
                                    <Icon name="lock" />
                                    <span class="grow">
                                        <b>{one.name}</b>
                                        <small class="muted">
                                            {' '}
                                            set by {one.created_by} <When time={one.updated_ms} />
                                        </small>
                                        <small class="row wrap">
                                            {(one.used_by ?? []).length === 0 ? <span class="muted">nothing uses it now</span> : <span class="muted">used by</span>}
                                            {(one.used_by ?? []).map((use) => (
                                                <Use key={use.id} use={use} />
                                            ))}
                                        </small>
                                    </span>
                                    <button type="button" class="button small" onClick={() => setChanged(one)}>
                                        Set<span class="hidden"> another value for {one.name}</span>
                                    </button>
                                    <button type="button" class="icon-button" aria-label={`Delete ${one.name} of ${project.name}`} onClick={() => ask(deleteQuestion(project.name, one, again))}>
                                        <Icon name="cross" />
                                    </button>
                                </li>
                            ))}
                        </ul>
                    )
                }
            </Loaded>
            {changed !== undefined && <SetForm project={project.name} secret={changed} onClose={() => setChanged(undefined)} onDone={again} />}
        </Panel>
    )
}

/** Of the project that is chosen, or of all that one sees. */
export function AllSecrets() {
    const list = (projectList.data.value ?? []).filter((one) => inProject({ project: one.name }))
    return list.length === 0 ? (
        <div class="panel">
            <Empty icon="lock" title="You are in no project yet">
                Secrets belong to a project, and are given to its jobs.
            </Empty>
        </div>
    ) : (
        <div class="people-projects">
            {list.map((one) => (
                <Secrets key={one.name} project={one} />
            ))}
        </div>
    )
}
