/** An ION's document as the builder works on it: what stands on the canvas, and each change as a new document. Pure. */
import type { Option } from './job_form'

export type Values = Record<string, unknown>

/** A pipeline, source, sink, stage or policy: what it is, and its options. */
export type Part = Values

export interface DocLink extends Values {
    from?: string | { model: string }
    to?: string | { deployment: string }
    dataset?: string // a data link: its versions start `to`
    policy?: unknown
}

export interface IonDoc extends Values {
    name?: string
    project?: string
    pipelines: Part[]
    links: DocLink[]
}

/** Whatever was read, with the lists that the builder needs. */
export function asIonDoc(value: unknown): IonDoc {
    const found = (typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}) as Values
    const list = (one: unknown) => (Array.isArray(one) ? one.filter((it) => typeof it === 'object' && it !== null) : [])
    return { ...found, pipelines: list(found['pipelines']) as Part[], links: list(found['links']) as DocLink[] }
}

/** As it is applied: without lists that say nothing. */
export function appliedForm(doc: IonDoc): Values {
    const { links, ...rest } = doc
    return links.length > 0 ? { ...rest, links } : rest
}

export const isTraining = (pipeline: Part) => pipeline['type'] === 'training'
export const isPrediction = (pipeline: Part) => pipeline['type'] === 'prediction'
/** A training by a program of people's own, not Weir's. */
export const isProgram = (pipeline: Part) => isTraining(pipeline) && pipeline['kind'] !== undefined && pipeline['kind'] !== '' && pipeline['kind'] !== 'train'
export const isPreparation = (pipeline: Part | undefined) => pipeline?.['type'] === 'preparation'
/** Measures the models that a link brings. */
export const measures = (pipeline: Part | undefined) => pipeline?.['type'] === 'evaluation' || pipeline?.['type'] === 'comparison'
export const nameOf = (part: Part | undefined) => String(part?.['name'] ?? '')
export const kindOf = (part: unknown): string => (typeof part === 'string' ? part : String((part as Values | null)?.['kind'] ?? ''))

/** The policies of a link as a list, however they are written; what stands for none is manual. */
export function chainOf(link: DocLink): Part[] {
    const written = link.policy === undefined ? ['manual'] : Array.isArray(link.policy) ? (link.policy as unknown[]) : [link.policy]
    return written.map((one) => (typeof one === 'string' ? { kind: one } : { ...(one as Values) }))
}

/** In the shortest form: a name alone, one object, or a list. */
export function policyOf(chain: readonly Part[]): unknown {
    const short = shortForm(chain)
    return short.length === 1 ? short[0] : short
}

const FROM_MODEL = 'model/'
const TO_DEPLOYMENT = 'deployment/'

/** Where a link begins and ends, as the server names it: a pipeline, "model/NAME", "deployment/NAME". */
export const fromOf = (link: DocLink): string => (typeof link.from === 'object' && link.from !== null ? FROM_MODEL + link.from.model : String(link.from ?? ''))
export const toOf = (link: DocLink): string => (typeof link.to === 'object' && link.to !== null ? TO_DEPLOYMENT + link.to.deployment : String(link.to ?? ''))
export const linkId = (link: DocLink): string => `${fromOf(link)}>${toOf(link)}`

const pipelineOf = (doc: IonDoc, name: string): Part | undefined => doc.pipelines.find((one) => nameOf(one) === name)

/** A link that starts a pipeline, with data or with a model to measure, and has no policy. */
export const isStart = (doc: IonDoc, link: DocLink): boolean => link.dataset !== undefined || measures(pipelineOf(doc, toOf(link)))

/** The name of the model that a link begins at, or of the deployment that it ends at; undefined: it is a pipeline. */
export const modelIn = (from: string) => (from.startsWith(FROM_MODEL) ? from.slice(FROM_MODEL.length) : undefined)
export const deploymentIn = (to: string) => (to.startsWith(TO_DEPLOYMENT) ? to.slice(TO_DEPLOYMENT.length) : undefined)

/** What makes a pipeline run, as a list; the object of earlier documents is read as one. */
export function triggersOf(written: unknown): Part[] {
    if (Array.isArray(written)) {
        return (written as unknown[]).map((one) => (typeof one === 'string' ? { kind: one } : { ...(one as Values) }))
    }
    const old = (written ?? {}) as Values
    return [
        ...(old['manual'] === false ? [{ kind: 'manual', allowed: false }] : []),
        ...(old['new_data'] === true ? [{ kind: 'new-data' }] : []),
        ...(old['schedule'] ? [{ kind: 'schedule', cron: old['schedule'] }] : []),
    ]
}

