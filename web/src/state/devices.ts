/** Accelerators of all nodes: what they are, who holds them, how busy and how warm they are. */
import { computed } from '@preact/signals'
import type { Device, Job } from '../api'
import { counted } from '../format'
import type { Opt } from '../types'
import { getAll } from './http'
import { Resource } from './resource'
import { jobs } from './store'

const PAGES = 20 // of 1,000 devices

export const devices = new Resource<Device[]>(() => getAll<Device>('/devices', { limit: 1000 }, PAGES))

const ACCELERATORS = new Set(['gpu', 'mig', 'declared'])

/** A whole device that is cut into slices is not given itself: its slices are. */
export const accelerators = computed<ReadonlyMap<string, Device[]>>(() => {
    const all = (devices.data.value ?? []).filter((one) => ACCELERATORS.has(one.kind) && one.state !== 'gone')
    const cut = new Set(all.filter((one) => one.parent >= 0).map((one) => `${one.node}/${one.parent}`))
    const byNode = new Map<string, Device[]>()
    for (const one of all) {
        if (!cut.has(`${one.node}/${one.idx}`)) {
            const list = byNode.get(one.node)
            if (list) {
                list.push(one)
            } else {
                byNode.set(one.node, [one])
            }
        }
    }
    for (const list of byNode.values()) {
        list.sort((a, b) => a.idx - b.idx)
    }
    return byNode
})

/** What the tools of the device call it, by NODE/INDEX: an inventory counts processors and disks too. */
const numbers = computed<ReadonlyMap<string, string>>(() => {
    const found = new Map<string, string>()
    const all = (devices.data.value ?? []).filter((one) => ACCELERATORS.has(one.kind))
    for (const node of new Set(all.map((one) => one.node))) {
        const sorted = all.filter((one) => one.node === node).sort((a, b) => a.idx - b.idx)
        const wholes = sorted.filter((one) => one.parent < 0)
        wholes.forEach((one, i) => found.set(one.name, String(one.details?.['driver_index'] ?? i)))
        for (const one of sorted.filter((it) => it.parent >= 0)) {
            const siblings = sorted.filter((it) => it.parent === one.parent)
            found.set(one.name, `${found.get(`${one.node}/${one.parent}`) ?? '?'}:${siblings.indexOf(one)}`)
        }
    }
    return found
})

/** "3", as nvidia-smi counts; a slice is "3:0"; undefined: it is no accelerator. */
export const numberOf = (device: Device): string | undefined => numbers.value.get(device.name)

/** Those that a task has ("8,9"), as their node's tools number them: "0,1"; how many, while that is not known. */
export function numbersText(node: Opt<string>, indices: Opt<string>): string {
    const all = (indices ?? '').split(',').filter(Boolean)
    devices.need()
    const known = all.map((one) => numbers.value.get(`${node}/${one.trim()}`))
    return known.every((one) => one !== undefined) ? known.join(',') : counted(all.length, 'device')
}

const OVER = new Set(['SUCCEEDED', 'FAILED', 'CANCELLED'])

/** Jobs that are not over, by name: the newest of each. */
const byName = computed<ReadonlyMap<string, Job>>(() => {
    const found = new Map<string, Job>()
    for (const job of jobs.data.value ?? []) {
        if (!OVER.has(job.state) && !found.has(job.name)) {
            found.set(job.name, job)
        }
    }
    return found
})

/** The jobs that hold a device ("NAME/RANK, …"); those that the caller may not see have a name only. */
export function holdersOf(device: Device): { name: string; job: Job | undefined }[] {
    const names = (device.holders ?? '').split(', ').flatMap((one) => (one ? [one.slice(0, one.lastIndexOf('/'))] : []))
    return [...new Set(names)].map((name) => ({ name, job: byName.value.get(name) }))
}

export function shareOf(device: Device): number {
    return Math.min(1, device.used_milli / 1000)
}
