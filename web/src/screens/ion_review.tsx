/** Shall this version go live? A candidate beside the version that serves, what its policy said, and the verdict of a person. */
import { useEffect } from 'preact/hooks'
import type { Ion, ModelVersion, PolicyDecision } from '../api'
import { Ago, Choices, Empty, Facts, Loaded, Panel, Version, When } from '../components/basics'
import { ComparisonPanel } from '../components/comparison'
import { ask } from '../components/dialog'
import { Differed, Disagreements } from '../components/disagreements'
import { Decide } from '../components/ion_acts'
import { ionActions, IonTab } from '../components/ion_head'
import { DatasetLink } from '../components/noun'
import { PolicyDiamond } from '../components/diamond'
import { is, State, StateWord, VERSION_VERDICTS, type Tone } from '../components/state'
import { bytes, dayTime, duration, millis, NONE, percent, plainValue, plural, words } from '../format'
import type { Args, Screen } from '../screen'
import { candidates, pendingCandidates, type IonCandidate } from '../state/candidates'
import { useLiveHealth } from '../state/drift'
import { get, getAll, segment } from '../state/http'
import { asIonDoc, chainOf, linkId } from '../state/ion_doc'
import { useResource } from '../state/resource'
import { may } from '../state/rights'
import { go, href } from '../state/route'
import { datasets, ions, now, runs } from '../state/store'
import { approveQuestion, rejectQuestion } from '../state/versions'

const SHOWN = 8
const REFRESH_S = 5 // outcomes come without an event

const isPending = (one: IonCandidate) => is(one.state, 'pending_review', 'pending')
const mine = (ion: string) => (candidates.data.value ?? []).filter((one) => one.ion === ion)

/** The candidate of the address, else the newest that waits. */
function chosenOf(ion: string, version: string | undefined): IonCandidate | undefined {
    const all = mine(ion)
    return version === undefined ? pendingCandidates.value.find((one) => one.ion === ion) : all.find((one) => `v${one.version}` === version)
}

function Measures({ candidate, live }: { candidate: IonCandidate; live: IonCandidate | undefined }) {
    const keys = [...new Set([...Object.keys(candidate.metrics ?? {}), ...Object.keys(live?.metrics ?? {})])]
    const difference = (key: string): string => {
        const [its, other] = [candidate.metrics?.[key], live?.metrics?.[key]]
        if (typeof its !== 'number' || typeof other !== 'number') {
            return NONE
        }
        return its === other ? 'no difference' : `${its > other ? '+' : '−'}${plainValue(Math.abs(its - other))}`
    }
    if (keys.length === 0) {
        return <p class="quiet">Nothing was measured on it.</p>
    }
    return (
        <div class="table-wrap" tabIndex={0} role="group" aria-label="Measures">
            <table>
                <thead>
                    <tr>
                        <th scope="col">Measure</th>
                        <th scope="col" class="num">
                            <Version number={candidate.version} is={isPending(candidate) ? 'candidate' : undefined} />
                        </th>
                        <th scope="col" class="num">
                            {live ? <Version number={live.version} is="live" /> : 'nothing serves'}
                        </th>
                        <th scope="col" class="num">
                            Difference
                        </th>
                    </tr>
                </thead>
                <tbody>
                    {keys.map((key) => (
                        <tr key={key}>
                            <td>{words(key)}</td>
                            <td class="num">
                                <b>{plainValue(candidate.metrics?.[key])}</b>
                            </td>
                            <td class="num">{plainValue(live?.metrics?.[key])}</td>
                            <td class="num">{difference(key)}</td>
                        </tr>
                    ))}
                </tbody>
            </table>
        </div>
    )
}

