/** What a version and the one that serves disagree on: pictures with both answers, which classes are taken for which, and requests that a
 * mirrored version answered otherwise. */
import type { Candidate, Comparison, DeploymentDisagreements, Disagreement, FoundComparison } from '../api'
import { millis, NONE, percent, plainValue } from '../format'
import { get, getAll, segment } from '../state/http'
import { useResource } from '../state/resource'
import { href, hrefWith, param } from '../state/route'
import { datasets, runs } from '../state/store'
import { Choices, Loaded, Panel, Version, When } from './basics'
import { Picture } from './face'
import { Icon } from './icon'

const MAX = 200
const CONFUSIONS_SHOWN = 12
const DIFFERED_SHOWN = 20

/** By kind: what a choice says, and whose answer is right. */
const KINDS: Record<string, { name: (one: Comparison) => string; count: (one: Comparison) => number }> = {
    'live-right': { name: (one) => `only v${one.live_version} right`, count: (one) => one.n_live_right },
    'candidate-right': { name: (one) => `only v${one.version} right`, count: (one) => one.n_candidate_right },
    'both-wrong': { name: () => 'both wrong', count: (one) => one.n_both_wrong },
}

const WHO_IS_BETTER = new Map([
    [1, 'the new version is better'],
    [-1, 'the new version is worse'],
])

function Answer({ version, answer, score, isRight, isLive }: { version: number; answer: string; score: number | null; isRight: boolean; isLive: boolean }) {
    return (
        <span class={isRight ? 'right' : 'wrong'}>
            <Icon name={isRight ? 'check' : 'cross'} size={14} />
            <Version number={version} is={isLive ? 'live' : undefined} /> <b>{answer}</b> <span class="muted">{score === null ? NONE : percent(score)}</span>
            <span class="hidden">{isRight ? ', right' : ', wrong'}</span>
        </span>
    )
}

function Sample({ one, of, isShown }: { one: Disagreement; of: Comparison; isShown: boolean }) {
    return (
        <li>
            {isShown && one.sha256 ? (
                <Picture sha256={one.sha256} name={one.file} />
            ) : (
                <span class="face picture" title={one.file}>
                    <Icon name="camera" />
                </span>
            )}
            <span class="clip" title={one.file}>
                {one.label}
            </span>
            <small>
                <Answer version={of.version} answer={one.answer} score={one.score} isRight={one.answer === one.label} isLive={false} />
                <Answer version={of.live_version} answer={one.live_answer} score={one.live_score} isRight={one.live_answer === one.label} isLive />
            </small>
        </li>
    )
}

function Gallery({ of }: { of: Comparison }) {
    const kind = param('kind') ?? ''
    const rows = useResource(`disagreements:${of.run}:${of.time_ms}`, () => getAll<Disagreement>(`/runs/${segment(of.run)}/disagreements`, { limit: MAX }))
    const dataset = datasets.data.value?.find((one) => one.name === of.dataset)
    const n = of.n_live_right + of.n_candidate_right + of.n_both_wrong
    return (
        <>
            <div class="panel-body">
                <p>
                    Of {of.n_samples} pictures they answer {n} differently
                    {of.n_kept < n && <> ({of.n_kept} of them are kept, of each kind those of which the wrong one was surest)</>}. <b>{percent(of.accuracy)}</b> right, the live version{' '}
                    <b>{percent(of.live_accuracy)}</b>: {WHO_IS_BETTER.get(of.better) ?? 'nobody can say which is better'} (p {plainValue(of.p_value)}).
                </p>
                <Choices
                    label="Which of them"
                    items={[
                        { name: `all ${n}`, address: hrefWith({ kind: '' }), isCurrent: kind === '' },
                        ...Object.entries(KINDS).map(([name, its]) => ({ name: `${its.name(of)} ${its.count(of)}`, address: hrefWith({ kind: name }), isCurrent: kind === name })),
                    ]}
                />
                {dataset && !dataset.is_uploaded && <p class="quiet">The pictures lie in a folder of the server: here are their names. Those of uploaded datasets are shown.</p>}
            </div>
            <Loaded resource={rows}>
                {(items) => {
                    const shown = items.filter((one) => kind === '' || one.kind === kind)
                    return shown.length === 0 ? (
                        <p class="quiet">{n === 0 ? 'They answer alike on every picture.' : 'None of this kind is kept.'}</p>
                    ) : (
                        <ul class="disagreements" aria-label="Samples they disagree on">
                            {shown.map((one) => (
                                <Sample key={one.id} one={one} of={of} isShown={dataset?.is_uploaded === true} />
                            ))}
                        </ul>
                    )
                }}
            </Loaded>
        </>
    )
}

