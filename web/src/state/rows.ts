/** Rows of a list as the page holds it: some are not here, and some stand above others that belong together. */

/** A row of its own above those of a group. */
export class Heading {
    constructor(
        readonly key: string,
        /** What it is of; whoever made it knows. */
        readonly of: unknown,
    ) {}
}

/** undefined: not here (any more); it is fetched when it comes into view. */
export type Rows<T> = readonly (T | Heading | undefined)[]
