/** What is chosen on the canvas, as a form: fields of the document, and the options of its kinds as the server tells them. */
import { useState } from 'preact/hooks'
import type { Kind } from '../api'
import { sentence, words } from '../format'
import {
    chainOf, COMPARISON_FIELDS, criticalField, deploymentIn, EVALUATION_FIELDS, fromOf, GALLERY_FIELDS, isPrediction, isPreparation, isProgram, isStart, kindOf, LINK_FIELDS, linkId, measures, nameOf, policyOf,
    PREDICTION_FIELDS, PREPARATION_FIELDS, PROGRAM_FIELDS, renamePipeline, replaced, shortForm, toOf, TRAINING_FIELDS, triggersOf, withKey,
    type DocLink, type IonDoc, type Part, type Values,
} from '../state/ion_doc'
import { optionsOf, type Option } from '../state/job_form'
import { datasets, deployments, models } from '../state/store'
import { PolicyDiamond } from './diamond'
import { Icon } from './icon'
import { ValueField } from './value_field'

export interface FormContext {
    doc: IonDoc
    kinds: readonly Kind[]
    onChange: (doc: IonDoc) => void
    onChoose: (choice: string) => void
    /** What the server says of a place: "$.pipelines[0].dataset". */
    errorAt: (place: string) => string | undefined
}

const BESIDE = ['model', 'dataset', 'workers', 'parameter_servers', 'max_restarts'] // the pipeline's own, not its parameters
const USUAL = ['argv', 'code', 'env', 'resources', 'steps', 'epochs', 'batch_size', 'learning_rate', 'optimizer', 'validation', 'augment']

export const usable = (kinds: readonly Kind[], noun: string) => kinds.filter((one) => one.noun === noun && !one.is_planned)
const datasetNames = () => (datasets.data.value ?? []).map((one) => one.name)

function suggestionsFor(name: string): readonly string[] {
    return name === 'dataset' || name === 'impostors' || name === 'output' ? datasetNames() : []
}

function Fields(props: { context: FormContext; options: readonly Option[]; values: Values; place: string; onValue: (name: string, value: unknown) => void }) {
    return (
        <>
            {props.options.map((option) => (
                <ValueField
                    key={`${props.place}.${option.name}`}
                    option={option}
                    value={props.values[option.name]}
                    error={props.context.errorAt(`${props.place}.${option.name}`)}
                    suggestions={suggestionsFor(option.name)}
                    onValue={(value) => props.onValue(option.name, value)}
                />
            ))}
        </>
    )
}

/** A kind of a noun, and its options. */
function KindFields(props: { context: FormContext; noun: string; label: string; part: Part; place: string; onPart: (part: Part) => void }) {
    const kinds = usable(props.context.kinds, props.noun)
    const kind = kinds.find((one) => one.name === kindOf(props.part))
    const error = props.context.errorAt(props.place) ?? props.context.errorAt(`${props.place}.kind`)
    return (
        <>
            <label class="field">
                <span>{props.label}</span>
                <select name={`${props.noun}-kind`} class={`input ${error ? 'is-wrong' : ''}`} value={kindOf(props.part)} onChange={(event) => props.onPart({ kind: event.currentTarget.value })}>
                    {kind === undefined && <option value={kindOf(props.part)}>{kindOf(props.part) || 'choose one'}</option>}
                    {kinds.map((one) => (
                        <option key={one.id} value={one.name ?? ''}>
                            {one.name}
                        </option>
                    ))}
                </select>
                <span class={`small ${error ? 'tone-bad-text' : 'muted'}`}>{error ?? kind?.doc}</span>
            </label>
            <Fields context={props.context} options={optionsOf(kind)} values={props.part} place={props.place} onValue={(name, value) => props.onPart(withKey(props.part, name, value))} />
        </>
    )
}

