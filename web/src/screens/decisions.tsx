/** Decisions: as they come, and of any hour before; by ION, camera, verdict, person and time. All of it is in the address. */
import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Decision } from '../api'
import { Empty, Loading, PageHead } from '../components/basics'
import { VERDICTS } from '../components/chip'
import { DecisionRows, LiveControls } from '../components/decision_list'
import { Icon } from '../components/icon'
import { dayTime } from '../format'
import { DecisionList, type DecisionFilter } from '../state/decisions'
import { route, setQuery } from '../state/route'
import { ions } from '../state/store'

const SPANS: Record<string, string> = {
    '': 'Live',
    '-5m': 'Last 5 minutes',
    '-1h': 'Last hour',
    '-24h': 'Last 24 hours',
    between: 'From … to …',
}
const UNITS: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000 }
const SEEN_MAX = 500

/** What the address says: from=-5m follows the clock, from=2026-11-24T08:00 stands still. */
interface Wanted {
    ion: string
    camera: string
    verdict: string
    person: string
    from: string
    to: string
}
const KEYS = ['ion', 'camera', 'verdict', 'person', 'from', 'to'] as const

function wantedOf(query: URLSearchParams): Wanted {
    return Object.fromEntries(KEYS.map((key) => [key, query.get(key) ?? ''])) as unknown as Wanted
}

/** Milliseconds since 1970, null for no bound: of "-5m", or of a local date and time. */
export function momentOf(text: string, nowMs: number): number | null {
    const back = /^-(\d+)([mhd])$/.exec(text)
    const ms = back ? nowMs - Number(back[1]) * UNITS[back[2]!]! : Date.parse(text)
    return Number.isNaN(ms) ? null : ms
}

function filterOf(wanted: Wanted): DecisionFilter {
    const { ion, camera, verdict, person } = wanted
    return { ion, camera, verdict, person, since: momentOf(wanted.from, Date.now()), until: momentOf(wanted.to, Date.now()) }
}

/** Remembers what was seen, so that a choice does not vanish while its decisions scroll out of memory. */
function useSeen(items: Decision[], field: 'camera' | 'person', current: string): string[] {
    const seen = useMemo(() => new Set<string>(), [])
    for (const decision of items) {
        const value = decision[field]
        if (value && seen.size < SEEN_MAX) {
            seen.add(value)
        }
    }
    return [...new Set(current ? [...seen, current] : seen)].sort()
}

function Choice(props: { label: string; name: string; value: string; all: string; options: [string, string][]; onChange: (value: string) => void }) {
    return (
        <label class="field">
            <span>{props.label}</span>
            <select name={props.name} value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)}>
                {props.all && <option value="">{props.all}</option>}
                {props.options.map(([value, text]) => (
                    <option key={value} value={value}>
                        {text}
                    </option>
                ))}
            </select>
        </label>
    )
}

const same = (values: string[]): [string, string][] => values.map((value) => [value, value])

function Between({ wanted, set }: { wanted: Wanted; set: (change: Partial<Wanted>) => void }) {
    return (
        <>
            {(['from', 'to'] as const).map((key) => (
                <label key={key} class="field">
                    <span>{key === 'from' ? 'From' : 'To'}</span>
                    <input
                        type="datetime-local"
                        step={1}
                        name={key}
                        value={wanted[key].startsWith('-') ? '' : wanted[key]}
                        onChange={(event) => set({ [key]: event.currentTarget.value })}
                    />
                </label>
            ))}
        </>
    )
}

