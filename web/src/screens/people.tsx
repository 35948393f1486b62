/** People and projects: who is there, who may do what in which project, groups, tokens and secrets. */
import { useState } from 'preact/hooks'
import type { Project, ProjectMember, User } from '../api'
import { Count, Empty, Loaded, Owner, PageHead, Panel, Tabs, When } from '../components/basics'
import { ask, type Question } from '../components/dialog'
import { WithDrawer } from '../components/drawer'
import { Form } from '../components/form'
import { Icon } from '../components/icon'
import { Act } from '../components/locked'
import { RoleChange } from '../components/role_change'
import { Table, type Column } from '../components/table'
import { toast } from '../components/toast'
import { counted, NONE } from '../format'
import type { Screen } from '../screen'
import { messageOf, segment, send, session } from '../state/http'
import { projectList } from '../state/project'
import { useResource, type Resource } from '../state/resource'
import { may } from '../state/rights'
import { roles } from '../state/roles'
import { href, hrefWith, param } from '../state/route'
import { lastSeen, loadTeam, rolesIn, type Team } from '../state/team'
import { Matrix, Sessions, Tokens } from './people_access'
import { AllKept } from './people_kept'
import { Person } from './people_person'
import { AllSecrets } from './people_secrets'

const FIRST = 'member'

const whoIs = (one: ProjectMember) => one.user ?? one.group ?? ''

async function createUser(values: Record<string, string>): Promise<void> {
    await send('POST', '/users', { name: values['name'], kind: values['kind'], role: values['role'] })
    if (values['password']) {
        await send('PUT', `/users/${segment(values['name']!)}/password`, { password: values['password'] })
    }
    toast(`${values['name']} was made`)
}

/* ---- people ------------------------------------------------------------------------------------------------------- */

function People({ team, wanted }: { team: Team; wanted: string }) {
    const columns: Column<User>[] = [
        {
            id: 'name',
            name: 'Person',
            phone: 'name',
            sort: (user) => user.name,
            render: (user) => (
                <>
                    <a class="main" href={hrefWith({ who: user.name })}>
                        {user.name}
                    </a>{' '}
                    {user.kind === 'service' && <span class="chip">service</span>}
                </>
            ),
        },
        { id: 'role', name: 'On the platform', width: '140px', phone: 'state', sort: (user) => user.role, render: (user) => (user.is_disabled ? <span class="tone-warn-text">disabled</span> : user.role) },
        {
            id: 'projects',
            name: 'In projects',
            phone: 'more',
            render: (user) => {
                const found = rolesIn(team, user.name)
                return found.length === 0 ? (
                    <span class="muted">{NONE}</span>
                ) : (
                    <span class="row wrap small">
                        {found.map((one, i) => (
                            <span key={i} title={one.group ? `by the group ${one.group}` : undefined}>
                                <Owner project={one.project} /> {one.role}
                            </span>
                        ))}
                    </span>
                )
            },
        },
        {
            id: 'seen',
            name: 'Last seen',
            width: '128px',
            sort: (user) => -lastSeen(team, user.name),
            render: (user) => (lastSeen(team, user.name) > 0 ? <When time={new Date(lastSeen(team, user.name)).toISOString()} /> : <span class="muted">{NONE}</span>),
        },
        { id: 'tokens', name: 'Tokens', width: '72px', isNumber: true, sort: (user) => -team.tokens.filter((one) => one.user === user.name).length, render: (user) => team.tokens.filter((one) => one.user === user.name).length },
    ]
    return (
        <Panel title="People" window={`${team.users.filter((one) => one.role !== 'agent').length} · a row opens what can be done`}>
            <Table
                label="People"
                rows={team.users.filter((one) => one.role !== 'agent')}
                columns={wanted ? columns.slice(0, 3) : columns}
                keyOf={(user) => user.name}
                hrefOf={(user) => hrefWith({ who: user.name })}
                chosen={wanted}
            />
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
    const [changed, setChanged] = useState<ProjectMember | null>(null)
    roles.need()
    const mayGrant = may('grant projects', project.name)
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
                <Act right="grant projects" project={project.name} isSmall onClick={() => setOpen(true)}>
                    Give a role<span class="hidden"> in {project.name}</span>
                </Act>
            }
        >
            {members.length === 0 ? (
                <p class="quiet">Only roles of the whole platform reach it.</p>
            ) : (
                <ul class="list" aria-label={`Who may do what in ${project.name}`}>
                    {members.map((one) => (
                        <li key={one.name}>
                            <Icon name={one.user ? 'person' : 'ions'} />
                            <b class="clip">{whoIs(one)}</b>
                            {one.group && <span class="muted small">group</span>}
                            <span class="grow">
                                {mayGrant ? (
                                    <button type="button" class="link" aria-label={`Change ${one.role} of ${whoIs(one)} in ${project.name}`} onClick={() => setChanged(one)}>
                                        {one.role}
                                    </button>
                                ) : (
                                    one.role
                                )}
                                {one.problem && <span class="tone-warn-text small"> {one.problem}</span>}
                            </span>
                            {mayGrant && (
                                <button type="button" class="icon-button" aria-label={`Take ${one.role} in ${project.name} from ${whoIs(one)}`} onClick={() => ask(revokeQuestion(project.name, one, again))}>
                                    <Icon name="cross" />
                                </button>
                            )}
                        </li>
                    ))}
                </ul>
            )}
            {changed && (
                <RoleChange
                    title={`Role of ${whoIs(changed)} in ${project.name}`}
                    was={changed.role}
                    isOfProject
                    act={(role) => grant({ kind: changed.user ? 'user' : 'group', who: whoIs(changed), role })}
                    onClose={() => setChanged(null)}
                />
            )}
            {isOpen && (
                <Form
                    title={`Give a role in ${project.name}`}
                    confirm="Give the role"
                    fields={[
                        { name: 'kind', label: 'To a', options: ['user', 'group'] },
                        { name: 'who', label: 'Name' },
                        { name: 'role', label: 'Role', options: (roles.data.value ?? []).filter((one) => one.is_of_projects).map((one) => one.name) },
                    ]}
                    act={grant}
                    onClose={() => setOpen(false)}
                />
            )}
        </Panel>
    )
}

