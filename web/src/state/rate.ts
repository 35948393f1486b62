/**
 * Decisions per second and pipeline over the last ten seconds, or over those since the page looks, from counts only: it
 * costs the same at any rate.
 */
import { signal } from '@preact/signals'

const WINDOW_S = 10

export class RateMeter {
    /** Grows each second; reading it makes a component follow the rates. */
    private readonly beat = signal(0)
    private seconds = 0 // whole ones since the page looks
    private readonly buckets = new Map<string, number[]>()

    count(ion: string, pipeline: string): void {
        const key = `${ion}/${pipeline}`
        let counts = this.buckets.get(key)
        if (counts === undefined) {
            counts = new Array<number>(WINDOW_S + 1).fill(0)
            this.buckets.set(key, counts)
        }
        counts[0]!++
    }

    /** Called once a second: starts a new bucket, drops the oldest. */
    tick(): void {
        for (const counts of this.buckets.values()) {
            counts.unshift(0)
            counts.pop()
        }
        this.seconds++
        this.beat.value++
    }

    /** The stream was interrupted, or the page was not looked at: what was counted before says nothing. */
    restart(): void {
        this.seconds = 0
        this.buckets.clear()
    }

    /** Null until a second has passed. The bucket that is filling is left out: it would make the number breathe. */
    perSecond(ion: string, pipeline: string): number | null {
        void this.beat.value
        const covered = Math.min(this.seconds - 1, WINDOW_S) // the first second was not a whole one
        if (covered < 1) {
            return null
        }
        const counts = this.buckets.get(`${ion}/${pipeline}`) ?? []
        return counts.slice(1, 1 + covered).reduce((sum, n) => sum + n, 0) / covered
    }
}