/** Several of a noun, in their order: policies of a link, sinks, stages. */
function Chain(props: {
    context: FormContext
    noun: string
    items: readonly Part[]
    place: (i: number) => string
    note: string
    open?: number
    onItems: (items: Part[]) => void
}) {
    const [open, setOpen] = useState(props.open ?? 0)
    const kinds = usable(props.context.kinds, props.noun)
    const move = (i: number, by: number) => {
        const items = [...props.items]
        const [one] = items.splice(i, 1)
        items.splice(i + by, 0, one!)
        props.onItems(items)
        setOpen(i + by)
    }
    return (
        <div class="chain">
            <ol>
                {props.items.map((item, i) => {
                    const kind = kindOf(item)
                    const more = Object.entries(item).filter(([key]) => key !== 'kind')
                    const isWrong = props.context.errorAt(props.place(i)) !== undefined
                    return (
                        <li key={i} class={`chain-item ${open === i ? 'is-open' : ''}`}>
                            <div class="chain-head">
                                <button type="button" class="chain-open" aria-expanded={open === i} onClick={() => setOpen(open === i ? -1 : i)}>
                                    {props.noun === 'policy' && <PolicyDiamond policy={kind} tone={isWrong ? 'bad' : open === i ? 'busy' : 'plain'} />}
                                    <span>
                                        <b>
                                            {i + 1} {words(kind)}
                                        </b>
                                        <small class="muted">{more.map(([key, value]) => `${words(key)} ${typeof value === 'object' ? JSON.stringify(value) : String(value)}`).join(' · ') || kinds.find((one) => one.name === kind)?.doc}</small>
                                    </span>
                                </button>
                                <span class="chain-acts">
                                    <button type="button" class="icon-button" disabled={i === 0} aria-label={`Move ${kind} up`} onClick={() => move(i, -1)}>
                                        ↑
                                    </button>
                                    <button type="button" class="icon-button" disabled={i === props.items.length - 1} aria-label={`Move ${kind} down`} onClick={() => move(i, 1)}>
                                        ↓
                                    </button>
                                    <button type="button" class="icon-button" aria-label={`Take ${kind} out`} onClick={() => props.onItems(props.items.filter((_, k) => k !== i))}>
                                        <Icon name="cross" />
                                    </button>
                                </span>
                            </div>
                            {open === i && (
                                <div class="chain-body">
                                    <KindFields context={props.context} noun={props.noun} label={sentence(props.noun)} part={item} place={props.place(i)} onPart={(part) => props.onItems(replaced(props.items, i, part))} />
                                </div>
                            )}
                        </li>
                    )
                })}
            </ol>
            <label class="field">
                <span class="hidden">Add a {props.noun}</span>
                <select
                    class="input"
                    value=""
                    onChange={(event) => {
                        const name = event.currentTarget.value
                        event.currentTarget.value = ''
                        props.onItems([...props.items, { kind: name }])
                        setOpen(props.items.length)
                    }}
                >
                    <option value="">Add a {props.noun}…</option>
                    {kinds.map((one) => (
                        <option key={one.id} value={one.name ?? ''}>
                            {one.name}
                        </option>
                    ))}
                </select>
                <span class="small muted">{props.note}</span>
            </label>
        </div>
    )
}

function NameField({ context, at }: { context: FormContext; at: number }) {
    const pipeline = context.doc.pipelines[at]!
    const error = context.errorAt(`$.pipelines[${at}].name`)
    return (
        <label class="field">
            <span>Name</span>
            <input
                class={`input ${error ? 'is-wrong' : ''}`}
                type="text"
                name="pipeline-name"
                autocomplete="off"
                value={nameOf(pipeline)}
                onChange={(event) => {
                    const name = event.currentTarget.value.trim()
                    context.onChange(renamePipeline(context.doc, at, name))
                    context.onChoose(name)
                }}
            />
            <span class={`small ${error ? 'tone-bad-text' : 'muted'}`}>{error ?? 'a-z 0-9 . _ -, within the ION'}</span>
        </label>
    )
}

