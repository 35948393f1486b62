/** The processes that answer: state, what they have loaded, why one waits or failed. */
import type { Deployment, DeploymentReplica } from '../api'
import { ago, bytes, dayTime, NONE, short } from '../format'
import { isReady } from '../state/deployments'
import { href } from '../state/route'
import { now } from '../state/store'
import { Empty, Panel } from './basics'
import { State, StateWord, toneOf } from './state'

interface Loaded {
    version: number
    state: string
    reason: string | null
    executor: string | null
    place?: string | null // "the GPU" or "the processor"; a replica of an older version does not say it
    load_ms: number
}

interface Stats {
    success?: number
    rows?: number
    batches?: number
    p50_ms?: number
    p99_ms?: number
    memory_bytes?: number
}

const TONES: Record<string, 'good' | 'busy' | 'warn' | 'plain'> = { ready: 'good', starting: 'busy', wanted: 'busy', silent: 'warn', stopping: 'plain' }
const ranBy = (one: Loaded) => (one.place ? `${one.executor} on ${one.place}` : one.executor)
const ms = (value: number | undefined) => (value ? `${value < 10 ? value.toFixed(1) : Math.round(value)} ms` : NONE)

function LoadedText({ replica }: { replica: DeploymentReplica }) {
    const loaded = (replica.versions ?? []) as Loaded[]
    return (
        <>
            {loaded.map((one) => (
                <span key={one.version} class="loaded" title={one.reason ?? (one.executor ? `by ${ranBy(one)}, loaded in ${Math.round(one.load_ms)} ms` : undefined)}>
                    <State tone={toneOf(one.state === 'LOADING' ? 'starting' : one.state)}>v{one.version}</State>
                    <small class="muted"> {one.state === 'READY' ? `${ranBy(one)}, ${Math.round(one.load_ms)} ms` : one.state.toLowerCase()}</small>
                </span>
            ))}
            {loaded.length === 0 && NONE}
        </>
    )
}

export function ReplicasPanel({ deployment }: { deployment: Deployment }) {
    const { replicas } = deployment
    return (
        <Panel title="Replicas" window={`${deployment.n_ready} of ${deployment.n_wanted} answer · ${deployment.replicas_min} to ${deployment.replicas_max} by load · figures since each started`}>
            {deployment.failure && deployment.n_failures > 0 && (
                <p class="failed">
                    {deployment.n_failures === 1 ? 'The last one ended' : `${deployment.n_failures} ended in a row; the last`}: {deployment.failure}
                    {deployment.next_start_ms && <span class="muted"> The next one starts not before {dayTime(deployment.next_start_ms)}.</span>}
                </p>
            )}
            {replicas.length === 0 ? (
                <Empty icon="nodes" title="No replica">
                    {deployment.replicas_min === 0 ? 'The next request starts one, and waits for it.' : 'One is about to be made.'}
                </Empty>
            ) : (
                <div class="table-wrap" tabIndex={0} role="group" aria-label="Replicas">
                    <table class="plain inset">
                        <thead>
                            <tr>
                                <th scope="col">Replica</th>
                                <th scope="col">State</th>
                                <th scope="col">Has loaded</th>
                                {['Answered', 'Rows a batch', 'p50', 'p99', 'Memory'].map((name) => (
                                    <th key={name} scope="col" class="num">
                                        {name}
                                    </th>
                                ))}
                            </tr>
                        </thead>
                        <tbody>
                            {replicas.map((one) => {
                                const stats = (one.stats ?? {}) as Stats
                                return (
                                    <tr key={one.id} data-row={one.id}>
                                        <td>{one.job ? <a href={href('jobs', { job: one.job })}>{one.id}</a> : one.id}</td>
                                        <td>
                                            <StateWord state={one.state} tone={TONES[one.state.toLowerCase()] ?? 'plain'} />{' '}
                                            <small class="muted">
                                                {isReady(one) && one.time_ms ? `reported ${ago(one.time_ms, now.value)}` : (one.reason ?? (one.job_state ? `job ${one.job_state.toLowerCase()}` : ''))}
                                            </small>
                                        </td>
                                        <td>
                                            <LoadedText replica={one} />
                                        </td>
                                        <td class="num">{short(stats.success ?? 0)}</td>
                                        <td class="num">{stats.batches ? (stats.rows! / stats.batches).toFixed(1) : NONE}</td>
                                        <td class="num">{ms(stats.p50_ms)}</td>
                                        <td class="num">{ms(stats.p99_ms)}</td>
                                        <td class="num">{stats.memory_bytes ? bytes(stats.memory_bytes) : NONE}</td>
                                    </tr>
                                )
                            })}
                        </tbody>
                    </table>
                </div>
            )}
        </Panel>
    )
}
