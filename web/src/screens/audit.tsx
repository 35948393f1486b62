/** The audit log: who did what, to what, from where, and who was refused. By pages, by time, and as a file. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { VerifiedAudit, WeirEvent } from '../api'
import { Choices, Empty, Facts, Loading, PageHead, Panel } from '../components/basics'
import { Dialog } from '../components/dialog'
import { Filter, filtered, NothingMatches, type FilterOf } from '../components/filter'
import { Icon } from '../components/icon'
import { Sentence, Subject } from '../components/noun'
import { State } from '../components/state'
import { Table, type Column } from '../components/table'
import { momentOf, rangeText, TimeRange } from '../components/time_range'
import { toast } from '../components/toast'
import { clockTime, counted, dayTime, fullTime, NONE, words } from '../format'
import type { Screen } from '../screen'
import { auditCsv, auditPage, download, isPerson, START, type Place, type Wanted } from '../state/audit'
import { get, messageOf, session } from '../state/http'
import { hrefWith, param } from '../state/route'
import { jobs, now, runs } from '../state/store'

const FILE_MAX = 100_000 // entries of one download
const NO_BOUND = 'all of it'

const FILTER: FilterOf<WeirEvent> = {
    text: (event) => `${event.message} ${event.kind} ${event.subject ?? ''} ${event.actor ?? ''}`,
    keys: {
        by: (event) => event.actor ?? '',
        did: (event) => event.kind,
        what: (event) => event.subject ?? '',
        area: (event) => event.topic ?? '',
        severity: (event) => event.severity,
    },
}

/** Where a call came from, as the entries of logins and refusals say. */
function addressOf(event: WeirEvent): string {
    const data = (event.data ?? {}) as Record<string, unknown>
    return String(data['address'] ?? data['from'] ?? '') || NONE
}

/** Who did it, by name: of a task its job's, and in whose name it works. */
function Actor({ event }: { event: WeirEvent }) {
    const { actor } = event
    const data = (event.data ?? {}) as Record<string, unknown>
    if (isPerson(actor)) {
        return <b>{actor}</b>
    }
    if (actor === 'system' || !actor) {
        return <span class="muted">{actor ? 'weir' : NONE}</span>
    }
    if (!actor.includes('/') && !actor.includes('-')) {
        return <span class="muted">{actor}</span>
    }
    const job = typeof data['job'] === 'string' ? jobs.data.value?.find((one) => one.id === data['job'])?.name : undefined
    return (
        <span class="muted" title={[actor, typeof data['created_by'] === 'string' ? `for ${data['created_by']}` : ''].filter(Boolean).join(', ')}>
            {job ? `job ${job}` : actor.startsWith('task/') ? 'a task' : 'a replica'}
        </span>
    )
}

const COLUMNS: Column<WeirEvent>[] = [
    { id: 'when', name: 'When', width: '148px', phone: 'state', render: (event) => <time class="muted" title={fullTime(event.time_ms)}>{dayTime(event.time_ms)}</time> },
    { id: 'who', name: 'Who', width: '112px', phone: 'more', render: (event) => <Actor event={event} /> },
    { id: 'did', name: 'Did', width: '148px', phone: 'more', render: (event) => words(event.kind) },
    { id: 'what', name: 'What', width: '200px', render: (event) => <Subject subject={event.subject} /> },
    { id: 'why', name: 'In words', phone: 'name', render: (event) => <span title={event.message}><Sentence text={event.message} /></span> },
    { id: 'from', name: 'From', width: '112px', render: (event) => <span class="muted">{addressOf(event)}</span> },
    { id: 'seq', name: 'No.', width: '72px', isNumber: true, render: (event) => <span class="muted">{event.seq}</span> },
]

/** What the filter says exactly is asked of the server, so that it need not send the rest. */
function exact(key: string): string | undefined {
    const found = new RegExp(`(?:^|\\s)${key}:([^\\s*]+)`).exec(param('q'))
    return found?.[1]
}

function wantedNow(): Wanted {
    const at = Date.now()
    return {
        actor: exact('by'),
        kind: exact('did'),
        subject: exact('what'),
        from: param('from') ? momentOf(param('from'), at) : null,
        to: param('to') ? momentOf(param('to'), at) : null,
        hasSystem: param('who') === 'all',
        isAdmin: true,
    }
}

interface Held {
    items: WeirEvent[]
    rest: WeirEvent[]
    next: Place | null
}

/** Recomputes the chains of hashes: has any row been altered, taken out or put in? */
function Verify() {
    const [isBusy, setBusy] = useState(false)
    const [found, setFound] = useState<VerifiedAudit | null>(null)
    const [last, setLast] = useState<{ isWhole: boolean; nRows: number; at: number } | null>(null)
    const run = async () => {
        setBusy(true)
        try {
            const answer = await get<VerifiedAudit>('/audit/verify')
            setFound(answer)
            setLast({ isWhole: answer.is_whole, nRows: answer.chains.reduce((n, chain) => n + chain.n_rows, 0), at: Date.now() })
        } catch (failure) {
            toast(messageOf(failure), 'bad')
        } finally {
            setBusy(false)
        }
    }
    return (
        <>
            {/* Each row is read for it: on a click, not with each look at the page. */}
            {last ? (
                <State tone={last.isWhole ? 'good' : 'bad'}>{`${last.isWhole ? 'whole' : 'altered'}: ${counted(last.nRows, 'row')} at ${clockTime(last.at)}`}</State>
            ) : (
                <span class="small muted desk">chain not checked in this visit</span>
            )}
            <button type="button" class="button" disabled={isBusy} onClick={() => void run()}>
                <Icon name="lock" /> {isBusy ? 'Verifying…' : 'Verify'}
            </button>
            {found && (
                <Dialog title={found.is_whole ? 'The audit is whole' : 'The audit was altered'} onClose={() => setFound(null)}>
                    <div class="dialog-text">
                        {found.chains.map((chain, i) => (
                            <Facts
                                key={i}
                                items={[
                                    [`Chain of ${chain.chain}`, <State tone={chain.is_whole ? 'good' : 'bad'}>{chain.is_whole ? 'whole' : `altered at row ${chain.finding?.number ?? NONE}`}</State>],
                                    chain.finding ? ['Found', chain.finding.message] : null,
                                    ['Rows', `${chain.n_rows}${chain.cut ? `, after ${chain.cut.n} that retention took` : ''}`],
                                    ['Its end', <code>{`${chain.number}:${chain.hash.slice(0, 16)}…`}</code>],
                                ]}
                            />
                        ))}
                    </div>
                </Dialog>
            )}
        </>
    )
}

