/** What an ION decided: as it comes, and of any hour before; by camera, verdict, person, label and time. All of it is in the address. */
import { useEffect, useMemo } from 'preact/hooks'
import type { Decision } from '../api'
import { Empty, Loading } from '../components/basics'
import { DecisionDrawer } from '../components/decision_drawer'
import { DecisionRows, LiveControls } from '../components/decision_list'
import { WithDrawer } from '../components/drawer'
import { Icon } from '../components/icon'
import { ionActions, IonTab, rateOf } from '../components/ion_head'
import { VERDICTS } from '../components/state'
import { momentOf, rangeText, TimeRange } from '../components/time_range'
import { VerdictChart } from '../components/verdict_chart'
import { dayTime } from '../format'
import type { Args, Screen } from '../screen'
import { DecisionList, type DecisionFilter } from '../state/decisions'
import { hrefWith, param, setQuery } from '../state/route'
import { ions } from '../state/store'
import { useSummary } from '../state/summaries'

const SEEN_MAX = 500
const WINDOW = '-30m'
const BUCKETS = 60
const NARROWS = ['camera', 'verdict', 'person', 'label'] as const
export const KEYS = [...NARROWS, 'from', 'to'] as const

type Wanted = Record<(typeof KEYS)[number], string>

export function wantedNow(): Wanted {
    return Object.fromEntries(KEYS.map((key) => [key, param(key)])) as Wanted
}

export function filterOf(ion: string, wanted: Wanted): DecisionFilter {
    const { camera, verdict, person, label } = wanted
    return { ion, camera, verdict, person, label, since: momentOf(wanted.from, Date.now()), until: momentOf(wanted.to, Date.now()) }
}

/** Remembers what was seen, so that a choice does not vanish while its decisions scroll out of memory. */
export function useSeen(items: Decision[], field: 'camera' | 'person' | 'label', current: string): string[] {
    const seen = useMemo(() => new Set<string>(), [])
    for (const decision of items) {
        const value = decision[field]
        if (value && seen.size < SEEN_MAX) {
            seen.add(value)
        }
    }
    return [...new Set(current ? [...seen, current] : seen)].sort()
}

function Choice(props: { name: 'camera' | 'verdict' | 'label'; value: string; all: string; options: [string, string][] }) {
    return (
        <select class="input" name={props.name} aria-label={props.all} value={props.value} onChange={(event) => setQuery({ [props.name]: event.currentTarget.value })}>
            <option value="">{props.all}</option>
            {props.options.map(([value, text]) => (
                <option key={value} value={value}>
                    {text}
                </option>
            ))}
        </select>
    )
}

export function Filters(props: { wanted: Wanted; cameras: string[]; people: string[]; labels: string[] }) {
    const { wanted } = props
    return (
        <form class="filter decisions-filter" role="search" aria-label="Filter decisions" onSubmit={(event) => event.preventDefault()}>
            <label class="input">
                <Icon name="person" />
                <input
                    type="search"
                    name="person"
                    aria-label="Person, by whole name"
                    placeholder="Who, by whole name"
                    list="people-seen"
                    value={wanted.person}
                    onChange={(event) => setQuery({ person: event.currentTarget.value.trim() })}
                />
                <datalist id="people-seen">
                    {props.people.map((person) => (
                        <option key={person} value={person} />
                    ))}
                </datalist>
            </label>
            <Choice name="camera" value={wanted.camera} all="All cameras" options={props.cameras.map((one) => [one, one])} />
            {props.labels.length > 0 && <Choice name="label" value={wanted.label} all="All labels" options={props.labels.map((one) => [one, one])} />}
            <Choice name="verdict" value={wanted.verdict} all="All verdicts" options={Object.entries(VERDICTS).map(([value, { label }]) => [value, label])} />
            {KEYS.some((key) => wanted[key]) && (
                <button type="button" class="button" onClick={() => setQuery(Object.fromEntries(KEYS.map((key) => [key, ''])))}>
                    <Icon name="cross" />
                    Clear
                </button>
            )}
        </form>
    )
}

/** Nothing matches: what to drop, and names that were seen and are like the one asked for. */
export function NoMatch({ wanted, people }: { wanted: Wanted; people: string[] }) {
    const needle = wanted.person.toLowerCase()
    const like = needle ? people.filter((person) => person !== wanted.person && person.toLowerCase().includes(needle)).slice(0, 5) : []
    return (
        <Empty
            icon="question"
            title="No decision matches"
            more={
                like.length > 0 && (
                    <p class="acts">
                        {like.map((person) => (
                            <button key={person} type="button" class="button small" onClick={() => setQuery({ person })}>
                                {person}
                            </button>
                        ))}
                    </p>
                )
            }
        >
            {like.length > 0 ? `Nobody is called “${wanted.person}”; did you mean:` : 'Widen the time or the filter above, or clear it.'}
        </Empty>
    )
}

