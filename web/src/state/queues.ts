/** Queues: what of the cluster is whose, as a tree, and what of each resource there is. */
import { signal } from '@preact/signals'
import type { Amounts, Queue, QueueList } from '../api'
import { bytes, short } from '../format'
import { accelerators } from './devices'
import { get } from './http'
import { Resource } from './resource'
import { nodes } from './store'

/** Of queues that the caller does not see: how many there are, and their jobs. */
export const others = signal<Record<string, number>>({})

export const queues = new Resource<Queue[]>(async () => {
    const list = await get<QueueList>('/queues')
    others.value = list.others
    return list.items
})

/** "accelerators", "cpus", "memory", or a model of accelerator. */
export type What = string

/** Guarantee null: all there is. Limit null: none. */
export interface Share {
    guarantee: number | null
    weight: number
    limit: number | null
}

const PLAIN: Share = { guarantee: 0, weight: 1, limit: null }
const RESOURCES = ['accelerators', 'cpus', 'memory']
export const GIB = 1024 ** 3

type Shares = Record<string, unknown>

function partOf(shares: Shares | null, what: What): Partial<Share> | undefined {
    const found = RESOURCES.includes(what) ? shares?.[what] : (shares?.['models'] as Shares | undefined)?.[what]
    return (found ?? undefined) as Partial<Share> | undefined
}

export function shareOf(queue: Queue, what: What): Share {
    return { ...PLAIN, ...partOf(queue.shares, what) }
}

/** The queue's shares with this one changed; what is as of a queue without shares is left out. */
export function sharesWith(shares: Shares | null, what: What, share: Share): Shares {
    const one = { guarantee: share.guarantee, weight: share.weight, limit: share.limit }
    return RESOURCES.includes(what) ? { ...shares, [what]: one } : { ...shares, models: { ...(shares?.['models'] as Shares | undefined), [what]: one } }
}

export function amountOf(amounts: Amounts, what: What): number {
    return (amounts as unknown as Record<string, number | undefined>)[what] ?? 0
}

/** Models that nodes have or that a queue has a share of. */
export function models(): string[] {
    const had = [...accelerators.value.values()].flat().map((one) => one.model ?? '')
    const shared = (queues.data.value ?? []).flatMap((one) => Object.keys((one.shares?.['models'] as Shares | undefined) ?? {}))
    return [...new Set([...had, ...shared])].filter(Boolean).sort()
}

/** How much the nodes have that report and take tasks: what guarantees can be kept of. */
export function capacityOf(what: What): number {
    const working = (nodes.data.value ?? []).filter((node) => (node.state ?? 'ready') === 'ready' && !node.unhealthy)
    if (what === 'cpus') {
        return working.reduce((sum, node) => sum + (node.cpu_slots ?? 0), 0)
    }
    if (what === 'memory') {
        return working.reduce((sum, node) => sum + (node.memory_bytes ?? 0), 0)
    }
    return working.flatMap((node) => accelerators.value.get(node.name) ?? []).filter((one) => one.state === 'ok' && (what === 'accelerators' || one.model === what)).length
}

const UNITS: Record<string, [string, string]> = { accelerators: ['device', 'devices'], cpus: ['CPU', 'CPUs'], memory: ['', ''] }

/** "8", "64 GiB". */
export function plainAmount(value: number, what: What): string {
    return what === 'memory' ? bytes(value) : short(value)
}

/** "8 devices", "1 CPU", "64 GiB". */
export function amountText(value: number, what: What): string {
    const [one, many] = UNITS[what] ?? [what, what]
    return `${plainAmount(value, what)}${one ? ` ${value === 1 ? one : many}` : ''}`
}

export interface Place {
    queue: Queue
    depth: number
}

/** The tree, each parent before its parts, in the order that they were made. */
export function tree(all: readonly Queue[]): Place[] {
    const known = new Set(all.map((one) => one.name))
    const childrenOf = (parent: string | null) => all.filter((one) => (one.parent && known.has(one.parent) ? one.parent : null) === parent)
    const walk = (parent: string | null, depth: number): Place[] => (depth > 32 ? [] : childrenOf(parent).flatMap((queue) => [{ queue, depth }, ...walk(queue.name, depth + 1)]))
    return walk(null, 0)
}

export function siblingsOf(queue: { name: string; parent: string | null }, all: readonly Queue[]): Queue[] {
    return all.filter((one) => one.parent === queue.parent && one.name !== queue.name)
}

/** What a queue holds back of the whole: its guarantee, or if they are more, its parts' together. */
function reservedBy(queue: Queue, all: readonly Queue[], what: What): number {
    const parts = all.filter((one) => one.parent === queue.name).reduce((sum, one) => sum + reservedBy(one, all, what), 0)
    return Math.max(shareOf(queue, what).guarantee ?? Infinity, parts)
}

/** Guarantees of the whole tree together. */
export function reserved(all: readonly Queue[], what: What): number {
    return tree(all)
        .filter((one) => one.depth === 0)
        .reduce((sum, { queue }) => sum + reservedBy(queue, all, what), 0)
}
