/** Roles and what each may, as the server's matrix says. */
import type { Role } from '../api'
import { getAll } from './http'
import { Resource } from './resource'

/** "change alert rules" is about alert rules. */
export function nounOf(right: string): string {
    return /(alert )?\S+$/.exec(right)?.[0] ?? right
}

export function verbOf(right: string): string {
    return right.slice(0, right.length - nounOf(right).length - 1)
}

export const roles = new Resource<Role[]>(() => getAll<Role>('/roles'))

/** The roles that people can have with this right, in a project or on the platform; none while the matrix is not there. */
export function rolesThatMay(right: string, isOfProject: boolean): string[] {
    roles.need()
    return (roles.data.value ?? []).filter((role) => role.is_of_projects && (isOfProject || !role.is_custom) && role.rights.includes(right)).map((role) => role.name)
}
