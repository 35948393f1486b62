/** Projects: those that the server lists and those that something names. The one that is chosen stands in the address. */
import { computed } from '@preact/signals'
import type { Project } from '../api'
import type { Opt } from '../types'
import { getAll } from './http'
import { Resource } from './resource'
import { ALL_PROJECTS, route } from './route'
import { datasets, ions, jobs, models, runs } from './store'

const OWNERS = 4 // colours --own-1 … --own-4

export const projectList = new Resource<Project[]>(() => getAll<Project>('/projects', { limit: 1000 }))

/** Oldest first, so that a new project changes no other's colour. */
export const projects = computed<string[]>(() => {
    const listed = [...(projectList.data.value ?? [])].sort((a, b) => String(a.created_ms).localeCompare(String(b.created_ms)))
    const named = [ions, jobs, runs, models, datasets].flatMap((list) => (list.data.value ?? []).map((one) => one.project ?? ''))
    return [...new Set([...listed.map((one) => one.name), ...named.filter(Boolean).sort()])]
})

/** The project that is chosen; undefined: all of them. */
export const project = computed<string | undefined>(() => (route.value.project === ALL_PROJECTS ? undefined : route.value.project))

export function inProject(one: { project?: Opt<string> }): boolean {
    return project.value === undefined || one.project === project.value
}

/** The token of a project's colour; of what is no project, a grey. */
export function colourOf(name: Opt<string>): string {
    const place = name ? projects.value.indexOf(name) : -1
    return place < 0 ? '--line-strong' : `--own-${(place % OWNERS) + 1}`
}

/** The class that gives a project its colour. */
export function ownerClass(name: Opt<string>): string {
    const place = name ? projects.value.indexOf(name) : -1
    return place < 0 ? '' : `o${(place % OWNERS) + 1}`
}
