/** The screen that puts people into a gallery, and what puts files into datasets: a file of its own, /enrol.js, which the page fetches when one is first shown. */
import type { ComponentChildren } from 'preact'
import type { Dataset, DatasetVersion, Ion } from '../api'
import { Choices, Empty, Facts, Loaded, PageHead, Panel, Progress } from '../components/basics'
import { DropFiles } from '../components/dataset_upload'
import { Picture as Stored } from '../components/face'
import { Refusal } from '../components/form'
import { Icon } from '../components/icon'
import { Act } from '../components/locked'
import { ScoreLine } from '../components/score_line'
import { State, type Tone } from '../components/state'
import { counted, fixed } from '../format'
import { pick, uploads, type Found } from '../state/dataset_upload'
import { getAll, segment } from '../state/http'
import { byClass, FILES_MAX, manifestOf } from '../state/manifest'
import { useEffect } from 'preact/hooks'
import { useResource } from '../state/resource'
import { CHANGE_DATASETS, may } from '../state/rights'
import { hrefWith, href, param } from '../state/route'
import { datasets, ions } from '../state/store'
import { add, addFiles, alikeOf, begin, change, doorsOf, draftOf, enrol, galleryOf, knows, lackOf, LEAST, remove, undo, usableOf, type Draft, type Known, type ListName, type Person } from './enrolment'
import style from './enrol.css'
import { Many } from './many'
import { takePassages } from './from_passage'
import { Pictures } from './pictures'
import { confusedWith, isOpen, lookAgain } from './resemble'
import { Webcam } from './webcam'

export { DropFiles, Freeze, NewDataset, UploadFiles } from '../components/dataset_upload'

const LISTS_RIGHT = 'list people ions'
const SHOWN = 8 // stored photos of a person
const NAMES_MAX = 500 // offered while somebody types
const NAMED = 50 // files that are named one by one
const LOOSE = '(no folder)'

interface Gallery extends Known {
    dataset: Dataset
    version: number // the newest; 0: none yet
}

async function galleryOfDataset(dataset: Dataset): Promise<Gallery> {
    const [newest] = await getAll<DatasetVersion>(`/datasets/${segment(dataset.name)}/versions`)
    const files = newest && newest.n_files <= FILES_MAX ? (await manifestOf(newest)).files : []
    return { dataset, version: newest?.version ?? 0, byPerson: byClass(files), bySha256: new Map(files.map((one) => [one.sha256, one.class])) }
}

function Sources({ ion, draft, known }: { ion: Ion; draft: Draft; known: Gallery }) {
    const from = draft.isMany ? 'photo' : param('from')
    const [isWebcam, isPassage] = [from === 'webcam', from === 'passage']
    const [ids, frames] = [param('id'), param('frames')]
    useEffect(() => {
        if (isPassage) {
            void takePassages(ion.name, ids, frames)
        }
    }, [isPassage, ids, frames])
    const [person] = draft.people
    const files = (found: Found[]) => {
        const { picked, refused } = pick(found, LOOSE)
        change(ion.name, { refused })
        void addFiles(ion.name, picked.map((one) => (one.className === LOOSE ? { ...one, className: '' } : one)))
    }
    const unseen = draft.people.find((one) => one.resembles?.error)?.resembles?.error
    const usable = draft.isMany ? 0 : usableOf(known, person!).length
    return (
        <Panel
            title="Pictures"
            window={draft.isMany ? counted(draft.people.length, 'person', 'people') : `${person!.pictures.length} taken, ${usable} used · at least ${LEAST} · different light is better than more`}
            aside={
                !draft.isMany && (
                    <Choices
                        label="Where pictures come from"
                        items={[
                            { name: 'Photos', address: hrefWith({ from: 'photo' }), isCurrent: !isWebcam && !isPassage },
                            { name: 'Webcam', address: hrefWith({ from: 'webcam' }), isCurrent: isWebcam },
                            { name: 'From a passage', address: hrefWith({ from: 'passage' }), isCurrent: isPassage },
                        ]}
                    />
                )
            }
        >
            {isWebcam ? (
                <Webcam taken={person!.pictures.filter((one) => one.look.grade !== 'out').map((one) => one.from)} onPicture={(file, from) => void add(ion.name, 0, file, from)} />
            ) : isPassage ? (
                <p class="panel-body">
                    {ids === '' ? 'Open a passage, tick the frames that show the person well, and press Enrol.' : `Of ${counted(ids.split(',').length, 'passage')}.`}{' '}
                    <a href={href(['ions', ion.name, 'passages'], { verdict: 'unknown' })}>Passages of unknown people</a>
                </p>
            ) : (
                <div class="panel-body">
                    <DropFiles hint="Photos of one person. For many at once: a folder with a folder for each person." onFiles={files} />
                </div>
            )}
            {draft.refused.length > 0 && (
                <ul class="panel-body steps" aria-label="Files that are not taken">
                    {draft.refused.slice(0, NAMED).map((one) => (
                        <li key={one.path} class="wrap">
                            <State tone="bad">not taken</State> <code>{one.path}</code> {one.why}
                        </li>
                    ))}
                    {draft.refused.length > NAMED && <li class="muted">and {draft.refused.length - NAMED} more</li>}
                </ul>
            )}
            {draft.nToLook > 0 && (
                <p class="panel-body muted" role="status">
                    {counted(draft.nToLook, 'picture')} still to be looked at
                </p>
            )}
            {draft.isMany ? (
                <Many ion={ion.name} known={known} />
            ) : (
                person!.pictures.length > 0 && (
                    <div class="panel-body">
                        <Pictures known={known} pictures={person!.pictures} onRemove={(sha256) => remove(ion.name, 0, sha256)} />
                    </div>
                )
            )}
            <p class="panel-body small muted">
                {unseen
                    ? `Looked at are readability, size, light and sharpness. Whether a face is in a picture, and whom it resembles, is not known: ${unseen} Choose pictures with one face that fills much of them.`
                    : `Replicas of ${ion.name} say whether there is one face in a picture, how good it is, and whom it resembles. They get copies, and keep none.`}
            </p>
        </Panel>
    )
}

