/** Sweeps, newest first: fetched again when the stream tells of one. */
import type { Sweep } from '../api'
import { getAll } from './http'
import { Resource } from './resource'

export const sweeps = new Resource<Sweep[]>(() => getAll<Sweep>('/sweeps', { newest: 1, limit: 200 }))
