/**
 * Addresses without a project, as people type them ("/runs"): led to the project that was shown last, which this browser
 * keeps for each person, or to the only one there is, else to all of them.
 */
import { effect } from '@preact/signals'
import { session } from './http'
import { projectList } from './project'
import { ALL_PROJECTS, go, href, route } from './route'

const placeOf = (user: string) => `weir.project.${user}`

function last(): string | null {
    try {
        return localStorage.getItem(placeOf(session.value?.user ?? ''))
    } catch {
        return null // no storage in some private modes
    }
}

/** Everybody arrives at the home of all projects: that chooses none. */
effect(() => {
    const { project, parts, isPlaced } = route.value
    const user = session.value?.user
    const isArrival = project === ALL_PROJECTS && (parts.length === 0 || parts[0] === 'home')
    if (user === undefined || !isPlaced || isArrival) {
        return
    }
    try {
        localStorage.setItem(placeOf(user), project)
    } catch {
        // As above: the next address without a project is then one of all projects.
    }
})

/** Gives the address its project; the step of history stays one. */
export async function placeAddress(): Promise<void> {
    await projectList.load()
    const { parts, query, isPlaced } = route.value
    const names = (projectList.data.value ?? []).map((one) => one.name)
    const only = names.length === 1 ? names[0]! : ALL_PROJECTS
    const before = last()
    if (!isPlaced) {
        go(href(parts, Object.fromEntries(query), before === ALL_PROJECTS || names.includes(before ?? '') ? before! : only), true)
    }
}