/* ---- groups and tokens -------------------------------------------------------------------------------------------- */

type TeamGroup = Team['groups'][number]

function GroupPanel({ group, team, again }: { group: TeamGroup; team: Team; again: () => void }) {
    const [isOpen, setOpen] = useState(false)
    const path = `/groups/${segment(group.name)}`
    const others = team.users.filter((one) => one.role !== 'agent' && !group.members.some((member) => member.user === one.name)).map((one) => one.name)
    const remove = async (user: string) => {
        try {
            await send('DELETE', `${path}/members/${segment(user)}`)
            again()
        } catch (error) {
            toast(messageOf(error), 'bad')
        }
    }
    const askDelete = () =>
        ask({
            title: `Delete the group ${group.name}?`,
            text: <p>Its {counted(group.members.length, 'member loses', 'members lose')} what it gave them, from the next request on.</p>,
            confirm: `Delete ${group.name}`,
            danger: true,
            done: `The group ${group.name} is gone`,
            act: async () => {
                await send('DELETE', path)
                again()
            },
        })
    return (
        <Panel
            title={`Group ${group.name}`}
            window={group.description ?? `${group.members.length} in it`}
            aside={
                <>
                    <Act right="change users" isSmall onClick={() => setOpen(true)}>
                        Add<span class="hidden"> to {group.name}</span>
                    </Act>
                    <Act right="change users" isSmall tone="danger" onClick={askDelete}>
                        Delete<span class="hidden"> {group.name}</span>
                    </Act>
                </>
            }
        >
            {group.members.length === 0 ? (
                <p class="quiet">Nobody is in it.</p>
            ) : (
                <ul class="list" aria-label={`Who is in ${group.name}`}>
                    {group.members.map((one) => (
                        <li key={one.name}>
                            <Icon name="person" />
                            <b class="clip grow">{one.user}</b>
                            {may('change users') && (
                                <button type="button" class="icon-button" aria-label={`Take ${one.user} out of ${group.name}`} onClick={() => void remove(one.user ?? '')}>
                                    <Icon name="cross" />
                                </button>
                            )}
                        </li>
                    ))}
                </ul>
            )}
            {isOpen && (
                <Form
                    title={`Put somebody into ${group.name}`}
                    confirm="Add"
                    fields={[{ name: 'user', label: 'Who', options: others }]}
                    act={async (values) => {
                        await send('PUT', `${path}/members/${segment(values['user'] ?? '')}`)
                        toast(`${values['user']} is in ${group.name}`)
                        again()
                    }}
                    onClose={() => setOpen(false)}
                />
            )}
        </Panel>
    )
}

/* ---- the screen --------------------------------------------------------------------------------------------------- */

const TABS = { people: 'People', groups: 'Groups', roles: 'Roles', tokens: 'Tokens and sessions', secrets: 'Secrets', kept: 'What is kept' }
type Tab = keyof typeof TABS