/** What all pipelines have: whether they start again, and what a failure means. */
function RulesFields({ context, at }: { context: FormContext; at: number }) {
    const pipeline = context.doc.pipelines[at]!
    const place = `$.pipelines[${at}]`
    const set = (values: Values) => context.onChange({ ...context.doc, pipelines: replaced(context.doc.pipelines, at, values) })
    const rule = pipeline['restart'] ?? 'never'
    const short = (part: Part) => (kindOf(part) === 'never' ? undefined : shortForm([part])[0])
    return (
        <>
            <h3>When it fails</h3>
            <KindFields context={context} noun="restart" label="Starts again" part={typeof rule === 'string' ? { kind: rule } : (rule as Part)} place={`${place}.restart`} onPart={(part) => set(withKey(pipeline, 'restart', short(part)))} />
            <Fields context={context} options={[criticalField(isPrediction(pipeline))]} values={pipeline} place={place} onValue={(name, value) => set(withKey(pipeline, name, value))} />
        </>
    )
}

/** A pipeline's triggers as a list of kinds; the object of earlier documents becomes one with the first change. */
function Triggers({ context, at, note }: { context: FormContext; at: number; note: string }) {
    const pipeline = context.doc.pipelines[at]!
    const set = (values: Values) => context.onChange({ ...context.doc, pipelines: replaced(context.doc.pipelines, at, values) })
    return (
        <Chain
            context={context}
            noun="trigger"
            items={triggersOf(pipeline['triggers'])}
            open={-1}
            place={(i) => `$.pipelines[${at}].triggers[${i}]`}
            note={note}
            onItems={(items) => set(withKey(pipeline, 'triggers', items.length > 0 ? shortForm(items) : undefined))}
        />
    )
}

const OWN = ['model', 'live', 'dataset', 'datasets'] // the pipeline's or a link's, not its parameters

/** A preparation, an evaluation or a comparison: its own fields, and the options of the kind of its jobs. */
function JobForm({ context, at }: { context: FormContext; at: number }) {
    const pipeline = context.doc.pipelines[at]!
    const place = `$.pipelines[${at}]`
    const set = (values: Values) => context.onChange({ ...context.doc, pipelines: replaced(context.doc.pipelines, at, values) })
    const parameters = (pipeline['parameters'] ?? {}) as Values
    const isCommand = isPreparation(pipeline)
    const kind = context.kinds.find((one) => one.noun === 'job-kind' && one.name === (isCommand ? 'command' : 'measure'))
    const fields = isCommand ? PREPARATION_FIELDS : pipeline['type'] === 'comparison' ? COMPARISON_FIELDS : EVALUATION_FIELDS
    return (
        <>
            <NameField context={context} at={at} />
            <Fields context={context} options={fields} values={pipeline} place={place} onValue={(name, value) => set(withKey(pipeline, name, value))} />
            <h3>When it runs</h3>
            <Triggers context={context} at={at} note={isCommand ? 'By hand at any time; with new data of what it reads, on a schedule…' : 'For each model that its link brings; and with these the newest model again.'} />
            <h3>{isCommand ? 'The command' : 'How it measures'}</h3>
            <Fields context={context} options={optionsOf(kind).filter((one) => !OWN.includes(one.name))} values={parameters} place={`${place}.parameters`} onValue={(name, value) => set(withKey(pipeline, 'parameters', withKey(parameters, name, value)))} />
            <RulesFields context={context} at={at} />
        </>
    )
}

/** A link that starts a pipeline: with data, or with a model to measure. */
function StartForm({ context, link, at }: { context: FormContext; link: DocLink; at: number }) {
    const place = `$.links[${at}]`
    const error = context.errorAt(place) ?? context.errorAt(`${place}.dataset`)
    return (
        <>
            <p class="muted">
                {link.dataset === undefined ? `Each version of ${fromOf(link)} is measured by ${toOf(link)}.` : `Each version of ${link.dataset || 'the dataset'} that ${fromOf(link)} makes starts ${toOf(link)}, which runs with it.`} It has no policies.
            </p>
            {error && (
                <p class="small tone-bad-text" role="alert">
                    {error}
                </p>
            )}
            {link.dataset !== undefined && (
                <ValueField
                    option={{ name: 'dataset', type: 'text', required: true, doc: `What ${fromOf(link)} makes and ${toOf(link)} reads` }}
                    value={link.dataset}
                    suggestions={datasetNames()}
                    onValue={(value) => context.onChange({ ...context.doc, links: replaced(context.doc.links, at, { ...link, dataset: String(value ?? '') }) })}
                />
            )}
        </>
    )
}

