/** Alerts: what fires, about what, since when, and who has taken it. */
import { useState } from 'preact/hooks'
import type { Alert } from '../api'
import { About, byUrgency, mayTake, severityTone, TAKE, take, TakeButton, useProjectAlerts } from '../components/alerts'
import { Command, Count, Facts, Loaded, PageHead, Panel, Tabs, When } from '../components/basics'
import { ask } from '../components/dialog'
import { Drawer, WithDrawer } from '../components/drawer'
import { Filter, filtered, NothingMatches, type FilterOf } from '../components/filter'
import { Icon } from '../components/icon'
import { WithLibrary } from '../components/library'
import { Act } from '../components/locked'
import { Id, Sentence } from '../components/noun'
import { is, State, StateWord } from '../components/state'
import { Table, type Column } from '../components/table'
import { counted, dayMinute, dayTime, duration, millis, NONE, plainValue, plural, sentence, words } from '../format'
import type { Screen } from '../screen'
import { get, segment, send } from '../state/http'
import { useResource } from '../state/resource'
import { href, hrefWith, param } from '../state/route'
import { alerts, ions, jobs, now, openAlerts } from '../state/store'

const FILTER: FilterOf<Alert> = {
    text: (alert) => `${alert.message} ${alert.subject ?? ''}`,
    keys: {
        severity: (alert) => alert.severity ?? '',
        kind: (alert) => alert.kind,
        subject: (alert) => alert.subject ?? '',
        state: (alert) => alert.state,
        who: (alert) => alert.acknowledged_by ?? 'nobody',
    },
}

const isFiring = (alert: Alert) => !is(alert.state, 'resolved')

function severityColumn(): Column<Alert> {
    return {
        id: 'severity',
        name: 'Severity',
        width: '104px',
        phone: 'state',
        sort: (alert) => alert.severity ?? '',
        render: (alert) => <State tone={severityTone(alert)}>{alert.severity ?? 'info'}</State>,
    }
}

function alertColumn(): Column<Alert> {
    return {
        id: 'alert',
        name: 'Alert',
        phone: 'name',
        render: (alert) => (
            <>
                <a class="main" href={hrefWith({ id: alert.id })} title={alert.message}>
                    <Sentence text={alert.message} />
                </a>
                <span class="sub">
                    {words(alert.kind)} · <About alert={alert} />
                    {(alert.count ?? 1) > 1 ? ` · ${alert.count} times` : ''}
                </span>
            </>
        ),
    }
}

function firingColumns(chosen: ReadonlySet<string>, choose: (alert: Alert) => void, isNarrow: boolean): Column<Alert>[] {
    return [
        {
            id: 'choose',
            name: '',
            width: '40px',
            render: (alert) =>
                is(alert.state, 'open') &&
                mayTake(alert) && <input type="checkbox" aria-label={`Choose: ${alert.message}`} checked={chosen.has(alert.id)} onChange={() => choose(alert)} />,
        },
        severityColumn(),
        alertColumn(),
        {
            id: 'since',
            name: 'Fires since',
            width: '176px',
            phone: 'more',
            sort: (alert) => -millis(alert.raised_ms),
            render: (alert) => (
                <span class="muted">
                    {dayMinute(alert.raised_ms)}, {duration(now.value - millis(alert.raised_ms))}
                </span>
            ),
        },
        ...(isNarrow
            ? []
            : [
                  {
                      id: 'who',
                      name: 'Who',
                      width: '104px',
                      sort: (alert: Alert) => alert.acknowledged_by ?? '',
                      render: (alert: Alert) => (is(alert.state, 'open') ? <span class="tone-warn-text">nobody</span> : (alert.acknowledged_by ?? NONE)),
                  },
              ]),
        { id: 'take', name: '', width: '96px', isNumber: true, phone: 'more', render: (alert) => <TakeButton alert={alert} /> },
    ]
}

function endedColumns(): Column<Alert>[] {
    return [
        severityColumn(),
        alertColumn(),
        { id: 'raised', name: 'Began', width: '168px', phone: 'more', sort: (alert) => -millis(alert.raised_ms), render: (alert) => <When time={alert.raised_ms} /> },
        {
            id: 'ended',
            name: 'Ended, after',
            width: '216px',
            sort: (alert) => -millis(alert.resolved_ms),
            render: (alert) => (
                <span class="muted">
                    {dayMinute(alert.resolved_ms)}, {duration(millis(alert.resolved_ms) - millis(alert.raised_ms))}
                </span>
            ),
        },
        { id: 'who', name: 'Who had it', width: '112px', render: (alert) => alert.acknowledged_by ?? <span class="muted">nobody</span> },
    ]
}

