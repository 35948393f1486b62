/**
 * The canvas of the builder: nodes are dragged, links are drawn from a node's port to the pipeline that the model is for.
 * By keyboard: Tab goes from node to node, arrows move one, Enter opens it, L begins a link that Enter on another ends.
 */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Draft } from '../state/draft'
import { addLink, chainOf, isStart, kindOf, linkId, sketchOf, whyNoLink, type SketchEdge, type SketchNode } from '../state/ion_doc'
import { words } from '../format'
import { PolicyDiamond } from './diamond'
import { Icon, type IconName } from './icon'
import type { Box } from './layout_graph'
import { WithLibrary, type Dagre } from './library'
import { curve, placeSketch, type Point } from './layout_sketch'
import { Glyph } from './state'
import { toast } from './toast'

const ICONS: Record<SketchNode['kind'], IconName> = {
    training: 'runs', prediction: 'camera', preparation: 'data', evaluation: 'check', comparison: 'check', model: 'models', deployment: 'bolt', data: 'data', source: 'camera', sink: 'sink',
}
const ARROWS: Record<string, Point> = { ArrowLeft: { x: -20, y: 0 }, ArrowRight: { x: 20, y: 0 }, ArrowUp: { x: 0, y: -20 }, ArrowDown: { x: 0, y: 20 } }
const DRAG_PX = 4 // less is a click
const ZOOMS = [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5]
const MIN_HEIGHT = 360
const FIT_LEAST = 0.5 // smaller could not be read: it scrolls

interface Drag extends Point {
    id: string
    from: Point // the pointer's, where it began
    begin: Point // the node's
    isMoved: boolean
}

interface Props {
    draft: Draft
    chosen: string
    /** Node or link that the server's sentence is about. */
    wrong: string | undefined
    isReadOnly: boolean
    onChoose: (choice: string) => void
    onDelete: (choice: string) => void
}

export const BuilderCanvas = (props: Props) => <WithLibrary name="dagre">{(dagre) => <Canvas {...props} dagre={dagre} />}</WithLibrary>

