/** The frames of a passage: one large, all of them small below, with what each is nearest to. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Decision } from '../api'
import { Shot } from '../components/face'
import { Icon } from '../components/icon'
import { Glyph, VERDICTS } from '../components/state'
import { clockTime, counted, fixed, millis } from '../format'
import { framesOf, toldOf, type FilmFrame } from '../state/film'
import { whoOf } from '../state/finding'
import { segment } from '../state/http'
import { hrefWith, setQuery } from '../state/route'
import { isFor } from './passage'

const STEP_MS = 400

export const tenths = (time: string) => `${clockTime(time)}.${Math.floor((millis(time) % 1000) / 100)}`

const pathOf = (decision: Decision, i: number) => `/decisions/${segment(decision.id)}/frames/${i}`

const sayingOf = (frame: FilmFrame) => (frame.score === null ? (frame.why ?? 'nobody to compare with') : `${frame.person ? `names ${frame.person}` : 'names nobody'}, ${fixed(frame.score, 2)}`)

/** A frame as it was, large; where none is kept, the picture of the decision. */
function Large({ decision, at }: { decision: Decision; at: number }) {
    const frames = framesOf(decision)
    const frame = frames[at]
    const tone = VERDICTS[decision.verdict]?.tone ?? 'plain'
    const shade = frame && !isFor(decision, frame) ? 'plain' : tone
    const path = frame?.has_picture ? pathOf(decision, at) : decision.image ? `/decisions/${segment(decision.id)}/image` : null
    return (
        <div class="shown">
            <Shot key={path} path={path} name={`${whoOf(decision)} at ${decision.camera}`} size="whole" />
            <span class="over tl only-desk">{decision.camera}</span>
            {frame && (
                <span class="over tr">
                    frame {at + 1} of {frames.length}
                </span>
            )}
            {(!frame || frame.score !== null) && (
                <span class={`over bl tag tone-${shade}`}>
                    <Glyph tone={shade} />
                    {frame ? `${frame.person ?? 'nobody'} ${fixed(frame.score, 2)}` : whoOf(decision)}
                </span>
            )}
            <span class="over br">{tenths(frame?.time_ms ?? decision.time_ms)}</span>
        </div>
    )
}

/** Goes through the frames by itself, or by hand. */
function Player({ decision, at }: { decision: Decision; at: number }) {
    const frames = framesOf(decision)
    const [isPlaying, setPlaying] = useState(false)
    const show = (i: number) => setQuery({ frame: String(i) }, true)
    useEffect(() => {
        if (!isPlaying) {
            return undefined
        }
        const timer = window.setTimeout(() => (at + 1 < frames.length ? show(at + 1) : setPlaying(false)), STEP_MS)
        return () => window.clearTimeout(timer)
    }, [isPlaying, at])
    const play = () => {
        if (!isPlaying && at + 1 >= frames.length) {
            show(0)
        }
        setPlaying(!isPlaying)
    }
    const passed = millis(frames[at]!.time_ms) - millis(frames[0]!.time_ms)
    const all = millis(frames[frames.length - 1]!.time_ms) - millis(frames[0]!.time_ms)
    return (
        <div class="row player">
            <button type="button" class="button small" onClick={play} aria-label={isPlaying ? 'Pause' : 'Play the frames'}>
                <Icon name={isPlaying ? 'pause' : 'play'} />
            </button>
            <input type="range" aria-label="Frame" min={0} max={frames.length - 1} value={at} onInput={(event) => show(Number(event.currentTarget.value))} />
            <span class="small muted nowrap">
                {(passed / 1000).toFixed(1)} of {(all / 1000).toFixed(1)} s
            </span>
        </div>
    )
}

/** @param chosen Frames that are to be enrolled. */
export function Film(props: { decision: Decision; at: number; chosen: ReadonlySet<number>; onChoose: (i: number) => void }) {
    const { decision, at, chosen } = props
    const frames = framesOf(decision)
    const told = toldOf(decision)!
    const film = useRef<HTMLOListElement>(null)
    useEffect(() => {
        const shown = film.current?.children[at] as HTMLElement | undefined
        if (shown) {
            film.current!.scrollLeft = shown.offsetLeft - (film.current!.clientWidth - shown.offsetWidth) / 2
        }
    }, [at])
    return (
        <section class="panel" aria-labelledby="film-title">
            <header class="panel-head">
                <h2 id="film-title">What the camera saw</h2>
                <span class="window">
                    {decision.camera} · {fixed((millis(told.last) - millis(told.first)) / 1000, 1)} s · {counted(told.n_frames, 'frame with a face', 'frames with a face')}
                </span>
            </header>
            <div class="panel-body">
                <Large decision={decision} at={at} />
                {frames.length > 1 && <Player decision={decision} at={at} />}
                {frames.length > 0 ? (
                    <>
                        <div class="row film-head">
                            <h3>Frames</h3>
                            <span class="small muted only-desk">in time · score of the nearest person below · ticked: to be enrolled</span>
                            {frames.some((one) => isFor(decision, one)) && (
                                <span class="push small nowrap state tone-good">
                                    <Glyph tone="good" />
                                    names {decision.person ?? 'somebody'}
                                </span>
                            )}
                        </div>
                        <ol class="film" aria-label="Frames" ref={film}>
                            {frames.map((frame, i) => (
                                <li key={i} class={`${i === at ? 'on' : ''} tone-${isFor(decision, frame) ? 'good' : 'plain'}`}>
                                    <a href={hrefWith({ frame: String(i) })} title={`${tenths(frame.time_ms)}, ${sayingOf(frame)}`} aria-current={i === at ? 'true' : undefined}>
                                        <Shot path={frame.has_picture ? pathOf(decision, i) : null} name={`Frame ${i + 1}, ${sayingOf(frame)}`} size="picture" />
                                    </a>
                                    <small>
                                        {frame.has_picture && <input type="checkbox" checked={chosen.has(i)} aria-label={`Enrol frame ${i + 1}`} onChange={() => props.onChoose(i)} />}
                                        {isFor(decision, frame) && <Glyph tone="good" />}
                                        <b>{frame.score === null ? '–' : fixed(frame.score, 2)}</b>
                                    </small>
                                </li>
                            ))}
                        </ol>
                    </>
                ) : (
                    <p class="small muted">Its other frames were not kept.</p>
                )}
            </div>
        </section>
    )
}