export function Foot({ list }: { list: DecisionList }) {
    const rows = list.rows.value ?? []
    const oldest = rows[rows.length - 1]
    return (
        <p class="panel-foot list-foot">
            {oldest && `Back to ${dayTime(oldest.time_ms)}. `}
            {list.atEnd.value ? 'There are no older ones.' : 'Older ones load as you scroll.'}
        </p>
    )
}

export function ListFailed({ list }: { list: DecisionList }) {
    const error = list.error.value
    return (
        error && (
            <div class="failed" role="alert">
                <Icon name="warning" />
                <p>
                    {error.message} <span class="muted">({error.code})</span>
                </p>
                <button type="button" class="button small" onClick={() => void list.load()}>
                    Try again
                </button>
            </div>
        )
    )
}

function Bars({ ion, wanted }: { ion: string; wanted: Wanted }) {
    const from = wanted.from || WINDOW
    const data = useSummary(ion, from, wanted.to, BUCKETS).data.value
    return data?.buckets && data.buckets.length > 1 ? <VerdictChart title="Decisions/s" buckets={data.buckets} window={rangeText(from, wanted.to, '')} /> : null
}

/** The list that the verdict key moves through. */
let shownList: DecisionList | null = null

function Decisions({ ion }: { ion: string }) {
    const wanted = wantedNow()
    const key = [ion, ...KEYS.map((name) => wanted[name])].join('\n')
    const list = useMemo(() => new DecisionList(filterOf(ion, wanted)), [key])
    useEffect(() => {
        shownList = list
        return list.start()
    }, [list])
    const rows = list.rows.value
    const cameras = useSeen(rows ?? [], 'camera', wanted.camera)
    const people = useSeen(rows ?? [], 'person', '')
    const labels = useSeen(rows ?? [], 'label', wanted.label)
    const open = param('id')
    useEffect(() => {
        list.hold('drawer', open !== '')
    }, [list, open])
    const isFiltered = KEYS.some((name) => wanted[name])
    return (
        <>
            <Filters wanted={wanted} cameras={cameras} people={people} labels={labels} />
            <Bars ion={ion} wanted={wanted} />
            <ListFailed list={list} />
            <WithDrawer
                listName="decisions"
                close={hrefWith({ id: '' })}
                drawer={open && <DecisionDrawer key={open} id={open} known={rows?.find((one) => one.id === open)} />}
                list={
                    <section class="panel live-list" aria-labelledby="decisions-title">
                        <header class="panel-head stays">
                            <h2 id="decisions-title">{wanted.to ? 'In this time' : 'Live'}</h2>
                            <span class="aside">
                                <LiveControls list={list} />
                            </span>
                        </header>
                        {rows === undefined ? (
                            !list.error.value && <Loading rows={6} />
                        ) : rows.length > 0 ? (
                            <>
                                <DecisionRows key={key} list={list} chosen={open} />
                                <Foot list={list} />
                            </>
                        ) : isFiltered ? (
                            <NoMatch wanted={wanted} people={people} />
                        ) : (
                            <Empty icon="camera" title="No decisions yet">
                                They appear here the moment a prediction pipeline decides its first frame.
                            </Empty>
                        )}
                    </section>
                }
            />
        </>
    )
}

function IonDecisions({ args }: { args: Args }) {
    return (
        <IonTab args={args} tools={<TimeRange fallback="all time" />}>
            {(ion) => <Decisions key={ion.name} ion={ion.name} />}
        </IonTab>
    )
}

/** The next decision below the chosen one with another verdict, or the next at all. */
function move(step: 1 | -1, isOtherVerdict: boolean): void {
    const rows = shownList?.rows.peek() ?? []
    const at = rows.findIndex((one) => one.id === param('id'))
    let next = at + step
    while (isOtherVerdict && rows[next] && rows[next]!.verdict === rows[at]?.verdict) {
        next += step
    }
    if (rows[next]) {
        setQuery({ id: rows[next]!.id })
        document.querySelector(`[data-decision="${rows[next]!.id}"]`)?.scrollIntoView({ block: 'nearest' })
    }
}

export const ionDecisionsScreen: Screen = {
    id: 'ion-decisions',
    title: 'Decisions',
    icon: 'decisions',
    address: 'ions/:ion/decisions',
    query: [...KEYS, 'id'],
    under: 'ions',
    tab: {
        of: 'ion',
        name: 'Decisions',
        badge: (args) => {
            const ion = (ions.data.value ?? []).find((one) => one.name === args['ion'])
            return { count: Math.round((ion && rateOf(ion)) ?? 0), tone: 'plain', what: 'decisions/s' }
        },
    },
    load: [ions],
    actions: ionActions,
    keys: () => [
        { key: 'j', name: 'next decision', run: () => move(1, false) },
        { key: 'k', name: 'decision before', run: () => move(-1, false) },
        { key: 'v', name: 'next verdict', run: () => move(1, true) },
        { key: ' ', name: 'pause', run: () => shownList?.hold('pause', !shownList.isHeldFor('pause')) },
    ],
    render: IonDecisions,
}
