/** Where the boxes and lines of an ION go: a pure function over dagre. */
import type { Ion, Link, Pipeline } from '../api'
import { deploymentIn, modelIn } from '../state/ion_doc'
import type { Dagre } from './library'

export interface Box {
    x: number
    y: number
    width: number
    height: number
}

export type GraphNode = Box & ({ kind: 'pipeline'; pipeline: Pipeline } | DataNode)

export interface DataNode {
    /** A dataset; a registered model that a link begins at; a deployment that it ends at; where frames come from, decisions go. */
    kind: 'data' | 'model' | 'deployment' | 'source' | 'sink'
    name: string
    roles: string[] // "dataset", "gallery v7", "impostors": what it is to the pipelines that use it
}

export interface GraphEdge {
    key: string
    path: string
    link: Link | null // null: data flowing into a pipeline
    to: string
    /** Pipeline that data flows into, or out of. */
    owner: string
    label: Box | null
}

export interface Layout {
    width: number
    height: number
    nodes: GraphNode[]
    edges: GraphEdge[]
    direction: 'LR' | 'TB'
}

const PIPELINE_HEIGHT = 144
const REASON_HEIGHT = 44 // two lines that say why it failed
const DATA_HEIGHT = 46
const LABEL_WIDTH = 160 // of a link, at least
const MARGIN = 2

type Node = { kind: 'pipeline'; pipeline: Pipeline } | DataNode

const LABEL_HEIGHT = 164 // the line passes through its middle
const POLICY = { width: 88, height: 46 } // of a chain: beside each other, or below each other from top to bottom

/** A link's room: its versions above, its chain of policies on the line. */
function labelSize(link: Link, direction: 'LR' | 'TB'): { width: number; height: number } {
    const n = Math.max(1, link.policies.length)
    return direction === 'LR' ? { width: Math.max(LABEL_WIDTH, n * POLICY.width), height: LABEL_HEIGHT } : { width: 248, height: n === 1 ? LABEL_HEIGHT : 72 + n * POLICY.height }
}

/** Where frames come from and where decisions go, as the document says. */
function endsOf(ion: Ion, pipeline: Pipeline): { source: DataNode | undefined; sinks: DataNode[] } {
    const list = ((ion.document ?? {}) as { pipelines?: { name?: string; sinks?: { kind?: string; path?: string }[] }[] }).pipelines ?? []
    const written = list.find((one) => one.name === pipeline.name)
    const source = pipeline.source as { kind?: string; path?: string; listen?: string } | null | undefined
    const lastPart = (path: string | undefined) => path?.split('/').filter(Boolean).at(-1)
    return {
        source: source?.kind ? { kind: 'source', name: lastPart(source.path) ?? source.kind, roles: [`${source.kind} source`] } : undefined,
        sinks: (written?.sinks ?? []).map((one) => ({ kind: 'sink', name: lastPart(one.path) ?? one.kind ?? 'sink', roles: [`${one.kind ?? ''} sink`] })),
    }
}

/** Why a deployment failed, which the box of its pipeline shows; what serves has nothing to explain. */
export function reasonOf(pipeline: Pipeline): string {
    return pipeline.state === 'SERVING' ? '' : (pipeline.state_reason ?? '')
}

/** The datasets that flow into a pipeline, and as what. */
function dataOf(pipeline: Pipeline): { name: string; role: string }[] {
    const gallery = pipeline.deployment?.gallery
    const main = gallery?.dataset ?? pipeline.dataset
    const role = pipeline.type !== 'prediction' ? 'dataset' : gallery ? `gallery v${gallery.version}` : 'gallery'
    return [
        ...(main ? [{ name: main, role }] : []),
        ...(pipeline.impostors ? [{ name: pipeline.impostors, role: 'impostors' }] : []),
    ]
}

type Point = { x: number; y: number }

/** Through the first and last point, and smoothly past those between. */
function smooth(points: Point[]): string {
    const [first, ...rest] = points
    if (first === undefined) {
        return ''
    }
    let path = `M${round(first)}`
    if (rest.length === 1) {
        return `${path}L${round(rest[0]!)}`
    }
    for (let i = 0; i < rest.length - 1; i++) {
        const control = rest[i]!
        const next = rest[i + 1]!
        const isLast = i === rest.length - 2
        const end = isLast ? next : { x: (control.x + next.x) / 2, y: (control.y + next.y) / 2 }
        path += `Q${round(control)} ${round(end)}`
    }
    return path
}