/** What the gallery has of this name. */
function Holding({ known, name, onName }: { known: Known; name: string; onName: (name: string) => void }) {
    const has = known.byPerson.get(name.trim())
    const alike = alikeOf(known, name)
    return (
        <>
            {has && (
                <>
                    <p role="status">
                        <Icon name="info" /> Adds photos to <b>{name.trim()}</b>, of whom the gallery has {has.length}:
                    </p>
                    <ul class="pictures" aria-label={`Photos of ${name.trim()}`}>
                        {has.slice(0, SHOWN).map((one) => (
                            <li key={one.file}>
                                <Stored sha256={one.sha256} name={`${one.class}/${one.file}`} />
                            </li>
                        ))}
                    </ul>
                </>
            )}
            {alike && (
                <p>
                    The gallery has{' '}
                    <button type="button" class="button small" onClick={() => onName(alike)}>
                        {alike}
                    </button>
                    : is that the same person?
                </p>
            )}
            {!has && !alike && name.trim() !== '' && <State tone="good">free</State>}
        </>
    )
}

/** Whom the pictures resemble, and whether that is too much. */
function Resembles({ person, known, onName }: { person: Person; known: Known; onName: (name: string) => void }) {
    const its = person.resembles
    if (isOpen(known, person)) {
        return <p class="muted">Replicas compare them with the gallery …</p>
    }
    if (!its || its.error) {
        return null
    }
    const { nearest, confusedFrom } = its
    const near = confusedWith(person)
    const stored = near && known.byPerson.get(near.person)?.[0]
    return (
        <div class="stack mid">
            <p class="row">
                <b>Resembles</b>
                <span class="small muted">
                    nearest of {counted(known.byPerson.size, 'person', 'people')}
                    {confusedFrom !== null && ` · confused from ${fixed(confusedFrom, 2)}`}
                </span>
            </p>
            <ul class="near" aria-label="Resembles">
                {nearest.map((one) => (
                    <li key={one.person} class="small">
                        <span class="clip">{one.person}</span>
                        <ScoreLine score={one.score} limit={confusedFrom} tone={one === near ? 'bad' : 'plain'} />
                        <span class="num">{fixed(one.score, 2)}</span>
                    </li>
                ))}
            </ul>
            {near ? (
                <>
                    <div class="row" role="alert">
                        {stored && (
                            <span class="stored">
                                <Stored sha256={stored.sha256} name={`${near.person} in the gallery`} />
                            </span>
                        )}
                        <p>
                            <State tone="bad">Too much like {near.person}</State>
                            <small class="muted"> Doors would take one for the other. Other pictures may differ more; the same person is not enrolled twice.</small>
                        </p>
                    </div>
                    <p>
                        <button type="button" class="button small" onClick={() => onName(near.person)}>
                            It is the same person: add to {near.person}
                        </button>
                    </p>
                </>
            ) : confusedFrom === null ? (
                <small class="muted">From which score on two people are confused is not known.</small>
            ) : (
                <p>
                    <State tone="good">Nobody comes near</State>
                    {nearest[0] && <small class="muted"> {fixed(confusedFrom - nearest[0].score, 2)} below the limit</small>}
                </p>
            )}
        </div>
    )
}