function Filters(props: { wanted: Wanted; cameras: string[]; people: string[] }) {
    const { wanted } = props
    const [isBetween, setBetween] = useState(wanted.to !== '' || (wanted.from !== '' && SPANS[wanted.from] === undefined))
    const set = (change: Partial<Wanted>) => setQuery({ ...wanted, ...change })
    const onSpan = (value: string) => {
        setBetween(value === 'between')
        set({ from: value === 'between' ? '' : value, to: '' })
    }
    const names = (ions.data.value ?? []).map((one) => one.name)
    return (
        <form class="filters" role="search" aria-label="Filter decisions" onSubmit={(event) => event.preventDefault()}>
            <Choice label="ION" name="ion" value={wanted.ion} all="All IONs" options={same([...new Set(wanted.ion ? [...names, wanted.ion] : names)])} onChange={(ion) => set({ ion })} />
            <Choice label="Camera" name="camera" value={wanted.camera} all="All cameras" options={same(props.cameras)} onChange={(camera) => set({ camera })} />
            <Choice
                label="Verdict"
                name="verdict"
                value={wanted.verdict}
                all="All verdicts"
                options={Object.entries(VERDICTS).map(([value, { label }]) => [value, label])}
                onChange={(verdict) => set({ verdict })}
            />
            <label class="field">
                <span>Person</span>
                <input
                    type="search"
                    name="person"
                    placeholder="Whole name"
                    list="people-seen"
                    value={wanted.person}
                    onChange={(event) => set({ person: event.currentTarget.value.trim() })}
                />
                <datalist id="people-seen">
                    {props.people.map((person) => (
                        <option key={person} value={person} />
                    ))}
                </datalist>
            </label>
            <Choice label="Time" name="span" value={isBetween ? 'between' : wanted.from} all="" options={Object.entries(SPANS)} onChange={onSpan} />
            {isBetween && <Between wanted={wanted} set={set} />}
            {Object.values(wanted).some(Boolean) && (
                <button
                    type="button"
                    class="button"
                    onClick={() => {
                        setBetween(false)
                        setQuery({})
                    }}
                >
                    <Icon name="cross" size={14} />
                    Clear
                </button>
            )}
        </form>
    )
}

/** Nothing matches: names that were seen and are like the one asked for. */
function NoMatch({ wanted, people }: { wanted: Wanted; people: string[] }) {
    const needle = wanted.person.toLowerCase()
    const like = needle ? people.filter((person) => person !== wanted.person && person.toLowerCase().includes(needle)).slice(0, 5) : []
    return (
        <Empty
            icon="question"
            title="No decision matches"
            more={
                like.length > 0 && (
                    <p class="actions">
                        {like.map((person) => (
                            <button key={person} type="button" class="button small" onClick={() => setQuery({ ...wanted, person })}>
                                {person}
                            </button>
                        ))}
                    </p>
                )
            }
        >
            {like.length > 0 ? `Nobody is called “${wanted.person}”; did you mean:` : 'Widen the filter above, or clear it.'}
        </Empty>
    )
}

function Foot({ list }: { list: DecisionList }) {
    const rows = list.rows.value ?? []
    const oldest = rows[rows.length - 1]
    return (
        <p class="list-foot muted">
            {oldest && `Back to ${dayTime(oldest.time_ms)}. `}
            {list.atEnd.value ? 'There are no older ones.' : 'Older ones load as you scroll.'}
        </p>
    )
}

export function Decisions() {
    const wanted = wantedOf(route.value.query)
    const key = KEYS.map((name) => wanted[name]).join('\n')
    const list = useMemo(() => new DecisionList(filterOf(wanted)), [key])
    useEffect(() => list.start(), [list])
    const rows = list.rows.value
    const cameras = useSeen(rows ?? [], 'camera', wanted.camera)
    const people = useSeen(rows ?? [], 'person', '')
    const error = list.error.value
    return (
        <>
            <PageHead title="Decisions" sub="Newest first, as they come in and back in time" />
            <Filters wanted={wanted} cameras={cameras} people={people} />
            {error && (
                <div class="failed" role="alert">
                    <Icon name="warning" />
                    <p>
                        {error.message} <span class="muted">({error.code})</span>
                    </p>
                    <button type="button" class="button small" onClick={() => void list.load()}>
                        Try again
                    </button>
                </div>
            )}
            <section class="panel" aria-labelledby="decisions-title">
                <header class="panel-head stays">
                    <h2 id="decisions-title">{wanted.to ? 'In this time' : 'Live'}</h2>
                    <div class="panel-aside">
                        <LiveControls list={list} />
                    </div>
                </header>
                {rows === undefined ? (
                    !error && <Loading rows={6} />
                ) : rows.length > 0 ? (
                    <>
                        <DecisionRows key={key} list={list} withIon={wanted.ion === '' && (ions.data.value?.length ?? 0) > 1} isLong />
                        <Foot list={list} />
                    </>
                ) : key.trim() !== '' ? (
                    <NoMatch wanted={wanted} people={people} />
                ) : (
                    <Empty icon="camera" title="No decisions yet">
                        They appear here the moment a prediction pipeline decides its first frame.
                    </Empty>
                )}
            </section>
        </>
    )
}
