/** Who is told of alerts, by which rules, and what is held back: tables with the acts of those who may. */
import { useState } from 'preact/hooks'
import type { AlertReceiver, AlertRule, Delivery, Kind, Silence } from '../api'
import { dayMinute, duration, NONE, plainValue, short, spanOf, spanText, words } from '../format'
import { call, getAll, segment, send } from '../state/http'
import { optionsOf, shellWords, valueOf } from '../state/job_form'
import { project } from '../state/project'
import { Resource, useResource } from '../state/resource'
import { now } from '../state/store'
import { Loaded, Panel, When } from '../components/basics'
import { ask } from '../components/dialog'
import { Form, type Field } from '../components/form'
import { Act } from '../components/locked'
import { State } from '../components/state'
import { Table, type Column } from '../components/table'
import { toast } from '../components/toast'

const RULES = 'change alert rules'
const RECEIVERS = 'change alert receivers'
const SILENCES = 'acknowledge alerts'

const kinds = new Resource<Kind[]>(async () => (await getAll<Kind>('/kinds', { limit: 1000 })).filter((one) => one.noun === 'receiver' || one.noun === 'alert-action'))

const listOf = (value: unknown): string[] => (Array.isArray(value) ? value.map((one) => (typeof one === 'object' && one !== null ? String((one as { kind?: string }).kind ?? '') : String(one))) : [])
const anyOf = (value: unknown, any: string) => listOf(value).join(', ') || any
const split = (text: string | undefined): string[] | undefined => {
    const found = (text ?? '').split(/[\s,]+/).filter(Boolean)
    return found.length > 0 ? found : undefined
}

function spanMs(text: string | undefined, what: string): number {
    const ms = (text ?? '').trim() === '' ? 0 : spanOf(text ?? '')
    if (Number.isNaN(ms)) {
        throw new Error(`${what}: expected a time as in 90s, 5m or 2h`)
    }
    return ms
}

const deleteQuestion = (what: string, path: string, list: Resource<unknown>) => ({
    title: `Delete ${what}?`,
    text: <p>Messages that wait are not sent for it any more.</p>,
    confirm: 'Delete it',
    danger: true,
    done: `${what} is deleted`,
    act: async () => {
        await send('DELETE', path)
        await list.load()
    },
})

// -------------------------------------------------------------------------------------------------------------- rules

function ruleFields(rule: AlertRule | null): Field[] {
    const span = (ms: number | undefined) => (ms ? spanText(ms) : '')
    return [
        ...(rule ? [] : [{ name: 'name', label: 'Name' }]),
        { name: 'doc', label: 'What it is for', value: rule?.doc ?? '', isOptional: true },
        { name: 'kinds', label: 'Kinds of alerts, else any: drift, node_lost', value: listOf(rule?.kinds).join(', '), isOptional: true },
        { name: 'subjects', label: 'About what, else anything: ion/door*', value: listOf(rule?.subjects).join(', '), isOptional: true },
        { name: 'severities', label: 'Severities, else any: info, warning, critical', value: listOf(rule?.severities).join(', '), isOptional: true },
        { name: 'hold', label: 'It must have lasted for: 5m', value: span(rule?.hold_ms), isOptional: true },
        { name: 'receivers', label: 'Receivers that are told', value: listOf(rule?.receivers).join(', '), isOptional: true },
        { name: 'escalate', label: 'Nobody took it after: 15m', value: span(rule?.escalate_ms), isOptional: true },
        { name: 'escalate_to', label: 'Receivers that are told then', value: listOf(rule?.escalate_to).join(', '), isOptional: true },
        {
            name: 'actions',
            label: `What is done by itself: ${(kinds.data.value ?? []).filter((one) => one.noun === 'alert-action' && !one.is_planned).map((one) => one.name).join(', ')}`,
            value: Array.isArray(rule?.actions) && rule.actions.some((one) => Object.keys(one as object).length > 1) ? JSON.stringify(rule.actions) : listOf(rule?.actions).join(', '),
            isOptional: true,
        },
    ]
}

