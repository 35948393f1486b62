/** The cameras of the prediction pipelines, as replicas tell of them: for the page of cameras, and for what counts those that need somebody. */
import type { Camera } from '../api'
import { getAll } from './http'
import { Resource } from './resource'
import { href, type Query } from './route'

const PAGES = 5 // 200 cameras each

export const cameras = new Resource<Camera[]>(() => getAll<Camera>('/cameras', { limit: 200 }, PAGES))

/** It alone, on the page of cameras. */
export const cameraHref = (ion: string, name: string, more: Query = {}): string => href('cameras', { ...more, q: `ion:${ion} camera:${name.replace(/\s/g, '*')}` })

/** It gives no picture, or a bad one, and a door may depend on it. */
export const cameraNeedsYou = (camera: Camera): boolean => camera.mode !== 'sandbox' && ['lost', 'unwell'].includes(camera.state)
