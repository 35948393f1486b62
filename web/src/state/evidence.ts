/** When each ION decided last: the evidence that it works. Known from the stream, and asked for where it was silent. */
import { effect, signal } from '@preact/signals'
import type { Decision, List } from '../api'
import { millis } from '../format'
import { get } from './http'
import { decisionFeed, ions, now, resyncs } from './store'

/** By ION, ms since 1970; what is missing has no decision that the page knows of. Moves once a second at most. */
export const lastDecisions = signal<Readonly<Record<string, number>>>({})

/** The IONs whose last decision was asked for: until then nothing can be said of them. */
export const asked = signal<ReadonlySet<string>>(new Set())

let fresh: Record<string, number> = {}

function note(ion: string, ms: number): void {
    if (ms > (fresh[ion] ?? lastDecisions.peek()[ion] ?? 0)) {
        fresh[ion] = ms
    }
}

decisionFeed.add((decision) => note(decision.ion, millis(decision.time_ms)))

function publish(): void {
    if (Object.keys(fresh).length > 0) {
        lastDecisions.value = { ...lastDecisions.peek(), ...fresh }
        fresh = {}
    }
}

effect(() => {
    void now.value
    publish()
})

async function ask(ion: string): Promise<void> {
    try {
        const list = await get<List<Decision>>('/decisions', { ion, limit: 1 })
        if (list.items[0]) {
            note(ion, millis(list.items[0].time_ms))
            publish()
        }
        asked.value = new Set([...asked.peek(), ion])
    } catch {
        waiting.delete(ion) // asked again with the next list of IONs
    }
}

let waiting = new Set<string>()
let epoch = 0
effect(() => {
    if (epoch !== resyncs.value) {
        epoch = resyncs.value
        waiting = new Set()
    }
    for (const { name } of ions.data.value ?? []) {
        if (!waiting.has(name)) {
            waiting.add(name)
            void ask(name)
        }
    }
})
