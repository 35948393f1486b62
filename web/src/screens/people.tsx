/** People and projects: who is there, who may do what in which project, groups and tokens. */
import { useState } from 'preact/hooks'
import type { Group, GroupMember, Project, ProjectMember, Token, User } from '../api'
import { COMMANDS } from '../commands'
import { Command, Empty, Loaded, Owner, PageHead, Panel, When } from '../components/basics'
import { ask, type Question } from '../components/dialog'
import { Form } from '../components/form'
import { Icon } from '../components/icon'
import { Table, type Column } from '../components/table'
import { toast } from '../components/toast'
import { NONE } from '../format'
import type { Screen } from '../screen'
import { getAll, segment, send, session } from '../state/http'
import { projectList } from '../state/project'
import { Resource, useResource } from '../state/resource'
import { may } from '../state/rights'

const PROJECTS_MAX = 100 // whose members are listed
const ROLES = ['viewer', 'approver', 'operator', 'data-scientist', 'ml-engineer', 'admin']

interface Team {
    users: User[]
    groups: (Group & { members: GroupMember[] })[]
    members: Map<string, ProjectMember[]>
    tokens: Token[]
}

async function loadTeam(): Promise<Team> {
    const projects = await getAll<Project>('/projects', { limit: 1000 })
    const seesUsers = may('read users')
    const groups = seesUsers ? await getAll<Group>('/groups', { limit: 1000 }) : []
    return {
        users: seesUsers ? await getAll<User>('/users', { limit: 1000 }) : [],
        groups: await Promise.all(groups.map(async (one) => ({ ...one, members: await getAll<GroupMember>(`/groups/${segment(one.name)}/members`) }))),
        members: new Map(
            await Promise.all(
                projects.slice(0, PROJECTS_MAX).map(async (one) => [one.name, await getAll<ProjectMember>(`/projects/${segment(one.name)}/members`)] as const),
            ),
        ),
        tokens: await getAll<Token>('/tokens', { limit: 1000 }),
    }
}

const whoIs = (one: ProjectMember) => one.user ?? one.group ?? ''

async function createUser(values: Record<string, string>): Promise<void> {
    await send('POST', '/users', { name: values['name'], kind: 'person', role: values['role'] })
    if (values['password']) {
        await send('PUT', `/users/${segment(values['name']!)}/password`, { password: values['password'] })
    }
    toast(`${values['name']} was made`)
}

/* ---- people ------------------------------------------------------------------------------------------------------- */

function disableQuestion(user: User, again: () => void): Question {
    return {
        title: `Disable ${user.name}?`,
        text: <p>Sessions and streams of {user.name} end now, and tokens open nothing until the user is enabled again. What {user.name} made stays.</p>,
        confirm: `Disable ${user.name}`,
        danger: true,
        done: `${user.name} is disabled`,
        act: async () => {
            await send('PATCH', `/users/${segment(user.name)}`, { is_disabled: true })
            again()
        },
    }
}

function People({ team, again }: { team: Team; again: () => void }) {
    const rolesOf = (user: User) =>
        [...team.members].flatMap(([project, list]) =>
            list
                .filter((one) => one.user === user.name || team.groups.some((group) => group.name === one.group && group.members.some((member) => member.user === user.name)))
                .map((one) => ({ project, role: one.role, group: one.group })),
        )
    const columns: Column<User>[] = [
        {
            id: 'name',
            name: 'Person',
            phone: 'name',
            sort: (user) => user.name,
            render: (user) => (
                <>
                    <b>{user.name}</b> {user.kind === 'service' && <span class="chip">service</span>}
                </>
            ),
        },
        { id: 'role', name: 'On the platform', width: '140px', phone: 'state', sort: (user) => user.role, render: (user) => (user.is_disabled ? <span class="tone-warn-text">disabled</span> : user.role) },
        {
            id: 'projects',
            name: 'In projects',
            phone: 'more',
            render: (user) => {
                const roles = rolesOf(user)
                return roles.length === 0 ? (
                    <span class="muted">{NONE}</span>
                ) : (
                    <span class="row wrap small">
                        {roles.map((one, i) => (
                            <span key={i} title={one.group ? `by the group ${one.group}` : undefined}>
                                <Owner project={one.project} /> {one.role}
                            </span>
                        ))}
                    </span>
                )
            },
        },
        { id: 'since', name: 'Since', width: '128px', render: (user) => <When time={user.created_ms} /> },
        {
            id: 'act',
            name: '',
            width: '96px',
            render: (user) =>
                may('change users') &&
                user.name !== session.value?.user &&
                (user.is_disabled ? (
                    <button
                        type="button"
                        class="button small"
                        onClick={async () => {
                            await send('PATCH', `/users/${segment(user.name)}`, { is_disabled: false })
                            again()
                        }}
                    >
                        Enable<span class="hidden"> {user.name}</span>
                    </button>
                ) : (
                    <button type="button" class="button small" onClick={() => ask(disableQuestion(user, again))}>
                        Disable<span class="hidden"> {user.name}</span>
                    </button>
                )),
        },
    ]
    return (
        <Panel title="People" window={`${team.users.length}`}>
            <Table label="People" rows={team.users.filter((one) => one.role !== 'agent')} columns={columns} keyOf={(user) => user.name} />
        </Panel>
    )
}