function Shown({ tab, team, again }: { tab: Tab; team: Team; again: () => void }) {
    const list = projectList.data.value ?? []
    const wanted = param('who')
    const person = team.users.find((one) => one.name === wanted)
    switch (tab) {
        case 'groups':
            return team.groups.length === 0 ? (
                <div class="panel">
                    <Empty icon="person" title="No group yet" command="weir group create NAME">
                        A group has the same roles in projects for all who are in it.
                    </Empty>
                </div>
            ) : (
                <div class="people-projects">
                    {team.groups.map((group) => (
                        <GroupPanel key={group.name} group={group} team={team} again={again} />
                    ))}
                </div>
            )
        case 'secrets':
            return <AllSecrets />
        case 'kept':
            return <AllKept />
        case 'roles':
            return <Matrix />
        case 'tokens':
            return (
                <>
                    <Tokens team={team} again={again} />
                    <Sessions team={team} again={again} />
                </>
            )
        default:
            return (
                <>
                    {may('read users') && (
                        <WithDrawer listName="people" close={hrefWith({ who: '' })} list={<People team={team} wanted={wanted} />} drawer={person && <Person key={person.name} user={person} team={team} again={again} />} />
                    )}
                    <div class="people-projects">
                        {list.map((one) => (
                            <ProjectPanel key={one.name} project={one} members={team.members.get(one.name) ?? []} again={again} />
                        ))}
                    </div>
                    {list.length === 0 && (
                        <div class="panel">
                            <Empty icon="lock" title="You are in no project yet">
                                An admin gives roles in projects with weir project grant, or on this page.
                            </Empty>
                        </div>
                    )}
                </>
            )
    }
}

function PeopleScreen() {
    const team: Resource<Team> = useResource(`people ${session.value?.user ?? ''}`, loadTeam)
    const [open, setOpen] = useState<'user' | 'project' | 'group' | ''>('')
    const again = () => {
        void team.load()
        void projectList.load()
    }
    const tab = (Object.keys(TABS) as Tab[]).find((one) => one === param('tab')) ?? 'people'
    const found = team.data.value
    const people = found?.users.filter((one) => one.kind !== 'service' && one.role !== 'agent').length ?? 0
    const services = found?.users.filter((one) => one.kind === 'service' && one.role !== 'agent').length ?? 0
    const close = () => setOpen('')
    const counts: Record<Tab, number | undefined> = { people: found?.users.filter((one) => one.role !== 'agent').length, groups: found?.groups.length, roles: roles.data.value?.length, tokens: found?.tokens.length, secrets: undefined, kept: undefined }
    return (
        <>
            <PageHead
                title="People and projects"
                sub={`${found ? `${people} ${people === 1 ? 'person' : 'people'}, ${services} service ${services === 1 ? 'account' : 'accounts'} · ` : ''}you are ${session.value?.user ?? 'nobody'}, ${session.value?.role === FIRST ? 'with roles in projects only' : `${session.value?.role} on the platform`}`}
            >
                <Act right="create projects" onClick={() => setOpen('project')}>
                    New project
                </Act>
                <Act right="change users" onClick={() => setOpen('group')}>
                    New group
                </Act>
                <Act right="change users" tone="primary" onClick={() => setOpen('user')}>
                    New person
                </Act>
            </PageHead>
            <Tabs label="People and projects" items={(Object.keys(TABS) as Tab[]).map((one) => ({ name: TABS[one], address: href('people', { tab: one === 'people' ? '' : one }), isCurrent: one === tab, badge: counts[one] ? <Count count={counts[one]} /> : undefined }))} />
            <Loaded resource={team} rows={6}>
                {(all) => (
                    <div class="stack">
                        <Shown tab={tab} team={all} again={again} />
                    </div>
                )}
            </Loaded>
            {open === 'user' && (
                <Form
                    title="New person or service account"
                    confirm="Make the user"
                    fields={[
                        { name: 'name', label: 'Name' },
                        { name: 'kind', label: 'Who stands behind it: a person logs in, a service shows tokens', options: ['person', 'service'] },
                        { name: 'role', label: 'Role on the whole platform', options: (roles.data.value ?? []).filter((one) => !one.is_custom).map((one) => one.name) },
                        { name: 'password', label: 'First password', type: 'password', isOptional: true },
                    ]}
                    act={async (values) => {
                        await createUser(values)
                        again()
                    }}
                    onClose={close}
                />
            )}
            {(open === 'project' || open === 'group') && (
                <Form
                    title={`New ${open}`}
                    confirm={`Make the ${open}`}
                    fields={[
                        { name: 'name', label: 'Name' },
                        { name: 'description', label: open === 'project' ? 'What it is for' : 'Who they are', isOptional: true },
                    ]}
                    act={async (values) => {
                        await send('POST', `/${open}s`, { name: values['name'], description: values['description'] || null })
                        toast(`${open === 'project' ? 'Project' : 'Group'} ${values['name']} was made`)
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
    query: ['tab', 'who', 'sort'],
    group: { science: 'Share', operations: 'Manage' },
    load: [projectList, roles],
    letter: 'u',
    render: PeopleScreen,
}
