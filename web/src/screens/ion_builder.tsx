/** The builder: an ION drawn on a canvas, as forms and as YAML, which are one document; what the server says of it; what Apply changes. */
import { useEffect, useState, useLayoutEffect } from 'preact/hooks'
import type { Ion, Kind } from '../api'
import { Choices, Loaded, PageHead, Panel } from '../components/basics'
import { BuilderCanvas } from '../components/builder_canvas'
import { chosenForm, usable, type FormContext } from '../components/builder_form'
import { Changes, Effects, Problems, type Found } from '../components/builder_panels'
import { ask } from '../components/dialog'
import { Icon } from '../components/icon'
import { ionActions, IonTab } from '../components/ion_head'
import { Act } from '../components/locked'
import { toast } from '../components/toast'
import { words } from '../format'
import type { Args, Screen } from '../screen'
import { lostSecrets, usePlan, useDraft, type Checked, type Draft } from '../state/draft'
import { call, getAll } from '../state/http'
import { addLink, addPipeline, appliedForm, asIonDoc, chainOf, fromOf, isPrediction, isStart, isTraining, linkId, nameOf, policyOf, removePipeline, replaced, sketchOf, toOf, whyNoLink, type IonDoc } from '../state/ion_doc'
import { optionsOf } from '../state/job_form'
import { project } from '../state/project'
import { Resource } from '../state/resource'
import { may } from '../state/rights'
import { go, href, hrefWith, param, setQuery } from '../state/route'
import { datasets, deployments, ions, models } from '../state/store'
import { connection } from '../state/stream'
import { PHONE, useMedia } from '../state/view'
import { readYaml, writeYaml } from '../state/yaml'

const RIGHT = 'apply ions'
const kinds = new Resource<Kind[]>(() => getAll<Kind>('/kinds', { limit: 1000 }))

/** What the server's sentence is about, and the sentence without the place. */
function placeOf(problem: string): { place: string; text: string } {
    const found = /^(\$[^\s:]*): ?([\s\S]*)$/.exec(problem)
    return found ? { place: found[1]!, text: found[2]! } : { place: '', text: problem }
}

function choiceAt(doc: IonDoc, place: string): string | undefined {
    const pipeline = /^\$\.pipelines\[(\d+)\]/.exec(place)
    const link = /^\$\.links\[(\d+)\]/.exec(place)
    return pipeline ? nameOf(doc.pipelines[Number(pipeline[1])]) : link && doc.links[Number(link[1])] ? linkId(doc.links[Number(link[1])]!) : undefined
}

function foundOf(checked: Checked, doc: IonDoc): Found[] {
    const lost = lostSecrets(doc).map((place) => ({ place, text: 'What was typed here is not kept in the browser: type it again.', isError: true }))
    const warnings = (checked.plan?.warnings ?? []).map((text) => ({ ...placeOf(text), isError: false }))
    const errors = checked.problem === '' ? [] : [{ ...placeOf(checked.problem), isError: true }]
    return [...lost, ...errors, ...warnings].map((one) => ({ ...one, choice: choiceAt(doc, one.place) }))
}

// ------------------------------------------------------------------------------------------------------------ palette

