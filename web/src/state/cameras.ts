/** The cameras of the prediction pipelines, as replicas tell of them: for the page of cameras, and for what counts those that need somebody. */
import type { Time } from '../api'
import { getAll } from './http'
import { Resource } from './resource'
import { href, type Query } from './route'

const PAGES = 5 // of 200

export interface Camera {
    id: string // ION:PIPELINE:CAMERA
    project: string
    ion: string
    pipeline: string
    name: string
    kind: string // of its source
    replica: string | null
    state: string // sees, lost, connecting, unwell, unknown
    since_ms: Time | null
    error: string | null // what the camera answered, as it came
    cure: string | null // the server's sentence: what to do
    health: string[] // what is wrong with its picture or its clock
    fps: number | null // taken now
    fps_expected: number | null
    width: number | null
    height: number | null
    codec: string | null
    age_ms: number | null // of its newest frame
    frames: number
    dropped: number
    damaged: number
    lost: number
    clock_off_ms: number | null
    n_decided: number // in 30 min
    n_unknown: number
    last_decision_ms: Time | null
    reported_ms: Time | null
    mode: string // sandbox, production
}

export const cameras = new Resource<Camera[]>(() => getAll<Camera>('/cameras', { limit: 200 }, PAGES))

/** It alone, on the page of cameras. */
export const cameraHref = (ion: string, name: string, more: Query = {}): string => href('cameras', { ...more, q: `ion:${ion} camera:${name.replace(/\s/g, '*')}` })

/** It gives no picture, or a bad one, and a door may depend on it. */
export const cameraNeedsYou = (camera: Camera): boolean => camera.mode !== 'sandbox' && ['lost', 'unwell'].includes(camera.state)