function round(point: Point): string {
    return `${point.x.toFixed(1)},${point.y.toFixed(1)}`
}

const CORNER = 24 // a line meets a box that far from its corners

/** Where a line to the label leaves a box: on its right (1) or left (-1), as level with the label as its height allows. */
function sideOf(box: Box, side: 1 | -1, label: Box): Point {
    const reach = box.height / 2 - CORNER
    return { x: box.x + (side * box.width) / 2, y: Math.min(box.y + reach, Math.max(box.y - reach, label.y)) }
}

/** Level through the label, so that the line crosses none of its words. */
function throughLabel(start: Point, end: Point, label: Box): string {
    const into = { x: label.x - label.width / 2, y: label.y }
    const out = { x: label.x + label.width / 2, y: label.y }
    const bend = (from: Point, to: Point) => {
        const middle = (from.x + to.x) / 2
        return `C${round({ x: middle, y: from.y })} ${round({ x: middle, y: to.y })} ${round(to)}`
    }
    return `M${round(start)}${bend(start, into)}L${round(out)}${bend(out, end)}`
}

type Arranged = Pick<Layout, 'direction' | 'nodes'> & { edges: (GraphEdge & { points: Point[] })[] }

/** Moved and sized so that all of it is inside: dagre leaves out what lies on the way of its lines. */
function whole({ direction, nodes, edges }: Arranged): Layout {
    const labels = edges.flatMap((edge) => (edge.label ? [edge.label] : []))
    const reach = [...[...nodes, ...labels].map((box) => ({ x: box.x, y: box.y, dx: box.width / 2, dy: box.height / 2 })), ...edges.flatMap((edge) => edge.points.map((at) => ({ ...at, dx: 0, dy: 0 })))]
    if (reach.length === 0) {
        return { direction, width: 0, height: 0, nodes, edges }
    }
    const left = Math.min(...reach.map((one) => one.x - one.dx)) - MARGIN
    const top = Math.min(...reach.map((one) => one.y - one.dy)) - MARGIN
    const moved = <T extends Point>(one: T): T => ({ ...one, x: one.x - left, y: one.y - top })
    return {
        direction,
        width: Math.max(...reach.map((one) => one.x + one.dx)) + MARGIN - left,
        height: Math.max(...reach.map((one) => one.y + one.dy)) + MARGIN - top,
        nodes: nodes.map(moved),
        edges: edges.map(({ points: _points, path, label, ...edge }) => ({ ...edge, label: label && moved(label), path: path.replace(/(-?[\d.]+),(-?[\d.]+)/g, (_all, x, y) => round({ x: Number(x) - left, y: Number(y) - top })) })),
    }
}

interface Style {
    direction: 'LR' | 'TB'
    pipeline: number // width of its box
    data: number // width of a pill
    ranksep: number
    withData: boolean
}