function RuleForm({ rule, list, onClose }: { rule: AlertRule | null; list: Resource<AlertRule[]>; onClose: () => void }) {
    const actionsOf = (text: string | undefined): unknown => (text?.trim().startsWith('[') ? JSON.parse(text) : split(text)?.map((kind) => ({ kind })))
    return (
        <Form
            title={rule ? `Rule ${rule.name}` : 'A new rule'}
            fields={ruleFields(rule)}
            confirm={rule ? 'Set it' : 'Make it'}
            onClose={onClose}
            act={async (values) => {
                await send('PUT', `/alert-rules/${segment(rule?.name ?? values['name'] ?? '')}`, {
                    project: rule ? (rule.project ?? undefined) : project.value,
                    doc: values['doc'] || undefined,
                    kinds: split(values['kinds']),
                    subjects: split(values['subjects']),
                    severities: split(values['severities']),
                    hold_ms: spanMs(values['hold'], 'lasted'),
                    receivers: split(values['receivers']) ?? [],
                    escalate_ms: spanMs(values['escalate'], 'after'),
                    escalate_to: split(values['escalate_to']),
                    actions: actionsOf(values['actions']),
                    ...(rule && { group_by: rule.group_by, group_ms: rule.group_ms, tells_end: rule.tells_end, action_interval_ms: rule.action_interval_ms, is_disabled: rule.is_disabled }),
                })
                await list.load()
                toast(`Rule ${rule?.name ?? values['name']} holds`)
            }}
        />
    )
}

export function AlertRules() {
    const rules: Resource<AlertRule[]> = useResource(`alert-rules:${project.value}`, () => getAll<AlertRule>('/alert-rules', { project: project.value }))
    useResource('alert-kinds', async () => kinds.need())
    const [edited, setEdited] = useState<AlertRule | null | undefined>(undefined)
    const columns: Column<AlertRule>[] = [
        {
            id: 'name',
            name: 'Rule',
            phone: 'name',
            sort: (one) => one.name,
            render: (one) => (
                <>
                    <b>{one.name}</b> {one.is_disabled && <span class="chip">off</span>}
                    <span class="sub">{one.doc ?? `${one.project ? `of ${one.project}` : 'of the platform'}`}</span>
                </>
            ),
        },
        { id: 'match', name: 'Alerts', render: (one) => `${anyOf(one.kinds, 'any kind')} · ${anyOf(one.subjects, 'anything')} · ${anyOf(one.severities, 'any severity')}` },
        { id: 'hold', name: 'Lasted', width: '72px', render: (one) => (one.hold_ms > 0 ? duration(one.hold_ms) : 'at once') },
        { id: 'tells', name: 'Tells', phone: 'more', render: (one) => [anyOf(one.receivers, 'nobody'), one.escalate_ms > 0 ? `after ${duration(one.escalate_ms)} ${anyOf(one.escalate_to, 'nobody')}` : ''].filter(Boolean).join(', ') },
        { id: 'does', name: 'Does', width: '120px', render: (one) => anyOf(one.actions, NONE) },
        { id: 'fired', name: 'Fired, 30 d', width: '84px', isNumber: true, phone: 'more', sort: (one) => -one.n_fired, render: (one) => short(one.n_fired) },
        {
            id: 'acts',
            name: '',
            width: '148px',
            isNumber: true,
            render: (one) => (
                <span class="acts">
                    <Act right={RULES} project={one.project} isSmall onClick={() => setEdited(one)}>
                        Edit<span class="hidden"> {one.name}</span>
                    </Act>
                    <Act right={RULES} project={one.project} isSmall tone="danger" onClick={() => ask(deleteQuestion(`rule ${one.name}`, `/alert-rules/${segment(one.name)}`, rules))}>
                        Delete<span class="hidden"> {one.name}</span>
                    </Act>
                </span>
            ),
        },
    ]
    return (
        <Panel
            title="Rules"
            window="each looks at every alert that it matches"
            aside={
                <Act right={RULES} project={project.value} isSmall onClick={() => setEdited(null)}>
                    New rule
                </Act>
            }
        >
            {edited !== undefined && <RuleForm rule={edited} list={rules} onClose={() => setEdited(undefined)} />}
            <Loaded resource={rules}>{(all) => (all.length === 0 ? <p class="quiet">No rule yet: alerts are shown here, and reach nobody.</p> : <Table label="Rules" rows={all} columns={columns} keyOf={(one) => one.name} rowPx={48} />)}</Loaded>
        </Panel>
    )
}

// ---------------------------------------------------------------------------------------------------------- receivers

