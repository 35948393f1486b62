/** A camera: its newest picture with what was found on it, how it is and why one may say so; or why there is none, and what cures it. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Camera, Decision, Found as Box, List } from '../api'
import { Act } from '../components/locked'
import { openDialog } from '../components/dialog'
import { Icon } from '../components/icon'
import { Glyph, State, VERDICTS, type Tone } from '../components/state'
import { clockTime, fixed, millis } from '../format'
import { cameras } from '../state/cameras'
import { get } from '../state/http'
import { go, href } from '../state/route'
import { now } from '../state/store'
import { APPLY, ChooseSecret } from './add'
import { givesPictures, periodOf, rateOf, shareOf, wantsSecret, type Judge, type Judgement } from './judge'
import { isHeld, unwatch, watch, type Feed, type Picture } from './live'

const TOP = 0.14 // a share of the picture: a label above a box that begins higher would leave it
const RIGHT = 0.62
const RATE_LOW = 0.7 // a share of what is expected

const percent = (part: number) => `${Math.max(0, Math.min(1, part)) * 100}%`
const toneOf = (box: Box): Tone => (box.barred ? 'bad' : (VERDICTS[box.verdict ?? '']?.tone ?? 'plain'))

/** "milo 0.88", "nobody known 0.31", "emil 0.92, barred"; where faces are hidden, the verdict. */
function wordsOf(box: Box, isHidden: boolean): string {
    const verdict = VERDICTS[box.verdict ?? '']?.label ?? ''
    const who = isHidden || (box.name === null && box.verdict !== 'unknown') ? verdict : (box.name ?? 'nobody known')
    return [who, box.score !== null && who && fixed(box.score, 2)].filter(Boolean).join(' ') + (box.barred ? ', barred' : '')
}

function Found({ box, picture, isHidden }: { box: Box; picture: Picture; isHidden: boolean }) {
    const [x, y] = [box.x / picture.width, box.y / picture.height]
    const words = wordsOf(box, isHidden)
    return (
        <span
            class={`box tone-${toneOf(box)} ${y < TOP ? 'low' : ''} ${x > RIGHT ? 'to-left' : ''} ${isHidden ? 'shade' : ''}`}
            style={{ left: percent(x), top: percent(y), width: percent(box.w / picture.width), height: percent(box.h / picture.height) }}
        >
            {isHidden && <Icon name="person" size={24} />}
            {words && (
                <b>
                    <Glyph tone={toneOf(box)} /> {words}
                </b>
            )}
        </span>
    )
}

/** The picture, with its marks over it. @param isHidden Faces are silhouettes. */
function Seen({ picture, name, isHidden }: { picture: Picture; name: string; isHidden: boolean }) {
    const isShade = isHidden || picture.url === null
    const at = new Date(millis(picture.time_ms))
    return (
        <>
            <span class={`seen ${isShade ? 'is-shade' : ''}`} style={{ '--ratio': picture.width / picture.height }}>
                {picture.url && <img src={picture.url} alt={`What ${name} sees`} decoding="sync" />}
                {picture.boxes.map((box, i) => (
                    <Found key={i} box={box} picture={picture} isHidden={isShade} />
                ))}
            </span>
            {picture.url === null && <span class="over bl">You may not see people</span>}
            {isHeld.value && <span class="over tl">Held</span>}
            <time class="over br num">
                {clockTime(picture.time_ms)}.{String(Math.floor(at.getMilliseconds() / 10)).padStart(2, '0')}
            </time>
        </>
    )
}

/** In place of a picture: why there is none, in the camera's own words and in Weir's, and the acts that cure it. */
function None({ camera, found, feed, isConnecting }: { camera: Camera; found: Judgement; feed: Feed; isConnecting: boolean }) {
    const last = feed.picture.value
    const isPlain = found.tone !== 'bad'
    const title = isConnecting ? 'Waits for its first picture' : camera.state === 'lost' && camera.since_ms ? `No picture since ${clockTime(camera.since_ms)}` : last ? `No picture since ${clockTime(last.at)}` : 'No picture'
    const why = camera.cure ?? (feed.trouble.value || (isConnecting ? '' : found.evidence))
    return (
        <div class={`frame none ${isPlain ? 'plain' : ''}`} tabIndex={-1}>
            <div>
                <State tone={isConnecting ? 'busy' : isPlain ? 'warn' : 'bad'}>{title}</State>
                {camera.error && <code class="wrap">{camera.error}</code>}
                {why && <span class="small muted">{why}</span>}
                {!isConnecting && (
                    <span class="acts">
                        {wantsSecret(camera) && (
                            <Act right={APPLY} project={camera.project} isSmall onClick={() => openDialog((close) => <ChooseSecret camera={camera} onClose={close} />)}>
                                <Icon name="lock" /> Choose the secret<span class="hidden"> of {camera.name}</span>
                            </Act>
                        )}
                        <button
                            type="button"
                            class="button small"
                            title="The server is asked at once; the camera itself is tried again within a minute"
                            onClick={() => {
                                feed.soon()
                                void cameras.load()
                            }}
                        >
                            Ask again<span class="hidden"> about {camera.name}</span>
                        </button>
                    </span>
                )}
            </div>
        </div>
    )
}

