/** Where the nodes of a drawn document stand: where they were put, else where dagre puts them. */
import type { Places } from '../state/draft'
import { TYPES, type SketchEdge, type SketchNode } from '../state/ion_doc'
import type { Box } from './layout_graph'
import type { Dagre } from './library'

const SIZES = { pipeline: { width: 216, height: 76 }, pill: { width: 152, height: 44 } }
const MARGIN = 16
const LINK_GAP = 88 // room for the policies of a link

export const sizeOf = (node: SketchNode) => (TYPES.includes(node.kind) ? SIZES.pipeline : SIZES.pill)

/** Middle and size of each node by its identifier, and the size of all. */
export function placeSketch({ graphlib, layout }: Dagre, nodes: readonly SketchNode[], edges: readonly SketchEdge[], places: Places): { boxes: Map<string, Box>; width: number; height: number } {
    const graph = new graphlib.Graph({ multigraph: true })
    graph.setGraph({ rankdir: 'LR', marginx: MARGIN, marginy: MARGIN + 12, nodesep: 20, ranksep: 28 })
    for (const node of nodes) {
        graph.setNode(node.id, { ...sizeOf(node) })
    }
    edges.forEach((edge, i) => graph.setEdge(edge.from, edge.to, edge.link ? { width: LINK_GAP, height: 60, labelpos: 'c', weight: 3 } : { width: 0, height: 0 }, String(i)))
    layout(graph)
    const boxes = new Map<string, Box>()
    let [width, height] = [0, 0]
    for (const node of nodes) {
        const laid = graph.node(node.id) as Box
        const box = { ...laid, ...places[node.id], ...sizeOf(node) }
        boxes.set(node.id, box)
        width = Math.max(width, box.x + box.width / 2 + MARGIN)
        height = Math.max(height, box.y + box.height / 2 + MARGIN + 24)
    }
    return { boxes, width, height }
}

export interface Point {
    x: number
    y: number
}

/** A curve that leaves to the right and comes in from the left, and its middle. */
export function curve(from: Point, to: Point): { path: string; middle: Point } {
    const reach = Math.max(36, Math.abs(to.x - from.x) / 2)
    return {
        path: `M${from.x},${from.y}C${from.x + reach},${from.y} ${to.x - reach},${to.y} ${to.x},${to.y}`,
        middle: { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 },
    }
}
