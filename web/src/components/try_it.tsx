/** Drop a picture, or write tensors, and see what each version answers and where the time went. */
import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Deployment, ModelVersion } from '../api'
import { bytes, plainValue } from '../format'
import { may } from '../state/rights'
import { requestOf, signatureOf, type Signature } from '../state/signature'
import { tryIt, type Answer, type Stage } from '../state/try_it'
import { connection } from '../state/stream'
import { Command, Panel } from './basics'
import { VersionMark } from './deployment_shares'
import { Icon } from './icon'
import { Act } from './locked'

const STAGES: Record<string, { name: string; colour: string; what: string }> = {
    read: { name: 'Read', colour: '--series-1', what: 'the picture or the text becomes tensors' },
    queue: { name: 'Queue', colour: '--series-5', what: 'it waits for its turn, and for others to go with' },
    input: { name: 'Input', colour: '--series-4', what: 'a batch is joined' },
    compute: { name: 'Compute', colour: '--series-2', what: 'the model' },
    output: { name: 'Output', colour: '--series-3', what: 'a batch is split' },
    write: { name: 'Write', colour: '--series-6', what: 'tensors become the answer' },
    way: { name: 'On the way', colour: '--line-strong', what: 'page, gateway and network' },
}
const SHOWN = 8

const msText = (ms: number) => (ms < 0.0995 ? `${Math.round(ms * 1000)} µs` : ms < 99.95 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`)

function Times({ stages, totalMs }: { stages: readonly Stage[]; totalMs: number }) {
    return (
        <div class="stage-times">
            <span class="bar" role="img" aria-label={stages.map((one) => `${STAGES[one.name]?.name ?? one.name} ${msText(one.ms)}`).join(', ')}>
                {stages.map((one) => (
                    <i key={one.name} style={{ width: `${(100 * one.ms) / totalMs}%`, background: `var(${STAGES[one.name]?.colour ?? '--line'})` }} />
                ))}
            </span>
            <p class="legend">
                {stages.map((one) => (
                    <span key={one.name} title={STAGES[one.name]?.what}>
                        <i class="sw" style={{ background: `var(${STAGES[one.name]?.colour ?? '--line'})` }} aria-hidden="true" />
                        {STAGES[one.name]?.name ?? one.name} <b>{msText(one.ms)}</b>
                    </span>
                ))}
            </p>
        </div>
    )
}

function Labels({ answer, colour }: { answer: Answer; colour: string }) {
    return (
        <ol class="answers" aria-label={`Answer of v${answer.version}`}>
            {answer.labels.map((one, i) => (
                <li key={i}>
                    <span class="clip" title={one.label}>
                        {one.label}
                    </span>
                    <span class="bar">
                        <i style={{ width: `${100 * one.probability}%`, background: `var(${colour})` }} />
                    </span>
                    <b class="num">{one.probability.toFixed(3)}</b>
                </li>
            ))}
        </ol>
    )
}

function Outputs({ answer }: { answer: Answer }) {
    return (
        <ul class="answers plain" aria-label={`Answer of v${answer.version}`}>
            {answer.outputs.map((one) => {
                const data = one.data ?? []
                return (
                    <li key={one.name}>
                        <code class="port">
                            {one.name} {one.datatype} [{one.shape.join(', ')}]
                        </code>
                        <span class="small">
                            {data.slice(0, SHOWN).map(plainValue).join('  ')}
                            {data.length > SHOWN && ' …'}
                        </span>
                    </li>
                )
            })}
        </ul>
    )
}

function AnswerView({ deployment, answer, colour }: { deployment: Deployment; answer: Answer; colour: string }) {
    return (
        <section class="answer" data-answer={`v${answer.version}`} aria-label={`Version ${answer.version}`}>
            <h3>
                <VersionMark deployment={deployment} version={answer.version} />
                <span class="muted small">{answer.error ? '' : `${msText(answer.totalMs)} in all`}</span>
            </h3>
            {answer.error ? (
                <p class="failed" role="alert">
                    <Icon name="warning" />
                    <span>{answer.error}</span>
                </p>
            ) : answer.labels.length > 0 ? (
                <Labels answer={answer} colour={colour} />
            ) : (
                <Outputs answer={answer} />
            )}
            {answer.stages.length > 0 && <Times stages={answer.stages} totalMs={answer.totalMs} />}
        </section>
    )
}

interface Given {
    body: Blob | string
    type: string
    name: string
    picture: string // its address in the page, "" if it is none
}

function typeOf(file: File): string {
    return file.type.startsWith('image/') ? file.type : /\.json$/i.test(file.name) || file.type === 'application/json' ? 'application/json' : 'image/x-portable-anymap'
}

async function givenOf(file: File): Promise<Given> {
    const type = typeOf(file)
    return type === 'application/json'
        ? { body: await file.text(), type, name: file.name, picture: '' }
        : { body: file, type, name: `${file.name}, ${bytes(file.size)}`, picture: /jpeg|png/.test(type) ? URL.createObjectURL(file) : '' }
}

function Tensors({ signature, onAsk, isOff }: { signature: Signature; onAsk: (text: string) => void; isOff: boolean }) {
    const first = useMemo(() => requestOf(signature), [signature])
    const [text, setText] = useState(first)
    useEffect(() => setText(first), [first])
    return (
        <details class="form-more" open={signature.picture === null}>
            <summary>Tensors, as JSON of the Open Inference Protocol</summary>
            <textarea class="input mono" name="tensors" rows={6} spellcheck={false} aria-label="Request as JSON" value={text} onInput={(event) => setText(event.currentTarget.value)} />
            <button type="button" class="button small" disabled={isOff} onClick={() => onAsk(text)}>
                Ask with these tensors
            </button>
        </details>
    )
}

export function TryIt({ deployment, versions }: { deployment: Deployment; versions: readonly ModelVersion[] }) {
    const live = deployment.versions.filter((one) => one.live_percent > 0).map((one) => one.version)
    const [wanted, setWanted] = useState(0) // 0: all that share the traffic
    const [given, setGiven] = useState<Given>()
    const [answers, setAnswers] = useState<Answer[]>([])
    const [isBusy, setBusy] = useState(false)
    const [isOver, setOver] = useState(false)
    const asked = wanted > 0 && live.includes(wanted) ? [wanted] : live
    const signature = signatureOf(versions.find((one) => one.version === asked[0]))
    const isOff = isBusy || asked.length === 0 || connection.value.state === 'lost'
    const mayAsk = may('predict with deployments', deployment.project)
    useEffect(() => () => void (given?.picture && URL.revokeObjectURL(given.picture)), [given?.picture])
    const ask = async (next: Given, of: readonly number[]) => {
        setGiven(next)
        setBusy(true)
        const found: Answer[] = []
        for (const version of of) {
            found.push(await tryIt(deployment.name, version, next.body, next.type)) // one after the other: their times do not mix
            setAnswers([...found])
        }
        setBusy(false)
    }
    const take = async (file: File | undefined) => file && (await ask(await givenOf(file), asked))
    const choose = (version: number) => {
        setWanted(version)
        if (given) {
            void ask(given, version > 0 ? [version] : live)
        }
    }
    return (
        <Panel
            title={`Try ${deployment.name}`}
            window="counts as a request"
            aside={
                live.length > 1 && (
                    <span class="seg" role="group" aria-label="Versions to ask">
                        {[...live, 0].map((version) => (
                            <button key={version} type="button" aria-pressed={version === (asked.length > 1 ? 0 : asked[0])} onClick={() => choose(version)}>
                                {version === 0 ? (live.length === 2 ? 'Both' : 'All') : `v${version}`}
                            </button>
                        ))}
                    </span>
                )
            }
        >
            <div class="panel-body stack mid">
                {!mayAsk ? (
                    <Act right="predict with deployments" project={deployment.project} onClick={() => undefined}>
                        Try it
                    </Act>
                ) : (
                    <>
                        {asked.length === 0 && <p class="muted">{deployment.state === 'IDLE' ? 'The first request starts a replica and waits for it; the page asks versions that are in effect.' : 'No version is in effect yet.'}</p>}
                        {signature?.picture && (
                            <label
                                class={`drop ${isOver ? 'is-over' : ''}`}
                                onDragOver={(event) => {
                                    event.preventDefault()
                                    setOver(true)
                                }}
                                onDragLeave={() => setOver(false)}
                                onDrop={(event) => {
                                    event.preventDefault()
                                    setOver(false)
                                    void take(event.dataTransfer?.files[0])
                                }}
                            >
                                {given?.picture ? <img src={given.picture} alt="" width={72} height={72} /> : <Icon name="sink" size={24} />}
                                <span>
                                    <b>{isBusy ? 'Asks …' : (given?.name ?? 'Drop a picture here')}</b>
                                    <small class="muted">{given ? 'Another: drop it, or choose a file' : 'or choose a file: JPEG, PNG or PNM'}</small>
                                </span>
                                <input
                                    type="file"
                                    name="picture"
                                    accept="image/jpeg,image/png,.ppm,.pgm,.pnm,.json"
                                    disabled={isOff}
                                    onChange={(event) => {
                                        void take(event.currentTarget.files?.[0])
                                        event.currentTarget.value = ''
                                    }}
                                />
                            </label>
                        )}
                        <div class={`answer-pair ${isBusy ? 'is-asking' : ''}`}>
                            {answers.map((answer, i) => (
                                <AnswerView key={answer.version} deployment={deployment} answer={answer} colour={`--series-${(live.indexOf(answer.version) % 6) + 1 || i + 1}`} />
                            ))}
                        </div>
                        {signature && <Tensors signature={signature} isOff={isOff} onAsk={(text) => void ask({ body: text, type: 'application/json', name: 'these tensors', picture: '' }, asked)} />}
                    </>
                )}
                <Command text={signature?.picture ? `weir predict ${deployment.name} PICTURE` : `weir predict ${deployment.name} REQUEST.json`} />
                <Command
                    text={`curl -H "Authorization: Bearer $WEIR_TOKEN" -H "Content-Type: ${signature?.picture ? 'image/jpeg' : 'application/json'}" --data-binary @FILE ${location.origin}/v2/models/${deployment.name}/infer`}
                />
            </div>
        </Panel>
    )
}
