/** A small line without axes: how a count went over the time that its title names. */
export function Spark({ counts }: { counts: readonly number[] }) {
    if (counts.length < 2) {
        return null
    }
    const top = Math.max(1, ...counts)
    const point = (count: number, i: number) => `${((100 * i) / (counts.length - 1)).toFixed(1)} ${(23 - (22 * count) / top).toFixed(1)}`
    const line = counts.map(point).join('L')
    return (
        <svg class="spark" viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true" focusable="false">
            <path class="a" d={`M${line}L100 24L0 24z`} />
            <path class="l" d={`M${line}`} />
        </svg>
    )
}