/** Parts in the shortest form: a name alone, or the object. */
export const shortForm = (items: readonly Part[]): unknown[] => items.map((one) => (Object.keys(one).length === 1 ? one['kind'] : one))

/** With a part set to something else; undefined takes it out. */
export function withKey(values: Values, key: string, value: unknown): Values {
    const next = { ...values, [key]: value }
    if (value === undefined || (typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0)) {
        delete next[key]
    }
    return next
}

export function replaced<T>(list: readonly T[], at: number, value: T): T[] {
    return list.map((one, i) => (i === at ? value : one))
}

function freeName(doc: IonDoc, wanted: string): string {
    const taken = new Set(doc.pipelines.map(nameOf))
    let name = wanted
    for (let i = 2; taken.has(name); i++) {
        name = `${wanted}-${i}`
    }
    return name
}

export function addPipeline(doc: IonDoc, type: string, more: Values = {}): { doc: IonDoc; name: string } {
    const name = freeName(doc, type)
    return { doc: { ...doc, pipelines: [...doc.pipelines, { name, type, ...more }] }, name }
}

/** Links follow the name: those that end at the pipeline, which is written as text, not at a deployment. */
export function renamePipeline(doc: IonDoc, at: number, name: string): IonDoc {
    const old = nameOf(doc.pipelines[at])
    const isOnly = doc.pipelines.filter((one) => nameOf(one) === old).length === 1
    const links = doc.links.map((link) => ({ ...link, ...(link.from === old && { from: name }), ...(link.to === old && { to: name }) }))
    const pipelines = doc.pipelines.map((one) => (isOnly && one['against'] === old ? { ...one, against: name } : one))
    return { ...doc, pipelines: replaced(pipelines, at, { ...pipelines[at], name }), links: isOnly ? links : doc.links }
}

export function removePipeline(doc: IonDoc, name: string): IonDoc {
    return { ...doc, pipelines: doc.pipelines.filter((one) => nameOf(one) !== name), links: doc.links.filter((link) => fromOf(link) !== name && toOf(link) !== name) }
}

/** Why a link cannot be drawn there; undefined: it can. */
export function whyNoLink(doc: IonDoc, from: string, to: string): string | undefined {
    const target = pipelineOf(doc, to)
    const isData = isPreparation(pipelineOf(doc, from))
    if (isData && (target === undefined || isPrediction(target) || from === to)) {
        return 'A data link ends at a pipeline that runs with the dataset: a training, preparation, evaluation or comparison.'
    }
    if (!isData && deploymentIn(to) === undefined && (target === undefined || !(isPrediction(target) || measures(target)))) {
        return 'A link ends at a prediction or a deployment, which the model is for, or at an evaluation or comparison, which measures it.'
    }
    if (doc.links.some((link) => fromOf(link) === from && toOf(link) === to)) {
        return `There is a link from ${from} to ${to} already.`
    }
    return undefined
}

export function addLink(doc: IonDoc, from: string, to: string): IonDoc {
    const [maker, target] = [pipelineOf(doc, from), pipelineOf(doc, to)]
    if (isPreparation(maker)) {
        const dataset = String(maker?.['output'] ?? '')
        // What it makes is what the other end runs with, unless that says otherwise already.
        const pipelines = doc.pipelines.map((one) => (one === target && !one['dataset'] && dataset ? { ...one, dataset } : one))
        return { ...doc, pipelines, links: [...doc.links, { from, to, dataset }] }
    }
    const [model, deployment] = [modelIn(from), deploymentIn(to)]
    const link = { from: model === undefined ? from : { model }, to: deployment === undefined ? to : { deployment } }
    return { ...doc, links: [...doc.links, measures(target) ? link : { ...link, policy: 'manual' }] }
}

// ----------------------------------------------------------------------------------------------------- on the canvas

export interface SketchNode {
    id: string // "training", "model/NAME", "deployment/NAME", "data:faces", "source:entrance", "sink:entrance:0"
    kind: 'training' | 'prediction' | 'preparation' | 'evaluation' | 'comparison' | 'model' | 'deployment' | 'data' | 'source' | 'sink'
    title: string
    text: string
    /** Its place in the document, as the server names it. */
    place: string
    /** What is chosen with it. */
    choice: string
}