interface Confusion {
    label: string
    answer: string
    n: number
    live_n: number
}

/** The most frequent wrong answers of both. */
function Confusions({ of }: { of: Comparison }) {
    const items = (Array.isArray(of.confusions) ? of.confusions : []) as Confusion[]
    return items.length === 0 ? null : (
        <Panel title="Taken for" window="the most frequent wrong answers">
            <div class="table-wrap" tabIndex={0} role="group" aria-label="Taken for">
                <table>
                    <thead>
                        <tr>
                            <th scope="col">Is</th>
                            <th scope="col">Taken for</th>
                            <th scope="col" class="num">
                                <Version number={of.version} />
                            </th>
                            <th scope="col" class="num">
                                <Version number={of.live_version} is="live" />
                            </th>
                        </tr>
                    </thead>
                    <tbody>
                        {items.slice(0, CONFUSIONS_SHOWN).map((one) => (
                            <tr key={`${one.label}/${one.answer}`}>
                                <td>{one.label}</td>
                                <td>{one.answer}</td>
                                <td class="num">{one.n}</td>
                                <td class="num">{one.live_n}</td>
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
        </Panel>
    )
}

/** Looked for again when a run of the ION has ended: it may have compared. */
const nEnded = (ion: string) => runs.data.value?.filter((one) => one.ion === ion && one.status === 'FINISHED').length ?? 0

const useComparison = (ion: string, candidate: Candidate) =>
    useResource(`comparison:${ion}:${candidate.id}:${candidate.state}:${nEnded(ion)}`, () => get<FoundComparison>(`/ions/${segment(ion)}/comparison`, { link: candidate.link, version: candidate.version }))

/** Samples on which the candidate and what serves disagree; or why there are none, and how to get some. */
export function Disagreements({ ion, candidate }: { ion: string; candidate: Candidate }) {
    const found = useComparison(ion, candidate)
    return (
        <Loaded resource={found}>
            {({ comparison, why }) =>
                comparison ? (
                    <>
                        <Panel
                            title="What they disagree on"
                            window={
                                <>
                                    v{comparison.version} beside v{comparison.live_version} on <a href={href(['datasets', comparison.dataset])}>{comparison.dataset}</a> v{comparison.dataset_version} ·{' '}
                                    <a href={href(['runs', comparison.run])}>measured</a> <When time={comparison.time_ms} />
                                </>
                            }
                        >
                            <Gallery of={comparison} />
                        </Panel>
                        <Confusions of={comparison} />
                    </>
                ) : (
                    <Panel title="What they disagree on">
                        <p class="quiet">{why}</p>
                    </Panel>
                )
            }
        </Loaded>
    )
}

/** Of a link to a deployment: requests that the version answered otherwise while it was the mirror. */
export function Differed({ candidate }: { candidate: Candidate }) {
    const name = candidate.link_to.replace(/^deployment\//, '')
    const found = useResource(`differed:${name}:${candidate.id}:${candidate.state}`, () => get<DeploymentDisagreements>(`/deployments/${segment(name)}/disagreements`))
    return (
        <Loaded resource={found}>
            {({ items }) => {
                const its = items.filter((one) => one.version === candidate.version)
                return its.length === 0 ? null : (
                    <Panel title="Requests answered otherwise" window="by copies, the newest first; what they asked is not kept">
                        <ul class="list">
                            {its.slice(0, DIFFERED_SHOWN).map((one) => (
                                <li key={`${millis(one.time_ms)} ${one.request} ${one.answer}`}>
                                    <div class="grow small">
                                        <Version number={one.version} /> <code class="wrap">{one.answer}</code>
                                        <br />
                                        <Version number={one.live_version} is="live" /> <code class="wrap">{one.live_answer}</code>
                                    </div>
                                    {one.request && <code class="small">{one.request}</code>}
                                    <span class="small">
                                        <When time={one.time_ms} />
                                    </span>
                                </li>
                            ))}
                        </ul>
                    </Panel>
                )
            }}
        </Loaded>
    )
}