function TrainingForm({ context, at }: { context: FormContext; at: number }) {
    const [search, setSearch] = useState('')
    const pipeline = context.doc.pipelines[at]!
    const place = `$.pipelines[${at}]`
    const set = (values: Values) => context.onChange({ ...context.doc, pipelines: replaced(context.doc.pipelines, at, values) })
    const part = (key: string) => (pipeline[key] ?? {}) as Values
    const isOwn = isProgram(pipeline)
    const kind = isOwn ? pipeline['kind'] : 'train'
    const all = optionsOf(context.kinds.find((one) => one.noun === 'job-kind' && one.name === kind)).filter((one) => isOwn || !BESIDE.includes(one.name))
    const shown = all.filter((one) =>
        search !== '' ? `${one.name} ${one.doc}`.toLowerCase().includes(search.toLowerCase()) : USUAL.includes(one.name) || part('parameters')[one.name] !== undefined,
    )
    return (
        <>
            <NameField context={context} at={at} />
            <Fields context={context} options={isOwn ? PROGRAM_FIELDS : TRAINING_FIELDS} values={pipeline} place={place} onValue={(name, value) => set(withKey(pipeline, name, value))} />
            <h3>When it trains</h3>
            <Triggers context={context} at={at} note="A person may start it at any time, unless a manual one forbids it; at most 16." />
            <RulesFields context={context} at={at} />
            <h3>Parameters</h3>
            <label class="field">
                <span>Find one of {all.length}</span>
                <input type="search" name="parameters-search" class="input" value={search} placeholder="name, or what it does" onInput={(event) => setSearch(event.currentTarget.value)} />
            </label>
            <Fields context={context} options={shown} values={part('parameters')} place={`${place}.parameters`} onValue={(name, value) => set(withKey(pipeline, 'parameters', withKey(part('parameters'), name, value)))} />
            {shown.length === 0 && <p class="small muted">No parameter has this word.</p>}
        </>
    )
}

function PredictionForm({ context, at }: { context: FormContext; at: number }) {
    const pipeline = context.doc.pipelines[at]!
    const place = `$.pipelines[${at}]`
    const set = (values: Values) => context.onChange({ ...context.doc, pipelines: replaced(context.doc.pipelines, at, values) })
    const list = (key: string) => ((pipeline[key] as unknown[] | undefined) ?? []).map((one) => (typeof one === 'string' ? { kind: one } : (one as Part)))
    const gallery = (pipeline['gallery'] ?? {}) as Values
    return (
        <>
            <NameField context={context} at={at} />
            <Fields context={context} options={PREDICTION_FIELDS} values={pipeline} place={place} onValue={(name, value) => set(withKey(pipeline, name, value))} />
            <h3>Where frames come from</h3>
            <KindFields context={context} noun="source" label="Source" part={(pipeline['source'] ?? {}) as Part} place={`${place}.source`} onPart={(part) => set({ ...pipeline, source: part })} />
            <h3>Known people</h3>
            <Fields context={context} options={GALLERY_FIELDS} values={gallery} place={`${place}.gallery`} onValue={(name, value) => set(withKey(pipeline, 'gallery', withKey(gallery, name, value)))} />
            <h3>Stages</h3>
            <Chain context={context} noun="stage" items={list('stages')} open={-1} place={(i) => `${place}.stages[${i}]`} note="Without any: those that go with or without a gallery." onItems={(items) => set(withKey(pipeline, 'stages', items.length > 0 ? shortForm(items) : undefined))} />
            <h3>Sinks</h3>
            <Chain context={context} noun="sink" items={list('sinks')} place={(i) => `${place}.sinks[${i}]`} note="Where decisions go besides the server; at most 16." onItems={(items) => set(withKey(pipeline, 'sinks', items.length > 0 ? items : undefined))} />
            <RulesFields context={context} at={at} />
        </>
    )
}

