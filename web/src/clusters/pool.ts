/** What a pool has, in words. Pure. */
import type { Pool } from '../api'
import { bytes, counted } from '../format'

/** "64 CPUs, 8 × H100, 512 GiB" */
export const shapeText = (pool: Pool): string =>
    [counted(pool.cpu_slots, 'CPU'), pool.n_accelerators > 0 && `${pool.n_accelerators} × ${pool.accelerator ?? 'accelerator'}`, pool.memory_bytes > 0 && bytes(pool.memory_bytes)].filter(Boolean).join(', ')

/** "gpu: 4 nodes of 64 CPUs, 8 × H100" */
export const poolText = (pool: Pool): string => `${pool.name}: ${pool.max_nodes > 0 ? counted(pool.max_nodes, 'node') : 'nodes'} of ${shapeText(pool)}${pool.why ? ` (${pool.why})` : ''}`
