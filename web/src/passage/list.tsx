/** The passages of an ION: as they come and back in time, or by unknown people who came again. */
import { useEffect, useMemo } from 'preact/hooks'
import type { Decision, Ion } from '../api'
import { Choices, Empty, Loaded, Loading, Panel } from '../components/basics'
import { DecisionRows, LiveControls } from '../components/decision_list'
import { Shot } from '../components/face'
import { Icon } from '../components/icon'
import { counted, dayMinute, fullTime } from '../format'
import { toldOf } from '../state/film'
import { Filters, filterOf, Foot, KEYS, ListFailed, NoMatch, useSeen, wantedNow } from '../screens/ion_decisions'
import { DecisionList } from '../state/decisions'
import { getAll, segment } from '../state/http'
import { useResource } from '../state/resource'
import { href, hrefWith, param } from '../state/route'
import style from './passage.css'
import { visitorsOf, timesText, type Visitor } from './passage'
import { enrolFrom } from './sides'

const SPAN_MS = 7 * 86_400_000 // replicas remember no longer
const PAGES = 10
const FACES = 5

const addressOf = (one: Decision) => href(['ions', one.ion, 'passages', one.id])

/** "2 of 3 · 14 frames", or that an unknown person came before. */
function noteOf(one: Decision): string {
    const told = toldOf(one)
    if (!told) {
        return ''
    }
    const { visitor, rule } = told
    return `${visitor && visitor.times > 1 ? `came ${timesText(visitor.times)}` : rule ? `${told.n_named} of ${rule.m} name one` : ''} · ${counted(told.n_frames, 'frame')}`
}

function AsTheyCome({ ion }: { ion: string }) {
    const wanted = wantedNow()
    const key = [ion, ...KEYS.map((name) => wanted[name])].join('\n')
    const list = useMemo(() => new DecisionList(filterOf(ion, wanted), undefined, true), [key])
    useEffect(() => list.start(), [list])
    const rows = list.rows.value
    const people = useSeen(rows ?? [], 'person', '')
    return (
        <>
            <Filters wanted={wanted} cameras={useSeen(rows ?? [], 'camera', wanted.camera)} people={people} labels={[]} />
            <ListFailed list={list} />
            <section class="panel live-list" aria-labelledby="passages-title">
                <header class="panel-head stays">
                    <h2 id="passages-title">{wanted.to ? 'In this time' : 'Live'}</h2>
                    <span class="aside">
                        <LiveControls list={list} />
                    </span>
                </header>
                {rows === undefined ? (
                    !list.error.value && <Loading rows={6} />
                ) : rows.length > 0 ? (
                    <>
                        <DecisionRows key={key} list={list} chosen="" addressOf={addressOf} noteOf={noteOf} note="What its frames say" />
                        <Foot list={list} />
                    </>
                ) : KEYS.some((name) => wanted[name]) ? (
                    <NoMatch wanted={wanted} people={people} />
                ) : (
                    <Empty icon="person" title="No passages yet">
                        A passage is one person through one camera’s picture. They appear here where the stages of a pipeline have <code>track</code>, the moment the first is decided.
                    </Empty>
                )}
            </section>
        </>
    )
}

function Came({ visitor }: { visitor: Visitor }) {
    const { passages, times, first } = visitor
    const newest = passages[0]!
    const cameras = [...new Set(passages.map((one) => one.camera))].join(', ')
    return (
        <li>
            <a class="faces" href={addressOf(newest)} aria-label={`The newest passage, at ${newest.camera}`}>
                {passages.slice(0, FACES).map((one) => (
                    <Shot key={one.id} path={one.image ? `/decisions/${segment(one.id)}/image` : null} name={`Unknown person at ${one.camera}`} size="small" />
                ))}
            </a>
            <span class="grow">
                <b>
                    Came {timesText(times)} since {dayMinute(first)}
                </b>
                <small class="muted" title={fullTime(newest.time_ms)}>
                    last {dayMinute(newest.time_ms)} · {cameras}
                    {passages.length < times && ` · ${passages.length} of the passages are kept`}
                </small>
            </span>
            <a class="button small" href={enrolFrom(newest.ion, passages.map((one) => one.id))}>
                <Icon name="plus" />
                Enrol…
            </a>
        </li>
    )
}

/** Those that no replica compares with others are not here. */
function ComeAgain({ ion }: { ion: string }) {
    const wanted = wantedNow()
    const { camera, since, until } = filterOf(ion, wanted)
    const from = since ?? Date.now() - SPAN_MS
    const found = useResource(['visitors', ion, camera, wanted.from, wanted.to].join('\n'), () =>
        getAll<Decision>('/passages', { ion, camera, verdict: 'unknown', since: new Date(from).toISOString(), until: until === null ? null : new Date(until).toISOString(), limit: 200 }, PAGES),
    )
    return (
        <Loaded resource={found} rows={6}>
            {(passages) => {
                const groups = visitorsOf(passages)
                const isCompared = passages.some((one) => toldOf(one)?.visitor)
                return groups.length > 0 ? (
                    <Panel title="Unknown people who came again" window={`${counted(groups.length, 'person', 'people')}, by likeness of the face alone`}>
                        <ul class="list visitors" aria-label="Unknown people who came again">
                            {groups.map((one) => (
                                <Came key={one.id} visitor={one} />
                            ))}
                        </ul>
                    </Panel>
                ) : (
                    <div class="panel">
                        {passages.length === 0 ? (
                            <Empty icon="person" title="Nobody unknown passed">In the last 7 days, or in the time that is chosen above.</Empty>
                        ) : isCompared ? (
                            <Empty icon="person" title="Nobody unknown came twice">{counted(passages.length, 'passage')} of unknown people, each of another one.</Empty>
                        ) : (
                            <Empty icon="person" title="Unknown people are not compared with each other">
                                Write <code>{'{kind: track, visitors: true}'}</code> into the stages of the pipeline. Its replicas then remember faces of unknown people for up to 7 days, which the law may ask a reason for.
                            </Empty>
                        )}
                    </div>
                )
            }}
        </Loaded>
    )
}

export function Passages({ ion }: { ion: Ion }) {
    const isAgain = param('view') === 'again'
    return (
        <div class="passages stack">
            <style>{style}</style>
            <Choices
                label="What is shown"
                items={[
                    { name: 'As they come', address: hrefWith({ view: '' }), isCurrent: !isAgain },
                    { name: 'Unknown people who came again', address: hrefWith({ view: 'again', verdict: '', person: '' }), isCurrent: isAgain },
                ]}
            />
            {isAgain ? <ComeAgain key={ion.name} ion={ion.name} /> : <AsTheyCome ion={ion.name} />}
        </div>
    )
}