export interface SketchEdge {
    from: string
    to: string
    link?: DocLink
    place: string
}

/** What the document draws: pipelines, and what they take and give as pills. */
export function sketchOf(doc: IonDoc): { nodes: SketchNode[]; edges: SketchEdge[] } {
    const nodes = new Map<string, SketchNode>()
    const edges: SketchEdge[] = []
    const pill = (id: string, kind: SketchNode['kind'], title: string, text: string, place: string, choice: string) => {
        const known = nodes.get(id)
        nodes.set(id, known && !known.text.includes(text) ? { ...known, text: `${known.text}, ${text}` } : (known ?? { id, kind, title, text, place, choice }))
    }
    const data = (name: unknown, role: string, owner: string, place: string) => {
        if (typeof name === 'string' && name !== '') {
            pill(`data:${name}`, 'data', name, role, place, owner)
            edges.push({ from: `data:${name}`, to: owner, place })
        }
    }
    doc.pipelines.forEach((pipeline, i) => {
        const [name, place] = [nameOf(pipeline), `$.pipelines[${i}]`]
        const isLearning = isTraining(pipeline)
        const isServing = isPrediction(pipeline)
        const workers = Number(pipeline['workers'] ?? 1)
        const replicas = Number(pipeline['replicas'] ?? 1)
        const text = isPreparation(pipeline)
            ? `makes ${String(pipeline['output'] ?? 'no dataset yet')}`
            : measures(pipeline)
              ? `${pipeline['type'] === 'comparison' ? `against ${typeof pipeline['against'] === 'string' ? pipeline['against'] : 'what serves'} ` : ''}on ${String(pipeline['dataset'] ?? 'no dataset yet')}`
              : isLearning && isProgram(pipeline)
                ? `${String(pipeline['kind'])} · makes ${String(pipeline['registers'] ?? `${String(doc['name'] ?? 'ION')}.${name}`)}`
              : isLearning
                ? `${String(pipeline['model'] ?? 'no model yet')} · ${workers} ${workers === 1 ? 'worker' : 'workers'}`
                : `${replicas} ${replicas === 1 ? 'replica' : 'replicas'} · ${pipeline['gallery'] ? 'recognises people' : 'classifies'}`
        nodes.set(name, { id: name, kind: (TYPES.includes(String(pipeline['type'])) ? pipeline['type'] : 'prediction') as SketchNode['kind'], title: name, text, place, choice: name })
        if (!doc.links.some((link) => toOf(link) === name && link.dataset !== undefined && link.dataset === pipeline['dataset'])) {
            data(pipeline['dataset'], 'dataset', name, `${place}.dataset`)
        }
        const output = pipeline['output']
        if (typeof output === 'string' && output !== '' && !doc.links.some((link) => fromOf(link) === name && link.dataset === output)) {
            pill(`data:${output}`, 'data', output, 'made', `${place}.output`, name)
            edges.push({ from: name, to: `data:${output}`, place: `${place}.output` })
        }
        const gallery = pipeline['gallery'] as Values | undefined
        data(gallery?.['dataset'], 'gallery', name, `${place}.gallery.dataset`)
        data(gallery?.['impostors'], 'impostors', name, `${place}.gallery.impostors`)
        if (isServing && pipeline['source']) {
            pill(`source:${name}`, 'source', kindOf(pipeline['source']) || 'source', 'source', `${place}.source`, name)
            edges.push({ from: `source:${name}`, to: name, place: `${place}.source` })
        }
        for (const [k, sink] of (Array.isArray(pipeline['sinks']) ? (pipeline['sinks'] as unknown[]) : []).entries()) {
            pill(`sink:${name}:${k}`, 'sink', kindOf(sink) || 'sink', 'sink', `${place}.sinks[${k}]`, name)
            edges.push({ from: name, to: `sink:${name}:${k}`, place: `${place}.sinks[${k}]` })
        }
    })
    doc.links.forEach((link, i) => {
        const [from, to] = [fromOf(link), toOf(link)]
        const [model, deployment] = [modelIn(from), deploymentIn(to)]
        if (model !== undefined) {
            pill(from, 'model', model, 'registered model', `$.links[${i}].from`, linkId(link))
        }
        if (deployment !== undefined) {
            pill(to, 'deployment', deployment, 'deployment', `$.links[${i}].to`, linkId(link))
        }
        if (nodes.has(from) && nodes.has(to)) {
            edges.push({ from, to, link, place: `$.links[${i}]` })
        }
    })
    return { nodes: [...nodes.values()], edges }
}