function ReceiverForm({ list, onClose }: { list: Resource<AlertReceiver[]>; onClose: () => void }) {
    const known = (kinds.data.value ?? []).filter((one) => one.noun === 'receiver' && !one.is_planned)
    const help = known.map((kind) => `${kind.name}: ${optionsOf(kind).map((one) => one.name + (one.required ? '*' : '')).join(' ')}`).join(' · ')
    return (
        <Form
            title="A new receiver"
            fields={[
                { name: 'name', label: 'Name' },
                { name: 'kind', label: 'Kind', options: known.map((one) => one.name ?? '') },
                { name: 'options', label: `Options as NAME=VALUE (${help})` },
                { name: 'doc', label: 'What it is for', isOptional: true },
            ]}
            confirm="Make it"
            onClose={onClose}
            act={async (values) => {
                const all = optionsOf(known.find((one) => one.name === values['kind']))
                const options = Object.fromEntries(
                    shellWords(values['options'] ?? '').map((word) => {
                        const [name = '', ...rest] = word.split('=')
                        const option = all.find((one) => one.name === name)
                        return [name, option ? valueOf(option, option.type === 'array' ? rest.join('=').replace(/,/g, '\n') : rest.join('=')) : rest.join('=')]
                    }),
                )
                await send('PUT', `/alert-receivers/${segment(values['name'] ?? '')}`, { kind: values['kind'], options, doc: values['doc'] || undefined })
                await list.load()
                toast(`${values['name']} can be named by rules`)
            }}
        />
    )
}

export function AlertReceivers() {
    const receivers: Resource<AlertReceiver[]> = useResource('alert-receivers', () => getAll<AlertReceiver>('/alert-receivers'))
    const deliveries = useResource('alert-deliveries', () => getAll<Delivery>('/alert-deliveries', { newest: 1, limit: 50 }))
    useResource('alert-kinds', async () => kinds.need())
    const [isNew, setNew] = useState(false)
    const test = async (one: AlertReceiver) => {
        await call<Delivery>('POST', `/alert-receivers/${segment(one.name)}/test`, {})
        deliveries.loadSoon(1_000)
    }
    const columns: Column<AlertReceiver>[] = [
        { id: 'name', name: 'Receiver', phone: 'name', render: (one) => <b>{one.name}</b> },
        { id: 'kind', name: 'Kind', width: '112px', phone: 'more', render: (one) => one.kind },
        { id: 'how', name: 'How', render: (one) => plainValue(one.options) },
        { id: 'state', name: 'State', width: '132px', phone: 'state', render: (one) => <State tone={one.is_failing ? 'bad' : one.last_sent_ms ? 'good' : 'plain'}>{one.is_failing ? 'refuses' : one.last_sent_ms ? 'takes them' : 'not used yet'}</State> },
        { id: 'waiting', name: 'Wait', width: '64px', isNumber: true, render: (one) => short(one.n_waiting) },
        { id: 'last', name: 'Last', width: '120px', render: (one) => <When time={one.last_sent_ms} /> },
        {
            id: 'acts',
            name: '',
            width: '176px',
            isNumber: true,
            render: (one) => (
                <span class="acts">
                    <Act right={RECEIVERS} isSmall onClick={() => void test(one).then(() => toast(`A test goes to ${one.name}`), (failure: Error) => toast(failure.message, 'bad'))}>
                        Send a test<span class="hidden"> to {one.name}</span>
                    </Act>
                    <Act right={RECEIVERS} isSmall tone="danger" onClick={() => ask(deleteQuestion(one.name, `/alert-receivers/${segment(one.name)}`, receivers))}>
                        Delete<span class="hidden"> {one.name}</span>
                    </Act>
                </span>
            ),
        },
    ]
    return (
        <>
            <Panel
                title="Who is told"
                aside={
                    <Act right={RECEIVERS} isSmall onClick={() => setNew(true)}>
                        New receiver
                    </Act>
                }
            >
                {isNew && <ReceiverForm list={receivers} onClose={() => setNew(false)} />}
                <Loaded resource={receivers}>{(all) => (all.length === 0 ? <p class="quiet">Nobody yet.</p> : <Table label="Receivers" rows={all} columns={columns} keyOf={(one) => one.name} />)}</Loaded>
            </Panel>
            <Panel title="Messages" window="the newest 50">
                <Loaded resource={deliveries}>{(all) => <Deliveries items={all} />}</Loaded>
            </Panel>
        </>
    )
}

