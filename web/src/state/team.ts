/** Who there is: users, groups, members of projects, tokens and sessions, as far as the caller may see them. */
import type { Group, GroupMember, Project, ProjectMember, Session, Token, User } from '../api'
import { getAll, segment } from './http'
import { may } from './rights'

const PROJECTS_MAX = 100 // whose members are listed

export interface Team {
    users: User[]
    groups: (Group & { members: GroupMember[] })[]
    members: Map<string, ProjectMember[]>
    tokens: Token[]
    sessions: Session[]
}

export async function loadTeam(): Promise<Team> {
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
        sessions: await getAll<Session>('/sessions', { limit: 1000 }),
    }
}

/** The roles of a user in projects, their own and those that groups give. */
export function rolesIn(team: Team, user: string): { project: string; role: string; group: string | null }[] {
    return [...team.members].flatMap(([project, list]) =>
        list
            .filter((one) => one.user === user || team.groups.some((group) => group.name === one.group && group.members.some((member) => member.user === user)))
            .map((one) => ({ project, role: one.role, group: one.group })),
    )
}

/** When somebody was last seen: by a session or a token; ms since 1970, 0: never. */
export function lastSeen(team: Team, user: string): number {
    const times = [...team.sessions.filter((one) => one.user === user).map((one) => one.created_ms), ...team.tokens.filter((one) => one.user === user).map((one) => one.used_ms)]
    return Math.max(0, ...times.map((time) => (time ? Date.parse(time) : 0)))
}
