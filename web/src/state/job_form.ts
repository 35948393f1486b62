/** The form of a job, made from what the server says of its kind; and the job as YAML, CLI and REST. Pure. */
import type { Kind } from '../api'
import { messageOf } from './http'

/** One of a kind's options, as GET /kinds tells it. */
export interface Option {
    name: string
    type: string // text, integer, number, boolean, array, object or any
    doc: string
    default?: unknown
    minimum?: number
    maximum?: number
    words?: string[]
    required?: boolean
    secret?: boolean
    path?: boolean
}

export const optionsOf = (kind: Kind | undefined): Option[] => (kind?.options ?? []) as Option[]

/** What each task needs, inside of the option "resources". */
export const RESOURCES: Option[] = [
    { name: 'resources.accelerators', type: 'integer', minimum: 0, doc: 'Accelerators of each task, all on one node' },
    { name: 'resources.accelerator_model', type: 'text', doc: 'Their model, as the cluster names it' },
    { name: 'resources.accelerator_share', type: 'number', minimum: 0, maximum: 1, doc: 'A part of each: 0.5' },
    { name: 'resources.accelerator_memory', type: 'any', doc: 'So much memory of each: 20GiB' },
    { name: 'resources.mig_profile', type: 'text', doc: 'Each is a MIG slice: 1g.10gb' },
    { name: 'resources.cpus', type: 'number', minimum: 0, doc: 'CPUs of each task: 2 or 0.5' },
    { name: 'resources.memory', type: 'any', doc: 'Memory of each task, which is kept for it: 64GiB' },
]

/** Where its code is, inside of the option "code": a folder of files is sent by the CLI, and named by their list. */
export const CODE: Option[] = [
    { name: 'code.git', type: 'text', doc: 'Repository that the node fetches; a folder of yours goes with `weir job run`' },
    { name: 'code.commit', type: 'text', doc: 'Commit of that repository, in full' },
    { name: 'code.manifest', type: 'text', doc: 'List of files that were sent before' },
]

/** Fields of what options have inside. */
const within = (options: readonly Option[]): Option[] => [...RESOURCES, ...CODE].filter((one) => options.some((option) => option.name === one.name.split('.')[0]))
const isWhole = (option: Option) => option.name !== 'resources' && option.name !== 'code'

/** Words as a shell splits them: quotes keep spaces, a backslash the next letter. */
export function shellWords(text: string): string[] {
    const words: string[] = []
    let word = ''
    let quote = ''
    let isOpen = false
    for (let i = 0; i < text.length; i++) {
        const letter = text[i]!
        if (quote !== '') {
            if (letter === quote) {
                quote = ''
            } else if (letter === '\\' && quote === '"' && i + 1 < text.length) {
                word += text[++i]
            } else {
                word += letter
            }
        } else if (letter === '"' || letter === "'") {
            quote = letter
            isOpen = true
        } else if (letter === '\\' && i + 1 < text.length) {
            word += text[++i]
            isOpen = true
        } else if (/\s/.test(letter)) {
            if (isOpen) {
                words.push(word)
            }
            word = ''
            isOpen = false
        } else {
            word += letter
            isOpen = true
        }
    }
    if (quote !== '') {
        throw new Error(`the quote ${quote} has no end`)
    }
    return isOpen ? [...words, word] : words
}

