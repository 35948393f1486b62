/** A cluster more, or other options for one: what is not said can be guessed by asking it, and it is tested before it is saved. */
import { useState } from 'preact/hooks'
import type { Cluster, ClusterCheck, GuessedCluster, Kind } from '../api'
import { FormDialog, Refusal, useSending } from '../components/form'
import { Icon } from '../components/icon'
import { toast } from '../components/toast'
import { ValueField } from '../components/value_field'
import { sentence, spanOf, spanText } from '../format'
import { clusters } from '../state/clusters'
import { call, getAll, messageOf, segment } from '../state/http'
import { optionsOf, type Option } from '../state/job_form'
import { useResource } from '../state/resource'
import { poolText } from './pool'

export const ASK_MS = 150_000 // a cluster may take long to answer

const SPANS: [member: 'after_ms' | 'idle_ms' | 'time_ms', label: string, hint: string][] = [
    ['after_ms', 'A job waits for', 'before nodes are asked for it here'],
    ['idle_ms', 'Idle nodes go back after', 'on which nothing has run'],
    ['time_ms', 'Nodes are asked for', 'if no job says how long it runs; 0: as long as may be'],
]

type Options = Record<string, unknown>

const given = (options: Options) => Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined && value !== ''))

/** "90s"; 0 is 0. */
const msOf = (text: string): number => (/^0\w?$/.test(text.trim()) ? 0 : spanOf(text.trim()))

function Found({ check }: { check: ClusterCheck }) {
    return check.missing !== null ? (
        <Refusal text={check.missing} />
    ) : (
        <>
            <p class="note tone-good" role="status">
                <Icon name="check" /> It answers. {check.pools.length === 0 ? 'It has no pools.' : check.pools.map(poolText).join('; ')}
            </p>
            {check.notice !== null && (
                <p class="note tone-warn" role="note">
                    <Icon name="warning" /> {sentence(check.notice)}.
                </p>
            )}
        </>
    )
}

function Fields({ kind, options, onChange }: { kind: Kind; options: Options; onChange: (next: Options) => void }) {
    const rows = optionsOf(kind)
    const field = (option: Option) => <ValueField key={option.name} option={option} value={options[option.name]} onValue={(value) => onChange({ ...options, [option.name]: value })} />
    const first = rows.filter((one) => one.required)
    const others = rows.filter((one) => !one.required)
    return (
        <>
            {first.map(field)}
            {others.length > 0 && (
                <details open={first.length === 0}>
                    <summary>{first.length > 0 ? 'Other options' : 'Options'}</summary>
                    {others.map(field)}
                </details>
            )}
        </>
    )
}

