/** All IONs, what needs somebody first; each with the evidence for its state. */
import type { Ion } from '../api'
import { COMMANDS } from '../commands'
import { ionOf } from '../components/alerts'
import { Choices, Command, Count, Empty, Loaded, Owner, PageHead, Panel, Version } from '../components/basics'
import { Filter, filtered, NothingMatches, type FilterOf } from '../components/filter'
import { Icon } from '../components/icon'
import { actionsOfIon } from '../components/ion_acts'
import { Spark } from '../components/spark'
import { State } from '../components/state'
import { Table, type Column } from '../components/table'
import { rangeText, TimeRange } from '../components/time_range'
import { ago, duration, latency, millis, NONE, plural, rateText } from '../format'
import type { Screen } from '../screen'
import { pendingCandidates } from '../state/candidates'
import { inProject, project } from '../state/project'
import { href, hrefWith, param } from '../state/route'
import { alerts, ions, jobs, now, openAlerts } from '../state/store'
import { connection } from '../state/stream'
import { useSummary } from '../state/summaries'
import { byNeed, evidenceOf, isSandbox, needsYou, verdictOf } from '../state/verdict'

const WINDOW = '-30m'

const FILTER: FilterOf<Ion> = {
    text: (ion) => ion.name,
    keys: {
        state: (ion) => verdictOf(ion).title.replace(/\s+/g, '-'),
        name: (ion) => ion.name,
        project: (ion) => ion.project,
        mode: (ion) => ion.mode,
        by: (ion) => ion.created_by ?? '',
    },
}

const GROUPS: Record<string, { name: string; has: (ion: Ion) => boolean }> = {
    '': { name: 'All', has: () => true },
    needs: { name: 'Need you', has: needsYou },
    works: { name: 'Work', has: (ion) => verdictOf(ion).tone === 'good' },
    rest: { name: 'Nothing expected', has: (ion) => ['plain', 'busy'].includes(verdictOf(ion).tone) },
}

function nextTraining(ion: Ion): string {
    const trainings = ion.pipelines.filter((one) => one.type === 'training')
    const next = Math.min(...trainings.map((one) => millis(one.next_fire_ms)).filter((ms) => !Number.isNaN(ms)))
    if (Number.isFinite(next)) {
        return next > now.value ? `in ${duration(next - now.value)}` : 'now'
    }
    return trainings.length === 0 ? NONE : trainings.some((one) => one.new_data) ? 'on new data' : 'by hand'
}

function alertsOf(ion: Ion): number {
    return openAlerts.value.filter((alert) => ionOf(alert.subject, jobs.data.value ?? []) === ion.name).length
}

/** Rate, line and latency of one ION: each row asks for its own. */
function Rate({ ion, part }: { ion: string; part: 'rate' | 'line' | 'p99' }) {
    const summary = useSummary(ion, param('from') || WINDOW, param('to'), 40).data.value
    if (part === 'line') {
        return (
            <span class="cell-line">
                <Spark counts={(summary?.buckets ?? []).map((one) => one.grant + one.deny + one.unknown + one.error)} />
            </span>
        )
    }
    if (part === 'p99') {
        const p99 = summary?.latency_ms?.p99
        return <>{typeof p99 === 'number' ? latency(p99 * 1000) : NONE}</>
    }
    return <>{summary ? rateText(summary.per_second ?? 0) : NONE}</>
}

function columns(): Column<Ion>[] {
    const isHeard = connection.value.state !== 'lost'
    return [
        {
            id: 'state',
            name: 'State and evidence',
            width: '200px',
            phone: 'state',
            render: (ion) => {
                const verdict = verdictOf(ion)
                return (
                    <>
                        <State tone={verdict.tone} isKnown={verdict.isKnown} title={verdict.reason}>
                            {verdict.title}
                        </State>
                        <span class="sub">{evidenceOf(ion)}</span>
                    </>
                )
            },
        },
        {
            id: 'name',
            name: 'ION',
            phone: 'name',
            sort: (ion) => ion.name,
            render: (ion) => (
                <>
                    <a class="main" href={href(['ions', ion.name, 'graph'])}>
                        {ion.name}
                    </a>
                    <span class="sub">
                        <Owner project={ion.project} />
                    </span>
                </>
            ),
        },
        { id: 'rate', name: 'Decisions/s', isNumber: true, width: '92px', phone: 'more', render: (ion) => <Rate ion={ion.name} part="rate" /> },
        { id: 'line', name: rangeText(param('from') || WINDOW, param('to'), ''), width: '108px', render: (ion) => <Rate ion={ion.name} part="line" /> },
        { id: 'p99', name: 'p99', isNumber: true, width: '76px', render: (ion) => <Rate ion={ion.name} part="p99" /> },
        {
            id: 'live',
            name: 'Live',
            width: '72px',
            render: (ion) => ion.links.map((link) => typeof link.serving_version === 'number' && <Version key={link.to} number={link.serving_version} is={isHeard ? 'live' : undefined} />),
        },
        {
            id: 'candidate',
            name: 'Candidate',
            width: '96px',
            render: (ion) => {
                const waiting = pendingCandidates.value.filter((one) => one.ion === ion.name)
                return waiting[0] ? (
                    <>
                        <Version number={waiting[0].version} is="candidate" />
                        <span class="sub">{waiting.length > 1 ? `and ${waiting.length - 1} more` : 'waits'}</span>
                    </>
                ) : (
                    NONE
                )
            },
        },
        {
            id: 'alerts',
            name: 'Alerts',
            width: '64px',
            sort: (ion) => -alertsOf(ion),
            render: (ion) => (alertsOf(ion) > 0 ? <Count count={alertsOf(ion)} tone="warn" what={plural(alertsOf(ion), 'alert fires', 'alerts fire')} /> : '0'),
        },
        { id: 'training', name: 'Next training', width: '112px', render: nextTraining },
        {
            id: 'applied',
            name: 'Applied',
            width: '112px',
            sort: (ion) => -millis(ion.updated_ms ?? ion.created_ms),
            render: (ion) => (
                <>
                    {ago(ion.updated_ms ?? ion.created_ms, now.value)}
                    <span class="sub">{ion.created_by}</span>
                </>
            ),
        },
    ]
}

