/** What changed between two texts, by lines. Pure. */

export interface DiffLine {
    mark: ' ' | '+' | '-'
    text: string
    /** Numbers in the old and in the new text; 0: it is not there. */
    before: number
    after: number
}

const CELLS_MAX = 4_000_000 // beyond it what differs is shown as taken out and put in

/** The longest common lines stay, the rest goes or comes. */
export function diffLines(before: readonly string[], after: readonly string[]): DiffLine[] {
    let head = 0
    while (head < before.length && head < after.length && before[head] === after[head]) {
        head++
    }
    let tail = 0
    while (tail < before.length - head && tail < after.length - head && before[before.length - 1 - tail] === after[after.length - 1 - tail]) {
        tail++
    }
    const old = before.slice(head, before.length - tail)
    const fresh = after.slice(head, after.length - tail)
    const out: DiffLine[] = []
    const same = (i: number, k: number) => out.push({ mark: ' ', text: before[i]!, before: i + 1, after: k + 1 })
    const gone = (i: number) => out.push({ mark: '-', text: before[i]!, before: i + 1, after: 0 })
    const come = (k: number) => out.push({ mark: '+', text: after[k]!, before: 0, after: k + 1 })
    for (let i = 0; i < head; i++) {
        same(i, i)
    }
    const width = fresh.length + 1
    const cells = (old.length + 1) * width
    const length = new Uint32Array(cells <= CELLS_MAX ? cells : 0)
    for (let i = old.length - 1; i >= 0 && length.length > 0; i--) {
        for (let k = fresh.length - 1; k >= 0; k--) {
            length[i * width + k] = old[i] === fresh[k] ? length[(i + 1) * width + k + 1]! + 1 : Math.max(length[(i + 1) * width + k]!, length[i * width + k + 1]!)
        }
    }
    let [i, k] = [0, 0]
    while (i < old.length || k < fresh.length) {
        if (i < old.length && k < fresh.length && length.length > 0 && old[i] === fresh[k]) {
            same(head + i++, head + k++)
        } else if (i < old.length && (k === fresh.length || length.length === 0 || length[(i + 1) * width + k]! >= length[i * width + k + 1]!)) {
            gone(head + i++)
        } else {
            come(head + k++)
        }
    }
    for (let j = 0; j < tail; j++) {
        same(before.length - tail + j, after.length - tail + j)
    }
    return out
}

/** What changed, with so many lines around it; null: lines are left out there. */
export function around(lines: readonly DiffLine[], context = 3): (DiffLine | null)[] {
    const near = lines.map((_, i) => lines.slice(Math.max(0, i - context), i + context + 1).some((one) => one.mark !== ' '))
    const out: (DiffLine | null)[] = []
    lines.forEach((line, i) => {
        if (near[i]) {
            out.push(line)
        } else if (out.at(-1) !== null) {
            out.push(null)
        }
    })
    return out
}
