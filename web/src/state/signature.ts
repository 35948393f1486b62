/** A version's signature: what it takes and gives, as the server found it in the file. */
import type { ModelVersion } from '../api'
import type { Opt } from '../types'

export interface Port {
    name: string
    datatype: string
    shape: number[]
}

export interface PictureRule {
    input: string
    width: number
    height: number
    channels: number
    layout: string
    fit: string
    shorter?: number
    order: string
    scale: number
    mean: number[]
    std: number[]
}

export interface Signature {
    format: string
    executor: string
    why: string
    inputs: Port[]
    outputs: Port[]
    is_batched: boolean
    picture: PictureRule | null
    output_kind: string
    labels: string[] | null
}

/** Undefined: a version of before files were looked at. */
export function signatureOf(version: Opt<ModelVersion>): Signature | undefined {
    const signature = version?.signature as Partial<Signature> | null | undefined
    return signature && Array.isArray(signature.inputs) && Array.isArray(signature.outputs) ? (signature as Signature) : undefined
}

/** "x FP32 [n, 3, 224, 224]" */
export function portText(port: Port): string {
    return `${port.name} ${port.datatype} [${port.shape.map((dim) => (dim < 0 ? 'n' : dim)).join(', ')}]`
}

/** In one line: "224 × 224 RGB, shorter side to 256, then the centre, 0…1, minus mean, through deviation". */
export function pictureText(rule: PictureRule): string {
    const colours = rule.channels === 1 ? 'grey' : rule.order
    const fit = rule.fit === 'crop' ? `shorter side to ${rule.shorter ?? Math.min(rule.width, rule.height)}, then its centre` : 'stretched'
    const isPlain = rule.mean.every((value) => value === 0) && rule.std.every((value) => value === 1)
    return `${rule.width} × ${rule.height} ${colours}, ${fit}, as 0 to ${rule.scale}${isPlain ? '' : `, minus ${rule.mean.join(' ')}, divided by ${rule.std.join(' ')}`}, ${rule.layout}`
}

const TEMPLATE_VALUES = 64

/** A request of the Open Inference Protocol to begin with: zeros where they are few. */
export function requestOf(signature: Signature): string {
    const inputs = signature.inputs.map((port) => {
        const shape = port.shape.map((dim) => (dim < 0 ? 1 : dim))
        const n = shape.reduce((all, dim) => all * dim, 1)
        const value = port.datatype === 'BYTES' ? '' : port.datatype === 'BOOL' ? false : 0
        return { name: port.name, datatype: port.datatype, shape, data: n <= TEMPLATE_VALUES ? Array(n).fill(value) : [] }
    })
    return JSON.stringify({ inputs }, null, 1)
}
