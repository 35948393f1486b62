/** Everything known about one decision, beside the list: picture, score, what decided it, and what follows from it. */
import type { Decision, Ion } from '../api'
import { fixed, fullTime, latency, NONE } from '../format'
import { isClassified, whoOf } from '../state/finding'
import { get, segment } from '../state/http'
import { useResource } from '../state/resource'
import { href, hrefWith } from '../state/route'
import { ions } from '../state/store'
import { memberQuestion } from '../state/versions'
import { Facts, Loaded } from './basics'
import { ask } from './dialog'
import { Drawer } from './drawer'
import { Face } from './face'
import { Icon } from './icon'
import { Act } from './locked'
import { DecisionLineageView } from './lineage_view'
import { Id, Sentence } from './noun'
import { ScoreBar } from './score_bar'
import { VerdictWord } from './state'

function versionText(value: number | null | undefined): string {
    return typeof value === 'number' ? `v${value}` : NONE
}

/** Data → run → version → pipeline, as far as it is known of this decision. */
export function Lineage({ decision, ion }: { decision: Decision; ion: Ion | undefined }) {
    const pipeline = ion?.pipelines.find((one) => one.name === decision.pipeline)
    const model = pipeline?.deployment?.model?.name
    const gallery = pipeline?.deployment?.gallery?.dataset ?? pipeline?.dataset
    const version = typeof decision.model_version === 'number' ? decision.model_version : undefined
    return (
        <p class="lineage-line" aria-label="Lineage">
            {gallery && typeof decision.gallery_version === 'number' && !isClassified(decision) && (
                <>
                    <a href={href(['datasets', gallery])}>
                        gallery {gallery} v{decision.gallery_version}
                    </a>{' '}
                    →{' '}
                </>
            )}
            {model && version !== undefined && (
                <>
                    <a href={href(['models', model, `v${version}`])}>
                        {model} v{version}
                    </a>{' '}
                    →{' '}
                </>
            )}
            <a href={href(['ions', decision.ion, 'graph'])}>{decision.pipeline}</a>
        </p>
    )
}

/** The likeliest labels, where the pipeline records several. */
function likeliest({ labels }: Decision): [string, string][] {
    const known = Array.isArray(labels) ? (labels as { label: string; score: number }[]) : []
    return known.length > 0 ? [['Likeliest', known.map(({ label, score }) => `${label} ${fixed(score, 2)}`).join(' · ')]] : []
}

function Details({ decision }: { decision: Decision }) {
    const { ion, person } = decision
    const project = ions.data.value?.find((one) => one.name === ion)?.project
    return (
        <>
            <div class="decision-top">
                <Face decision={decision} size="large" />
                <div class="stack mid">
                    <VerdictWord verdict={decision.verdict} />
                    <b class={person || decision.label ? 'who-name' : 'muted'}>{whoOf(decision)}</b>
                    <ScoreBar decision={decision} />
                    {decision.error && <p class="tone-bad-text">{decision.error}</p>}
                </div>
            </div>
            <Facts
                items={[
                    ['Camera', decision.camera],
                    ['Frame', decision.key ?? decision.frame],
                    ['Time', fullTime(decision.time_ms)],
                    ['Latency', latency(decision.latency_us)],
                    ['Durable after', latency(decision.durable_us)],
                    ['Brightness', fixed(decision.brightness, 2)],
                    ['Model', versionText(decision.model_version)],
                    ['Gallery', isClassified(decision) ? NONE : versionText(decision.gallery_version)],
                    ['Allow and deny lists', typeof decision.list_revision === 'number' ? `revision ${decision.list_revision}` : NONE],
                    ...likeliest(decision),
                    ['Pipeline', `${decision.ion} / ${decision.pipeline}`],
                    ['Replica', <Sentence text={decision.replica ?? NONE} />],
                    ['Decision', <Id id={decision.id} />],
                    ['Picture', decision.image ? <code>{decision.image.slice(0, 16)}…</code> : 'not kept'],
                ]}
            />
            <h3>Lineage</h3>
            <Lineage decision={decision} ion={ions.data.value?.find((one) => one.name === ion)} />
            <DecisionLineageView key={decision.id} decision={decision} />
            {Boolean(decision.passage) && (
                <p class="acts">
                    <a class="button small" href={href(['ions', ion, 'passages', decision.id])}>
                        <Icon name="person" />
                        Its passage
                    </a>
                </p>
            )}
            {person && (
                <p class="acts">
                    <Act right="list people ions" project={project} isSmall onClick={() => ask(memberQuestion(ion, person, 'allow'))}>
                        <Icon name="check" />
                        Always allow<span class="hidden"> {person}</span>
                    </Act>
                    <Act right="list people ions" project={project} isSmall tone="danger" onClick={() => ask(memberQuestion(ion, person, 'deny'))}>
                        <Icon name="ban" />
                        Bar<span class="hidden"> {person}</span>
                    </Act>
                </p>
            )}
        </>
    )
}

/** @param known The decision, if the list has it; else it is asked for. */
export function DecisionDrawer({ id, known }: { id: string; known: Decision | undefined }) {
    const fetched = useResource(`decision:${id}`, async () => known ?? (await get<Decision>(`/decisions/${segment(id)}`)))
    const decision = known ?? fetched.data.value
    const title = decision ? `Decision at ${decision.camera}` : 'Decision'
    return (
        <Drawer title={title} id="decision-title" close={hrefWith({ id: '' })}>
            {decision ? <Details decision={decision} /> : <Loaded resource={fetched}>{() => null}</Loaded>}
        </Drawer>
    )
}
