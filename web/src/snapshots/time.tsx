/** A slider through the time of a snapshot, over what was decided then, with marks of what happened; and the state at that moment. */
import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Snapshot, SnapshotPart, SnapshotState } from '../api'
import { clockTime, counted, dayTime, duration, millis, NONE, percent, plainValue, short, words } from '../format'
import { get, segment } from '../state/http'
import { onKeys } from '../state/keys'
import { useResource, type Resource } from '../state/resource'
import { param, setQuery } from '../state/route'
import { Facts, Loaded, Panel, Version, When } from '../components/basics'
import { Icon } from '../components/icon'
import { Sentence } from '../components/noun'
import { State } from '../components/state'
import { TimeChart } from '../components/time_chart'

const PARTS = 24 // of the span, that the curve is made of
const MINUTE_MS = 60_000
const PAUSE_MS = 200 // the hand rests: then the state is fetched
const STEPS = 60 // of playing from begin to end
const PLAY_MS = 500

const stateAt = (name: string, ms: number) => get<SnapshotState>(`/snapshots/${segment(name)}/state`, { time: new Date(ms).toISOString() })

/** Of the decisions of each part, the share that is not a grant or a label: unknown, deny, error. */
function Course({ course, isPerson }: { course: readonly SnapshotPart[]; isPerson: boolean }) {
    const parts = course.map((one) => {
        const share = (key: 'unknown' | 'deny' | 'error') => (one.n > 0 ? (100 * one[key]) / one.n : null)
        return { time: millis(one.time_ms), unknown: share('unknown'), deny: share('deny'), error: share('error') }
    })
    if (parts.length < 2) {
        return null
    }
    const times = parts.map((one) => one.time)
    return (
        <TimeChart
            title="Not granted"
            window={`% of decisions · ${duration(times[1]! - times[0]!)} each`}
            times={times}
            top={10}
            heightPx={128}
            lines={[
                { name: 'unknown', colour: '--series-2', values: parts.map((one) => one.unknown) },
                ...(isPerson ? [{ name: 'deny', colour: '--series-5', values: parts.map((one) => one.deny) }] : []),
                { name: 'error', colour: '--series-4', values: parts.map((one) => one.error) },
            ]}
        />
    )
}

function Moment({ state }: { state: SnapshotState }) {
    const { decisions } = state
    return (
        <div class="grid g2">
            <Panel title={`State at ${clockTime(state.time_ms)}`} window={`revision ${state.revision}`}>
                {state.links.length === 0 && <p class="quiet">No link yet.</p>}
                <ul class="list">
                    {state.links.map((link) => (
                        <li key={link.id}>
                            <div class="grow">
                                <b>
                                    {link.from} → {link.to}
                                </b>{' '}
                                {typeof link.version === 'number' ? <Version number={link.version} is="live" /> : <span class="muted">nothing served</span>}
                                <div class="small muted">
                                    {[link.verdict && `${words(link.verdict)} by ${link.actor ?? 'policy'}`, link.rule, link.policy ? `policy ${plainValue(link.policy)}` : ''].filter(Boolean).join(' · ')}
                                </div>
                                {link.waiting.map((one) => (
                                    <div key={one.version} class="small">
                                        <Version number={one.version} is="candidate" /> {one.rule ?? `waits at ${one.policy ?? 'a policy'}`}
                                    </div>
                                ))}
                            </div>
                            {link.since_ms && (
                                <span class="small">
                                    <When time={link.since_ms} />
                                </span>
                            )}
                        </li>
                    ))}
                </ul>
                <div class="panel-body">
                    <Facts
                        items={[
                            ['Decisions', `${short(decisions.n)} since the begin`],
                            ['Unknown', decisions.n > 0 ? percent(decisions.unknown / decisions.n) : NONE],
                            ['Alerts', state.alerts.length === 0 ? 'none' : state.alerts.map((one) => one.message).join(' · ')],
                            ...state.health.slice(0, 4).map((one): [string, ComponentChildren] => [
                                `${words(one.signal)}, ${one.pipeline}`,
                                <State tone={one.drifted ? 'bad' : 'good'}>{one.drifted ? `drifts, p ${short(one.p_value)}` : `p ${short(one.p_value)}`}</State>,
                            ]),
                        ]}
                    />
                </div>
            </Panel>
            <Panel title="Events until then" window="newest first">
                {state.events.length === 0 ? (
                    <p class="quiet">None yet.</p>
                ) : (
                    <ul class="list">
                        {state.events.slice(0, 8).map((event) => (
                            <li key={event.seq}>
                                <div class="grow">
                                    <Sentence text={event.message} />
                                    <div class="small muted">{words(event.kind)}</div>
                                </div>
                                <button type="button" class="link small nowrap" onClick={() => setQuery({ at: event.time_ms })}>
                                    {clockTime(event.time_ms)}
                                </button>
                            </li>
                        ))}
                    </ul>
                )}
            </Panel>
        </div>
    )
}