/** The chain of the link, and where the version stands in it. */
function Chain({ ion, candidate }: { ion: Ion; candidate: IonCandidate }) {
    const link = ion.links.find((one) => one.id === candidate.link)
    const isOver = is(candidate.state, 'rejected', 'rolled_back')
    const hasPassed = is(candidate.state, 'approved', 'deploying', 'serving', 'deploy_failed', 'retired')
    const stateAt = (i: number): { tone: Tone; fact: string } => {
        if (hasPassed || i < candidate.position) {
            return { tone: 'good', fact: 'passed' }
        }
        if (i > candidate.position) {
            return { tone: 'plain', fact: isOver ? 'not reached' : 'comes after' }
        }
        if (isOver) {
            return { tone: 'bad', fact: words(candidate.state.toLowerCase()) }
        }
        if (is(candidate.state, 'canary', 'ab')) {
            return { tone: 'busy', fact: `answers ${percent(candidate.share_ppm / 1_000_000)} of requests` }
        }
        if (is(candidate.state, 'shadow')) {
            return { tone: 'busy', fact: 'answers copies of requests' }
        }
        return { tone: 'warn', fact: isPending(candidate) ? 'asks people' : 'waits for its time' }
    }
    return link && link.policies.length > 0 ? (
        <ol class="chain-strip" aria-label={`Policies of the link, and where v${candidate.version} stands`}>
            {link.policies.map((policy, i) => {
                const { tone, fact } = stateAt(i)
                return (
                    <li key={i}>
                        <PolicyDiamond policy={policy} tone={tone} />
                        <span>
                            <b>{words(policy)}</b>
                            <small class="muted">{fact}</small>
                        </span>
                    </li>
                )
            })}
        </ol>
    ) : null
}

interface Approval {
    by: string
    roles?: string[]
    time_ms?: number
    note?: string
}

/** Who has approved it at the policy where it stands, how many must, and what becomes of it without them. */
function Approvals({ ion, candidate }: { ion: Ion; candidate: IonCandidate }) {
    const written = asIonDoc(ion.document).links.find((one) => linkId(one) === `${candidate.link_from}>${candidate.link_to}`)
    const policy = written ? chainOf(written)[candidate.position] : undefined
    const needed = Number(policy?.['approvals'] ?? 1)
    const given = (Array.isArray(candidate.approvals) ? candidate.approvals : []) as Approval[]
    const roles = policy?.['roles'] as string[] | undefined
    return (
        <Panel title={`Approvals: ${given.length} of ${needed}`}>
            {given.length > 0 && (
                <ul class="list">
                    {given.map((one) => (
                        <li key={one.by}>
                            <div class="grow">
                                <b>{one.by}</b> <State tone="good">approved</State>
                                {one.roles && <div class="small muted">{one.roles.join(', ')}</div>}
                                {one.note && <div class="small">“{one.note}”</div>}
                            </div>
                            <span class="small">
                                <When time={one.time_ms} />
                            </span>
                        </li>
                    ))}
                </ul>
            )}
            <div class="panel-body small muted">
                {given.length === 0 && <p>Nobody has approved it yet.</p>}
                {roles && roles.length > 0 && <p>The approval of {roles.join(' or ')} counts.</p>}
                {policy?.['four_eyes'] === true && <p>{candidate.made_by ? `${candidate.made_by} had it made, and cannot approve it.` : 'Who has a version made cannot approve it.'}</p>}
                {candidate.until_ms && (
                    <p>
                        Without enough of them it is {String(policy?.['on_timeout'] ?? 'reject') === 'approve' ? 'approved' : 'refused'} <When time={candidate.until_ms} />.
                    </p>
                )}
            </div>
        </Panel>
    )
}

