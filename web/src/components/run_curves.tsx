/** The curves of a run, live: what belongs together in one picture, each with its own request, so that many cost nothing unseen. */
import { useEffect, useState } from 'preact/hooks'
import type { Metric, Run } from '../api'
import { counted, sentence, words } from '../format'
import { curveOf } from '../state/curves'
import { useResource } from '../state/resource'
import { freshMetrics } from '../state/store'
import { connection } from '../state/stream'
import { Empty, Loaded } from './basics'
import { Chart } from './chart'
import { Icon } from './icon'

const NO_CURVE = new Set(['epoch', 'epochs', 'progress'])
const SHOWN = 12
const PER_CHART = 6

/** Curves that belong in one picture; every other key gets its own. */
const GROUPS: { title: string; has: (key: string) => boolean }[] = [
    { title: 'Loss', has: (key) => key.includes('loss') },
    { title: 'Accuracy', has: (key) => key.includes('accuracy') },
    { title: 'Images per second', has: (key) => key.includes('per_second') },
]

export const isSystem = (key: string) => key.startsWith('system/')

/** New points after the old ones; a step that is measured again takes the new value. */
function mergePoints(have: Metric[], more: Metric[]): Metric[] {
    const again = new Set(more.map((point) => `${point.key} ${point.step}`))
    const first = Math.min(...more.map((point) => point.step))
    const kept = have.filter((point) => point.step < first || !again.has(`${point.key} ${point.step}`))
    return [...kept, ...more]
}

export const curveKeys = (run: Run): string[] => Object.keys(run.metrics ?? {}).filter((key) => !NO_CURVE.has(key)).sort()

function chartsOf(keys: readonly string[]): { title: string; keys: string[] }[] {
    const grouped = GROUPS.map(({ title, has }) => ({ title, keys: keys.filter((key) => !isSystem(key) && has(key)) })).filter((group) => group.keys.length > 0 && group.keys.length <= PER_CHART)
    const taken = new Set(grouped.flatMap((group) => group.keys))
    return [...grouped, ...keys.filter((key) => !taken.has(key)).map((key) => ({ title: key.includes('/') ? key : sentence(words(key)), keys: [key] }))]
}

function RunChart({ run, title, keys }: { run: Run; title: string; keys: string[] }) {
    const metrics = useResource(`${run.id} ${keys.join()}`, async () => (await Promise.all(keys.map((key) => curveOf(run.id, key)))).flat())
    useEffect(() => {
        const fresh = freshMetrics.value
        const mine = fresh?.run === run.id ? fresh.points.filter((point) => keys.includes(point.key)) : []
        if (mine.length > 0 && metrics.data.value !== undefined) {
            metrics.data.value = mergePoints(metrics.data.value, mine)
        }
    }, [freshMetrics.value])
    useEffect(() => metrics.loadSoon(), [run.status, connection.value.state === 'live'])
    return <Loaded resource={metrics}>{(points) => <Chart title={title} keys={keys} points={points} />}</Loaded>
}

/** Charts of the keys; of many, those that a word finds, some at a time. */
export function Curves({ run, keys, most = SHOWN, hasSearch = false }: { run: Run; keys: readonly string[]; most?: number; hasSearch?: boolean }) {
    const [word, setWord] = useState('')
    const [n, setN] = useState(most)
    const charts = chartsOf(keys.filter((key) => key.toLowerCase().includes(word.toLowerCase())))
    if (keys.length === 0) {
        return (
            <div class="panel">
                <Empty icon="runs" title="No metrics yet">
                    The first points arrive after the first steps of the run.
                </Empty>
            </div>
        )
    }
    return (
        <>
            {hasSearch && keys.length > 2 && (
                <label class="input">
                    <Icon name="search" />
                    <input type="search" aria-label="Find a metric" placeholder={`Find one of ${counted(keys.length, 'metric')}`} value={word} onInput={(event) => setWord(event.currentTarget.value)} />
                </label>
            )}
            <div class="grid g2">
                {charts.slice(0, n).map((chart) => (
                    <RunChart key={chart.title} run={run} title={chart.title} keys={chart.keys} />
                ))}
            </div>
            {charts.length > n && hasSearch && (
                <p>
                    <button type="button" class="button small" onClick={() => setN(n + SHOWN)}>
                        {`Show more: ${counted(charts.length - n, 'is', 'are')} left`}
                    </button>
                </p>
            )}
        </>
    )
}