export function SnapshotTime({ snapshot, acts }: { snapshot: Snapshot; acts: ComponentChildren }) {
    const [from, to] = [millis(snapshot.from_ms), millis(snapshot.to_ms)]
    const inSpan = (ms: number) => Math.round(Math.min(to, Math.max(from, ms)))
    const asked = Date.parse(param('at'))
    const [at, setAt] = useState(inSpan(Number.isNaN(asked) ? to : asked))
    const [isPlaying, setPlaying] = useState(false)
    /** At its end, with the course of the whole span. */
    const whole = useResource(`course:${snapshot.name}`, () => get<SnapshotState>(`/snapshots/${segment(snapshot.name)}/state`, { points: PARTS })).data.value
    const held = useRef(at)
    held.current = at
    const move = (ms: number) => setAt(inSpan(ms))
    useEffect(() => {
        if (!Number.isNaN(asked) && inSpan(asked) !== held.current) {
            setAt(inSpan(asked))
        }
    }, [asked])
    useEffect(() => {
        const timer = window.setTimeout(() => Math.abs((Number.isNaN(asked) ? to : asked) - at) > 500 && setQuery({ at: new Date(at).toISOString() }, true), PAUSE_MS)
        return () => window.clearTimeout(timer)
    }, [at])
    useEffect(() => {
        if (!isPlaying) {
            return undefined
        }
        const timer = window.setInterval(() => (held.current >= to ? setPlaying(false) : move(held.current + (to - from) / STEPS)), PLAY_MS)
        return () => window.clearInterval(timer)
    }, [isPlaying])
    const toggle = () => {
        if (!isPlaying && at >= to) {
            setAt(from)
        }
        setPlaying(!isPlaying)
    }
    useEffect(() => onKeys((key) => key === ' ' && (toggle(), true)), [isPlaying, at])
    const resource: Resource<SnapshotState> = useResource(`snapshot:${snapshot.name}:${Number.isNaN(asked) ? to : inSpan(asked)}`, () => stateAt(snapshot.name, Number.isNaN(asked) ? to : inSpan(asked)))
    const last = useRef<SnapshotState | undefined>(undefined)
    last.current = resource.data.value ?? last.current
    const marks = useMemo(() => (whole?.events ?? []).filter((one) => /promot|rolled|reject|alert|applied|drift|set/.test(one.kind)).slice(0, 60), [whole])
    const isPerson = (whole?.decisions.label ?? 0) === 0
    return (
        <>
            <Panel
                title={snapshot.name}
                window={`${dayTime(from)} – ${dayTime(to)} · revision ${snapshot.revision} · ${counted(snapshot.n_rows, 'record')}`}
                aside={acts}
            >
                <div class="panel-body timeline">
                    <div class="timeline-track">
                        <input
                            type="range"
                            aria-label="Moment of the snapshot"
                            aria-valuetext={dayTime(at)}
                            min={from}
                            max={to}
                            step={1000}
                            value={at}
                            onInput={(event) => move(Number(event.currentTarget.value))}
                            onKeyDown={(event) => {
                                const way = event.key === 'ArrowLeft' ? -1 : event.key === 'ArrowRight' ? 1 : 0
                                if (way !== 0) {
                                    event.preventDefault()
                                    move(at + way * (event.shiftKey ? 10 : 1) * MINUTE_MS)
                                }
                            }}
                        />
                        {marks.map((one) => (
                            <i key={one.seq} class={`timeline-mark ${one.severity}`} style={{ left: `calc(8px + (100% - 16px) * ${(millis(one.time_ms) - from) / Math.max(1, to - from)})` }} title={`${clockTime(one.time_ms)} ${one.message}`} />
                        ))}
                    </div>
                    <p class="row wrap">
                        <button type="button" class="button small" onClick={toggle} aria-label={isPlaying ? 'Stop' : 'Play'}>
                            <Icon name={isPlaying ? 'pause' : 'play'} />
                        </button>
                        <b>{dayTime(at)}</b>
                        <span class="small muted only-desk">drag, or ← → by 1 min, Shift by 10 min, Space plays</span>
                        {marks.length > 0 && <span class="small muted">{counted(marks.length, 'mark')}: hover for what happened</span>}
                    </p>
                </div>
            </Panel>
            <Course course={whole?.course ?? []} isPerson={isPerson} />
            {last.current && resource.error.value === null ? <Moment state={last.current} /> : <Loaded resource={resource}>{(state) => <Moment state={state} />}</Loaded>}
        </>
    )
}
