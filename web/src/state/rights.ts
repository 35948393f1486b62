/** What the caller may: rights on the platform and in projects, as GET /session tells them ("cancel jobs"). */
import type { Opt } from '../types'
import { session } from './http'
import { project } from './project'

/** On the platform, or in this project: else in the one that is chosen; without one, in any. */
export function may(right: string, of: Opt<string> = project.value): boolean {
    const caller = session.value
    if (!caller) {
        return false
    }
    if (caller.rights.includes(right)) {
        return true
    }
    const mine = caller.projects
    return of ? (mine[of]?.includes(right) ?? false) : Object.values(mine).some((rights) => rights.includes(right))
}
