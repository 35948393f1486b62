/** What every tab of an ION begins with: its name, state and evidence, what waits for a person, and the other tabs. */
import type { ComponentChildren } from 'preact'
import type { Ion } from '../api'
import { dayMinute, plainValue, words } from '../format'
import { current, partsOf, tabsOf } from '../registry'
import type { Action, Args, Screen } from '../screen'
import { pendingCandidates } from '../state/candidates'
import { href, param } from '../state/route'
import { ions, rate } from '../state/store'
import { evidenceOf, isSandbox, sinceOf, verdictOf } from '../state/verdict'
import { Ago, Count, Empty, Loaded, PageHead, Tabs, Version } from './basics'
import { PolicyDiamond } from './diamond'
import { actionsOfIon, Decide, IonActs } from './ion_acts'
import { Sentence } from './noun'
import { Glyph, State } from './state'

const SHOWN = 3

/** Decisions per second of all its pipelines, or null until that is known. */
export function rateOf(ion: Ion): number | null {
    const rates = ion.pipelines.filter((one) => one.type === 'prediction').map((one) => rate.perSecond(ion.name, one.name))
    return rates.some((one) => one === null) ? null : rates.reduce<number>((sum, one) => sum + one!, 0)
}

/** The newest version that waits at each link; how many more there are leads to the model. */
export function Waiting({ ion }: { ion: Ion }) {
    const waiting = pendingCandidates.value.filter((one) => one.ion === ion.name)
    const newest = waiting.filter((one, i) => waiting.findIndex((it) => it.link_to === one.link_to) === i)
    if (waiting.length === 0) {
        return null
    }
    return (
        <ul class="panel list attention" aria-label="Waiting for your approval">
            {newest.map((one) => {
                const more = waiting.filter((it) => it.link_to === one.link_to).length - 1
                return (
                    <li key={one.id}>
                        <PolicyDiamond policy="manual" tone="warn" />
                        <div class="grow">
                            <p>
                                <b>{one.model}</b> <Version number={one.version} is="candidate" /> waits for approval to go to <b>{one.link_to}</b>
                                {more > 0 && (
                                    <>
                                        , and <a href={href(['models', one.model])}>{more} older</a>
                                    </>
                                )}
                            </p>
                            <small class="muted">
                                {one.approvals && `${one.waits_why} · `}
                                {Object.entries(one.metrics ?? {})
                                    .slice(0, SHOWN)
                                    .map(([key, value]) => `${words(key)} ${plainValue(value)} · `)}
                                <Ago time={one.created_ms} />
                            </small>
                        </div>
                        <Decide ion={ion} candidate={one} />
                    </li>
                )
            })}
        </ul>
    )
}

/** Why it is not well: the server's sentence. */
function Reason({ ion, isSaid }: { ion: Ion; isSaid: (reason: string) => boolean }) {
    const verdict = verdictOf(ion)
    const since = sinceOf(ion, verdict)
    if (!verdict.reason || isSaid(verdict.reason)) {
        return null
    }
    return (
        <div class={`note tone-${verdict.tone}`} role="status">
            <Glyph tone={verdict.tone} />
            <p>
                <Sentence text={verdict.reason} />
                {since && <span class="muted"> · {since}</span>}
            </p>
        </div>
    )
}

/** What a person may ask of an ION, on each of its tabs. */
export function ionActions(args: Args): Action[] {
    const ion = (ions.data.value ?? []).find((one) => one.name === args['ion'])
    return ion === undefined ? [] : actionsOfIon(ion)
}

function badgeOf(screen: Screen, args: Args): ComponentChildren {
    const badge = screen.tab?.badge?.(args)
    return badge && badge.count > 0 && <Count count={badge.count} tone={badge.tone} what={badge.what} />
}

function Head({ ion, tools, isSaid = () => false }: { ion: Ion; tools: ComponentChildren; isSaid?: (reason: string) => boolean }) {
    const verdict = verdictOf(ion)
    const shown = current.value
    return (
        <>
            <PageHead
                title={ion.name}
                crumbs={[
                    ['IONs', href('ions')],
                    [ion.project, href('ions', {}, ion.project)],
                ]}
                state={
                    <>
                        <span class="health" data-health={verdict.tone}>
                            <State tone={verdict.tone} isKnown={verdict.isKnown}>
                                {verdict.title}
                            </State>
                        </span>
                        {isSandbox(ion) && <span class="chip" title="On live data; its sinks and alerts touch nothing real">sandbox</span>}
                        <span class="small muted">
                            {evidenceOf(ion)}
                            <span class="only-desk">
                                {' '}
                                · revision {ion.revision}, applied {dayMinute(ion.updated_ms ?? ion.created_ms)}
                                {ion.created_by ? ` by ${ion.created_by}` : ''}
                            </span>
                        </span>
                    </>
                }
            >
                {tools}
                <IonActs ion={ion} />
            </PageHead>
            <Reason ion={ion} isSaid={isSaid} />
            <Tabs
                label={`Parts of ${ion.name}`}
                items={tabsOf('ion').map((screen) => ({
                    name: screen.tab!.name,
                    // What two tabs share, the time range, goes along.
                    address: href(partsOf(screen, { ion: ion.name }), Object.fromEntries(['from', 'to'].filter((key) => screen.query.includes(key)).map((key) => [key, param(key)]))),
                    isCurrent: shown?.screen.id === screen.id,
                    badge: shown && badgeOf(screen, shown.args),
                }))}
            />
        </>
    )
}

/** A tab of an ION: its head, and below it what the tab shows. @param isSaid The tab itself says this reason: the head does not. */
export function IonTab(props: { args: Args; tools?: ComponentChildren; isSaid?: (reason: string) => boolean; children: (ion: Ion) => ComponentChildren }) {
    const name = props.args['ion']
    return (
        <Loaded resource={ions} rows={6}>
            {(all) => {
                const ion = all.find((one) => one.name === name)
                return ion ? (
                    <>
                        <Head ion={ion} tools={props.tools} {...(props.isSaid ? { isSaid: props.isSaid } : {})} />
                        {props.children(ion)}
                    </>
                ) : (
                    <>
                        <PageHead title={name} crumbs={[['IONs', href('ions')]]} />
                        <div class="panel">
                            <Empty icon="question" title="There is no such ION" more={<a href={href('ions')}>All IONs</a>}>
                                It may have been deleted: <a href={href('events', { q: `subject:ion/${name}` })}>what happened to it</a>.
                            </Empty>
                        </div>
                    </>
                )
            }}
        </Loaded>
    )
}