function Palette({ all, draft, chosen, onChoose }: { all: readonly Kind[]; draft: Draft; chosen: string; onChoose: (choice: string) => void }) {
    const { doc } = draft
    const at = doc.pipelines.findIndex((one) => nameOf(one) === chosen)
    const pipeline = doc.pipelines[at]
    const i = doc.links.findIndex((one) => linkId(one) === chosen)
    const link = doc.links[i]
    const add = (type: string) => {
        const sources = usable(all, 'source')
        const source = sources.find((one) => !optionsOf(one).some((option) => option.required)) ?? sources[0]
        const next = addPipeline(doc, type, type === 'prediction' ? { source: { kind: source?.name ?? '' } } : {})
        draft.change({ doc: next.doc })
        onChoose(next.name)
    }
    const addModel = (name: string) => {
        const free = doc.pipelines.find((one) => isPrediction(one) && !doc.links.some((it) => toOf(it) === nameOf(one)))
        connect(`model/${name}`, free ? nameOf(free) : `deployment/${name}`)
    }
    const connect = (from: string, to: string) => {
        const why = whyNoLink(doc, from, to)
        if (why !== undefined) {
            toast(why, 'bad')
            return
        }
        draft.change({ doc: addLink(doc, from, to) })
        onChoose(`${from}>${to}`)
    }
    // What is chosen, else a training that leads nowhere yet, else any.
    const trainings = doc.pipelines.filter(isTraining).map(nameOf)
    const source = pipeline && isTraining(pipeline) ? chosen : link && link.dataset === undefined ? fromOf(link) : (trainings.find((name) => !doc.links.some((it) => fromOf(it) === name)) ?? trainings[0])
    const addSink = (kind: string) => {
        const sinks = (pipeline?.['sinks'] as unknown[] | undefined) ?? []
        draft.change({ doc: { ...doc, pipelines: replaced(doc.pipelines, at, { ...pipeline, sinks: [...sinks, { kind }] }) } })
    }
    const addPolicy = (kind: string) => draft.change({ doc: { ...doc, links: replaced(doc.links, i, { ...link, policy: policyOf([...chainOf(link!), { kind }]) }) } })
    return (
        <Panel title="Add" class="builder-add">
            <div class="panel-body">
                <h3>Pipelines</h3>
                <button type="button" class="button" onClick={() => add('training')}>
                    <Icon name="runs" /> Training
                </button>
                <button type="button" class="button" onClick={() => add('prediction')}>
                    <Icon name="camera" /> Prediction
                </button>
                <button type="button" class="button" title="A command makes a dataset's next version" onClick={() => add('preparation')}>
                    <Icon name="data" /> Preparation
                </button>
                <button type="button" class="button" title="Each model that a link brings is measured" onClick={() => add('evaluation')}>
                    <Icon name="check" /> Evaluation
                </button>
                <button type="button" class="button" title="The same, beside the version that serves" onClick={() => add('comparison')}>
                    <Icon name="check" /> Comparison
                </button>
                <h3>A registered model</h3>
                <label class="field">
                    <span class="hidden">Link from a registered model</span>
                    <select class="input" value="" onChange={(event) => addModel(event.currentTarget.value)}>
                        <option value="">Link from…</option>
                        {(models.data.value ?? []).map((one) => (
                            <option key={one.name}>{one.name}</option>
                        ))}
                    </select>
                </label>
                <h3>A deployment</h3>
                <label class="field">
                    <span class="hidden">Link to a deployment</span>
                    <select class="input" value="" disabled={source === undefined} onChange={(event) => connect(source ?? '', `deployment/${event.currentTarget.value}`)}>
                        <option value="">{source === undefined ? 'no training yet' : `From ${source} to…`}</option>
                        {(deployments.data.value ?? []).map((one) => (
                            <option key={one.name}>{one.name}</option>
                        ))}
                    </select>
                </label>
                {pipeline && isPrediction(pipeline) && (
                    <>
                        <h3>Sinks of {chosen}</h3>
                        {usable(all, 'sink').map((one) => (
                            <button key={one.id} type="button" class="button" title={one.doc ?? undefined} onClick={() => addSink(one.name ?? '')}>
                                <Icon name="sink" /> {one.name}
                            </button>
                        ))}
                    </>
                )}
                {link && !isStart(doc, link) && (
                    <>
                        <h3>Policies of the link</h3>
                        {usable(all, 'policy').map((one) => (
                            <button key={one.id} type="button" class="button" title={one.doc ?? undefined} onClick={() => addPolicy(one.name ?? '')}>
                                {words(one.name ?? '')}
                            </button>
                        ))}
                    </>
                )}
                {!link && !(pipeline && isPrediction(pipeline)) && <p class="small muted">Choose a link to add policies, or a prediction to add sinks.</p>}
            </div>
        </Panel>
    )
}

// --------------------------------------------------------------------------------------------------------------- YAML

function Yaml({ doc, isReadOnly, line, onDoc }: { doc: IonDoc; isReadOnly: boolean; line: number | undefined; onDoc: (doc: IonDoc) => void }) {
    const known = writeYaml(appliedForm(doc)).lines.join('\n') + '\n'
    const [typed, setTyped] = useState<{ text: string; error: string; of: string } | null>(null)
    const held = typed !== null && typed.of === known ? typed : null
    const onInput = (text: string) => {
        try {
            const next = asIonDoc(readYaml(text))
            setTyped({ text, error: '', of: writeYaml(appliedForm(next)).lines.join('\n') + '\n' })
            onDoc(next)
        } catch (error) {
            setTyped({ text, error: (error as Error).message, of: known })
        }
    }
    const text = held?.text ?? known
    return (
        <div class="yaml">
            <textarea class="input mono" aria-label="The document as YAML" spellcheck={false} rows={Math.min(32, Math.max(12, text.split('\n').length + 1))} readOnly={isReadOnly} value={text} onInput={(event) => onInput(event.currentTarget.value)} />
            {held?.error ? (
                <p class="small tone-bad-text" role="alert">
                    {held.error}. The canvas shows what was last read.
                </p>
            ) : (
                line !== undefined && <p class="small muted">What the server names stands in line {line}.</p>
            )}
        </div>
    )
}

