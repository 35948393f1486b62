/** Devices as tiles, and as a heat map where there are too many: who holds them, how busy, how warm, how full. */
import { useEffect, useRef } from 'preact/hooks'
import type { Device } from '../api'
import { bytes, counted, NONE, percent } from '../format'
import { holdersOf, numberOf, shareOf } from '../state/devices'
import { ownerClass } from '../state/project'
import { go, href } from '../state/route'
import { nodes } from '../state/store'
import { shade } from '../state/theme'

export const COLOURS = ['owner', 'use', 'heat', 'memory'] as const
export type Colour = (typeof COLOURS)[number]

const HOT_C = 84
const COLD_C = 30

/** What of it the colour tells, from 0 to 1; undefined: not known. */
export function figureOf(device: Device, colour: Colour): number | undefined {
    if (colour === 'use') {
        return device.utilisation_pct === null ? undefined : device.utilisation_pct / 100
    }
    if (colour === 'heat') {
        return device.temperature_c === null ? undefined : Math.min(1, Math.max(0, (device.temperature_c - COLD_C) / (HOT_C - COLD_C)))
    }
    if (colour === 'memory') {
        return device.memory_used_bytes < 0 || device.memory_bytes <= 0 ? undefined : device.memory_used_bytes / device.memory_bytes
    }
    return shareOf(device)
}

const level = (figure: number | undefined) => (figure === undefined ? 0 : Math.min(5, Math.floor(figure * 5.999)))

function ownerOf(device: Device): string | undefined {
    return holdersOf(device)[0]?.job?.project ?? undefined
}

function wordsOf(device: Device): string {
    const holders = holdersOf(device)
    const who = holders.map(({ name, job }) => (job ? `${name} of ${job.project}` : `${name}, of another project`)).join(', ')
    return device.state !== 'ok' ? `out: ${device.reason ?? device.state}` : who ? `held by ${who}` : 'free'
}

function Holder({ device }: { device: Device }) {
    const holders = holdersOf(device)
    if (device.state !== 'ok') {
        return (
            <span class="small clip tone-bad-text" title={device.reason ?? undefined}>
                {device.reason ?? device.state}
            </span>
        )
    }
    if (holders.length === 0) {
        const isDraining = nodes.data.value?.find((one) => one.name === device.node)?.is_draining
        return <span class="small muted">{isDraining ? 'empty, drains' : 'free'}</span>
    }
    const [{ name, job }] = holders as [(typeof holders)[0]]
    return (
        <span class="small clip" title={wordsOf(device)}>
            {job ? <a href={href('jobs', { job: job.id })}>{name}</a> : name}
            {holders.length > 1 && ` and ${holders.length - 1} more`}
        </span>
    )
}

export function DeviceTile({ device, colour }: { device: Device; colour: Colour }) {
    const share = shareOf(device)
    const owner = colour === 'owner' ? ownerClass(ownerOf(device)) : `heat-${level(figureOf(device, colour))}`
    const isFree = device.state === 'ok' && share === 0
    return (
        <li class={`tile ${device.state !== 'ok' ? 'out' : isFree && colour === 'owner' ? 'free' : owner}`} data-device={device.name} title={`${device.model ?? device.kind}: ${wordsOf(device)}`}>
            <span class="t">
                <b>{numberOf(device)}</b>
                <span class="clip">{device.profile ?? (share > 0 && share < 1 ? `${percent(share, 0)} given` : (ownerOf(device) ?? ''))}</span>
            </span>
            <Holder device={device} />
            <span class="bar thin">
                <i style={{ width: `${(figureOf(device, colour === 'owner' ? 'use' : colour) ?? share) * 100}%` }} />
            </span>
            <span class="t muted">
                <span>{device.utilisation_pct === null ? bytes(device.memory_bytes) : `${Math.round(device.utilisation_pct)} %`}</span>
                <span class={(device.temperature_c ?? 0) >= HOT_C ? 'tone-warn-text' : ''}>{device.temperature_c === null ? '' : `${Math.round(device.temperature_c)} °C`}</span>
            </span>
        </li>
    )
}

export function DeviceTiles({ node, items, colour }: { node: string; items: readonly Device[]; colour: Colour }) {
    return (
        <ul class="tiles" aria-label={`Accelerators of ${node}`}>
            {items.map((one) => (
                <DeviceTile key={one.name} device={one} colour={colour} />
            ))}
        </ul>
    )
}

