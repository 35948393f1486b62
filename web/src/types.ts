/** What the page knows of values that the records leave open. */

/** Absent or null: the page then shows nothing for it, never "undefined". */
export type Opt<T> = T | null | undefined

export type Verdict = 'grant' | 'deny' | 'unknown' | 'error'

/** One of a node's inventory.accelerators. */
export interface Accelerator {
    index?: Opt<number>
    name?: Opt<string>
    memory_bytes?: Opt<number>
    used_bytes?: Opt<number>
}