/** What service says of the versions: right by the truth that came later. */
function InService({ ion, candidate, live }: { ion: string; candidate: IonCandidate; live: IonCandidate | undefined }) {
    const health = useLiveHealth(ion, 'model_version')
    return (
        <Loaded resource={health}>
            {(found) => {
                const shown = [live, candidate].flatMap((one) => {
                    const group = one && found.groups.find((it) => it.name === String(one.version) || it.name === `v${one.version}`)
                    return group ? [{ one: one!, group }] : []
                })
                return shown.length === 0 ? null : (
                    <Panel title="In service" window={`by the truth that came later · since ${dayTime(found.since_ms)}`}>
                        <ul class="list">
                            {shown.map(({ one, group }) => (
                                <li key={one.id}>
                                    <Version number={one.version} is={one === live ? 'live' : undefined} />
                                    <span class="grow">
                                        <b>{percent(group.accuracy)}</b> right of {group.n}
                                    </span>
                                    <span class="small muted">
                                        95 % between {percent(group.low)} and {percent(group.high)}
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

/** What the rule looked at, as the row has it. */
function Inputs({ inputs }: { inputs: unknown }) {
    const entries = Object.entries((typeof inputs === 'object' && inputs !== null ? inputs : {}) as Record<string, unknown>).filter(([, value]) => value !== null && value !== '')
    return entries.length === 0 ? null : (
        <details class="small">
            <summary class="muted">what the rule looked at</summary>
            <Facts items={entries.map(([key, value]) => [words(key), plainValue(value)])} />
        </details>
    )
}

/** What the policy and people said of this version. */
function History({ ion, candidate }: { ion: string; candidate: IonCandidate }) {
    const history = useResource(`review:${ion}:${candidate.id}:${candidate.state}:${candidate.waits_why}`, () => getAll<PolicyDecision>(`/ions/${segment(ion)}/policy-decisions`))
    return (
        <Panel title={`What was said of v${candidate.version}`} window="newest first">
            <Loaded resource={history}>
                {(items) => {
                    const its = items.filter((one) => one.version === candidate.version && one.link === candidate.link)
                    return its.length === 0 ? (
                        <p class="quiet">Nothing yet.</p>
                    ) : (
                        <ul class="list">
                            {its.slice(0, SHOWN).map((one) => (
                                <li key={one.id}>
                                    <div class="grow">
                                        <State tone={VERSION_VERDICTS[one.verdict]?.tone ?? 'plain'}>
                                            {words(one.policy)}: {VERSION_VERDICTS[one.verdict]?.word ?? one.verdict}
                                        </State>
                                        <div class="small muted">{[one.rule, one.note && `“${one.note}”`].filter(Boolean).join(' · ')}</div>
                                        <Inputs inputs={one.inputs} />
                                    </div>
                                    <span class="small muted">{one.actor}</span>
                                    <span class="small">
                                        <When time={one.time_ms} />
                                    </span>
                                </li>
                            ))}
                        </ul>
                    )
                }}
            </Loaded>
        </Panel>
    )
}

function Origin({ candidate }: { candidate: IonCandidate }) {
    const version = useResource(`origin:${candidate.model_version}`, () => get<ModelVersion>(`/models/${segment(candidate.model)}/versions/${candidate.version}`))
    return (
        <Panel title="Where it comes from">
            <Loaded resource={version}>
                {(found) => (
                    <div class="panel-body">
                        <Facts
                            items={[
                                ['Model', <a href={href(['models', candidate.model, `v${candidate.version}`])}>{candidate.model}</a>],
                                ['Dataset', <DatasetLink name={found.dataset} version={found.dataset_version} />],
                                ['Run', found.run ? <a href={href(['runs', found.run])}>{runs.data.value?.find((one) => one.id === found.run)?.name ?? 'its run'}</a> : NONE],
                                ['Code', found.code_version ? <code>{found.code_version.slice(0, 12)}</code> : NONE],
                                ['Size', bytes(found.bytes)],
                                ['Made', dayTime(found.created_ms)],
                                ['By', found.created_by ?? NONE],
                            ]}
                        />
                    </div>
                )}
            </Loaded>
        </Panel>
    )
}

function NoneWaits({ ion }: { ion: Ion }) {
    const next = ion.pipelines.map((one) => millis(one.next_fire_ms)).find((ms) => ms > now.value)
    const last = mine(ion.name)[0]
    return (
        <div class="panel">
            <Empty icon="models" title="No version waits" more={last && <a href={href(['ions', ion.name, 'review', `v${last.version}`])}>The last one, v{last.version}</a>}>
                {next ? `The next training starts in ${duration(next - now.value)}.` : 'The next version comes when a training ends.'} On a link with the policy manual it
                waits here for a person.
            </Empty>
        </div>
    )
}

function Verdict({ ion, candidate }: { ion: Ion; candidate: IonCandidate }) {
    if (!isPending(candidate)) {
        return <StateWord state={candidate.state} />
    }
    return <Decide ion={ion} candidate={candidate} withIcons />
}

function Review({ ion, candidate }: { ion: Ion; candidate: IonCandidate }) {
    const live = mine(ion.name).find((one) => one.link === candidate.link && is(one.state, 'serving'))
    const others = mine(ion.name).filter((one) => isPending(one) || one.id === candidate.id)
    const beat = is(candidate.state, 'ab') ? Math.floor(now.value / 1000 / REFRESH_S) : 0
    useEffect(() => (beat > 0 ? ions.refresh() : undefined), [beat])
    return (
        <>
            {others.length > 1 && (
                <Choices
                    label="Versions that wait"
                    items={others.map((one) => ({
                        name: `v${one.version} for ${one.link_to}`,
                        address: href(['ions', ion.name, 'review', `v${one.version}`]),
                        isCurrent: one.id === candidate.id,
                    }))}
                />
            )}
            <div class="grid split-r">
                <div class="stack">
                    <Panel
                        title={`${candidate.model} v${candidate.version} for ${candidate.link_to}`}
                        id="review-title"
                        window={
                            <>
                                came <Ago time={candidate.created_ms} />
                                {candidate.waits_why && ` · ${candidate.waits_why}`}
                                {candidate.until_ms && (
                                    <>
                                        , until <When time={candidate.until_ms} />
                                    </>
                                )}
                            </>
                        }
                        aside={<Verdict ion={ion} candidate={candidate} />}
                    >
                        <Chain ion={ion} candidate={candidate} />
                        <Measures candidate={candidate} live={live?.id === candidate.id ? undefined : live} />
                    </Panel>
                    <Disagreements key={`${candidate.id}:${candidate.state}`} ion={ion.name} candidate={candidate} />
                    {candidate.link_to.startsWith('deployment/') && <Differed key={`differed:${candidate.id}`} candidate={candidate} />}
                    {is(candidate.state, 'ab') &&
                        (ion.comparisons ?? []).filter((one) => one.link === candidate.link).map((one) => <ComparisonPanel key={one.link} one={one} />)}
                    <InService ion={ion.name} candidate={candidate} live={live?.id === candidate.id ? undefined : live} />
                    <History ion={ion.name} candidate={candidate} />
                </div>
                <div class="stack side">
                    {isPending(candidate) && <Approvals ion={ion} candidate={candidate} />}
                    <Origin key={candidate.id} candidate={candidate} />
                </div>
            </div>
        </>
    )
}

function IonReview({ args }: { args: Args }) {
    return (
        <IonTab args={args}>
            {(ion) => (
                <Loaded resource={candidates} rows={6}>
                    {() => {
                        const candidate = chosenOf(ion.name, args['version'])
                        return candidate ? <Review key={candidate.id} ion={ion} candidate={candidate} /> : <NoneWaits ion={ion} />
                    }}
                </Loaded>
            )}
        </IonTab>
    )
}

export const ionReviewScreen: Screen = {
    id: 'ion-review',
    title: 'Review',
    icon: 'models',
    address: 'ions/:ion/review/:version?',
    query: ['kind'],
    under: 'ions',
    tab: {
        of: 'ion',
        name: 'Review',
        badge: (args) => {
            const count = pendingCandidates.value.filter((one) => one.ion === args['ion']).length
            return { count, tone: 'warn', what: plural(count, 'waits for approval', 'wait for approval') }
        },
    },
    load: [ions, candidates, runs, datasets],
    actions: ionActions,
    keys: (args) => {
        const ion = args['ion'] ?? ''
        const candidate = chosenOf(ion, args['version'])
        const waiting = mine(ion).filter(isPending)
        const at = waiting.findIndex((one) => one.id === candidate?.id)
        const step = (by: number) => waiting[at + by] && go(href(['ions', ion, 'review', `v${waiting[at + by]!.version}`]))
        const decide = (question: typeof approveQuestion) => candidate && isPending(candidate) && may('review ions', ions.data.value?.find((one) => one.name === ion)?.project) && ask(question(ion, candidate))
        return [
            { key: 'a', name: 'approve', run: () => void decide(approveQuestion) },
            { key: 'r', name: 'reject', run: () => void decide(rejectQuestion) },
            { key: 'j', name: 'next version that waits', run: () => void step(1) },
            { key: 'k', name: 'version before', run: () => void step(-1) },
        ]
    },
    render: IonReview,
}
