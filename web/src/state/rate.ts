/** Decisions per second and pipeline over the last ten seconds, from counts only: it costs the same at any rate. */
import { signal } from '@preact/signals'

const WINDOW_S = 10

export class RateMeter {
    /** Grows each second; reading it makes a component follow the rates. */
    private readonly beat = signal(0)
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
        this.beat.value++
    }

    /** The bucket that is filling is left out: it would make the number breathe. */
    perSecond(ion: string, pipeline: string): number {
        void this.beat.value
        const counts = this.buckets.get(`${ion}/${pipeline}`)
        return counts === undefined ? 0 : counts.slice(1).reduce((sum, n) => sum + n, 0) / WINDOW_S
    }
}
