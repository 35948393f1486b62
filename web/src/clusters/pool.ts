/** What a pool has, in words. Pure. */
import type { Pool } from '../api'
import { bytes, counted } from '../format'

/** "64 CPUs, 8 × H100, 512 GiB" */
export const shapeText = (pool: Pool): string =>
    [counted(pool.cpu_slots, 'CPU'), pool.n_accelerators > 0 && `${pool.n_accelerators} × ${pool.accelerator ?? 'accelerator'}`, pool.memory_bytes > 0 && bytes(pool.memory_bytes)].filter(Boolean).join(', ')

/** "gpu: 4 nodes of 64 CPUs, 8 × H100" */
export const poolText = (pool: Pool): string => `${pool.name}: ${pool.max_nodes > 0 ? counted(pool.max_nodes, 'node') : 'nodes'} of ${shapeText(pool)}${pool.why ? ` (${pool.why})` : ''}`

const cpusOf = (pool: Pool) => pool.max_nodes * pool.cpu_slots

/** What others than Weir have of its CPUs, 0 to 1; 0 where nobody says. `ours`: Weir's CPUs. */
export const othersOf = (pool: Pool, ours: number): number => (pool.cpus_busy < 0 || cpusOf(pool) <= 0 ? 0 : Math.min(1, Math.max(0, pool.cpus_busy - ours) / cpusOf(pool)))

/** "38 of 64 CPUs in use, 12 by us" */
export const useText = (pool: Pool, ours: number): string | false => pool.cpus_busy >= 0 && cpusOf(pool) > 0 && `${Math.max(pool.cpus_busy, ours)} of ${counted(cpusOf(pool), 'CPU')} in use, ${ours} by us`