/* ---- the heat map: one canvas, whatever the number of nodes ------------------------------------------------------- */

const CELL_PX = 10
const GAP_PX = 2
const ROW_PX = 14

export interface HeatRow {
    name: string
    state: string // of the node
    devices: readonly Device[]
}

function tokens(names: readonly string[]): string[] {
    const style = getComputedStyle(document.documentElement)
    return names.map((name) => style.getPropertyValue(name).trim())
}

/** Columns of nodes, each a row of its devices; a click opens the node. */
export function HeatMap({ rows, colour, chosen }: { rows: readonly HeatRow[]; colour: Colour; chosen: string | undefined }) {
    const canvas = useRef<HTMLCanvasElement>(null)
    const tip = useRef<HTMLParagraphElement>(null)
    const widest = Math.max(1, ...rows.map((row) => row.devices.length))
    const columnPx = widest * (CELL_PX + GAP_PX) + 12
    const placeOf = useRef<(x: number, y: number) => number>(() => -1)
    useEffect(() => {
        const draw = () => {
            const element = canvas.current
            const host = element?.parentElement
            if (!element || !host) {
                return
            }
            const columns = Math.max(1, Math.floor(host.clientWidth / columnPx))
            const perColumn = Math.ceil(rows.length / columns)
            const scale = window.devicePixelRatio
            element.width = host.clientWidth * scale
            element.height = Math.max(1, perColumn) * ROW_PX * scale
            element.style.height = `${Math.max(1, perColumn) * ROW_PX}px`
            placeOf.current = (x, y) => Math.floor(x / columnPx) * perColumn + Math.floor(y / ROW_PX)
            const context = element.getContext('2d')!
            const heat = tokens(['--heat-0', '--heat-1', '--heat-2', '--heat-3', '--heat-4', '--heat-5'])
            const own = tokens(['--own-1', '--own-2', '--own-3', '--own-4'])
            const [bad, free, accent] = tokens(['--bad', '--line-strong', '--accent']) as [string, string, string]
            context.scale(scale, scale)
            rows.forEach((row, i) => {
                const left = Math.floor(i / perColumn) * columnPx
                const top = (i % perColumn) * ROW_PX
                if (row.name === chosen) {
                    context.strokeStyle = accent
                    context.strokeRect(left + 0.5, top + 0.5, columnPx - 8, ROW_PX - 2)
                }
                const cells = row.devices.length > 0 ? row.devices : [undefined]
                cells.forEach((device, k) => {
                    const owner = device && ownerClass(ownerOf(device))
                    const isOut = row.state === 'lost' || row.state === 'silent' || (device !== undefined && device.state !== 'ok')
                    context.fillStyle = isOut
                        ? bad
                        : colour === 'owner'
                          ? owner
                              ? own[Number(owner.slice(1)) - 1]!
                              : free
                          : heat[device ? level(figureOf(device, colour)) : 0]!
                    context.fillRect(left + 2 + k * (CELL_PX + GAP_PX), top + 2, CELL_PX, CELL_PX)
                })
            })
        }
        draw()
        window.addEventListener('resize', draw)
        return () => window.removeEventListener('resize', draw)
    }, [rows, colour, chosen, shade.value])
    const rowAt = (event: MouseEvent) => rows[placeOf.current(event.offsetX, event.offsetY)]
    return (
        <div class="heat-map">
            <canvas
                ref={canvas}
                role="img"
                aria-label={`${counted(rows.length, 'node')} with ${counted(rows.reduce((n, row) => n + row.devices.length, 0), 'accelerator')}, by ${colour}; the table has them as text`}
                onMouseMove={(event) => {
                    const row = rowAt(event)
                    tip.current!.textContent = row ? `${row.name}: ${row.state}, ${counted(row.devices.length, 'accelerator')}, ${row.devices.filter((one) => one.used_milli > 0).length} held` : NONE
                }}
                onClick={(event) => {
                    const row = rowAt(event)
                    if (row) {
                        go(href(['nodes', row.name], { view: 'heat' }))
                    }
                }}
            />
            <p ref={tip} class="small muted" aria-live="off">
                Point at a node for its name; a click opens it.
            </p>
        </div>
    )
}
