/** What a job asks for, from its specification. */
import type { Job } from '../api'

type Spec = Record<string, unknown>

export const specOf = (job: Job): Spec => (job.spec ?? {}) as Spec

/** Its tasks, as many as it may have. */
export function tasksOf(job: Job): number {
    const spec = specOf(job)
    const tasks = spec['tasks'] ?? spec['workers'] ?? spec['replicas'] ?? 1
    const most = typeof tasks === 'object' && tasks !== null ? (tasks as Spec)['max'] : tasks
    return typeof most === 'number' ? most : 1
}

/** Accelerators of all its tasks; shares of one count as what they are. */
export function devicesOf(job: Job): number {
    const resources = (specOf(job)['resources'] ?? {}) as Spec
    const count = typeof resources['accelerators'] === 'number' ? resources['accelerators'] : 0
    const share = typeof resources['accelerator_share'] === 'number' && resources['accelerator_share'] > 0 ? resources['accelerator_share'] : 1
    return Math.max(0, count) * share * tasksOf(job)
}

/** "2 tasks × 4 H100" */
export function wantsText(job: Job): string {
    const resources = (specOf(job)['resources'] ?? {}) as Spec
    const tasks = tasksOf(job)
    const count = Number(resources['accelerators'] ?? 0)
    const model = String(resources['accelerator_model'] ?? 'devices')
    const share = Number(resources['accelerator_share'] ?? 0)
    const each = [
        count > 0 ? `${share > 0 ? `${share} of each of ` : ''}${count} ${count === 1 && model === 'devices' ? 'device' : model}` : '',
        resources['accelerator_memory'] ? `${String(resources['accelerator_memory'])} of a device` : '',
        resources['mig_profile'] ? `a slice ${String(resources['mig_profile'])}` : '',
        resources['memory'] ? `${String(resources['memory'])} of memory` : '',
    ].filter(Boolean)
    return `${tasks} ${tasks === 1 ? 'task' : 'tasks'}${each.length > 0 ? ` × ${each.join(', ')}` : ''}`
}