export function shellQuote(word: string): string {
    return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`
}

const lines = (text: string) => text.split('\n').map((line) => line.trim()).filter(Boolean)

function mapOf(text: string): Record<string, string> {
    return Object.fromEntries(
        lines(text).map((line) => {
            const at = line.indexOf('=')
            if (at < 1) {
                throw new Error(`expected NAME=VALUE, got "${line.slice(0, 40)}"`)
            }
            return [line.slice(0, at), line.slice(at + 1)]
        }),
    )
}

function numberOf(option: Option, text: string): number {
    const value = Number(text)
    const kind = option.type === 'integer' ? 'a whole number' : 'a number'
    if (!Number.isFinite(value) || (option.type === 'integer' && !Number.isInteger(value))) {
        throw new Error(`expected ${kind}`)
    }
    if (value < (option.minimum ?? -Infinity) || value > (option.maximum ?? Infinity)) {
        throw new Error(`expected ${kind} from ${option.minimum ?? 'any'} to ${option.maximum ?? 'any'}`)
    }
    return value
}

/** The value that a field's text stands for. Throws what is wrong with it. */
export function valueOf(option: Option, text: string): unknown {
    switch (option.type) {
        case 'integer':
        case 'number':
            return numberOf(option, text.trim())
        case 'boolean':
            return text === 'true'
        case 'array':
            return option.name === 'argv' ? shellWords(text) : lines(text)
        case 'object':
            return text.trim().startsWith('{') ? (JSON.parse(text) as unknown) : mapOf(text)
        case 'any':
            return /^[[{\d"]/.test(text.trim()) && !/^\d+[a-zA-Z]/.test(text.trim()) ? (JSON.parse(text) as unknown) : text.trim()
        default:
            return text
    }
}

/** What a field shows for a value; secrets that the server hides are written again. */
export function textOf(option: Option, value: unknown): string {
    if (value === undefined || value === null) {
        return ''
    }
    if (option.type === 'array' && Array.isArray(value)) {
        return option.name === 'argv' ? value.map((one) => shellQuote(String(one))).join(' ') : value.join('\n')
    }
    if (option.type === 'object' && typeof value === 'object') {
        const entries = Object.entries(value).filter(([, one]) => one !== '***')
        return entries.some(([, one]) => String(one).includes('\n')) ? JSON.stringify(Object.fromEntries(entries)) : entries.map(([key, one]) => `${key}=${String(one)}`).join('\n')
    }
    return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

export interface JobDocument {
    name: string
    kind: string
    project: string
    max_restarts?: number
    spec: Record<string, unknown>
}

export type Texts = Record<string, string>

/** The texts of a job that was submitted, to begin from. */
export function textsOf(options: readonly Option[], spec: Record<string, unknown>): Texts {
    const given: Record<string, unknown> = { cpus: spec['cpu_slots'], ...spec } // as it was called before
    const own = options.filter(isWhole).map((one) => [one.name, textOf(one, given[one.name])])
    const parts = within(options).map((one) => {
        const [whole = '', part = ''] = one.name.split('.')
        return [one.name, textOf(one, ((spec[whole] ?? {}) as Record<string, unknown>)[part])]
    })
    return Object.fromEntries([...own, ...parts].filter(([, text]) => text !== ''))
}

/** The document of these texts, and what is wrong with which field. What says what is so anyway is left out. */
export function documentOf(options: readonly Option[], texts: Texts): { spec: Record<string, unknown>; errors: Texts } {
    const spec: Record<string, unknown> = {}
    const errors: Texts = {}
    for (const option of [...options.filter(isWhole), ...within(options)]) {
        const text = texts[option.name] ?? ''
        if (text.trim() === '') {
            if (option.required) {
                errors[option.name] = 'it must be said'
            }
            continue
        }
        try {
            const value = valueOf(option, text)
            if (JSON.stringify(value) === JSON.stringify(option.default)) {
                continue
            }
            const [whole = '', part] = option.name.split('.')
            if (part !== undefined) {
                spec[whole] = { ...(spec[whole] as object | undefined), [part]: value }
            } else {
                spec[option.name] = value
            }
        } catch (error) {
            errors[option.name] = messageOf(error)
        }
    }
    return { spec, errors }
}

/* ---- the same in other words ---------------------------------------------------------------------------------------- */

function scalar(value: unknown): string {
    return typeof value === 'string' && /^[A-Za-z_./][\w ./+-]*$/.test(value) && !/^(true|false|null|yes|no|on|off)$/i.test(value) ? value : JSON.stringify(value)
}

function yamlLines(value: unknown, indent: string): string[] {
    if (Array.isArray(value)) {
        return value.every((one) => typeof one !== 'object') ? [`[${value.map((one) => JSON.stringify(one)).join(', ')}]`] : [JSON.stringify(value)]
    }
    if (typeof value === 'object' && value !== null) {
        const entries = Object.entries(value)
        return entries.length === 0
            ? ['{}']
            : ['', ...entries.flatMap(([key, one]) => {
                  const [first = '', ...rest] = yamlLines(one, indent + '  ')
                  return [`${indent}${scalar(key)}:${first === '' ? '' : ' ' + first}`, ...rest]
              })]
    }
    return [scalar(value)]
}

export function yamlOf(job: JobDocument): string {
    return yamlLines(job, '').slice(1).join('\n') + '\n'
}

const RUN_FLAGS: Record<string, string> = { cpus: 'cpus', cpu_slots: 'cpus', image: 'image', network: 'network', priority: 'priority', time_limit: 'time-limit', overflow_after: 'overflow-after', tasks: 'tasks', nodes: 'nodes' }
const NO_FLAG = ['python', 'files', 'datasets'] // they go as files, or have no flag: the document is submitted
const GPU_FLAGS: Record<string, string> = { accelerator_share: 'gpu-share', accelerator_memory: 'gpu-memory', mig_profile: 'mig', memory: 'memory', cpus: 'cpus' }

/** Flags of `weir job run`, or undefined: the job says what has none. */
function runFlags(job: JobDocument): string[] | undefined {
    const flags: string[] = [`--project ${job.project}`, ...(job.kind === 'command' ? [] : [`--kind ${job.kind}`])]
    if (job.max_restarts) {
        flags.push(`--restarts ${job.max_restarts}`)
    }
    for (const [key, value] of Object.entries(job.spec)) {
        if (key === 'argv') {
            continue
        }
        if (key === 'env' || key === 'node_selector') {
            for (const [name, one] of Object.entries(value as object)) {
                flags.push(`--${key === 'env' ? 'env' : 'node-selector'} ${shellQuote(`${name}=${String(one)}`)}`)
            }
        } else if (key === 'clusters') {
            flags.push(`--clusters ${shellQuote((value as string[]).join(','))}`)
        } else if (key === 'secrets') {
            flags.push(...(value as string[]).map((one) => `--secret ${shellQuote(one)}`))
        } else if (key === 'code') {
            const { git, commit, manifest } = value as Record<string, string>
            if (!git || !commit || manifest) {
                return undefined
            }
            flags.push(`--git ${shellQuote(`${git}@${commit}`)}`)
        } else if (key === 'preemptible' && value === false) {
            flags.push('--no-preemptible')
        } else if (key === 'resources') {
            const { accelerators, accelerator_model: model, ...rest } = value as Record<string, unknown>
            if (accelerators) {
                flags.push(`--gpus ${String(accelerators)}${model ? `:${shellQuote(String(model))}` : ''}`)
            }
            flags.push(...Object.entries(rest).map(([name, one]) => `--${GPU_FLAGS[name] ?? name} ${shellQuote(String(one))}`))
        } else if (RUN_FLAGS[key] !== undefined && typeof value !== 'object') {
            flags.push(`--${RUN_FLAGS[key]} ${shellQuote(String(value))}`)
        } else if (typeof value !== 'object' && !NO_FLAG.includes(key)) {
            flags.push(`--set ${shellQuote(`${key}=${String(value)}`)}`)
        } else {
            return undefined
        }
    }
    return flags
}

export function commandOf(job: JobDocument): string {
    const flags = Array.isArray(job.spec['argv']) ? runFlags(job) : undefined
    if (flags !== undefined) {
        return `weir job run ${[job.name, ...flags, ...(job.spec['code'] ? [] : ['--no-files'])].join(' \\\n    ')} \\\n    -- ${(job.spec['argv'] as string[]).map(shellQuote).join(' ')}\n`
    }
    return `weir job submit -f - <<'END'\n${yamlOf(job)}END\n`
}

export function requestOf(job: JobDocument): string {
    return `POST ${location.origin}/api/v1/jobs\nAuthorization: Bearer $WEIR_TOKEN\nContent-Type: application/json\n\n${JSON.stringify(job, null, 2)}\n`
}
