/** A chart of uPlot in an element: fetched when the first is drawn, redrawn with the element's width and the theme. */
import { useEffect, useRef } from 'preact/hooks'
import type uPlot from 'uplot'
import { shade } from '../state/theme'
import { fetchPlot } from './library'

export function css(name: string): string {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim()
}

/** Around a single sample: a minute on an axis of seconds or of milliseconds, or a step. */
export const ALONE = { seconds: 60, ms: 60_000, steps: 1 }

/** From the first sample to the last; one that is alone stands in the middle. uPlot would go years from it. */
export const spanOf = (alone: number): uPlot.Range.Function => (_plot, from, to) => (from === null || to === null ? [0, alone] : from === to ? [from - alone, to + alone] : [from, to])

/** A value without another beside it is drawn by no line: as a point. */
export const loneValue: uPlot.Series.Points.Show = (plot, series) => (plot.data[series] as ArrayLike<number | null>).length < 2 || [...plot.data[series]!].filter((value) => typeof value === 'number').length === 1

/** What to draw in: made again when `shape` changes, its figures whenever `data` does. */
export function usePlot(height: number, data: uPlot.AlignedData, shape: string, options: (width: number) => uPlot.Options) {
    const host = useRef<HTMLDivElement>(null)
    const plot = useRef<uPlot | null>(null)
    const latest = useRef({ data, options })
    latest.current = { data, options }
    useEffect(() => {
        const element = host.current!
        const observer = new ResizeObserver(() => element.clientWidth > 0 && plot.current?.setSize({ width: element.clientWidth, height }))
        let isOver = false
        const draw = ({ default: Plot }: typeof import('../plot')) => {
            if (!isOver) {
                plot.current = new Plot(latest.current.options(element.clientWidth || 320), latest.current.data, element)
                observer.observe(element)
            }
        }
        fetchPlot().then(draw, () => isOver || (element.textContent = 'The chart could not be fetched: its table has the figures.'))
        return () => {
            isOver = true
            observer.disconnect()
            plot.current?.destroy()
            plot.current = null
        }
    }, [shape, shade.value])
    useEffect(() => plot.current?.setData(data), [data])
    return host
}