/* ---- projects ----------------------------------------------------------------------------------------------------- */

function revokeQuestion(project: string, member: ProjectMember, again: () => void): Question {
    const who = whoIs(member)
    return {
        title: `Take ${member.role} in ${project} from ${who}?`,
        text: <p>{who} sees and changes nothing of {project} any more, from the next request on. What was made there stays.</p>,
        confirm: 'Take the role away',
        danger: true,
        done: `${who} has lost the role in ${project}`,
        act: async () => {
            await send('DELETE', `/projects/${segment(project)}/members/${member.user ? 'user' : 'group'}/${segment(who)}`)
            again()
        },
    }
}

function ProjectPanel({ project, members, again }: { project: Project; members: ProjectMember[]; again: () => void }) {
    const [isOpen, setOpen] = useState(false)
    const mayGrant = session.value?.rights.includes('grant projects') || session.value?.projects[project.name]?.includes('grant projects')
    const grant = async (values: Record<string, string>) => {
        await send('PUT', `/projects/${segment(project.name)}/members/${values['kind']}/${segment(values['who']!)}`, { role: values['role'] })
        toast(`${values['who']} is ${values['role']} in ${project.name}`)
        again()
    }
    return (
        <Panel
            title={project.name}
            window={project.description ?? `${members.length} ${members.length === 1 ? 'role' : 'roles'}`}
            aside={
                mayGrant ? (
                    <button type="button" class="button small" onClick={() => setOpen(true)}>
                        Give a role<span class="hidden"> in {project.name}</span>
                    </button>
                ) : undefined
            }
        >
            {members.length === 0 ? (
                <p class="panel-body quiet">Only roles of the whole platform reach it.</p>
            ) : (
                <ul class="list" aria-label={`Who may do what in ${project.name}`}>
                    {members.map((one) => (
                        <li key={one.name}>
                            <Icon name={one.user ? 'person' : 'ions'} />
                            <b class="clip">{whoIs(one)}</b>
                            {one.group && <span class="muted small">group</span>}
                            <span class="grow">{one.role}</span>
                            {mayGrant && (
                                <button type="button" class="icon-button" aria-label={`Take ${one.role} in ${project.name} from ${whoIs(one)}`} onClick={() => ask(revokeQuestion(project.name, one, again))}>
                                    <Icon name="cross" />
                                </button>
                            )}
                        </li>
                    ))}
                </ul>
            )}
            {isOpen && (
                <Form
                    title={`Give a role in ${project.name}`}
                    confirm="Give the role"
                    fields={[
                        { name: 'kind', label: 'To a', options: ['user', 'group'] },
                        { name: 'who', label: 'Name' },
                        { name: 'role', label: 'Role', options: ROLES },
                    ]}
                    act={grant}
                    onClose={() => setOpen(false)}
                />
            )}
        </Panel>
    )
}

/* ---- groups and tokens -------------------------------------------------------------------------------------------- */

function Groups({ team }: { team: Team }) {
    return team.groups.length === 0 ? null : (
        <Panel title="Groups" window={`${team.groups.length}`}>
            <ul class="list">
                {team.groups.map((group) => (
                    <li key={group.name}>
                        <b class="clip">{group.name}</b>
                        <span class="grow muted clip">{group.members.map((one) => one.user).join(', ') || 'nobody is in it'}</span>
                    </li>
                ))}
            </ul>
        </Panel>
    )
}

function revokeTokenQuestion(token: Token, again: () => void): Question {
    return {
        title: `Revoke the token ${token.name} of ${token.user}?`,
        text: <p>Whoever shows it is refused from now on, and the sessions that were made with it end.</p>,
        confirm: 'Revoke the token',
        danger: true,
        done: `The token ${token.name} is revoked`,
        act: async () => {
            await send('DELETE', `/tokens/${segment(token.id)}`)
            again()
        },
    }
}