function DeploymentField({ name, error, onName }: { name: string; error: string | undefined; onName: (name: string) => void }) {
    return (
        <label class="field">
            <span>Deployment</span>
            <input class={`input ${error ? 'is-wrong' : ''}`} type="text" name="link-deployment" autocomplete="off" list="link-deployments" value={name} onChange={(event) => onName(event.currentTarget.value.trim())} />
            <datalist id="link-deployments">
                {(deployments.data.value ?? []).map((one) => (
                    <option key={one.name} value={one.name} />
                ))}
            </datalist>
            <span class={`small ${error ? 'tone-bad-text' : 'muted'}`}>{error ?? 'Whose requests the version gets; it is made with the first version if it is not there.'}</span>
        </label>
    )
}

function LinkForm({ context, link, at }: { context: FormContext; link: DocLink; at: number }) {
    const set = (next: DocLink) => context.onChange({ ...context.doc, links: replaced(context.doc.links, at, next) })
    const chain = chainOf(link)
    const deployment = deploymentIn(toOf(link))
    const place = `$.links[${at}]`
    const rename = (next: DocLink) => {
        set(next)
        context.onChoose(linkId(next))
    }
    const versions = (models.data.value ?? []).map((one) => `${one.name}@1`)
    return (
        <>
            <p class="muted">A version of {fromOf(link)} goes through these in their order, and then serves at {toOf(link)}.</p>
            {context.errorAt(place) && (
                <p class="small tone-bad-text" role="alert">
                    {context.errorAt(place)}
                </p>
            )}
            <Chain
                context={context}
                noun="policy"
                items={chain}
                place={(i) => (chain.length === 1 && !Array.isArray(link.policy) ? `${place}.policy` : `${place}.policy[${i}]`)}
                note="A version stands at one policy at a time; behind the last it serves."
                onItems={(items) => set({ ...link, policy: items.length > 0 ? policyOf(items) : undefined })}
            />
            {deployment !== undefined && (
                <>
                    <h3>Where it leads</h3>
                    <DeploymentField name={deployment} error={context.errorAt(`${place}.to`)} onName={(name) => rename({ ...link, to: { deployment: name } })} />
                </>
            )}
            <h3>Before the first version</h3>
            {LINK_FIELDS.map((option) => (
                <ValueField key={option.name} option={option} value={link[option.name]} error={context.errorAt(`${place}.${option.name}`)} suggestions={versions} onValue={(value) => set(withKey(link, option.name, value) as DocLink)} />
            ))}
        </>
    )
}

/** Title and fields of what is chosen; of nothing: the ION's own. */
export function chosenForm(context: FormContext, chosen: string, isNew: boolean) {
    const at = context.doc.pipelines.findIndex((one) => nameOf(one) === chosen)
    const pipeline = context.doc.pipelines[at]
    if (pipeline !== undefined) {
        return { title: chosen, id: chosen, body: isPrediction(pipeline) ? <PredictionForm key={chosen} context={context} at={at} /> : isPreparation(pipeline) || measures(pipeline) ? <JobForm key={chosen} context={context} at={at} /> : <TrainingForm key={chosen} context={context} at={at} /> }
    }
    const i = context.doc.links.findIndex((one) => linkId(one) === chosen)
    const link = context.doc.links[i]
    if (link !== undefined) {
        return { title: `Link ${fromOf(link)} → ${toOf(link)}`, id: chosen, body: isStart(context.doc, link) ? <StartForm key={chosen} context={context} link={link} at={i} /> : <LinkForm key={chosen} context={context} link={link} at={i} /> }
    }
    const fields: Option[] = [
        ...(isNew ? [{ name: 'name', type: 'text', required: true, doc: 'a-z 0-9 . _ -, once and for all' }] : []),
        { name: 'project', type: 'text', default: 'default', doc: 'Whose it is' },
    ]
    return {
        title: isNew ? 'The new ION' : 'The ION',
        id: '',
        body: (
            <>
                <Fields context={context} options={fields} values={context.doc} place="$" onValue={(name, value) => context.onChange(withKey(context.doc, name, value) as IonDoc)} />
                <p class="muted">Choose a pipeline or a link on the canvas to see its fields.</p>
            </>
        ),
    }
}