const LISTS: [ListName, string][] = [
    ['none', 'On no list'],
    ['allow', 'Always allow'],
    ['deny', 'Bar'],
]

function Who({ ion, draft, known }: { ion: Ion; draft: Draft; known: Gallery }) {
    const name = draft.people[0]!.name
    const setName = (text: string) => change(ion.name, { people: draft.people.map((one) => ({ ...one, name: text })) })
    return (
        <Panel title="Who">
            <div class="panel-body stack">
                {!draft.isMany && (
                    <>
                        <label class="field">
                            <span>Name in the gallery</span>
                            <input class="input" type="text" name="person" autocomplete="off" list="people-known" maxLength={128} value={name} onInput={(event) => setName(event.currentTarget.value)} />
                        </label>
                        <datalist id="people-known">
                            {[...known.byPerson.keys()].slice(0, NAMES_MAX).map((one) => (
                                <option key={one} value={one} />
                            ))}
                        </datalist>
                        <Holding known={known} name={name} onName={setName} />
                        <Resembles person={draft.people[0]!} known={known} onName={setName} />
                    </>
                )}
                <label class="field">
                    <span>List of {ion.name}</span>
                    <select class="input" name="list" value={draft.list} disabled={!may(LISTS_RIGHT, ion.project)} onChange={(event) => change(ion.name, { list: event.currentTarget.value as ListName })}>
                        {LISTS.map(([value, text]) => (
                            <option key={value} value={value}>
                                {text}
                            </option>
                        ))}
                    </select>
                </label>
                {known.version === 0 && <p class="muted">The gallery is empty: everybody is unknown until somebody is enrolled.</p>}
            </div>
        </Panel>
    )
}

const STEPS = ['files', 'list', 'freeze'] as const

function Steps({ draft, dataset }: { draft: Draft; dataset: string }) {
    const made = draft.made
    const at = draft.doing === 'done' ? STEPS.length : STEPS.indexOf(draft.doing as (typeof STEPS)[number])
    const upload = uploads.value[dataset]
    const texts: Record<(typeof STEPS)[number], ComponentChildren> = {
        files: `${counted(made?.files.length ?? 0, 'picture')} sent to ${dataset}`,
        list: made && made.lists.length > 0 ? `${counted(made.lists.length, 'person', 'people')} ${draft.list === 'deny' ? 'barred' : 'allowed'}` : 'No list changed',
        freeze: made && made.version > 0 ? `${dataset} v${made.version} is frozen` : 'A version is frozen',
    }
    return (
        <ul class="steps stack mid" aria-label="What happened">
            {STEPS.map((step, i) => (
                <li key={step}>
                    <State tone={i < at ? 'good' : i > at ? 'plain' : draft.error ? 'bad' : 'busy'}>{texts[step]}</State>
                    {i === at && step === 'files' && upload && <Progress value={upload.bytes > 0 ? upload.doneBytes / upload.bytes : 0} label="Pictures on their way" />}
                </li>
            ))}
        </ul>
    )
}

/** Which doors decide by this version already, as their replicas report. */
function Doors({ dataset, version }: { dataset: string; version: number }) {
    const all = (ions.data.value ?? []).flatMap((ion) => doorsOf(ion, dataset).map((door) => ({ ion, door })))
    return (
        <ul class="steps stack mid" aria-label="Doors" role="status">
            {all.map(({ ion, door }) => {
                const isKnown = knows(door, version)
                const [tone, word, reason]: [Tone, string, string | null] = isKnown
                    ? ['good', `knows v${version}`, null]
                    : door.paused_by
                      ? ['plain', 'is paused', `${door.paused_by} paused it. It takes v${version} when it goes on.`]
                      : door.state === 'DEPLOY_FAILED'
                        ? ['bad', `does not take v${version}`, door.state_reason]
                        : ['busy', `does not know v${version} yet`, door.state_reason]
                return (
                    <li key={`${ion.name}/${door.name}`}>
                        <b>
                            {ion.name}/{door.name}
                        </b>{' '}
                        <State tone={tone}>{word}</State>
                        {reason && <small class="muted"> {reason}</small>}
                    </li>
                )
            })}
        </ul>
    )
}

