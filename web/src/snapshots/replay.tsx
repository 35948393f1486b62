/** Would other rules have caught it: another revision's policies, or other thresholds of drift, over the rows of a snapshot. */
import { useState } from 'preact/hooks'
import type { Replay, ReplayedDecision, ReplayedSignal, Revision, Snapshot, ToldVerdict } from '../api'
import { clockTime, counted, dayMinute, NONE, short, words } from '../format'
import { call, getAll, messageOf, segment } from '../state/http'
import type { Option } from '../state/job_form'
import { useResource } from '../state/resource'
import { readYaml, writeYaml } from '../state/yaml'
import { Panel, Version } from '../components/basics'
import { Icon } from '../components/icon'
import { State, VERSION_VERDICTS } from '../components/state'
import { ValueField } from '../components/value_field'

const REPLAY_MS = 300_000
const SHOWN = 200

/** Thresholds of the detectors; what is not said stays as the replicas had it. */
const RULES: Option[] = [
    { name: 'false_alarm_rate', type: 'number', minimum: 0.00001, maximum: 0.2, doc: 'Per window: 0.001 is one false alarm in 1000 windows' },
    { name: 'min_effect', type: 'number', minimum: -1, maximum: 100, doc: 'Least effect that counts, in standard deviations' },
    { name: 'window', type: 'integer', minimum: 20, maximum: 100000, doc: 'Values in a window' },
    { name: 'confirm_k', type: 'integer', minimum: 1, maximum: 32, doc: 'Windows that must differ' },
    { name: 'confirm_n', type: 'integer', minimum: 1, maximum: 32, doc: 'Of so many' },
]

const AS_IT_WAS = ''
const WRITTEN = 'written'

function Told({ told }: { told: ToldVerdict | null }) {
    return told === null ? (
        <span class="muted">nothing asks any more</span>
    ) : (
        <span title={told.rule}>
            <State tone={VERSION_VERDICTS[told.verdict]?.tone ?? 'plain'}>{VERSION_VERDICTS[told.verdict]?.word ?? words(told.verdict.toLowerCase())}</State>
        </span>
    )
}

function Decisions({ replay }: { replay: Replay }) {
    const { policies } = replay
    const others = policies.decisions.filter((one) => one.differs)
    const row = (one: { version: number; link: string; recorded: ToldVerdict; replayed: ToldVerdict | null; why: string | null }, key: string, where: string, when: string) => (
        <tr key={key}>
            <td>
                <Version number={one.version} /> {where}
            </td>
            <td>{when}</td>
            <td>
                <Told told={one.recorded} />
            </td>
            <td>
                <Told told={one.replayed} />
            </td>
            <td>{one.why ?? NONE}</td>
        </tr>
    )
    const ends = replay.candidates.filter((one) => one.differs)
    return (
        <Panel
            title="Policies"
            window={`${counted(policies.n, 'decision')}: ${policies.n_same} the same again, ${counted(policies.n_differ, 'other')}${policies.n_by_hand > 0 ? `, ${policies.n_by_hand} by people` : ''}`}
        >
            {others.length + ends.length === 0 ? (
                <p class="quiet">
                    <Icon name="check" /> Each policy would have said the same.
                </p>
            ) : (
                <div class="table-wrap" tabIndex={0} role="group" aria-label="Decisions that would be others">
                    <table>
                        <thead>
                            <tr>
                                {['Version', 'When', 'As it was', 'With these rules', 'Why'].map((head) => (
                                    <th key={head} scope="col">
                                        {head}
                                    </th>
                                ))}
                            </tr>
                        </thead>
                        <tbody>
                            {others.slice(0, SHOWN).map((one: ReplayedDecision) => row(one, one.id, `${one.link}, ${words(one.policy)}`, dayMinute(one.time_ms)))}
                            {ends.slice(0, SHOWN).map((one) => row(one, `${one.link}:${one.version}`, `${one.link}, in the end`, NONE))}
                        </tbody>
                    </table>
                </div>
            )}
        </Panel>
    )
}

