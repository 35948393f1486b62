/** What the caller may: rights on the platform and in projects, as GET /session tells them ("cancel jobs"). */
import type { Opt } from '../types'
import { session } from './http'
import { project, projects } from './project'

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

/** The projects in which the caller may, the one that is chosen first: what a form offers. */
export function projectsThatMay(right: string): string[] {
    const open = projects.value.filter((one) => may(right, one))
    return project.value && open.includes(project.value) ? [project.value, ...open.filter((one) => one !== project.value)] : open
}

export const CHANGE_DATASETS = 'change datasets'