/** Where the details of a decision are: its passage, if it is one of it. */
export const addressOf = (decision: Decision): string =>
    decision.passage ? href(['ions', decision.ion, 'passages', decision.id]) : href(['ions', decision.ion, 'decisions'], { id: decision.id })

/** To what was decided last of a camera; a camera of which nothing is known leads to its list. */
async function openLast(camera: Camera): Promise<void> {
    const all = href(['ions', camera.ion, 'decisions'], { camera: camera.name })
    try {
        const { items } = await get<List<Decision>>('/decisions', { ion: camera.ion, camera: camera.name, limit: 1 })
        go(items[0] ? addressOf(items[0]) : all)
    } catch {
        go(all)
    }
}

/** Its pictures while it is shown, asked for no more often than that; none of a camera that gives none. */
function useFeed(camera: Camera, periodMs: number, host: { current: HTMLElement | null }): Feed | undefined {
    const [feed, setFeed] = useState<Feed>()
    const isGiving = givesPictures(camera)
    useEffect(() => {
        const one = watch(camera)
        const seen = new IntersectionObserver(([entry]) => (one.isSeen = entry!.isIntersecting), { rootMargin: '100px' })
        seen.observe(host.current!)
        setFeed(one)
        return () => {
            seen.disconnect()
            unwatch(one)
        }
    }, [camera.id])
    if (feed) {
        feed.periodMs = periodMs
        feed.isGiving = isGiving
    }
    return feed
}

export function Tile({ camera, of, periodMs, isHidden }: { camera: Camera; of: Judge; periodMs: number; isHidden: boolean }) {
    const host = useRef<HTMLElement>(null)
    const feed = useFeed(camera, periodMs, host)
    const picture = feed?.picture.value
    const found = of(camera, picture?.at)
    const isYoung = picture !== undefined && picture !== null && (isHeld.value || now.value - picture.at <= 3 * Math.max(periodOf(camera), periodMs))
    const isGiving = givesPictures(camera)
    const isLow = camera.fps !== null && camera.fps_expected !== null && camera.fps < RATE_LOW * camera.fps_expected
    return (
        <section ref={host} class={`panel cam ${found.tone === 'bad' ? 'bad' : found.tone === 'warn' ? 'warn' : ''}`} aria-label={`Camera ${camera.name}`} data-camera={camera.name}>
            {isGiving && isYoung ? (
                <a
                    class="frame"
                    href={href(['ions', camera.ion, 'decisions'], { camera: camera.name })}
                    onClick={(event) => {
                        if (!event.ctrlKey && !event.metaKey && !event.shiftKey) {
                            event.preventDefault()
                            void openLast(camera)
                        }
                    }}
                >
                    <span class="hidden">Last passage of {camera.name}. </span>
                    <Seen picture={picture} name={camera.name} isHidden={isHidden} />
                </a>
            ) : (
                feed && <None camera={camera} found={found} feed={feed} isConnecting={camera.state === 'connecting' || (isGiving && !picture && feed.trouble.value === '')} />
            )}
            <div class="panel-foot">
                <div class="grow">
                    <div class="row">
                        <b class="clip" title={`${camera.name}, ${camera.pipeline} of ${camera.ion}`}>
                            {camera.name}
                        </b>
                        <State tone={found.tone} isKnown={found.isKnown}>
                            {found.word}
                        </State>
                    </div>
                    <div class="muted clip" title={found.evidence}>
                        {found.evidence}
                    </div>
                </div>
                <div class="num">
                    <span class={isLow ? 'tone-warn-text' : ''}>{rateOf(camera)} frames/s</span>
                    <br />
                    {shareOf(camera) ? `${shareOf(camera)} unknown` : 'no decision'}, 30 min
                </div>
            </div>
        </section>
    )
}
