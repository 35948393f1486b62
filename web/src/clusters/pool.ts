/** What a pool has, in words. Pure. */
import type { Pool } from '../api'
import { bytes, counted } from '../format'

/** "64 CPUs, 8 × H100, 512 GiB" */
export const shapeText = (pool: Pool): string =>
    [counted(pool.cpu_slots, 'CPU'), pool.n_accelerators > 0 && `${pool.n_accelerators} × ${pool.accelerator ?? 'accelerator'}`, pool.memory_bytes > 0 && bytes(pool.memory_bytes)].filter(Boolean).join(', ')

/** "gpu: 4 nodes of 64 CPUs, 8 × H100" */
export const poolText = (pool: Pool): string => `${pool.name}: ${pool.max_nodes > 0 ? counted(pool.max_nodes, 'node') : 'nodes'} of ${shapeText(pool)}${pool.why ? ` (${pool.why})` : ''}`

const isTold = (pool: Pool) => pool.cpus_busy >= 0 && pool.max_nodes > 0 && pool.cpu_slots > 0

const othersOf = (pool: Pool, ours: number) => Math.max(0, pool.cpus_busy - ours)

/** What of it is ours, and what others': in CPUs where its cluster tells what is in use, as nodes are shared there; else in nodes. `ours`: CPUs. */
export const useOf = (pool: Pool, ours: number): { used: number; all: number; others?: number; unit?: string } =>
    isTold(pool) ? { used: ours, all: pool.max_nodes * pool.cpu_slots, others: othersOf(pool, ours), unit: 'CPUs' } : { used: pool.n_nodes, all: pool.max_nodes }

/** "others have 26 CPUs" */
export const othersText = (pool: Pool, ours: number): string | false => isTold(pool) && othersOf(pool, ours) > 0 && `others have ${counted(othersOf(pool, ours), 'CPU')}`