function arrange({ graphlib, layout }: Dagre, ion: Ion, { direction, pipeline: pipelineWidth, data, ranksep, withData }: Style): Layout {
    const graph = new graphlib.Graph({ multigraph: true })
    graph.setGraph({ rankdir: direction, marginx: MARGIN, marginy: MARGIN, nodesep: 22, ranksep })
    const what = new Map<string, Node>()
    const put = (id: string, node: Node, size: { width: number; height: number }) => {
        what.set(id, node)
        graph.setNode(id, { ...size })
    }
    const links = new Map<string, Link | null>()
    const owners = new Map<string, string>()
    const pill = { width: data, height: DATA_HEIGHT }
    const flow = (from: string, to: string, owner: string) => {
        links.set(`${from}>${to}`, null)
        owners.set(`${from}>${to}`, owner)
        graph.setEdge(from, to, { width: 0, height: 0 }, `${from}>${to}`)
    }
    const names = new Set(ion.pipelines.map((pipeline) => pipeline.name))
    for (const pipeline of ion.pipelines) {
        const id = 'p:' + pipeline.name
        put(id, { kind: 'pipeline', pipeline }, { width: pipelineWidth, height: PIPELINE_HEIGHT + (reasonOf(pipeline) ? REASON_HEIGHT : 0) })
        for (const { name, role } of withData ? dataOf(pipeline) : []) {
            const known = what.get('d:' + name)
            put('d:' + name, { kind: 'data', name, roles: [...(known?.kind === 'data' ? known.roles : []), role] }, pill)
            flow('d:' + name, id, pipeline.name)
        }
        if (withData && pipeline.output) {
            const known = what.get('d:' + pipeline.output)
            put('d:' + pipeline.output, { kind: 'data', name: pipeline.output, roles: known?.kind === 'data' ? known.roles : ['made here'] }, pill)
            flow(id, 'd:' + pipeline.output, pipeline.name)
        }
        const ends = endsOf(ion, pipeline)
        if (withData && ends.source) {
            put('s:' + pipeline.name, ends.source, pill)
            flow('s:' + pipeline.name, id, pipeline.name)
        }
        for (const [i, sink] of (withData ? ends.sinks : []).entries()) {
            put(`k:${pipeline.name}:${i}`, sink, pill)
            flow(id, `k:${pipeline.name}:${i}`, pipeline.name)
        }
    }
    const starts = ion.starts ?? []
    for (const { from, to } of [...ion.links, ...starts]) {
        const [model, deployment] = [modelIn(from), deploymentIn(to)]
        if (model !== undefined) {
            put('p:' + from, { kind: 'model', name: model, roles: ['registered model'] }, pill)
            names.add(from)
        }
        if (deployment !== undefined) {
            put('p:' + to, { kind: 'deployment', name: deployment, roles: ['deployment'] }, pill)
            names.add(to)
        }
    }
    for (const start of starts.filter((one) => names.has(one.from) && names.has(one.to) && !(withData && one.dataset))) {
        flow('p:' + start.from, 'p:' + start.to, start.to) // data that has a pill flows through it
    }
    for (const link of ion.links) {
        if (names.has(link.from) && names.has(link.to)) {
            const key = `${link.from}>${link.to}`
            links.set(key, link)
            graph.setEdge(
                'p:' + link.from,
                'p:' + link.to,
                { ...labelSize(link, direction), labelpos: 'c', weight: 3 },
                key,
            )
        }
    }
    layout(graph)
    return whole({
        direction,
        nodes: graph.nodes().map((id) => ({ ...(graph.node(id) as Box), ...what.get(id)! })),
        edges: graph.edges().map((edge) => {
            const placed = graph.edge(edge) as unknown as { points: Point[] } & Box
            const key = edge.name ?? ''
            const link = links.get(key) ?? null
            const label = link ? { x: placed.x, y: placed.y, ...labelSize(link, direction) } : null
            const [from, to] = [graph.node(edge.v) as Box, graph.node(edge.w) as Box]
            const path = label && direction === 'LR' ? throughLabel(sideOf(from, 1, label), sideOf(to, -1, label), label) : smooth(placed.points)
            return { key, path, points: placed.points, link, to: edge.w.slice(2), owner: owners.get(key) ?? edge.w.slice(2), label }
        }),
    })
}

/** Left to right, as airy as fits, else without the data boxes, else top to bottom. */
export function layoutIon(dagre: Dagre, ion: Ion, width: number): Layout {
    const tries: Style[] = [
        { direction: 'LR', pipeline: 320, data: 168, ranksep: 90, withData: true },
        { direction: 'LR', pipeline: 280, data: 168, ranksep: 64, withData: true },
        { direction: 'LR', pipeline: 240, data: 168, ranksep: 36, withData: true },
        { direction: 'LR', pipeline: 224, data: 140, ranksep: 24, withData: true },
        { direction: 'LR', pipeline: 240, data: 168, ranksep: 36, withData: false },
        { direction: 'TB', pipeline: 260, data: 150, ranksep: 26, withData: true },
        { direction: 'TB', pipeline: 260, data: 150, ranksep: 26, withData: false },
    ]
    let result: Layout | undefined
    for (const style of tries) {
        result = arrange(dagre, ion, style)
        if (result.width <= width) {
            break
        }
    }
    return result!
}