function Log() {
    const key = `${exact('by') ?? ''} ${exact('did') ?? ''} ${exact('what') ?? ''} ${param('from')} ${param('to')} ${param('who')}`
    const [held, setHeld] = useState<Held | null>(null)
    const [error, setError] = useState('')
    const [isBusy, setBusy] = useState(false)
    const [isWriting, setWriting] = useState(false)
    const current = useRef(key)
    current.current = key
    const more = async (old: Held | null) => {
        setBusy(true)
        setError('')
        try {
            const page = await auditPage(old?.next ?? START, wantedNow(), old?.rest ?? [])
            if (current.current === key) {
                setHeld({ items: [...(old?.items ?? []), ...page.items], rest: page.rest, next: page.next })
            }
        } catch (failure) {
            setError(messageOf(failure))
        } finally {
            setBusy(false)
        }
    }
    useEffect(() => {
        setHeld(null)
        const timer = window.setTimeout(() => void more(null), 200) // after the last letter
        return () => window.clearTimeout(timer)
    }, [key])
    const write = async () => {
        setWriting(true)
        try {
            let all: Held = { items: [], rest: [], next: START }
            while (all.next !== null && all.items.length < FILE_MAX) {
                const page = await auditPage(all.next, wantedNow(), all.rest)
                all = { items: [...all.items, ...page.items], rest: page.rest, next: page.next }
            }
            const found = filtered([...all.items, ...all.rest], FILTER).slice(0, FILE_MAX)
            download(`weir-audit-${new Date(now.peek()).toISOString().slice(0, 10)}.csv`, auditCsv(found), 'text/csv')
            toast(`${counted(found.length, 'entry is', 'entries are')} in the file${all.next !== null ? `: the newest ${FILE_MAX}, narrow the time for the rest` : ''}`)
        } catch (failure) {
            toast(messageOf(failure), 'bad')
        } finally {
            setWriting(false)
        }
    }
    const items = held?.items ?? []
    const found = filtered(items, FILTER)
    return (
        <>
            <PageHead title="Audit log" sub="Who did what to what, and who was refused. Nothing here can be changed; what is old goes as retention says.">
                <TimeRange fallback={NO_BOUND} />
                <Verify />
                <button type="button" class="button" disabled={isWriting} onClick={() => void write()}>
                    <Icon name="download" /> {isWriting ? 'Collecting…' : 'Download'}
                </button>
            </PageHead>
            <Filter label="Filter the audit log" rows={items} of={FILTER} hint="text, or by:mara did:queue_set what:queue/speech">
                <Choices
                    label="Whose acts"
                    items={[
                        { name: 'People', address: hrefWith({ who: '' }), isCurrent: param('who') !== 'all' },
                        { name: 'People and Weir', address: hrefWith({ who: 'all' }), isCurrent: param('who') === 'all' },
                    ]}
                />
            </Filter>
            {error && (
                <p class="failed" role="alert">
                    <Icon name="warning" />
                    <span>{error}</span>
                </p>
            )}
            {held === null ? (
                error === '' && <Loading rows={6} />
            ) : items.length === 0 ? (
                <div class="panel">
                    <Empty icon="audit" title="Nothing in this time">
                        Logins, refusals and each act of a person are written here.
                    </Empty>
                </div>
            ) : (
                <Panel
                    title="Entries"
                    window={`newest first · ${rangeText(param('from'), param('to'), NO_BOUND)}`}
                    foot={
                        <span class="row wrap">
                            {`${found.length} of ${items.length} that are here`}
                            {held.next !== null ? (
                                <button type="button" class="button small" disabled={isBusy} onClick={() => void more(held)}>
                                    {isBusy ? 'Fetching…' : 'Older entries'}
                                </button>
                            ) : (
                                ' · that is all'
                            )}
                        </span>
                    }
                >
                    {found.length > 0 ? <Table label="Audit log" rows={found} columns={COLUMNS} keyOf={(event) => String(event.seq)} isDense /> : <NothingMatches rows={items} of={FILTER} what="entry" />}
                </Panel>
            )}
        </>
    )
}

function Audit() {
    return session.value?.role === 'admin' ? (
        <Log />
    ) : (
        <>
            <PageHead title="Audit log" sub="Who did what to what, and who was refused. Nothing here can be changed." />
            <div class="panel">
                <Empty icon="lock" title="The audit log is not yours to see">
                    An admin may read it, and can give you that role. You are {session.value?.user}, {session.value?.role}.
                </Empty>
            </div>
        </>
    )
}

export const auditScreen: Screen = {
    id: 'audit',
    title: 'Audit log',
    icon: 'audit',
    address: 'audit',
    query: ['q', 'who', 'from', 'to', 'sort'],
    group: { science: 'Watch', operations: 'Watch' },
    load: [jobs, runs],
    letter: 'l',
    render: Audit,
}
