/** Clusters that nodes are asked of, and what was asked for. */
import type { Allocation, Cluster } from '../api'
import { getAll } from './http'
import { Resource } from './resource'

const PAGES = 10

export const clusters = new Resource<Cluster[]>(() => getAll<Cluster>('/clusters', { limit: 1000 }))
export const allocations = new Resource<Allocation[]>(() => getAll<Allocation>('/allocations', { limit: 1000 }, PAGES))

/** Something lacks, or it does not answer: nothing new is asked for there. */
export const needsYou = (one: Cluster) => one.state === 'wrong' || one.state === 'silent'
