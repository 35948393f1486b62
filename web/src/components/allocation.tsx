/** Where nodes come from, on the pages of a node and of a job: the cluster, the allocation, and its number over there. */
import { useEffect } from 'preact/hooks'
import type { Allocation, Job, Node } from '../api'
import { dayMinute } from '../format'
import { allocations, clusters } from '../state/clusters'
import { get, getAll, segment } from '../state/http'
import { useResource } from '../state/resource'
import { href } from '../state/route'

const SHOWN = 5

function textOf(one: Allocation): string {
    const when = one.state === 'ended' ? `ended ${dayMinute(one.ended_ms)}${one.ending ? `, ${one.ending}` : ''}` : one.started_ms ? (one.ends_ms ? `ends ${dayMinute(one.ends_ms)}` : 'no limit') : `waits${one.said ? `: ${one.said}` : ''}`
    return `${one.their_id ? `number ${one.their_id} there, ` : ''}${when}`
}

/** Tells which cluster supplied the node. */
export function FromCluster({ node }: { node: Node }) {
    const found = useResource(`allocation:${node.allocation}`, () => get<Allocation>(`/allocations/${segment(node.allocation!)}`))
    const one = found.data.value
    return (
        <>
            {' '}
            · of <a href={href('clusters')}>{node.cluster}</a>
            {one ? <span title={one.id}> ({textOf(one)})</span> : node.ends_ms && `, ends ${dayMinute(node.ends_ms)}`}
        </>
    )
}

/** What was asked of clusters for a job, the last first. */
export function AskedFor({ job }: { job: Job }) {
    const found = useResource(`allocations:${job.id}`, () => getAll<Allocation>('/allocations', { job: job.id, view: 'all', limit: 100 }))
    useEffect(() => found.loadSoon(), [job.state, allocations.data.value])
    const all = [...(found.data.value ?? [])].sort((a, b) => b.created_ms.localeCompare(a.created_ms))
    return all.length === 0 ? (
        <span class="muted">nothing was asked of one</span>
    ) : (
        <>
            {all.slice(0, SHOWN).map((one) => (
                <div key={one.id} title={one.why ?? one.id}>
                    <a href={href('clusters', { job: job.id })}>{one.cluster}</a> {textOf(one)}
                </div>
            ))}
            {all.length > SHOWN && <div class="muted">and {all.length - SHOWN} before</div>}
        </>
    )
}

/** Is there any cluster? Asked once. */
export function useHasClusters(): boolean {
    useEffect(() => clusters.need(), [])
    return (clusters.data.value ?? []).length > 0
}
