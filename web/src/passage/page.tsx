/** Passages of an ION, and one of them: a file of its own, /passage.js, which the page fetches with the first of these screens. */
import { useEffect, useLayoutEffect, useState } from 'preact/hooks'
import type { Decision, List } from '../api'
import { Ago, Empty, Loaded, PageHead } from '../components/basics'
import { Icon } from '../components/icon'
import { Id } from '../components/noun'
import { State, VERDICTS } from '../components/state'
import { toast } from '../components/toast'
import { dayTime, fixed, fullTime } from '../format'
import { framesOf, toldOf } from '../state/film'
import { passageKeys } from '../screens/ion_passages'
import { whoOf } from '../state/finding'
import { get, messageOf, segment } from '../state/http'
import { useResource } from '../state/resource'
import { go, href, param, setQuery } from '../state/route'
import { ions } from '../state/store'
import { Film, tenths } from './film'
import style from './passage.css'
import { Scores } from './scores'
import { answersOf, CameBefore, DecidedBy, Nearest, offered, Orders, Rule, ThisWas, Thumb, useTruth } from './sides'

export { Passages } from './list'

const WORDS: Record<string, string> = { grant: 'Granted', deny: 'Denied', unknown: 'Not known' }

const hrefOf = (one: Decision) => href(['ions', one.ion, 'passages', one.id])

/** The passage before it and the one after it; undefined: there is none. */
async function neighbours({ ion, time_ms, seq }: Decision): Promise<{ earlier: Decision | undefined; later: Decision | undefined }> {
    const [before, after] = await Promise.all([
        get<List<Decision>>('/passages', { ion, until: time_ms, limit: 1 }),
        get<List<Decision>>('/passages', { ion, after: seq, limit: 1 }),
    ])
    return { earlier: before.items[0], later: after.items[0] }
}

async function copyLink(): Promise<void> {
    try {
        await navigator.clipboard.writeText(location.href)
        toast('The link is copied')
    } catch {
        toast('The browser gives no clipboard here: the address line has the link', 'bad') // over plain http
    }
}

function Tools({ earlier, later }: { earlier: Decision | undefined; later: Decision | undefined }) {
    const step = (one: Decision | undefined, title: string, turn: '' | 'forward') => (
        <button type="button" class="button" disabled={!one} title={title} aria-label={title} onClick={() => one && go(hrefOf(one))}>
            <span class={turn}>
                <Icon name="back" />
            </span>
        </button>
    )
    return (
        <>
            {step(earlier, 'Earlier passage: k', '')}
            {step(later, 'Later passage: j', 'forward')}
            <button type="button" class="button desk" onClick={() => void copyLink()}>
                <Icon name="copy" />
                Copy link
            </button>
        </>
    )
}

function Shown({ decision }: { decision: Decision }) {
    const told = toldOf(decision)!
    const frames = framesOf(decision)
    const best = Math.max(0, frames.findIndex((one) => one.is_best))
    const wanted = param('frame')
    const at = wanted === '' ? best : Math.min(Math.max(0, frames.length - 1), Math.max(0, Number(wanted) || 0))
    const ion = (ions.data.value ?? []).find((one) => one.name === decision.ion)
    const truth = useTruth(decision)
    const around = useResource(`around:${decision.id}`, () => neighbours(decision))
    const [chosen, setChosen] = useState(() => offered(decision))
    const { earlier, later } = around.data.value ?? {}
    useLayoutEffect(() => {
        passageKeys.value = {
            step: (by) => setQuery({ frame: String(Math.min(frames.length - 1, Math.max(0, at + by))) }, true),
            go: (by) =>
                void (around.data.value ? Promise.resolve(around.data.value) : neighbours(decision)).then(
                    (found) => {
                        const one = by > 0 ? found.later : found.earlier
                        one && go(hrefOf(one))
                    },
                    (error: unknown) => toast(messageOf(error), 'bad'),
                ),
            was: (i) => answersOf(decision, truth).slice(-3)[i]?.run(),
        }
    })
    useEffect(() => () => void (passageKeys.value = null), [])
    const choose = (i: number) => setChosen(new Set(chosen.has(i) ? [...chosen].filter((one) => one !== i) : [...chosen, i]))
    const { tone = 'plain', label } = VERDICTS[decision.verdict] ?? {}
    return (
        <>
            <PageHead
                title={`${whoOf(decision)} at ${decision.camera}`}
                crumbs={[
                    ['IONs', href('ions')],
                    [decision.ion, href(['ions', decision.ion, 'graph'])],
                    ['Passages', href(['ions', decision.ion, 'passages'])],
                ]}
                state={
                    <>
                        <State tone={tone}>{WORDS[decision.verdict] ?? label ?? decision.verdict}</State>
                        <span class="small muted" title={fullTime(decision.time_ms)}>
                            {tenths(decision.time_ms)}, <Ago time={decision.time_ms} />
                        </span>
                    </>
                }
                sub={
                    <>
                        {dayTime(told.first)} – {tenths(told.last)}
                        <span class="only-desk">
                            {' '}
                            · passage <Id id={decision.id} />
                        </span>
                        {decision.brightness !== null && ` · brightness ${fixed(decision.brightness, 2)}`}
                    </>
                }
            >
                <Tools earlier={earlier} later={later} />
            </PageHead>
            <div class="grid split-r">
                <div class="stack">
                    <Film decision={decision} at={at} chosen={chosen} onChoose={choose} />
                    {frames.some((one) => one.score !== null) && <Scores decision={decision} />}
                </div>
                <div class="stack">
                    <Rule decision={decision} told={told} />
                    <Nearest decision={decision} told={told} />
                    {told.visitor && told.visitor.times > 1 && <CameBefore decision={decision} visitor={told.visitor} />}
                    <Orders decision={decision} />
                    <ThisWas decision={decision} ion={ion} truth={truth} chosen={chosen} />
                    <DecidedBy decision={decision} ion={ion} />
                </div>
            </div>
            <Thumb decision={decision} ion={ion} truth={truth} />
        </>
    )
}

/** @param ion Of the address. */
export function Passage({ ion, id }: { ion: string; id: string }) {
    const found = useResource(`passage:${id}`, () => get<Decision>(`/decisions/${segment(id)}`))
    return (
        <div class="passage stack">
            <style>{style}</style>
            {found.data.value === undefined && <PageHead title="Passage" crumbs={[['IONs', href('ions')], [ion, href(['ions', ion, 'graph'])], ['Passages', href(['ions', ion, 'passages'])]]} />}
            <Loaded resource={found} rows={8}>
                {(decision) =>
                    toldOf(decision) ? (
                        <Shown key={decision.id} decision={decision} />
                    ) : (
                        <>
                            <PageHead title={`${whoOf(decision)} at ${decision.camera}`} crumbs={[['IONs', href('ions')], [ion, href(['ions', ion, 'graph'])]]} />
                            <div class="panel">
                                <Empty icon="person" title="It is no passage" more={<a href={href(['ions', decision.ion, 'decisions'], { id: decision.id })}>The decision</a>}>
                                    It was decided from one frame: no stage of its pipeline follows people. The stage <code>track</code> does.
                                </Empty>
                            </div>
                        </>
                    )
                }
            </Loaded>
        </div>
    )
}
