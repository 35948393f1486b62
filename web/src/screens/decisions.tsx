/** Decisions with filters. What is on the page is filtered at once; the server is asked for older ones that match. */
import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Decision } from '../api'
import { Empty, Failed, Loading, PageHead } from '../components/basics'
import { VERDICTS } from '../components/chip'
import { DecisionDialog } from '../components/decision_dialog'
import { DecisionRow } from '../components/decision_row'
import { Icon } from '../components/icon'
import { getAll } from '../state/http'
import { useResource } from '../state/resource'
import { route, setQuery } from '../state/route'
import { decisions, KEEP_DECISIONS, mergeDecisions } from '../state/store'

interface Filter {
    camera: string
    verdict: string
    person: string
}

function matches(decision: Decision, filter: Filter): boolean {
    return (
        (filter.camera === '' || decision.camera === filter.camera) &&
        (filter.verdict === '' || decision.verdict === filter.verdict) &&
        (filter.person === '' || (decision.person ?? '').toLowerCase().includes(filter.person.toLowerCase()))
    )
}

/** Remembers every camera seen, so that a choice does not vanish while its decisions scroll out of memory. */
function useCameras(items: Decision[], current: string): string[] {
    const seen = useMemo(() => new Set<string>(), [])
    for (const decision of items) {
        if (seen.size < 500) {
            seen.add(decision.camera)
        }
    }
    if (current) {
        seen.add(current)
    }
    return [...seen].sort()
}

function Filters({ filter, cameras }: { filter: Filter; cameras: string[] }) {
    const set = (change: Partial<Filter>) => setQuery({ ...filter, ...change })
    return (
        <form class="filters" role="search" aria-label="Filter decisions" onSubmit={(event) => event.preventDefault()}>
            <label class="field">
                <span>Camera</span>
                <select name="camera" value={filter.camera} onChange={(event) => set({ camera: event.currentTarget.value })}>
                    <option value="">All cameras</option>
                    {cameras.map((camera) => (
                        <option key={camera} value={camera}>
                            {camera}
                        </option>
                    ))}
                </select>
            </label>
            <label class="field">
                <span>Verdict</span>
                <select name="verdict" value={filter.verdict} onChange={(event) => set({ verdict: event.currentTarget.value })}>
                    <option value="">All verdicts</option>
                    {Object.entries(VERDICTS).map(([value, { label }]) => (
                        <option key={value} value={value}>
                            {label}
                        </option>
                    ))}
                </select>
            </label>
            <label class="field">
                <span>Person</span>
                <input
                    type="search"
                    name="person"
                    placeholder="Name"
                    value={filter.person}
                    onInput={(event) => set({ person: event.currentTarget.value })}
                />
            </label>
            {Object.values(filter).some(Boolean) && (
                <button type="button" class="button" onClick={() => setQuery({})}>
                    <Icon name="cross" size={14} />
                    Clear
                </button>
            )}
        </form>
    )
}

export function Decisions() {
    const query = route.value.query
    const filter: Filter = {
        camera: query.get('camera') ?? '',
        verdict: query.get('verdict') ?? '',
        person: query.get('person') ?? '',
    }
    const [open, setOpen] = useState<Decision | null>(null)
    const found = useResource('decisions', () =>
        getAll<Decision>('/decisions', {
            camera: route.peek().query.get('camera'),
            verdict: route.peek().query.get('verdict'),
            person: route.peek().query.get('person'),
            limit: KEEP_DECISIONS,
        }),
    )
    useEffect(() => found.loadSoon(250), [filter.camera, filter.verdict, filter.person])

    const live = decisions.data.value ?? []
    const all = mergeDecisions(live, found.data.value ?? [])
    const shown = mergeDecisions(
        live.filter((one) => matches(one, filter)),
        (found.data.value ?? []).filter((one) => matches(one, filter)),
    )
    const cameras = useCameras(all, filter.camera)
    return (
        <>
            <PageHead title="Decisions" sub={`The latest ${KEEP_DECISIONS} that match, as they come in`} />
            <Filters filter={filter} cameras={cameras} />
            <Failed resource={found} />
            <section class="panel" aria-label="Decisions">
                {shown.length > 0 ? (
                    <ul class="decision-list">
                        {shown.map((decision) => (
                            <DecisionRow key={decision.id} decision={decision} onOpen={setOpen} />
                        ))}
                    </ul>
                ) : found.loading.value ? (
                    <Loading rows={6} />
                ) : all.length > 0 ? (
                    <Empty icon="question" title="No decision matches">
                        Widen the filter above, or clear it.
                    </Empty>
                ) : (
                    <Empty icon="camera" title="No decisions yet">
                        They appear here the moment a prediction pipeline decides its first frame.
                    </Empty>
                )}
            </section>
            {open && <DecisionDialog decision={open} onClose={() => setOpen(null)} />}
        </>
    )
}