/** @param onDone Doors may have changed. @param onAnew The gallery has. */
function Outcome({ ion, draft, known, onDone, onAnew }: { ion: Ion; draft: Draft; known: Gallery; onDone: () => void; onAnew: () => void }) {
    const made = draft.made
    const isOver = draft.doing === 'done' || draft.doing === 'undone'
    const isUndo = draft.doing === 'undo' || draft.doing === 'undone'
    const takeOut = () => made && void undo(ion.name, made).then(onDone)
    return (
        <div class="stack">
            {isUndo ? (
                <State tone={draft.error ? 'bad' : draft.doing === 'undone' ? 'plain' : 'busy'}>{draft.doing === 'undone' ? `Taken out again: ${known.dataset.name} v${made?.version} has them no more` : 'They are taken out again'}</State>
            ) : (
                <Steps draft={draft} dataset={known.dataset.name} />
            )}
            {isOver && made && <Doors dataset={known.dataset.name} version={made.version} />}
            {isOver && draft.frozen && draft.frozen.n_damaged > 0 && <Refusal text={`${counted(draft.frozen.n_damaged, 'file')} of the version seem damaged: ${draft.frozen.damaged[0] ?? ''}`} />}
            <Refusal text={draft.error} />
            <p class="acts">
                {draft.error && (
                    <Act right={CHANGE_DATASETS} project={known.dataset.project} tone="primary" onClick={() => (isUndo ? takeOut() : void enrol(ion, known.dataset, known).then(onDone))}>
                        Try again
                    </Act>
                )}
                {made && !isUndo && (isOver || draft.error) && (
                    <Act right={CHANGE_DATASETS} project={known.dataset.project} onClick={takeOut}>
                        <Icon name="undo" /> Take out again
                    </Act>
                )}
                {draft.error && !made && (
                    <button type="button" class="button" onClick={() => change(ion.name, { doing: '', error: '' })}>
                        Back
                    </button>
                )}
                {isOver && (
                    <button type="button" class="button primary" onClick={() => (begin(ion.name), onAnew())}>
                        Enrol somebody else
                    </button>
                )}
            </p>
        </div>
    )
}

function Enrolling({ ion, draft, known, onDone, onAnew }: { ion: Ion; draft: Draft; known: Gallery; onDone: () => void; onAnew: () => void }) {
    const ready = draft.people.filter((one) => lackOf(known, one) === '')
    const lack = draft.isMany ? (ready.length === 0 ? 'Nobody can be enrolled yet.' : '') : lackOf(known, draft.people[0]!)
    const isOpenYet = draft.people.some((one) => isOpen(known, one))
    const n = ready.reduce((sum, one) => sum + usableOf(known, one).length, 0)
    return (
        <Panel title={draft.doing === '' ? 'What enrolling will do' : 'What enrolling did'}>
            <div class="panel-body stack">
                {draft.doing !== '' ? (
                    <Outcome ion={ion} draft={draft} known={known} onDone={onDone} onAnew={onAnew} />
                ) : (
                    <>
                        <Facts
                            items={[
                                ['Gallery', `${known.dataset.name} ${known.version > 0 ? `v${known.version} → ` : ''}v${known.version + 1}, with all that is in the dataset then`],
                                ['Pictures', `${n}, of ${counted(ready.length, 'person', 'people')}`],
                                ['Doors', doorsOf(ion, known.dataset.name).map((one) => one.name).join(', ')],
                                ['Model', 'stays; a training that waits for new data begins'],
                            ]}
                        />
                        {(lack || isOpenYet) && <p class="muted">{lack || 'Replicas still compare the pictures with the gallery.'}</p>}
                        <p class="acts">
                            <Act right={CHANGE_DATASETS} project={known.dataset.project} tone="primary" disabled={lack !== '' || draft.nToLook > 0 || isOpenYet} onClick={() => void enrol(ion, known.dataset, known).then(onDone)}>
                                <Icon name="check" /> Enrol {draft.isMany ? counted(ready.length, 'person', 'people') : draft.people[0]!.name.trim() || 'them'}
                            </Act>
                            <button type="button" class="button" onClick={() => begin(ion.name)}>
                                Begin anew
                            </button>
                        </p>
                    </>
                )}
            </div>
        </Panel>
    )
}

