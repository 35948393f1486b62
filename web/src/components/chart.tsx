/** Line charts with uPlot, in the page's colours. Redrawn on resize and when the theme changes. */
import { useEffect, useMemo, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import type { MetricPoint } from '../api'
import { short, words } from '../format'
import { shade } from '../state/theme'

const HEIGHT = 190
const COLOURS = ['--series-1', '--series-2', '--series-3', '--series-4', '--series-5', '--series-6']

function css(name: string): string {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim()
}

/** Points of several keys on one x axis: steps in order, null where a key has no value. */
export function align(points: MetricPoint[], keys: string[]): uPlot.AlignedData {
    const steps = [...new Set(points.map((point) => point.step))].sort((a, b) => a - b)
    const place = new Map(steps.map((step, index) => [step, index]))
    const series = keys.map(() => new Array<number | null>(steps.length).fill(null))
    for (const point of points) {
        const row = keys.indexOf(point.key)
        if (row >= 0 && Number.isFinite(point.value)) {
            series[row]![place.get(point.step)!] = point.value
        }
    }
    return [steps, ...series]
}

function options(width: number, keys: string[]): uPlot.Options {
    const muted = css('--muted')
    const grid = css('--grid')
    const font = `11px ${css('--font')}`
    const axis = { stroke: muted, font, grid: { stroke: grid, width: 1 }, ticks: { show: false } }
    return {
        width,
        height: HEIGHT,
        cursor: { points: { size: 7 }, drag: { x: true, y: false } },
        legend: { live: true },
        scales: { x: { time: false } },
        axes: [
            { ...axis, values: (_u, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? tick.toLocaleString('en') : '')), size: 26 },
            { ...axis, values: (_u, ticks) => ticks.map((tick) => short(tick)), size: 52 },
        ],
        series: [
            { label: 'step', value: (_u, value) => (value === null ? '–' : String(value)) },
            ...keys.map((key, i) => ({
                label: words(key),
                stroke: css(COLOURS[i % COLOURS.length]!),
                width: 1.75,
                spanGaps: true,
                points: { show: false },
                value: (_u: uPlot, value: number | null) => short(value),
            })),
        ],
    }
}

export function Chart(props: { title: string; points: MetricPoint[]; keys: string[] }) {
    const host = useRef<HTMLDivElement>(null)
    const plot = useRef<uPlot | null>(null)
    const data = useMemo(() => align(props.points, props.keys), [props.points, props.keys.join()])
    const latest = useRef(data)
    latest.current = data
    const colours = shade.value

    useEffect(() => {
        const element = host.current!
        const chart = new uPlot(options(element.clientWidth || 320, props.keys), latest.current, element)
        plot.current = chart
        const observer = new ResizeObserver(() => {
            if (element.clientWidth > 0) {
                chart.setSize({ width: element.clientWidth, height: HEIGHT })
            }
        })
        observer.observe(element)
        return () => {
            observer.disconnect()
            chart.destroy()
            plot.current = null
        }
    }, [props.keys.join(), colours])

    useEffect(() => {
        plot.current?.setData(data)
    }, [data])

    const last = props.keys.map((key) => {
        const value = props.points.findLast((point) => point.key === key)?.value
        return `${words(key)} ${short(value)}`
    })
    return (
        <figure class="chart">
            <figcaption>{props.title}</figcaption>
            <div ref={host} role="img" aria-label={`${props.title}, last values: ${last.join(', ')}`} />
        </figure>
    )
}