// ------------------------------------------------------------------------------------------------------------- builder

/** What is deleted is gone from the drawing; Ctrl Z brings it back. */
function without(doc: IonDoc, choice: string): IonDoc {
    const links = doc.links.filter((one) => linkId(one) !== choice)
    return links.length < doc.links.length ? { ...doc, links } : removePipeline(doc, choice)
}

function Builder({ ion, all }: { ion: Ion | undefined; all: readonly Kind[] }) {
    const begin = () => (ion ? asIonDoc(ion.document) : asIonDoc({ kind: 'ion', name: '', project: project.value ?? 'default' }))
    const draft = useDraft(ion?.name ?? '', begin, ion?.revision ?? 0)
    const isPhone = useMedia(PHONE)
    const isReadOnly = isPhone || !may(RIGHT, ion?.project)
    const isLost = connection.value.state === 'lost'
    const checked = usePlan(draft.doc, !isReadOnly && !isLost && (ion !== undefined || draft.savedAt > 0))
    const { doc } = draft
    const wanted = param('node')
    const chosen = sketchOf(doc).nodes.some((one) => one.id === wanted) || doc.links.some((one) => linkId(one) === wanted) ? wanted : ''
    const found = foundOf(checked, doc)
    const problem = found.find((one) => one.isError)
    const written = writeYaml(appliedForm(doc))
    const isYaml = param('tab') === 'yaml'
    const choose = (choice: string) => setQuery({ node: choice || undefined })
    const onDoc = (next: IonDoc) => draft.change({ doc: next })
    const context: FormContext = { doc, kinds: all, onChange: onDoc, onChoose: choose, errorAt: (place) => found.find((one) => one.isError && (one.place === place || one.place.startsWith(`${place}[`)))?.text }
    const remove = (choice: string) => {
        onDoc(without(doc, choice))
        choose('')
    }
    const isBehind = ion !== undefined && draft.savedAt > 0 && ion.revision > draft.base
    const isSame = ion !== undefined && JSON.stringify(appliedForm(doc)) === JSON.stringify(appliedForm(asIonDoc(ion.document)))
    const apply = (mode: 'sandbox' | '' = '') =>
        ask({
            title: ion ? `Apply revision ${checked.plan?.revision ?? ion.revision + 1} of ${ion.name}?` : mode ? `Try ${doc.name ?? 'it'} in a sandbox?` : `Apply ${doc.name ?? 'the new ION'}?`,
            text: (
                <>
                    {mode && <p>It runs on live data; its sinks and alerts touch nothing real, until somebody takes it into production.</p>}
                    <Effects checked={checked} isSame={false} isBare />
                </>
            ),
            confirm: mode ? 'Try it' : 'Apply',
            done: `${doc.name ?? 'The ION'} is applied${mode ? ', in a sandbox' : ''}`,
            act: async () => {
                const applied = await call<Ion>('POST', mode ? '/ions?mode=sandbox' : '/ions', appliedForm(doc))
                draft.restart(asIonDoc(applied.document), applied.revision)
                await ions.load()
                go(href(['ions', applied.name, 'graph'], {}, project.value ?? '-'))
            },
        })
    const canApply = checked.plan !== null && problem === undefined && !checked.isChecking && !isSame && !isBehind && !isLost
    useEffect(() => {
        const onKey = (event: KeyboardEvent) => {
            const isTyping = (event.target as Element).closest('input, textarea, select')
            if (!(event.ctrlKey || event.metaKey) || isReadOnly || document.querySelector('dialog[open]')) {
                return
            }
            if (event.key === 's') {
                checked.check()
            } else if (event.key === 'Enter' && canApply) {
                apply()
            } else if (event.key.toLowerCase() === 'z' && !isTyping) {
                event.shiftKey ? draft.redo() : draft.undo()
            } else {
                return
            }
            event.preventDefault()
        }
        document.addEventListener('keydown', onKey)
        return () => document.removeEventListener('keydown', onKey)
    })
    const form = chosenForm(context, chosen, ion === undefined)
    useLayoutEffect(() => document.querySelector('.builder-form')?.scrollTo(0, 0), [chosen, isYaml]) // whose form it is stands at its top
    return (
        <>
            <div class="builder-acts row wrap">
                {isReadOnly && <span class="muted">{isPhone ? 'To be read on a phone; it is drawn on a wider screen.' : `It takes the right to ${RIGHT} to change it.`}</span>}
                {!isPhone && (
                    <>
                        {draft.savedAt > 0 && ion && (
                            <button type="button" class="button" onClick={() => draft.restart(asIonDoc(ion.document), ion.revision)}>
                                Drop the draft
                            </button>
                        )}
                        <button type="button" class="button" disabled={isLost || isReadOnly} title="Ctrl S" onClick={checked.check}>
                            <Icon name="check" /> Validate
                        </button>
                        {ion === undefined && (
                            <button type="button" class="button" disabled={!canApply} onClick={() => apply('sandbox')}>
                                Try in a sandbox…
                            </button>
                        )}
                        <Act right={RIGHT} project={ion?.project ?? doc.project} tone="primary" disabled={!canApply} title={problem ? 'There is an error' : isSame ? 'Nothing is changed' : 'Ctrl Enter'} onClick={() => apply()}>
                            Apply…
                        </Act>
                    </>
                )}
            </div>
            {isBehind && ion && (
                <div class="banner tone-warn" role="alert">
                    <Icon name="warning" />
                    <p>
                        Revision {ion.revision} was applied meanwhile; this draft began from {draft.base}. The change below is shown against revision {ion.revision}.
                    </p>
                    <button type="button" class="button small" onClick={() => draft.rebase(ion.revision)}>
                        Keep mine
                    </button>
                    <button type="button" class="button small" onClick={() => draft.restart(asIonDoc(ion.document), ion.revision)}>
                        Take theirs
                    </button>
                </div>
            )}
            <div class={`builder ${isReadOnly ? 'is-read' : ''}`}>
                {!isReadOnly && <Palette all={all} draft={draft} chosen={chosen} onChoose={choose} />}
                <BuilderCanvas draft={draft} chosen={chosen} wrong={problem?.choice} isReadOnly={isReadOnly} onChoose={choose} onDelete={remove} />
                <Panel
                    title={isYaml ? 'The document' : form.title}
                    id="builder-form"
                    class="builder-form"
                    aside={
                        <Choices
                            label="Form or YAML"
                            items={[
                                { name: 'Form', address: hrefWith({ tab: '' }), isCurrent: !isYaml },
                                { name: 'YAML', address: hrefWith({ tab: 'yaml' }), isCurrent: isYaml },
                            ]}
                        />
                    }
                    foot={
                        !isYaml && chosen !== '' && !isReadOnly ? (
                            <button type="button" class="button small danger" onClick={() => remove(chosen)}>
                                Delete {doc.links.some((one) => linkId(one) === chosen) ? 'the link' : chosen}
                            </button>
                        ) : undefined
                    }
                >
                    <div class="panel-body">
                        {isYaml ? (
                            <Yaml doc={doc} isReadOnly={isReadOnly} line={problem?.place ? written.at.get(problem.place) : undefined} onDoc={onDoc} />
                        ) : (
                            <fieldset class="stack" disabled={isReadOnly}>
                                {form.body}
                            </fieldset>
                        )}
                    </div>
                </Panel>
                <div class="grid g2 builder-below">
                    <Problems found={found} written={written} checked={checked} onChoose={choose} />
                    <Effects checked={checked} isSame={isSame} />
                    <Changes before={ion ? writeYaml(appliedForm(asIonDoc(ion.document))).lines : []} after={written.lines} revision={ion?.revision} />
                </div>
            </div>
        </>
    )
}