/** The person that is enrolled, and with what. */
function Sent({ draft }: { draft: Draft }) {
    const files = draft.made?.files ?? []
    const names = [...new Set(files.map((one) => one.className))]
    return (
        <Panel title="Pictures" window={`${files.length} used`}>
            <ul class="list" aria-label="Who is enrolled">
                {names.map((name) => (
                    <li key={name}>
                        <b class="grow wrap">{name}</b> {counted(files.filter((one) => one.className === name).length, 'picture')}
                    </li>
                ))}
            </ul>
        </Panel>
    )
}

function Form({ ion, dataset }: { ion: Ion; dataset: Dataset }) {
    const gallery = useResource(`gallery:${dataset.name}`, () => galleryOfDataset(dataset))
    const draft = draftOf(ion.name)
    const known = gallery.data.value
    useEffect(() => {
        if (known && draft.doing === '' && draft.nToLook === 0) {
            void lookAgain(ion.name, known)
        }
    }, [known, draft.people, draft.doing, draft.nToLook])
    return (
        <Loaded resource={gallery} rows={6}>
            {(known) => (
                <div class="grid split-r">
                    {draft.doing === '' ? (
                        <Sources ion={ion} draft={draft} known={known} />
                    ) : (
                        <Sent draft={draft} />
                    )}
                    <div class="stack">
                        {draft.doing === '' && <Who ion={ion} draft={draft} known={known} />}
                        <Enrolling ion={ion} draft={draft} known={known} onDone={() => void ions.load()} onAnew={() => void gallery.load()} />
                    </div>
                </div>
            )}
        </Loaded>
    )
}

function Gallery({ ion }: { ion: Ion }) {
    const names = [...new Set(doorsOf(ion).map((one) => galleryOf(one)!))]
    const name = names.find((one) => one === param('gallery')) ?? names[0]
    const dataset = (datasets.data.value ?? []).find((one) => one.name === name)
    if (name === undefined) {
        return (
            <div class="panel">
                <Empty icon="person" title="No pipeline of it knows people">
                    Name a gallery in a prediction pipeline of {ion.name}: <code>gallery: {'{'}dataset: …{'}'}</code>.
                </Empty>
            </div>
        )
    }
    if (!dataset?.is_uploaded) {
        return (
            <div class="panel">
                <Empty icon="data" title={`${name} takes no pictures from here`} more={<a href={href(['datasets', name])}>{name}</a>}>
                    {dataset ? `Its files lie in a folder of the server, ${dataset.path ?? 'which is not shown to you'}: put a folder per person there, and freeze a version.` : 'There is no such dataset, or you may not see it.'}
                </Empty>
            </div>
        )
    }
    if (!may(CHANGE_DATASETS, dataset.project)) {
        return (
            <div class="panel">
                <Empty icon="lock" title={`You may not put pictures into ${name}`} more={<Act right={CHANGE_DATASETS} project={dataset.project} onClick={() => undefined}>Enrol</Act>}>
                    Who is enrolled is known by the doors of {ion.name}. It takes a right that you do not have in {dataset.project ?? 'this project'}.
                </Empty>
            </div>
        )
    }
    return (
        <>
            {names.length > 1 && <Choices label="Gallery" items={names.map((one) => ({ name: one, address: hrefWith({ gallery: one }), isCurrent: one === name }))} />}
            <Form key={name} ion={ion} dataset={dataset} />
        </>
    )
}

export function Enrol({ ion }: { ion: Ion }) {
    return (
        <div class="enrol stack">
            <style>{style}</style>
            <PageHead
                title="Enrol a person"
                crumbs={[
                    ['IONs', href('ions')],
                    [ion.name, href(['ions', ion.name, 'graph'])],
                    ['Allow and deny', href(['ions', ion.name, 'lists'])],
                ]}
                sub={`Into the gallery of ${ion.name}. Pictures are kept nowhere until you enrol.`}
            />
            <Loaded resource={datasets} rows={6}>
                {() => <Gallery ion={ion} />}
            </Loaded>
        </div>
    )
}
