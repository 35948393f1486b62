/** Many curves as few: at each place of the x axis the median of a group's curves, and what lies round it. Pure. */

/** A point of a curve: where on the x axis, and its value. */
export type Point = readonly [number, number]

/** What the curves of a group do at a place; null where none of them is. */
export interface Spread {
    median: number | null
    low: number | null
    high: number | null
}

/** Half of the curves lie in the inner band, all of them in the outer. */
export type Reach = 'quartiles' | 'range'

/** So many different places are each one of their own; more are put together into so many of one width. */
const PLACES = 200

/** Linear between the two nearest of sorted values, as spreadsheets have it. */
export function quantile(sorted: readonly number[], part: number): number {
    const at = part * (sorted.length - 1)
    const below = Math.floor(at)
    const low = sorted[below]!
    return low + (at - below) * ((sorted[below + 1] ?? low) - low)
}

/** Places in order: those of the points, or the middles of parts of one width. */
export function placesOf(curves: readonly (readonly Point[])[]): number[] {
    const all = [...new Set(curves.flatMap((curve) => curve.map(([x]) => x)))].sort((a, b) => a - b)
    if (all.length <= PLACES) {
        return all
    }
    const [first, last] = [all[0]!, all.at(-1)!]
    return Array.from({ length: PLACES }, (_, i) => first + ((last - first) * i) / (PLACES - 1))
}

/** A curve's value at each place, straight between its points; null before its first and behind its last. */
export function valuesAt(curve: readonly Point[], places: readonly number[]): (number | null)[] {
    let at = 0
    return places.map((x) => {
        while (at + 1 < curve.length && curve[at + 1]![0] <= x) {
            at++
        }
        const [here, next] = [curve[at], curve[at + 1]]
        if (!here || x < here[0] || (!next && x > here[0])) {
            return null
        }
        return next && x > here[0] ? here[1] + ((x - here[0]) / (next[0] - here[0])) * (next[1] - here[1]) : here[1]
    })
}

/** @param curves Each in the order of its x. */
export function spreadOf(curves: readonly (readonly Point[])[], places: readonly number[], reach: Reach): Spread[] {
    const values = curves.map((curve) => valuesAt(curve, places))
    return places.map((_x, i) => {
        const there = values.flatMap((one) => one[i] ?? []).sort((a, b) => a - b)
        const side = reach === 'range' ? 0 : 0.25
        return there.length === 0 ? { median: null, low: null, high: null } : { median: quantile(there, 0.5), low: quantile(there, side), high: quantile(there, 1 - side) }
    })
}

/** Items by a value of theirs, the largest groups first; behind the first `most` all are one, called `rest`. */
export function groupsOf<T>(items: readonly T[], valueOf: (item: T) => string, most: number, rest: string): { name: string; items: T[] }[] {
    const found = new Map<string, T[]>()
    for (const item of items) {
        const value = valueOf(item)
        found.set(value, [...(found.get(value) ?? []), item])
    }
    const all = [...found].map(([name, its]) => ({ name, items: its })).sort((a, b) => b.items.length - a.items.length || a.name.localeCompare(b.name, undefined, { numeric: true }))
    return all.length <= most ? all : [...all.slice(0, most - 1), { name: rest, items: all.slice(most - 1).flatMap((one) => one.items) }]
}
