/** What is known of a run, as tables: its parameters beside those of the run before, its tags, its code and environment. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { Job, Run } from '../api'
import { bytes, millis, NONE, percent, plainValue, words } from '../format'
import { accelerators, holdersOf } from '../state/devices'
import { specOf } from '../state/job_wants'
import { runs } from '../state/store'
import { Empty, Facts, Panel } from './basics'
import { blobAddress, CodeFiles } from './run_code'


const SHOWN = 200

/** The run of the same pipeline before this one, whose parameters stand beside. */
function before(run: Run): Run | undefined {
    return (runs.data.value ?? []).find((one) => one.ion && one.ion === run.ion && one.pipeline === run.pipeline && millis(one.created_ms) < millis(run.created_ms))
}

function Pairs(props: { title: string; heads: string[]; rows: [string, ...ComponentChildren[]][] }) {
    const [word, setWord] = useState('')
    const found = props.rows.filter(([key]) => key.toLowerCase().includes(word.toLowerCase()))
    return (
        <Panel
            title={props.title}
            window={word === '' ? props.rows.length : `${found.length} of ${props.rows.length}`}
            aside={props.rows.length > 12 && <input type="search" class="input small" placeholder="Find" aria-label={`Find in ${props.title.toLowerCase()}`} value={word} onInput={(event) => setWord(event.currentTarget.value)} />}
        >
            <div class="table-wrap" tabIndex={0} role="group" aria-label={props.title}>
                <table class="dense parameters">
                    <thead>
                        <tr>
                            {props.heads.map((head) => (
                                <th key={head} scope="col">
                                    {head}
                                </th>
                            ))}
                        </tr>
                    </thead>
                    <tbody>
                        {found.slice(0, SHOWN).map(([key, ...cells]) => (
                            <tr key={key}>
                                <td title={key}>{words(key)}</td>
                                {cells.map((cell, i) => (
                                    <td key={i} title={typeof cell === 'string' ? cell : undefined}>
                                        {cell}
                                    </td>
                                ))}
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
        </Panel>
    )
}

export function Parameters({ run }: { run: Run }) {
    const given = run.parameters ?? {}
    const isGiven = (key: string) => key in given || key.split('.')[0]! in given
    const logged = Object.entries(run.params ?? {}).filter(([key]) => !isGiven(key))
    const parameters = [...logged, ...Object.entries({ ...given, ...run.params }).filter(([key]) => isGiven(key))]
    const other = before(run)
    return parameters.length === 0 ? null : (
        <Pairs
            title="Parameters"
            heads={['Parameter', 'Value', ...(other ? ['Run before'] : [])]}
            rows={parameters.map(([key, value]) => {
                const theirs = other?.parameters?.[key]
                const isSame = plainValue(theirs) === plainValue(value)
                return [key, plainValue(value), ...(other ? [isSame ? <span class="muted">same</span> : <b>{plainValue(theirs)}</b>] : [])]
            })}
        />
    )
}

const isOfClient = (key: string) => key.startsWith('mlflow.') || key.startsWith('weir.')

export function Tags({ run }: { run: Run }) {
    const tags = Object.entries(run.tags ?? {}).filter(([key]) => !isOfClient(key))
    return tags.length === 0 ? null : <Pairs title="Tags" heads={['Tag', 'Value']} rows={tags} />
}

/** What was run, and in what: by the tags that a client sets, and by the job. */
export function CodeAndPlace({ run, job }: { run: Run; job: Job | undefined }) {
    const tags = run.tags ?? {}
    const spec = job ? specOf(job) : {}
    const code = (typeof spec['code'] === 'object' && spec['code'] !== null ? spec['code'] : {}) as Record<string, unknown>
    const said = (key: string) => (spec[key] === undefined || spec[key] === '' ? null : spec[key])
    const patch = tags['weir.code.patch'] ?? code['patch']
    const manifest = tags['weir.code.manifest'] ?? code['manifest']
    const dirty = tags['weir.code.dirty'] ?? (code['dirty'] === undefined ? undefined : String(code['dirty']))
    const commit = tags['mlflow.source.git.commit'] ?? code['commit'] ?? run.code_version
    const shown: [string, unknown][] = [
        ['Program', tags['mlflow.source.name']],
        ['Command', said('argv') && (said('argv') as unknown[]).join(' ')],
        ['Repository', tags['mlflow.source.git.repoURL'] ?? code['repository'] ?? code['git']],
        ['Branch', tags['mlflow.source.git.branch']],
        ['Commit', commit],
        ['Changed since', patch ? 'yes' : dirty === 'true' ? 'yes, and the changes are not kept' : dirty === 'false' ? 'no' : null],
        ['Image', said('image')],
        ['By', tags['mlflow.user']],
    ]
    const facts: [string, ComponentChildren][] = shown.flatMap(([name, value]): [string, ComponentChildren][] => (value ? [[name, <code class="wrap">{String(value)}</code>]] : []))
    const env = Object.entries((said('env') as Record<string, unknown> | null) ?? {})
    const python = said('python')
    const others = Object.entries(tags).filter(([key]) => isOfClient(key) && !/source\.|user$|runName|log-model|weir\.code/.test(key))
    if (patch) {
        facts.push([
            'Changes',
            <a href={blobAddress(String(patch))} download="changes.patch">
                changes.patch
            </a>,
        ])
    }
    if (facts.length === 0 && !manifest && env.length === 0 && others.length === 0) {
        return (
            <div class="panel">
                <Empty icon="jobs" title="Nothing is known of its code">
                    A client sets tags such as mlflow.source.git.commit, and `weir job run` records the folder that it sends.
                </Empty>
            </div>
        )
    }
    return (
        <div class="stack">
            <div class="grid g2">
                <Panel title="Code">
                    <div class="panel-body">{facts.length > 0 ? <Facts items={facts} /> : <p class="muted">Not recorded.</p>}</div>
                </Panel>
                <Panel title="Environment">
                    <div class="panel-body stack">
                        {python ? (
                            <pre class="log" tabIndex={0} aria-label="Python packages">
                                {String(python)}
                            </pre>
                        ) : null}
                        {env.length > 0 ? <Facts items={env.map(([key, value]) => [key, <code class="wrap">{String(value)}</code>])} /> : <p class="muted">No variables were set.</p>}
                    </div>
                </Panel>
                {others.length > 0 && <Pairs title="What the client says" heads={['Tag', 'Value']} rows={others.map(([key, value]) => [key.replace(/^mlflow\./, ''), value])} />}
            </div>
            {manifest ? <CodeFiles manifest={String(manifest)} /> : null}
        </div>
    )
}

/** The devices that its job holds now, and what they say of themselves. */
export function SystemNow({ job }: { job: Job | undefined }) {
    const mine = job ? [...accelerators.value.values()].flat().filter((one) => holdersOf(one).some((holder) => holder.name === job.name)) : []
    return mine.length === 0 ? null : (
        <Panel title="Devices now" window={`${mine.length}`}>
            <div class="table-wrap" tabIndex={0} role="group" aria-label="Devices now">
                <table class="dense">
                    <thead>
                        <tr>
                            {['Device', 'Model', 'Busy', 'Memory', 'Temperature', 'Power'].map((head, i) => (
                                <th key={head} scope="col" class={i > 1 ? 'num' : ''}>
                                    {head}
                                </th>
                            ))}
                        </tr>
                    </thead>
                    <tbody>
                        {mine.map((one) => (
                            <tr key={one.name}>
                                <td>{one.name}</td>
                                <td>{one.model}</td>
                                <td class="num">{one.utilisation_pct === null ? NONE : percent(one.utilisation_pct / 100, 0)}</td>
                                <td class="num">{one.memory_used_bytes < 0 ? NONE : `${bytes(one.memory_used_bytes)} of ${bytes(one.memory_bytes)}`}</td>
                                <td class="num">{one.temperature_c === null ? NONE : `${one.temperature_c} °C`}</td>
                                <td class="num">{one.power_w === null ? NONE : `${one.power_w} W`}</td>
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
        </Panel>
    )
}