function Tokens({ team, again }: { team: Team; again: () => void }) {
    const columns: Column<Token>[] = [
        { id: 'token', name: 'Token', phone: 'name', sort: (one) => one.name, render: (one) => <b>{`${one.user} / ${one.name}`}</b> },
        { id: 'may', name: 'May', phone: 'more', render: (one) => <span>{`at most ${one.role}${one.project ? ` in ${one.project}` : one.node ? ` of node ${one.node}` : ''}`}</span> },
        { id: 'used', name: 'Last shown', width: '128px', render: (one) => (one.used_ms ? <When time={one.used_ms} /> : <span class="muted">{NONE}</span>) },
        { id: 'ends', name: 'Ends', width: '128px', phone: 'state', render: (one) => (one.expires_ms ? <When time={one.expires_ms} /> : <span class="muted">never</span>) },
        {
            id: 'act',
            name: '',
            width: '96px',
            render: (one) => (
                <button type="button" class="button small" onClick={() => ask(revokeTokenQuestion(one, again))}>
                    Revoke<span class="hidden"> {one.name}</span>
                </button>
            ),
        },
    ]
    return (
        <Panel title="Tokens" window={may('change tokens') ? 'of all' : 'yours'} foot={<Command text={COMMANDS.makeToken} />}>
            <Table label="Tokens" rows={team.tokens} columns={columns} keyOf={(one) => one.id} />
        </Panel>
    )
}

/* ---- the screen --------------------------------------------------------------------------------------------------- */

function PeopleScreen() {
    const team: Resource<Team> = useResource(`people ${session.value?.user ?? ''}`, loadTeam)
    const [open, setOpen] = useState<'user' | 'project' | ''>('')
    const again = () => {
        void team.load()
        void projectList.load()
    }
    const projects = projectList.data.value ?? []
    const close = () => setOpen('')
    return (
        <>
            <PageHead
                title="People and projects"
                sub={`You are ${session.value?.user ?? 'nobody'}, ${session.value?.role === 'member' ? 'with roles in projects only' : `${session.value?.role} on the platform`}.`}
            >
                {may('create projects') && (
                    <button type="button" class="button" onClick={() => setOpen('project')}>
                        New project
                    </button>
                )}
                {may('change users') && (
                    <button type="button" class="button primary" onClick={() => setOpen('user')}>
                        New person
                    </button>
                )}
            </PageHead>
            <Loaded resource={team} rows={6}>
                {(found) => (
                    <div class="stack">
                        {may('read users') && <People team={found} again={again} />}
                        <div class="people-projects">
                            {projects.map((one) => (
                                <ProjectPanel key={one.name} project={one} members={found.members.get(one.name) ?? []} again={again} />
                            ))}
                        </div>
                        {projects.length === 0 && (
                            <div class="panel">
                                <Empty icon="lock" title="You are in no project yet">
                                    An admin gives roles in projects with weir project grant, or on this page.
                                </Empty>
                            </div>
                        )}
                        <Groups team={found} />
                        <Tokens team={found} again={again} />
                    </div>
                )}
            </Loaded>
            {open === 'user' && (
                <Form
                    title="New person"
                    confirm="Make the user"
                    fields={[
                        { name: 'name', label: 'Name' },
                        { name: 'role', label: 'Role on the whole platform', options: ['member', ...ROLES] },
                        { name: 'password', label: 'First password', type: 'password', isOptional: true },
                    ]}
                    act={async (values) => {
                        await createUser(values)
                        again()
                    }}
                    onClose={close}
                />
            )}
            {open === 'project' && (
                <Form
                    title="New project"
                    confirm="Make the project"
                    fields={[
                        { name: 'name', label: 'Name' },
                        { name: 'description', label: 'What it is for', isOptional: true },
                    ]}
                    act={async (values) => {
                        await send('POST', '/projects', { name: values['name'], description: values['description'] || null })
                        toast(`Project ${values['name']} was made`)
                        again()
                    }}
                    onClose={close}
                />
            )}
        </>
    )
}

export const peopleScreen: Screen = {
    id: 'people',
    title: 'People & projects',
    icon: 'person',
    address: 'people',
    query: ['sort'],
    group: { science: 'Share', operations: 'Manage' },
    load: [projectList],
    letter: 'u',
    render: PeopleScreen,
}
