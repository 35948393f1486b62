/** Scores of the frames over the threshold: a circle names the person, a triangle nobody or another; green is what the rule looked at. */
import type { Decision } from '../api'
import { ChartWithTable } from '../components/chart_table'
import { clockTime, fixed, millis } from '../format'
import { framesOf, toldOf, type FilmFrame } from '../state/film'
import { tenths } from './film'
import { isFor } from './passage'

const HEIGHT = 148
const [LEFT, TOP, BOTTOM, EDGE] = [36, 8, 22, 12]

interface Scale {
    x: (time: string) => number
    y: (score: number) => number
    ticks: number[]
}

/** From just below the least figure to 1. */
function scaleOf(frames: readonly FilmFrame[], threshold: number | null, width: number): Scale {
    const figures = [...frames.flatMap((one) => one.score ?? []), threshold ?? 1]
    const low = Math.floor(Math.min(...figures, 0.9) * 10) / 10
    const high = Math.max(1, Math.ceil(Math.max(...figures) * 10) / 10)
    const [first, last] = [millis(frames[0]!.time_ms), millis(frames[frames.length - 1]!.time_ms)]
    const step = (high - low) / (high - low > 0.6 ? 4 : Math.round((high - low) * 10))
    return {
        x: (time) => LEFT + EDGE + ((width - LEFT - 2 * EDGE) * (millis(time) - first)) / Math.max(1, last - first),
        y: (score) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (score - low) / (high - low)),
        ticks: Array.from({ length: Math.round((high - low) / step) + 1 }, (_, i) => low + i * step),
    }
}


function Drawn({ decision, width }: { decision: Decision; width: number }) {
    const frames = framesOf(decision)
    const { x, y, ticks } = scaleOf(frames, decision.threshold, width)
    const scored = frames.filter((one) => one.score !== null)
    const isNamed = decision.verdict !== 'unknown'
    const seen = frames.filter((one) => one.counts).slice(-(toldOf(decision)!.rule?.m ?? 1)) // as far as they are kept
    const bottom = HEIGHT - BOTTOM
    return (
        <svg class="chart" viewBox={`0 0 ${width} ${HEIGHT}`} role="img" aria-label="Score of each frame">
            {ticks.map((tick) => (
                <g key={tick}>
                    <path class="g" d={`M${LEFT} ${y(tick)}H${width}`} />
                    <text x={LEFT - 8} y={y(tick) + 4} text-anchor="end">
                        {tick.toFixed(ticks.length > 8 ? 2 : 1)}
                    </text>
                </g>
            ))}
            {isNamed && seen.length > 1 && <rect class="looked" x={x(seen[0]!.time_ms)} y={TOP} width={x(seen[seen.length - 1]!.time_ms) - x(seen[0]!.time_ms)} height={bottom - TOP} />}
            {decision.threshold !== null && <path class="limit" d={`M${LEFT} ${y(decision.threshold)}H${width}`} />}
            <path class="l" d={scored.map((one, i) => `${i ? 'L' : 'M'}${x(one.time_ms)} ${y(one.score!)}`).join('')} />
            {frames.map((one, i) =>
                one.score === null ? (
                    <path key={i} class="tone-plain" d={`M${x(one.time_ms) - 3} ${bottom - 6}l6 6m0-6l-6 6`}>
                        <title>{one.why}</title>
                    </path>
                ) : isFor(decision, one) ? (
                    <circle key={i} class="tone-good" cx={x(one.time_ms)} cy={y(one.score)} r="4.5" />
                ) : (
                    <path key={i} class="tone-warn" d={`M${x(one.time_ms)} ${y(one.score) - 5}l5 9h-10z`} />
                ),
            )}
            {decision.threshold !== null && (
                <text x={LEFT + 4} y={y(decision.threshold) - 4} class="halo">
                    needs {fixed(decision.threshold, 2)}
                </text>
            )}
            <text x={LEFT} y={HEIGHT - 4}>
                {clockTime(frames[0]!.time_ms)}
            </text>
            <text x={width} y={HEIGHT - 4} text-anchor="end">
                {clockTime(frames[frames.length - 1]!.time_ms)}
            </text>
        </svg>
    )
}

export function Scores({ decision }: { decision: Decision }) {
    return (
        <ChartWithTable
            title="Score of the nearest person"
            window="each frame that is kept · circle names the person, triangle does not · cross: not compared"
            heads={['Frame', 'Names', 'Score', 'Compared']}
            rows={() => framesOf(decision).map((one) => [tenths(one.time_ms), one.person ?? '', fixed(one.score, 3), one.counts ? 'yes' : (one.why ?? 'no')])}
        >
            <div class="only-desk">
                <Drawn decision={decision} width={784} />
            </div>
            <div class="only-phone">
                <Drawn decision={decision} width={340} />
            </div>
        </ChartWithTable>
    )
}
