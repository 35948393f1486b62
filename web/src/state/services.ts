/** Notebooks and services: fetched again when a job changes, since each of them is one while it runs. */
import type { Service } from '../api'
import { getAll } from './http'
import { Resource } from './resource'

export const services = new Resource<Service[]>(() => getAll<Service>('/services', { limit: 1000 }))
