/** Who gets which version: a slider for each, a draft until Apply, with the server's answer; the mirror; the way back. */
import { useEffect, useState } from 'preact/hooks'
import type { Deployment, ModelVersion, Share } from '../api'
import { change, inUse, setShares, settled, sharesOf, sharesText, sharesWith, verdictOf } from '../state/deployments'
import { messageOf } from '../state/http'
import { may } from '../state/rights'
import { connection } from '../state/stream'
import { Panel, Version } from './basics'
import { ask, type Question } from './dialog'
import { Icon } from './icon'
import { Act } from './locked'
import { ShareSlider } from './share_slider'
import { State, type Tone } from './state'

interface Outcome {
    tone: Tone
    text: string
}

/** Asked for, and then what became of it, in the server's words. */
async function applied(name: string, what: string, ask: () => Promise<Deployment>, tell: (outcome: Outcome) => void): Promise<void> {
    const began = performance.now()
    tell({ tone: 'busy', text: `${what} …` })
    try {
        const asked = await ask()
        const after = asked.is_settled ? asked : await settled(name)
        const verdict = verdictOf(after)
        if (verdict.tone === 'bad') {
            tell({ tone: 'bad', text: `${verdict.evidence}. In effect: ${after.traffic}` })
        } else if (!after.is_settled) {
            tell({ tone: 'busy', text: `${what}: not in effect yet. ${after.reason ?? verdict.evidence}` })
        } else {
            tell({ tone: 'good', text: `${what}: in effect after ${Math.round(performance.now() - began)} ms, as the server answers` })
        }
    } catch (error) {
        tell({ tone: 'bad', text: messageOf(error) })
    }
}

/** What is asked for now, and versions that one may add: those loaded, then all of the model. */
function choices(one: Deployment, versions: readonly ModelVersion[]): number[] {
    const shown = inUse(one).filter((it) => !it.is_mirror || it.percent > 0).map((it) => it.version)
    return versions.map((it) => it.version).filter((version) => !shown.includes(version)).sort((a, b) => b - a)
}

export function rollbackQuestion(one: Deployment): Question | undefined {
    const previous = one.previous
    if (!previous || previous.length === 0 || sharesText(previous) === sharesText(sharesOf(one))) {
        return undefined
    }
    const areLoaded = previous.every((share) => one.versions.some((it) => it.version === share.version && it.n_ready > 0))
    return {
        title: `Roll ${one.name} back to ${sharesText(previous)}?`,
        text: (
            <p>
                Now: {sharesText(sharesOf(one))}. {areLoaded ? 'Replicas have it loaded still, so it takes effect at once, and no request fails.' : 'Replicas load it first; until then requests go as now.'}
            </p>
        ),
        confirm: `Roll back to ${sharesText(previous)}`,
        danger: true,
        done: `${one.name} goes back to ${sharesText(previous)}`,
        act: async () => {
            await setShares(one.name, previous)
            await settled(one.name)
        },
    }
}

/** What a change of shares would do, before it is made. */
function applyQuestion(one: Deployment, wanted: readonly Share[], apply: () => Promise<void>): Question {
    const isLoaded = (version: number) => one.versions.some((it) => it.version === version && it.n_ready > 0)
    const toLoad = wanted.filter((share) => !isLoaded(share.version))
    const gone = sharesOf(one).filter((share) => !wanted.some((it) => it.version === share.version))
    return {
        title: `Give ${one.name} other shares?`,
        text: (
            <>
                <p>
                    Now: {sharesText(sharesOf(one))}. Then: <b>{sharesText(wanted)}</b>.
                </p>
                <p class="muted">
                    {toLoad.length > 0
                        ? `Replicas load ${toLoad.map((share) => `v${share.version}`).join(', ')} first; until then requests go as now.`
                        : 'Replicas have all of them loaded, so it takes effect at once, and no request fails.'}
                    {gone.length > 0 && ` ${gone.map((share) => `v${share.version}`).join(', ')} gets no request any more.`}
                </p>
            </>
        ),
        confirm: 'Apply',
        done: `${one.name}: ${sharesText(wanted)} asked for`,
        act: async () => {
            void apply() // what becomes of it stands in the panel
        },
    }
}