function IonBuilder({ args }: { args: Args }) {
    return (
        <IonTab args={args}>
            {(ion) => (
                <Loaded resource={kinds} rows={6}>
                    {(all) => <Builder key={ion.name} ion={ion} all={all} />}
                </Loaded>
            )}
        </IonTab>
    )
}

function NewIon() {
    return (
        <>
            <PageHead title="A new ION" crumbs={[['IONs', href('ions')]]} sub="Pipelines joined by links that carry models under policies. Nothing runs before Apply." />
            <Loaded resource={kinds} rows={6}>
                {(all) => <Builder key="new" ion={undefined} all={all} />}
            </Loaded>
        </>
    )
}

export const ionBuilderScreen: Screen = {
    id: 'ion-builder',
    title: 'Builder',
    icon: 'ions',
    address: 'ions/:ion/builder',
    query: ['node', 'tab'],
    under: 'ions',
    tab: { of: 'ion', name: 'Builder' },
    load: [ions, datasets, models, deployments, kinds],
    actions: ionActions,
    render: IonBuilder,
}

export const ionNewScreen: Screen = {
    id: 'ion-new',
    title: 'New ION',
    icon: 'ions',
    address: 'ions/new',
    query: ['node', 'tab'],
    under: 'ions',
    load: [ions, datasets, models, deployments, kinds],
    render: NewIon,
}