/** Who was told of it, and what rules did. */
function Told({ id, version }: { id: string; version: string }) {
    const whole = useResource(`alert:${id}:${version}`, () => get<Alert>(`/alerts/${segment(id)}`))
    return (
        <Loaded resource={whole}>
            {(found) => (
                <>
                    {(found.firings ?? []).map((one) => (
                        <p key={one.id} class="small">
                            Rule <b>{one.rule}</b>: {one.state}
                            {Array.isArray(one.actions) && one.actions.length > 0 && ` · ${one.actions.map((act) => plainValue(act)).join(', ')}`}
                        </p>
                    ))}
                    <WithLibrary name="alerts">{({ Deliveries }) => <Deliveries items={found.deliveries ?? []} />}</WithLibrary>
                </>
            )}
        </Loaded>
    )
}

function AlertDrawer({ alert }: { alert: Alert }) {
    const [isSilencing, setSilencing] = useState(false)
    const resolve = () =>
        ask({
            title: 'Is it over?',
            text: <p>{alert.message}</p>,
            confirm: 'Resolve',
            done: 'It is over',
            act: async () => {
                await send('POST', `/alerts/${segment(alert.id)}/resolve`, {})
                await alerts.load()
            },
        })
    const data = Object.entries((alert.data as Record<string, unknown> | null | undefined) ?? {}).filter(([, value]) => typeof value !== 'object')
    return (
        <Drawer title={sentence(words(alert.kind))} id="alert-title" close={hrefWith({ id: '' })} state={<StateWord state={alert.status ?? alert.state} />}>
            <div class={`note tone-${severityTone(alert)}`} data-alert={alert.id}>
                <Icon name="warning" />
                <p>
                    <Sentence text={alert.message} />
                </p>
            </div>
            <Facts
                items={[
                    ['About', <About alert={alert} />],
                    ['Severity', alert.severity ?? NONE],
                    ['First', dayTime(alert.raised_ms)],
                    ['Last', dayTime(alert.last_ms)],
                    ['Raised', (alert.count ?? 1) === 1 ? 'once' : `${alert.count} times`],
                    ['Looked after by', alert.acknowledged_by ? `${alert.acknowledged_by}, since ${dayTime(alert.acknowledged_ms)}` : 'nobody'],
                    alert.silenced_ms ? ['Silenced until', dayTime(alert.silenced_ms)] : null,
                    alert.acknowledged_note ? ['Note', alert.acknowledged_note] : null,
                    alert.resolved_ms ? ['Over since', `${dayTime(alert.resolved_ms)}${alert.resolved_by ? `, by ${alert.resolved_by}` : ''}`] : null,
                    ...data.map(([key, value]): [string, string] => [sentence(words(key)), plainValue(value)]),
                    ['Alert', <Id id={alert.id} />],
                ]}
            />
            <p class="acts">
                <TakeButton alert={alert} />
                {isFiring(alert) && (
                    <>
                        <Act right="acknowledge alerts" isSmall onClick={() => setSilencing(true)}>
                            Silence…
                        </Act>
                        <Act right="acknowledge alerts" isSmall onClick={resolve}>
                            Resolve…
                        </Act>
                    </>
                )}
                <a class="button small" href={href('events', { q: `subject:${alert.subject}` })}>
                    What happened
                </a>
            </p>
            {isSilencing && <WithLibrary name="alerts">{({ SilenceForm }) => <SilenceForm alert={alert} onClose={() => setSilencing(false)} onDone={() => void alerts.load()} />}</WithLibrary>}
            <h3>Who was told</h3>
            <Told id={alert.id} version={`${alert.state}${alert.count}${alert.silence ?? ''}`} />
        </Drawer>
    )
}

function Firing({ items }: { items: Alert[] }) {
    const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
    const open = items.filter((alert) => is(alert.state, 'open'))
    const some = open.filter((alert) => chosen.has(alert.id))
    const found = filtered(items, FILTER).sort(byUrgency)
    const choose = (alert: Alert) => {
        const next = new Set(chosen)
        if (!next.delete(alert.id)) {
            next.add(alert.id)
        }
        setChosen(next)
    }
    const mine = open.filter(mayTake)
    const aside = (
        <>
            {some.length > 0 && (
                <Act
                    right={TAKE}
                    isSmall
                    tone="primary"
                    onClick={() => {
                        setChosen(new Set())
                        void take(some)
                    }}
                >
                    Take {some.length} chosen
                </Act>
            )}
            {some.length === 0 && mine.length > 1 && (
                <Act right={TAKE} isSmall onClick={() => void take(mine)}>
                    Take all {mine.length}
                </Act>
            )}
        </>
    )
    return (
        <Panel title="Firing" window={param('sort') ? undefined : 'worst first'} aside={aside}>
            {items.length === 0 ? (
                <p class="quiet">
                    <Icon name="check" /> Nothing needs you. Drift, quality, deployments, machines and disk are watched; a finding appears here.
                </p>
            ) : found.length === 0 ? (
                <NothingMatches rows={items} of={FILTER} what="alert" />
            ) : (
                <Table
                    label="Alerts that fire"
                    rows={found}
                    columns={firingColumns(chosen, choose, param('id') !== '')}
                    keyOf={(alert) => alert.id}
                    hrefOf={(alert) => hrefWith({ id: alert.id })}
                    chosen={param('id')}
                    rowPx={48}
                    classOf={(alert) => `alert ${alert.state}`}
                />
            )}
        </Panel>
    )
}