export function SharesPanel({ deployment, versions }: { deployment: Deployment; versions: readonly ModelVersion[] }) {
    const asked = sharesOf(deployment)
    const [added, setAdded] = useState<number[]>([])
    const [draft, setDraft] = useState<Share[]>([])
    const [outcome, setOutcome] = useState<Outcome>()
    const askedText = sharesText(asked)
    useEffect(() => {
        setDraft([])
        setAdded((old) => old.filter((version) => !asked.some((one) => one.version === version)))
    }, [askedText])
    const rows: Share[] = draft.length > 0 ? draft : [...asked, ...added.map((version) => ({ version, percent: 0 }))]
    const mayChange = may('change deployments', deployment.project) && connection.value.state !== 'lost'
    const back = rollbackQuestion(deployment)
    const others = choices(deployment, versions).filter((version) => !rows.some((one) => one.version === version))
    const wanted = rows.filter((one) => one.percent > 0)
    const isChanged = sharesText(wanted) !== askedText
    const draw = (version: number, percent: number) => {
        setDraft(sharesWith(rows, version, percent))
        setOutcome(undefined) // it was of other shares
    }
    const discard = () => {
        setDraft([])
        setAdded([])
    }
    const apply = () => applied(deployment.name, sharesText(wanted), () => setShares(deployment.name, wanted), setOutcome)
    const setMirror = (text: string) =>
        void applied(deployment.name, text === 'none' ? 'No mirror' : `Mirror ${text}`, () => change(deployment.name, { mirror: text }), setOutcome)
    return (
        <Panel
            title="Shares"
            window="of requests; nothing changes before Apply"
            class="wraps"
            aside={
                back && (
                    <Act right="change deployments" project={deployment.project} tone="danger" isSmall onClick={() => ask(back)}>
                        <Icon name="undo" />
                        {back.confirm}
                    </Act>
                )
            }
        >
            <div class="panel-body shares">
                {rows.map((one) => {
                    const live = deployment.versions.find((it) => it.version === one.version)
                    const was = asked.find((it) => it.version === one.version)?.percent ?? 0
                    return (
                        <div key={one.version} class="share-row" data-version={one.version}>
                            <ShareSlider
                                label={`v${one.version}`}
                                value={one.percent}
                                was={was}
                                max={100}
                                disabled={!mayChange || rows.length === 1}
                                text={(value) => `${Math.round(value * 100) / 100} %`}
                                onInput={(value) => draw(one.version, value)}
                            />
                            <small class="muted">
                                {live === undefined ? 'not loaded yet' : live.live_percent === was && !isChanged ? `in effect, ${live.n_ready} ready` : `in effect: ${live.live_percent} %`}
                                {live?.reason && <span class="wrong"> {live.reason}</span>}
                            </small>
                        </div>
                    )
                })}
                {rows.length === 1 && <p class="muted small">One version gets every request. Add another to share them.</p>}
                <div class="row wrap">
                    {others.length > 0 && (
                        <label class="row">
                            <span class="muted">Add</span>
                            <select class="input" name="add" value="" disabled={!mayChange} onChange={(event) => setAdded([...added, Number(event.currentTarget.value)])}>
                                <option value="">a version …</option>
                                {others.map((version) => (
                                    <option key={version} value={version}>
                                        v{version}
                                    </option>
                                ))}
                            </select>
                        </label>
                    )}
                    <label class="row">
                        <span class="muted">Mirror</span>
                        <select
                            class="input"
                            name="mirror"
                            value={deployment.mirror > 0 ? `v${deployment.mirror}` : 'none'}
                            disabled={!mayChange}
                            title="It gets a copy of each request; its answers are compared and dropped"
                            onChange={(event) => setMirror(event.currentTarget.value)}
                        >
                            <option>none</option>
                            {versions.map((one) => (
                                <option key={one.version}>v{one.version}</option>
                            ))}
                        </select>
                    </label>
                    {!may('change deployments', deployment.project) && (
                        <Act right="change deployments" project={deployment.project} isSmall onClick={() => undefined}>
                            Who may change shares
                        </Act>
                    )}
                </div>
                {isChanged && (
                    <div class="row wrap share-draft">
                        <Act right="change deployments" project={deployment.project} tone="primary" onClick={() => ask(applyQuestion(deployment, wanted, apply))}>
                            Apply…
                        </Act>
                        <button type="button" class="button" onClick={discard}>
                            Discard
                        </button>
                        <span class="muted">
                            Not applied: {sharesText(wanted)}. Now: {askedText}.
                        </span>
                    </div>
                )}
                <p class="share-outcome" role="status">
                    {outcome && <State tone={outcome.tone}>{outcome.text}</State>}
                </p>
            </div>
        </Panel>
    )
}

/** Shares in effect as one bar, with a word for readers. */
export function ShareBar({ deployment }: { deployment: Deployment }) {
    const live = deployment.versions.filter((one) => one.live_percent > 0)
    return (
        <span class="bar shares-bar" role="img" aria-label={live.length > 0 ? deployment.traffic : 'no version in effect'} title={deployment.traffic}>
            {live.map((one, i) => (
                <i key={one.version} style={{ width: `${one.live_percent}%`, background: `var(--series-${(i % 6) + 1})` }} />
            ))}
        </span>
    )
}

export function VersionMark({ deployment, version }: { deployment: Deployment; version: number }) {
    const live = deployment.versions.filter((one) => one.live_percent > 0)
    const most = live.length > 0 && live.every((one) => one.live_percent <= (live.find((it) => it.version === version)?.live_percent ?? 0))
    return <Version number={version} is={connection.value.state === 'lost' ? undefined : most ? 'live' : 'candidate'} />
}
