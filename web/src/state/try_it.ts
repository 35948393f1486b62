/** One request to a deployment's version, as a client makes it, and what came of it. */
import { csrf, messageOf, request, segment } from './http'

export interface Stage {
    name: string
    ms: number
}

export interface Answer {
    version: number
    totalMs: number
    stages: Stage[] // of the replica, in order, and what lies between it and the page
    labels: { label: string; probability: number }[]
    outputs: { name: string; datatype: string; shape: number[]; data?: unknown[] }[]
    error: string // "": it was answered
}

const WAIT_MS = 60_000
const TOP = 5

/** "read;dur=4.1, queue;dur=0.02" */
export function stagesOf(header: string | null, totalMs: number): Stage[] {
    const stages = (header ?? '')
        .split(',')
        .map((part) => /^\s*([a-z]+);dur=([\d.]+)\s*$/.exec(part))
        .filter((found) => found !== null)
        .map((found) => ({ name: found[1]!, ms: Number(found[2]) }))
    const rest = totalMs - stages.reduce((sum, one) => sum + one.ms, 0)
    return stages.length > 0 ? [...stages, { name: 'way', ms: Math.max(0, rest) }] : []
}

export async function tryIt(name: string, version: number, body: Blob | string, type: string): Promise<Answer> {
    const nothing = { version, stages: [], labels: [], outputs: [] }
    const began = performance.now()
    try {
        const path = `/v2/models/${segment(name)}/versions/${version}/infer?top=${TOP}`
        const response = await request(path, { method: 'POST', headers: { ...csrf(), 'Content-Type': type }, body }, WAIT_MS)
        const answer = (await response.json()) as Partial<Answer>
        const totalMs = performance.now() - began
        return { ...nothing, totalMs, stages: stagesOf(response.headers.get('Weir-Times'), totalMs), labels: answer.labels ?? [], outputs: answer.outputs ?? [], error: '' }
    } catch (error) {
        return { ...nothing, totalMs: performance.now() - began, error: messageOf(error) }
    }
}