function Canvas({ dagre, ...props }: Props & { dagre: Dagre }) {
    const { draft, chosen, isReadOnly } = props
    const [drag, setDrag] = useState<Drag | null>(null)
    const [linkFrom, setLinkFrom] = useState<{ id: string; at: Point | null } | null>(null)
    const [asked, setAsked] = useState(0) // the zoom that a person chose; 0: what fits
    const [room, setRoom] = useState(0)
    const plane = useRef<HTMLDivElement>(null)
    const host = useRef<HTMLDivElement>(null)
    const { nodes, edges } = useMemo(() => sketchOf(draft.doc), [draft.doc])
    const places = drag?.isMoved ? { ...draft.places, [drag.id]: { x: drag.x, y: drag.y } } : draft.places
    const { boxes, width, height } = useMemo(() => placeSketch(dagre, nodes, edges, places), [dagre, nodes, edges, places])

    const zoom = asked || Math.max(FIT_LEAST, Math.min(1, Math.floor((100 * room) / width) / 100))
    useEffect(() => {
        const observer = new ResizeObserver(([entry]) => setRoom(Math.floor(entry!.contentRect.width)))
        observer.observe(host.current!)
        return () => observer.disconnect()
    }, [])

    const pointOf = (event: PointerEvent): Point => {
        const box = plane.current!.getBoundingClientRect()
        return { x: (event.clientX - box.left) / zoom, y: (event.clientY - box.top) / zoom }
    }
    const connect = (from: string, to: string) => {
        setLinkFrom(null)
        const why = whyNoLink(draft.doc, from, to)
        if (why !== undefined) {
            toast(why, 'bad')
            return
        }
        draft.change({ doc: addLink(draft.doc, from, to) })
        props.onChoose(`${from}>${to}`)
    }
    const move = (id: string, to: Point) => draft.change({ places: { ...draft.places, [id]: { x: Math.max(40, Math.round(to.x / 4) * 4), y: Math.max(40, Math.round(to.y / 4) * 4) } } })
    const onMove = (event: PointerEvent) => {
        const at = pointOf(event)
        if (linkFrom?.at) {
            setLinkFrom({ ...linkFrom, at })
        } else if (drag) {
            const isMoved = drag.isMoved || Math.hypot(at.x - drag.from.x, at.y - drag.from.y) > DRAG_PX
            setDrag({ ...drag, isMoved, x: Math.max(40, drag.begin.x + at.x - drag.from.x), y: Math.max(40, drag.begin.y + at.y - drag.from.y) })
        }
    }
    const onUp = (event: PointerEvent) => {
        if (linkFrom?.at) {
            const target = document.elementFromPoint(event.clientX, event.clientY)?.closest<HTMLElement>('[data-node]')?.dataset['node']
            if (target !== undefined && target !== linkFrom.id) {
                connect(linkFrom.id, target)
            } else {
                setLinkFrom(null)
            }
        } else if (drag) {
            setDrag(null)
            if (drag.isMoved) {
                move(drag.id, drag)
            }
        }
    }
    const onKey = (event: KeyboardEvent, node: SketchNode) => {
        const arrow = ARROWS[event.key]
        const box = boxes.get(node.id)!
        if (isReadOnly || event.ctrlKey || event.metaKey || event.altKey) {
            return
        }
        if (arrow) {
            move(node.id, { x: box.x + arrow.x, y: box.y + arrow.y })
        } else if (event.key === 'Delete' || event.key === 'Backspace') {
            props.onDelete(node.choice)
        } else if (event.key.toLowerCase() === 'l' && canLinkFrom(node)) {
            setLinkFrom({ id: node.id, at: null })
        } else if (event.key === 'Escape' && linkFrom) {
            setLinkFrom(null)
        } else if (event.key === 'Enter' && linkFrom) {
            connect(linkFrom.id, node.id)
        } else {
            return
        }
        event.preventDefault()
        event.stopPropagation()
    }
    const canLinkFrom = (node: SketchNode) => node.kind === 'training' || node.kind === 'model' || node.kind === 'preparation'
    const zoomBy = (by: number) => setAsked((by > 0 ? ZOOMS.find((one) => one > zoom) : ZOOMS.filter((one) => one < zoom).at(-1)) ?? zoom)

    const nodeAt = (node: SketchNode, box: Box) => {
        const isWrong = props.wrong !== undefined && (props.wrong === node.choice || props.wrong === node.id)
        const isTarget = linkFrom !== null && whyNoLink(draft.doc, linkFrom.id, node.id) === undefined
        return (
            <div
                key={node.id}
                class={`sketch-node ${node.kind} ${chosen === node.choice ? 'is-chosen' : ''} ${isWrong ? 'is-wrong' : ''} ${isTarget ? 'is-target' : ''}`}
                style={{ left: `${box.x - box.width / 2}px`, top: `${box.y - box.height / 2}px`, width: `${box.width}px`, height: `${box.height}px` }}
                data-node={node.id}
            >
                <button
                    type="button"
                    class="sketch-body"
                    aria-pressed={chosen === node.choice}
                    onPointerDown={(event) => {
                        if (!isReadOnly && event.button === 0 && event.pointerType !== 'touch') {
                            setDrag({ id: node.id, from: pointOf(event), begin: box, x: box.x, y: box.y, isMoved: false })
                        }
                    }}
                    onClick={() => (linkFrom ? connect(linkFrom.id, node.id) : props.onChoose(node.choice))}
                    onKeyDown={(event) => onKey(event, node)}
                >
                    <Icon name={ICONS[node.kind]} />
                    <span>
                        <b>{node.title || 'without a name'}</b>
                        <small>{node.text}</small>
                    </span>
                    {isWrong && (
                        <span class="state tone-bad">
                            <Glyph tone="bad" />
                            <span class="hidden">has an error</span>
                        </span>
                    )}
                </button>
                {canLinkFrom(node) && !isReadOnly && (
                    <button
                        type="button"
                        class="port"
                        aria-label={`Draw a link from ${node.title}`}
                        title="Draw a link: drag it to where it leads"
                        onPointerDown={(event) => {
                            event.stopPropagation()
                            if (event.button === 0) {
                                setLinkFrom({ id: node.id, at: pointOf(event) })
                            }
                        }}
                        onClick={(event) => event.detail === 0 && setLinkFrom({ id: node.id, at: null })}
                    />
                )}
            </div>
        )
    }

    const ends = (edge: SketchEdge) => {
        const [from, to] = [boxes.get(edge.from)!, boxes.get(edge.to)!]
        return curve({ x: from.x + from.width / 2, y: from.y }, { x: to.x - to.width / 2, y: to.y })
    }
    const drawn = linkFrom?.at && boxes.get(linkFrom.id)
    return (
        <div class="sketch">
            <div class="sketch-tools">
                <span class="small muted grow" role="status">
                    {linkFrom ? `A link from ${linkFrom.id}: choose what it leads to, or Esc.` : draft.savedAt > 0 && draft.base > 0 ? `draft on revision ${draft.base}, kept in this browser` : draft.base > 0 ? `as revision ${draft.base}` : draft.savedAt > 0 ? 'draft of a new ION, kept in this browser' : 'a new ION'}
                </span>
                {!isReadOnly && (
                    <>
                        <button type="button" class="button small" disabled={!draft.canUndo} onClick={draft.undo} aria-label="Undo" title="Undo (Ctrl Z)">
                            <Icon name="undo" />
                        </button>
                        <button type="button" class="button small" disabled={Object.keys(draft.places).length === 0} onClick={() => draft.change({ places: {} })}>
                            Tidy
                        </button>
                    </>
                )}
                <button type="button" class="button small" onClick={() => setAsked(0)}>
                    Fit
                </button>
                <button type="button" class="button small" onClick={() => zoomBy(1)} aria-label="Larger">
                    +
                </button>
                <button type="button" class="button small" onClick={() => zoomBy(-1)} aria-label="Smaller">
                    −
                </button>
            </div>
            <div class="sketch-scroll" ref={host} role="group" aria-label="Pipelines and links as drawn" tabIndex={0}>
                <div style={{ width: `${width * zoom}px`, height: `${Math.max(MIN_HEIGHT, height * zoom)}px` }}>
                    <div class="sketch-plane" ref={plane} style={{ width: `${width}px`, height: `${height}px`, transform: `scale(${zoom})` }} onPointerMove={onMove} onPointerUp={onUp} onPointerLeave={() => setDrag(null)}>
                        <svg width={width} height={height} aria-hidden="true">
                            <defs>
                                {['link', 'flow'].map((kind) => (
                                    <marker key={kind} id={`sketch-${kind}`} class={`arrow ${kind}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">
                                        <path d="M0 0L8 4L0 8z" />
                                    </marker>
                                ))}
                            </defs>
                            {edges.map((edge, i) => (
                                <path key={i} class={`edge ${edge.link ? 'link' : ''}`} d={ends(edge).path} marker-end={`url(#sketch-${edge.link ? 'link' : 'flow'})`} />
                            ))}
                            {drawn && linkFrom.at && <path class="edge link drawn" d={curve({ x: drawn.x + drawn.width / 2, y: drawn.y }, linkFrom.at).path} />}
                        </svg>
                        {nodes.map((node) => nodeAt(node, boxes.get(node.id)!))}
                        {edges.map((edge) => {
                            if (!edge.link) {
                                return null
                            }
                            const [id, isBare, { middle }] = [linkId(edge.link), isStart(draft.doc, edge.link), ends(edge)]
                            const chain = isBare ? [] : chainOf(edge.link)
                            const carried = isBare ? (edge.link.dataset === undefined ? 'to measure' : `data ${edge.link.dataset}`) : chain.map((one) => words(kindOf(one))).join(' → ')
                            return (
                                <button
                                    key={edge.place}
                                    type="button"
                                    class={`sketch-link ${chosen === id ? 'is-chosen' : ''} ${props.wrong === id ? 'is-wrong' : ''}`}
                                    style={{ left: `${middle.x}px`, top: `${middle.y}px` }}
                                    data-link={id}
                                    aria-pressed={chosen === id}
                                    aria-label={`Link from ${edge.from} to ${edge.to}: ${carried}`}
                                    onClick={() => props.onChoose(id)}
                                    onKeyDown={(event) => {
                                        if (!isReadOnly && (event.key === 'Delete' || event.key === 'Backspace')) {
                                            event.preventDefault()
                                            props.onDelete(id)
                                        }
                                    }}
                                >
                                    {chain.map((one, i) => (
                                        <PolicyDiamond key={i} policy={kindOf(one)} tone={props.wrong === id ? 'bad' : 'plain'} />
                                    ))}
                                    <small>{carried}</small>
                                </button>
                            )
                        })}
                    </div>
                </div>
            </div>
            <p class="sketch-foot small muted only-desk">Drag a node to move it, and its port to draw a link. By keyboard: Tab, arrows move, Enter opens, L links, Del deletes, Ctrl Z takes back.</p>
        </div>
    )
}