function Drift({ replay }: { replay: Replay }) {
    const { drift } = replay
    const alarm = (time: string | null) => (time === null ? <span class="muted">none</span> : <b>{dayMinute(time)}</b>)
    return (
        <Panel
            title="Drift"
            window={drift.false_alarm_rate > 0 ? `windows of ${drift.window} · ${counted(drift.false_alarm_rate, 'false alarm')} each · effect ≥ ${short(drift.min_effect)} · ${drift.confirm_k} of ${drift.confirm_n}` : 'nothing was tested'}
        >
            {drift.signals.length === 0 ? (
                <p class="quiet">No decision of the span has a value with a baseline.</p>
            ) : (
                <div class="table-wrap" tabIndex={0} role="group" aria-label="First alarms">
                    <table>
                        <thead>
                            <tr>
                                {['Signal', 'Windows', 'First alarm, as it was', 'With these rules', 'Why'].map((head) => (
                                    <th key={head} scope="col">
                                        {head}
                                    </th>
                                ))}
                            </tr>
                        </thead>
                        <tbody>
                            {drift.signals.map((one: ReplayedSignal) => (
                                <tr key={`${one.pipeline}${one.replica}${one.signal}${one.model_version}`}>
                                    <td>
                                        {words(one.signal)}, {one.pipeline} <Version number={one.model_version} />
                                    </td>
                                    <td class="num">{one.n_windows}</td>
                                    <td>{alarm(one.recorded_alarm)}</td>
                                    <td>
                                        {one.differs && (
                                            <State tone="warn">
                                                <span class="hidden">differs</span>
                                            </State>
                                        )}{' '}
                                        {alarm(one.replayed_alarm)}
                                    </td>
                                    <td>{one.why ?? NONE}</td>
                                </tr>
                            ))}
                        </tbody>
                    </table>
                </div>
            )}
        </Panel>
    )
}

export function SnapshotReplay({ snapshot }: { snapshot: Snapshot }) {
    const [source, setSource] = useState(AS_IT_WAS)
    const [text, setText] = useState('')
    const [rules, setRules] = useState<Record<string, unknown>>({})
    const [result, setResult] = useState<{ replay: Replay; at: number; tookMs: number } | null>(null)
    const [error, setError] = useState('')
    const [isBusy, setBusy] = useState(false)
    const revisions = useResource(`revisions:${snapshot.ion}`, () => getAll<Revision>(`/ions/${segment(snapshot.ion)}/revisions`))
    const known = revisions.data.value ?? []
    const choose = (value: string) => {
        const begin = known.find((one) => one.revision === snapshot.revision) ?? known[0]
        if (value === WRITTEN && text === '' && begin) {
            setText(writeYaml(begin.document as object).lines.join('\n') + '\n')
        }
        setSource(value)
    }
    const run = async () => {
        setBusy(true)
        setError('')
        const begun = Date.now()
        try {
            const by = source === AS_IT_WAS ? {} : source === WRITTEN ? { document: readYaml(text) } : { revision: Number(source) }
            const replay = await call<Replay>('POST', `/snapshots/${segment(snapshot.name)}/replay`, { ...by, ...rules }, REPLAY_MS)
            setResult({ replay, at: Date.now(), tookMs: Date.now() - begun })
        } catch (failure) {
            setError(messageOf(failure))
        } finally {
            setBusy(false)
        }
    }
    return (
        <>
            <Panel title="What if other rules had held?" window="over the rows of the snapshot; nothing live changes">
                <div class="panel-body stack">
                    <label class="field">
                        <span>Policies of the links</span>
                        <select class="input" name="replay-policies" value={source} onChange={(event) => choose(event.currentTarget.value)}>
                            <option value={AS_IT_WAS}>as they were</option>
                            {known.map((one) => (
                                <option key={one.id} value={String(one.revision)}>
                                    those of revision {one.revision}, {dayMinute(one.time_ms)} by {one.actor ?? 'Weir'}
                                </option>
                            ))}
                            <option value={WRITTEN}>those of a document that I write</option>
                        </select>
                    </label>
                    {source === WRITTEN && (
                        <label class="field">
                            <span>The document as YAML</span>
                            <textarea class="input mono" name="replay-document" rows={12} spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} />
                        </label>
                    )}
                    <fieldset class="replay-rules">
                        <legend class="small muted">Drift: what is left out stays as it was</legend>
                        {RULES.map((rule) => (
                            <ValueField
                                key={rule.name}
                                option={rule}
                                value={rules[rule.name]}
                                onValue={(value) => {
                                    const { [rule.name]: _, ...rest } = rules
                                    setRules(value === undefined ? rest : { ...rest, [rule.name]: value })
                                }}
                            />
                        ))}
                    </fieldset>
                    {error && (
                        <p class="failed" role="alert">
                            <Icon name="warning" />
                            <span>{error}</span>
                        </p>
                    )}
                    <p class="row wrap">
                        <button type="button" class="button primary" disabled={isBusy} onClick={() => void run()}>
                            <Icon name="play" /> {isBusy ? 'Replaying…' : 'Replay'}
                        </button>
                        <span class="small muted" role="status">
                            {result && `${result.replay.is_same ? 'Nothing would have been decided otherwise.' : 'Something would have been otherwise.'} Replayed ${clockTime(result.at)} in ${short(result.tookMs / 1000)} s.`}
                        </span>
                    </p>
                </div>
            </Panel>
            {result && (
                <>
                    <Decisions replay={result.replay} />
                    <Drift replay={result.replay} />
                </>
            )}
        </>
    )
}