export function Deliveries({ items }: { items: readonly Delivery[] }) {
    return items.length === 0 ? (
        <p class="quiet">No message was sent.</p>
    ) : (
        <ul class="list">
            {items.map((one) => (
                <li key={one.id}>
                    <State tone={one.state === 'sent' ? 'good' : one.state === 'dead' ? 'bad' : 'busy'}>{one.state === 'dead' ? 'given up' : one.state}</State>
                    <div class="grow">
                        <b>{one.receiver}</b> · {words(one.event)}
                        {one.rule && ` · rule ${one.rule}`}
                        {one.error && (
                            <div class="small tone-bad-text">
                                {one.error} ({one.attempts} {one.attempts === 1 ? 'try' : 'tries'})
                            </div>
                        )}
                    </div>
                    <span class="small">
                        <When time={one.done_ms ?? one.created_ms} />
                    </span>
                </li>
            ))}
        </ul>
    )
}

// ----------------------------------------------------------------------------------------------------------- silences

/** Holds an alert back, or all that match, until a time. */
export function SilenceForm({ alert, onClose, onDone }: { alert?: { id: string; message: string }; onClose: () => void; onDone: () => void }) {
    return (
        <Form
            title={alert ? 'Silence this alert' : 'Silence alerts'}
            fields={[
                ...(alert
                    ? []
                    : [
                          { name: 'kinds', label: 'Kinds, else any: drift, node_lost', isOptional: true },
                          { name: 'subjects', label: 'About what, else anything: ion/door*', isOptional: true },
                      ]),
                { name: 'span', label: 'For: 30m, 2h, 1d', value: '1h' },
                { name: 'note', label: 'Why' },
            ]}
            confirm="Silence"
            onClose={onClose}
            act={async (values) => {
                const until = new Date(Date.now() + Math.max(1_000, spanMs(values['span'], 'for'))).toISOString()
                await send('POST', '/alert-silences', { alert: alert?.id, project: alert ? undefined : project.value, kinds: split(values['kinds']), subjects: split(values['subjects']), until_ms: until, note: values['note'] })
                toast(`Silent until ${dayMinute(until)}`)
                onDone()
            }}
        />
    )
}

export function AlertSilences() {
    const silences: Resource<Silence[]> = useResource(`silences:${project.value}`, () => getAll<Silence>('/alert-silences', { newest: 1, project: project.value }))
    const [isNew, setNew] = useState(false)
    const holds = (one: Silence) => one.ended_ms === null && Date.parse(one.until_ms) > now.value
    const columns: Column<Silence>[] = [
        { id: 'what', name: 'Silence', phone: 'name', render: (one) => one.alert ?? `${anyOf(one.kinds, 'any kind')} · ${anyOf(one.subjects, 'anything')}` },
        { id: 'state', name: 'State', width: '96px', phone: 'state', render: (one) => <State tone={holds(one) ? 'warn' : 'plain'}>{holds(one) ? 'holds' : 'over'}</State> },
        { id: 'until', name: 'Until', width: '132px', phone: 'more', render: (one) => <When time={one.ended_ms ?? one.until_ms} /> },
        { id: 'note', name: 'Why', render: (one) => one.note ?? NONE },
        { id: 'by', name: 'By', width: '96px', render: (one) => one.created_by },
        {
            id: 'acts',
            name: '',
            width: '88px',
            isNumber: true,
            render: (one) =>
                holds(one) && (
                    <Act right={SILENCES} project={one.project} isSmall onClick={() => void send('DELETE', `/alert-silences/${segment(one.id)}`).then(() => silences.load(), (failure: Error) => toast(failure.message, 'bad'))}>
                        End it
                    </Act>
                ),
        },
    ]
    return (
        <Panel
            title="Silences"
            window="newest first"
            aside={
                <Act right={SILENCES} project={project.value} isSmall onClick={() => setNew(true)}>
                    New silence
                </Act>
            }
        >
            {isNew && <SilenceForm onClose={() => setNew(false)} onDone={() => void silences.load()} />}
            <Loaded resource={silences}>{(all) => (all.length === 0 ? <p class="quiet">Nothing is held back.</p> : <Table label="Silences" rows={all} columns={columns} keyOf={(one) => one.id} />)}</Loaded>
        </Panel>
    )
}
