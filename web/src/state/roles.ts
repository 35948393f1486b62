/** Roles and what each may, as the server's matrix says. */
import type { Role } from '../api'
import { getAll } from './http'
import { Resource } from './resource'

export const roles = new Resource<Role[]>(() => getAll<Role>('/roles'))

/** The roles that people can have with this right, in a project or on the platform; none while the matrix is not there. */
export function rolesThatMay(right: string, isOfProject: boolean): string[] {
    roles.need()
    return (roles.data.value ?? []).filter((role) => role.is_of_projects && (isOfProject || !role.is_custom) && role.rights.includes(right)).map((role) => role.name)
}
