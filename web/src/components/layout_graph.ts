/** Where the boxes and lines of an ION go: a pure function over dagre. */
import { graphlib, layout } from '@dagrejs/dagre'
import type { Ion, Link, Pipeline } from '../api'

export interface Box {
    x: number
    y: number
    width: number
    height: number
}

export type GraphNode = Box & ({ kind: 'pipeline'; pipeline: Pipeline } | { kind: 'data'; name: string; detail: string })

export interface GraphEdge {
    key: string
    path: string
    link: Link | null // null: data flowing into a pipeline
    to: string
    label: Box | null
}

export interface Layout {
    width: number
    height: number
    nodes: GraphNode[]
    edges: GraphEdge[]
}

const PIPELINE = { width: 240, height: 134 }
const DATA = { width: 136, height: 46 }
const LABEL_WIDTH = 150
const MARGIN = 2

type Node = { kind: 'pipeline'; pipeline: Pipeline } | { kind: 'data'; name: string; detail: string }

function labelHeight(link: Link): number {
    return 54 + 27 * Math.min(2, link.pending_versions?.length ?? 0)
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

function arrange(ion: Ion, direction: 'LR' | 'TB', ranksep: number, withData: boolean): Layout {
    const graph = new graphlib.Graph({ multigraph: true })
    graph.setGraph({ rankdir: direction, marginx: MARGIN, marginy: MARGIN, nodesep: 22, ranksep })
    const what = new Map<string, Node>()
    const put = (id: string, node: Node, size: { width: number; height: number }) => {
        what.set(id, node)
        graph.setNode(id, { ...size })
    }
    const links = new Map<string, Link | null>()
    const names = new Set(ion.pipelines.map((pipeline) => pipeline.name))
    for (const pipeline of ion.pipelines) {
        const id = 'p:' + pipeline.name
        put(id, { kind: 'pipeline', pipeline }, PIPELINE)
        const gallery = pipeline.deployment?.gallery
        const data = gallery?.dataset ?? pipeline.dataset
        if (withData && data) {
            put('d:' + data, { kind: 'data', name: data, detail: pipeline.type === 'training' ? 'dataset' : gallery ? `gallery v${gallery.version}` : 'gallery' }, DATA)
            links.set(`d:${data}>${id}`, null)
            graph.setEdge('d:' + data, id, { width: 0, height: 0 }, `d:${data}>${id}`)
        }
    }
    for (const link of ion.links) {
        if (names.has(link.from) && names.has(link.to)) {
            const key = `${link.from}>${link.to}`
            links.set(key, link)
            graph.setEdge(
                'p:' + link.from,
                'p:' + link.to,
                { width: LABEL_WIDTH, height: labelHeight(link), labelpos: 'c', weight: 3 },
                key,
            )
        }
    }
    layout(graph)
    const size = graph.graph() as { width?: number; height?: number }
    return {
        width: size.width ?? 0,
        height: size.height ?? 0,
        nodes: graph.nodes().map((id) => ({ ...(graph.node(id) as Box), ...what.get(id)! })),
        edges: graph.edges().map((edge) => {
            const placed = graph.edge(edge) as unknown as { points: Point[] } & Box
            const key = edge.name ?? ''
            const link = links.get(key) ?? null
            const label = link ? { x: placed.x, y: placed.y, width: LABEL_WIDTH, height: labelHeight(link) } : null
            return { key, path: smooth(placed.points), link, to: edge.w.slice(2), label }
        }),
    }
}

/** Left to right, as airy as fits, else without the data boxes, else top to bottom. */
export function layoutIon(ion: Ion, width: number): Layout {
    const tries: [direction: 'LR' | 'TB', ranksep: number, withData: boolean][] = [
        ['LR', 90, true],
        ['LR', 64, true],
        ['LR', 36, true],
        ['LR', 36, false],
        ['TB', 26, true],
        ['TB', 26, false],
    ]
    let result: Layout | undefined
    for (const [direction, ranksep, withData] of tries) {
        result = arrange(ion, direction, ranksep, withData)
        if (result.width <= width) {
            break
        }
    }
    return result!
}