function NoIon() {
    return (
        <div class="panel">
            <Empty
                icon="ions"
                title="No ION yet"
                command={COMMANDS.applyIon}
                more={
                    <>
                        <p class="only-desk">
                            Or <a href={href(['ions', 'new'])}>draw one</a>.
                        </p>
                        <p>Or see one at work, with faces and a camera of its own:</p>
                        <Command text={COMMANDS.demo} />
                    </>
                }
            >
                An ION links a training pipeline to a prediction pipeline, under a policy. Describe one in a file and apply it:
            </Empty>
        </div>
    )
}

function IonTable({ label, rows }: { label: string; rows: readonly Ion[] }) {
    return <Table label={label} rows={rows} columns={columns()} keyOf={(ion) => ion.name} hrefOf={(ion) => href(['ions', ion.name, 'graph'])} rowPx={48} />
}

function Ions() {
    const all = (ions.data.value ?? []).filter(inProject)
    const shown = param('state')
    const group = GROUPS[shown] ?? GROUPS['']!
    const found = byNeed(filtered(all, FILTER).filter(group.has))
    const [real, sandboxes] = [found.filter((ion) => !isSandbox(ion)), found.filter(isSandbox)]
    const inProduction = all.filter((ion) => !isSandbox(ion))
    const need = inProduction.filter(needsYou).length
    return (
        <>
            <PageHead
                title={need > 0 ? `${need} of ${inProduction.length} ${inProduction.length < all.length ? 'production ' : ''}${inProduction.length === 1 ? 'ION' : 'IONs'} ${need === 1 ? 'needs' : 'need'} you` : 'IONs'}
                sub={ions.data.value && `${all.length} ${project.value ? `in ${project.value}` : 'in all projects'} · a state is green only when a decision proves it`}
            >
                <TimeRange fallback={WINDOW} />
                <a class="button only-desk" href={href(['ions', 'new'])}>
                    <Icon name="plus" /> New ION
                </a>
            </PageHead>
            <Loaded resource={ions} rows={6}>
                {() =>
                    all.length === 0 ? (
                        <NoIon />
                    ) : (
                        <>
                            <Filter label="Filter IONs" rows={all} of={FILTER} hint="name, or state:serving by:mara">
                                <Choices
                                    label="By state"
                                    items={Object.entries(GROUPS).map(([id, { name, has }]) => ({
                                        name: `${name} ${all.filter(has).length}`,
                                        address: hrefWith({ state: id }),
                                        isCurrent: group === GROUPS[id],
                                    }))}
                                />
                            </Filter>
                            <Panel title={sandboxes.length > 0 ? 'Production' : 'All IONs'} window={param('sort') ? undefined : 'what needs you first'}>
                                {found.length === 0 ? (
                                    <NothingMatches rows={all.filter(group.has)} of={FILTER} what="ION" />
                                ) : real.length === 0 ? (
                                    <p class="quiet">None in production {found.length < all.length ? 'matches' : 'yet'}.</p>
                                ) : (
                                    <IonTable label="IONs" rows={real} />
                                )}
                            </Panel>
                            {sandboxes.length > 0 && (
                                <Panel title="Sandboxes" window="on live data; their sinks and alerts reach nobody">
                                    <IonTable label="Sandboxes" rows={sandboxes} />
                                </Panel>
                            )}
                            <p class="legend small">
                                <span>
                                    <State tone="good">Serving</State> a decision came within 30 s
                                </span>
                                <span>
                                    <State tone="warn">Decides, needs you</State> decides, but something is wrong
                                </span>
                                <span>
                                    <State tone="bad">Does not decide</State> does not do what was asked
                                </span>
                                <span>
                                    <State tone="plain" isKnown={false}>
                                        Unknown
                                    </State>{' '}
                                    nobody tells the console
                                </span>
                            </p>
                        </>
                    )
                }
            </Loaded>
        </>
    )
}

export const ionsScreen: Screen = {
    id: 'ions',
    title: 'IONs',
    icon: 'ions',
    address: 'ions',
    query: ['q', 'state', 'sort', 'from', 'to'],
    group: { science: '', operations: '' },
    load: [ions, alerts, jobs],
    badge: () => {
        const count = (ions.data.value ?? []).filter(inProject).filter((ion) => needsYou(ion) && !isSandbox(ion)).length
        return { count, tone: 'warn', what: plural(count, 'needs you', 'need you') }
    },
    letter: 'i',
    always: () => (ions.data.value ?? []).filter(inProject).flatMap(actionsOfIon),
    render: Ions,
}
