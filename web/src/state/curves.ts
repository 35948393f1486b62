/** The history of a metric, thinned by the server to what a chart can show. */
import type { Metric } from '../api'
import { getAll, segment } from './http'

const POINTS = 1000

export function curveOf(run: string, key: string, points = POINTS): Promise<Metric[]> {
    return getAll<Metric>(`/runs/${segment(run)}/metrics`, { key, max_points: points, limit: points })
}

/** Which end of a metric is the good one, as far as its name says; 0: nobody knows. */
export function goodEnd(key: string): 1 | -1 | 0 {
    const last = key.toLowerCase()
    return /loss|err|rmse|mae|mse|perplexity|latency|_ms$|wer/.test(last) ? -1 : /acc|auc|f1|precision|recall|score|r2|iou|map|bleu|tar\b|per_second/.test(last) ? 1 : 0
}

/** What people look at first: figures that have a good end, of data that is not trained with. */
export const interest = (key: string): number => (key.startsWith('system/') ? -1 : Math.abs(goodEnd(key)) * 2 + Number(/val|test|eval/.test(key)))