function Ended({ items }: { items: Alert[] }) {
    const found = filtered(items, FILTER).sort((a, b) => millis(b.resolved_ms) - millis(a.resolved_ms))
    return (
        <Panel title="Ended" window="newest first">
            {items.length === 0 ? (
                <p class="quiet">No alert has ended yet.</p>
            ) : found.length === 0 ? (
                <NothingMatches rows={items} of={FILTER} what="alert" />
            ) : (
                <Table label="Alerts that ended" rows={found} columns={endedColumns()} keyOf={(alert) => alert.id} hrefOf={(alert) => hrefWith({ id: alert.id })} chosen={param('id')} rowPx={48} />
            )}
        </Panel>
    )
}

function Alerts() {
    const all = useProjectAlerts()
    const firing = all.filter(isFiring)
    const open = firing.filter((alert) => is(alert.state, 'open'))
    const tab = param('tab')
    const isHistory = tab === 'history'
    const settings = ['rules', 'receivers', 'silences'].includes(tab) ? (
        <WithLibrary key={tab} name="alerts">
            {({ AlertRules, AlertReceivers, AlertSilences }) => (tab === 'rules' ? <AlertRules /> : tab === 'receivers' ? <AlertReceivers /> : <AlertSilences />)}
        </WithLibrary>
    ) : undefined
    const wanted = param('id')
    const alert = (alerts.data.value ?? []).find((one) => one.id === wanted)
    const missing = wanted && alerts.data.value && !alert && (
        <Drawer title="No such alert" id="alert-title" close={hrefWith({ id: '' })}>
            <p class="quiet">The page holds the newest 200. All there are:</p>
            <Command text="weir get alerts" />
        </Drawer>
    )
    const ended = all.filter((one) => !isFiring(one))
    return (
        <>
            <PageHead title={open.length > 0 ? `${open.length} ${open.length === 1 ? 'alert needs' : 'alerts need'} somebody` : 'Alerts'} sub={alerts.data.value && `${counted(firing.length, 'alert fires', 'alerts fire')} · nobody has taken ${open.length}`} />
            <Tabs
                label="Alerts"
                items={[
                    { name: 'Firing', address: hrefWith({ tab: '', id: '', sort: '' }), isCurrent: !isHistory && !settings, badge: open.length > 0 && <Count count={open.length} tone="bad" /> },
                    { name: 'History', address: hrefWith({ tab: 'history', id: '', sort: '' }), isCurrent: isHistory },
                    ...[
                        ['rules', 'Rules'],
                        ['receivers', 'Who is told'],
                        ['silences', 'Silences'],
                    ].map(([id, name]) => ({ name: name!, address: hrefWith({ tab: id, id: '', sort: '' }), isCurrent: tab === id })),
                ]}
            />
            <Loaded resource={alerts} rows={6}>
                {() => settings ?? (
                    <>
                        <Filter label="Filter alerts" rows={isHistory ? ended : firing} of={FILTER} hint="text, or kind:drift subject:ion/door" />
                        <WithDrawer
                            listName="alerts"
                            close={hrefWith({ id: '' })}
                            drawer={alert ? <AlertDrawer key={alert.id} alert={alert} /> : missing}
                            list={isHistory ? <Ended items={ended} /> : <Firing items={firing} />}
                        />
                    </>
                )}
            </Loaded>
        </>
    )
}

export const alertsScreen: Screen = {
    id: 'alerts',
    title: 'Alerts',
    icon: 'alerts',
    address: 'alerts',
    query: ['q', 'tab', 'sort', 'id'],
    group: { science: 'Watch', operations: 'Watch' },
    load: [alerts, jobs, ions],
    badge: () => ({ count: openAlerts.value.length, tone: 'bad', what: plural(openAlerts.value.length, 'alert fires', 'alerts fire') }),
    letter: 'a',
    actions: () => {
        const open = openAlerts.value
        return open.filter(mayTake).map((alert) => ({ name: `Take the alert: ${alert.message}`, run: () => void take([alert]) }))
    },
    render: Alerts,
}