export function ClusterForm({ of, onClose }: { of?: Cluster; onClose: () => void }) {
    const kinds = useResource('drivers', () => getAll<Kind>('/kinds', { noun: 'driver' }))
    const drivers = (kinds.data.value ?? []).filter((one) => !one.is_planned && one.name !== 'local')
    const [typed, setTyped] = useState({ name: of?.name ?? '', driver: of?.driver ?? '', max_nodes: String(of?.max_nodes ?? 0) })
    const [spans, setSpans] = useState({ after_ms: spanText(of?.after_ms ?? 0), idle_ms: spanText(of?.idle_ms ?? 60_000), time_ms: spanText(of?.time_ms ?? 0) })
    const [options, setOptions] = useState<Options>(of?.options ?? {})
    const [said, setSaid] = useState<{ of: string; check: ClusterCheck } | null>(null)
    const [asking, setAsking] = useState('')
    const [problem, setProblem] = useState('')
    const driver = drivers.find((one) => one.name === typed.driver) ?? drivers[0]
    const asked = { name: typed.name || undefined, driver: driver?.name, options: given(options) }
    const known = JSON.stringify(asked)
    const check = said?.of === known ? said.check : null
    const test = async () => {
        const found = await call<ClusterCheck>('POST', '/clusters/check', asked, ASK_MS)
        setSaid({ of: known, check: found })
        return found
    }
    const asks = async (what: string, act: () => Promise<unknown>) => {
        setAsking(what)
        setProblem('')
        try {
            await act()
        } catch (failure) {
            setProblem(messageOf(failure))
        } finally {
            setAsking('')
        }
    }
    const guess = () => asks('guess', async () => setOptions((await call<GuessedCluster>('POST', '/clusters/guess', asked, ASK_MS)).options))
    const save = useSending(async () => {
        const body = { driver: driver?.name, options: given(options), is_draining: of?.is_draining ?? false, max_nodes: Number(typed.max_nodes), ...Object.fromEntries(SPANS.map(([member]) => [member, msOf(spans[member])])) }
        if (check === null && (await test()).missing !== null) {
            return // it stands there; a second press saves all the same
        }
        await (of ? call('PUT', `/clusters/${segment(of.name)}`, body) : call('POST', '/clusters', { name: typed.name, ...body }))
        await clusters.load()
        toast(of ? `${of.name} is changed` : `${typed.name} is added`)
        onClose()
    })
    const set = (key: keyof typeof typed) => (event: { currentTarget: { value: string } }) => setTyped({ ...typed, [key]: event.currentTarget.value })
    const busy = asking !== '' || save.isBusy
    const lacks = check !== null && check.missing !== null
    return (
        <FormDialog
            title={of ? `Change ${of.name}` : 'Add a cluster'}
            wide
            sending={save}
            isReady={driver !== undefined && typed.name !== '' && !busy}
            confirm={busy ? 'Asking…' : lacks ? 'Save all the same' : of ? 'Test and save' : 'Test and add'}
            other={
                <button type="button" class="button" disabled={!driver || busy} onClick={() => void asks('test', test)}>
                    {asking === 'test' ? 'Asking…' : 'Test'}
                </button>
            }
            onClose={onClose}
        >
            {!of && (
                <div class="grid g2">
                    <label class="field">
                        <span>Name, which begins the names of its nodes</span>
                        <input class="input" name="name" autocomplete="off" required pattern="[a-z0-9][a-z0-9\-]{0,39}" title="at most 40 of a-z 0-9 -" autofocus value={typed.name} onInput={set('name')} />
                    </label>
                    <label class="field">
                        <span>Driver</span>
                        <select class="input" name="driver" value={driver?.name ?? ''} onChange={set('driver')}>
                            {drivers.map((one) => (
                                <option key={one.name}>{one.name}</option>
                            ))}
                        </select>
                    </label>
                </div>
            )}
            {kinds.data.value && drivers.length === 0 && <Refusal text="This server has no driver of clusters." />}
            {driver && (
                <>
                    <p class="small muted">{driver.doc}</p>
                    <Fields kind={driver} options={options} onChange={setOptions} />
                    <p>
                        <button type="button" class="button small" disabled={busy} onClick={() => void guess()}>
                            {asking === 'guess' ? 'Asking…' : 'Guess what is not said, by asking it'}
                        </button>
                    </p>
                </>
            )}
            <div class="grid g2">
                {SPANS.map(([member, label, hint]) => (
                    <label key={member} class="field">
                        <span>{label}</span>
                        <input class="input" name={member} autocomplete="off" required value={spans[member]} onInput={(event) => setSpans({ ...spans, [member]: event.currentTarget.value })} />
                        <span class="small muted">{hint}</span>
                    </label>
                ))}
                <label class="field">
                    <span>Nodes at a time</span>
                    <input class="input" name="max_nodes" inputmode="numeric" pattern="\d+" required value={typed.max_nodes} onInput={set('max_nodes')} />
                    <span class="small muted">0: no bound of Weir's</span>
                </label>
            </div>
            {check && <Found check={check} />}
            <Refusal text={problem} />
        </FormDialog>
    )
}
