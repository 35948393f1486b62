/** What the caller may: rights on the platform and in projects, as GET /session tells them ("cancel jobs"). */
import { session } from './http'
import { project } from './project'

/** On the platform, or in the project that is chosen; without one, in any. */
export function may(right: string): boolean {
    const caller = session.value
    if (!caller) {
        return false
    }
    if (caller.rights.includes(right)) {
        return true
    }
    const mine = caller.projects
    return project.value ? (mine[project.value]?.includes(right) ?? false) : Object.values(mine).some((rights) => rights.includes(right))
}