/** Of pipelines, in the order in which the builder offers them. */
export const TYPES = ['training', 'prediction', 'preparation', 'evaluation', 'comparison']

// -------------------------------------------------------------------------------------- fields that no registry lists

/** Fields of a training pipeline (docs/reference/ion-file.md); the kind of job "train" has its parameters. */
const KIND_FIELDS: Option[] = [
    { name: 'kind', type: 'text', default: 'train', doc: 'Kind of its jobs: train is Weir’s own training, another runs a program of yours' },
    { name: 'registers', type: 'text', doc: 'Model whose versions it makes; else ION.PIPELINE' },
]

/** Of a program; its kind of job has its parameters. */
export const PROGRAM_FIELDS: Option[] = [
    ...KIND_FIELDS,
    { name: 'dataset', type: 'text', doc: 'What it reads' },
    { name: 'max_restarts', type: 'integer', default: 0, minimum: 0, maximum: 1000, doc: 'Starts of its job after a failure' },
]

export const TRAINING_FIELDS: Option[] = [
    ...KIND_FIELDS,
    { name: 'dataset', type: 'text', required: true, doc: 'What it learns from' },
    { name: 'model', type: 'text', required: true, doc: 'Built-in model, or the absolute path of a model file' },
    { name: 'workers', type: 'integer', default: 1, minimum: 1, maximum: 1024, doc: 'Data-parallel workers' },
    { name: 'parameter_servers', type: 'integer', default: 0, minimum: 0, maximum: 1024, doc: '0 is all-reduce' },
    { name: 'max_restarts', type: 'integer', default: 3, minimum: 0, maximum: 1000, doc: 'Starts after a failure' },
]

export const PREPARATION_FIELDS: Option[] = [
    { name: 'dataset', type: 'text', doc: 'What it reads' },
    { name: 'output', type: 'text', required: true, doc: 'Dataset whose versions it makes: a folder of yours that tasks may write' },
    { name: 'max_restarts', type: 'integer', default: 0, minimum: 0, maximum: 1000, doc: 'Starts of its job after a failure' },
]

export const EVALUATION_FIELDS: Option[] = [
    { name: 'dataset', type: 'text', required: true, doc: 'Pictures in a folder per class' },
    { name: 'max_restarts', type: 'integer', default: 3, minimum: 0, maximum: 1000, doc: 'Starts of its job after a failure' },
]

export const COMPARISON_FIELDS: Option[] = [...EVALUATION_FIELDS, { name: 'against', type: 'text', required: true, doc: 'Prediction where the other model serves' }]

export const criticalField = (fallback: boolean): Option => ({ name: 'critical', type: 'boolean', default: fallback, doc: 'If it fails, the ION is down; else degraded' })

export const PREDICTION_FIELDS: Option[] = [
    { name: 'replicas', type: 'integer', default: 1, minimum: 1, maximum: 1024, doc: 'Processes' },
    { name: 'gpus', type: 'integer', default: 0, minimum: 0, maximum: 64, doc: 'Accelerators of each process: it computes on the first' },
    { name: 'no_frames_after_s', type: 'integer', default: 300, minimum: 0, maximum: 2592000, doc: 'Seconds without a frame until there is an alert; 0 is never' },
]

export const GALLERY_FIELDS: Option[] = [
    { name: 'dataset', type: 'text', doc: 'A class per person; without one the pipeline classifies' },
    { name: 'impostors', type: 'text', doc: 'People who are neither enrolled nor trained on; they set the threshold' },
    { name: 'false_accept_rate', type: 'number', default: 0.01, minimum: 0, maximum: 1, doc: 'Share of impostors that may be taken for somebody' },
    { name: 'false_deny_rate', type: 'number', default: 0.01, minimum: 0, maximum: 1, doc: 'The same, for one person on the deny list' },
    { name: 'default', type: 'text', default: 'unknown', words: ['allow', 'deny', 'unknown'], doc: 'About a known person who is on no list' },
]

export const LINK_FIELDS: Option[] = [{ name: 'default', type: 'text', doc: 'MODEL@VERSION that serves before a version has passed' }]
