/** A camera more, and another secret for one: forms that change the document of its ION, which the server is asked about before. */
import { useState } from 'preact/hooks'
import type { AppliedIon, Camera, Ion, Secret } from '../api'
import { Effects } from '../components/builder_panels'
import { FormDialog, Refusal, useSending } from '../components/form'
import { toast } from '../components/toast'
import { cameraHref, cameras } from '../state/cameras'
import { usePlan, type Checked } from '../state/draft'
import { call, get, getAll, segment, send } from '../state/http'
import { appliedForm, asIonDoc, type IonDoc } from '../state/ion_doc'
import { inProject, project } from '../state/project'
import { useResource } from '../state/resource'
import { may } from '../state/rights'
import { go, href } from '../state/route'
import { ions } from '../state/store'
import { kindOfAddress, nameOfAddress, pipelinesOf, secretOf, withCamera, withoutPassword, withSecret } from './document'

export const APPLY = 'apply ions'
const CHANGE_SECRETS = 'change secrets'
const NEW = ' ' // no secret has such a name

export interface Place {
    ion: Ion
    pipeline: string
    kind: string
}

/** Every pipeline that takes cameras, and that the caller may change. */
export const placesNow = (): Place[] =>
    (ions.data.value ?? []).filter((ion) => inProject(ion) && may(APPLY, ion.project)).flatMap((ion) => pipelinesOf(asIonDoc(ion.document)).map((one) => ({ ion, ...one })))

/** A change of the newest document: what somebody else applied meanwhile is kept. */
async function apply(ion: string, change: (doc: IonDoc) => IonDoc): Promise<void> {
    const newest = await get<Ion>(`/ions/${segment(ion)}`)
    await call<AppliedIon>('POST', '/ions', appliedForm(change(asIonDoc(newest.document))))
    await Promise.all([ions.load(), cameras.load()])
}

interface Chosen {
    name: string // the secret's, in the project; '': none; NEW: one that is made
    made: string
    value: string
}

const nameOfChosen = (one: Chosen) => (one.name === NEW ? one.made.trim() : one.name)

async function keep(of: string, one: Chosen): Promise<void> {
    if (one.name === NEW) {
        await send('PUT', `/projects/${segment(of)}/secrets/${segment(one.made.trim())}`, { value: one.value })
    }
}

/** A secret by its name: one that is there, or a new one, whose value goes to the server's store and nowhere else. */
function SecretChoice({ of, chosen, isNeeded, onChange }: { of: string; chosen: Chosen; isNeeded: boolean; onChange: (next: Chosen) => void }) {
    const isAllowed = may(CHANGE_SECRETS, of)
    const known = useResource(`secrets for a camera ${of} ${isAllowed}`, () => (isAllowed ? getAll<Secret>(`/projects/${segment(of)}/secrets`) : Promise.resolve([])))
    const change = (key: keyof Chosen) => (event: { currentTarget: { value: string } }) => onChange({ ...chosen, [key]: event.currentTarget.value })
    if (!isAllowed) {
        return (
            <label class="field">
                <span>Secret of {of} with the password; which there are is shown to who may change secrets</span>
                <input class="input" name="secret" autocomplete="off" required={isNeeded} value={chosen.name} onInput={change('name')} />
            </label>
        )
    }
    return (
        <>
            <label class="field">
                <span>Password: a secret of {of}</span>
                <select class="input" name="secret" value={chosen.name} onChange={change('name')}>
                    {!isNeeded && <option value="">none</option>}
                    {(known.data.value ?? []).map((one) => (
                        <option key={one.name}>{one.name}</option>
                    ))}
                    <option value={NEW}>a new one…</option>
                </select>
            </label>
            {chosen.name === NEW && (
                <div class="pair">
                    <label class="field">
                        <span>Name of the secret</span>
                        <input class="input" name="made" autocomplete="off" required value={chosen.made} onInput={change('made')} />
                    </label>
                    <label class="field">
                        <span>Password; nobody sees it again</span>
                        <input class="input" name="value" type="password" autocomplete="new-password" required value={chosen.value} onInput={change('value')} />
                    </label>
                </div>
            )}
        </>
    )
}

/** What the server says of the document as it would be. */
function Said({ checked }: { checked: Checked }) {
    return checked.problem === '' ? <Effects checked={checked} isSame={false} isBare /> : <Refusal text={checked.problem.replace(/^\$[^\s:]*: ?/, '')} />
}

/** A secret that is still to be made is not there for a dry run: that alone stands in its way. */
const isOnlySecret = (checked: Checked, one: Chosen) => one.name === NEW && one.made.trim() !== '' && checked.problem.includes(one.made.trim())

export function AddCamera({ address: first = '', onClose }: { address?: string; onClose: () => void }) {
    const places = placesNow()
    const [typed, setTyped] = useState({ address: first, name: '', place: '' })
    const [secret, setSecret] = useState<Chosen>({ name: '', made: '', value: '' })
    const { address, password } = withoutPassword(typed.address)
    const kind = kindOfAddress(address)
    const fitting = places.filter((one) => one.kind === kind?.kind)
    const place = fitting.find((one) => `${one.ion.name}:${one.pipeline}` === typed.place) ?? fitting[0]
    const name = (typed.name || nameOfAddress(address)).trim()
    const isReady = place !== undefined && name !== ''
    const used = kind?.hasPassword ? nameOfChosen(secret) : ''
    const change = (doc: IonDoc) => withCamera(doc, place!.pipeline, { address, name, secret: used })
    const doc = asIonDoc(place?.ion.document)
    const checked = usePlan(isReady ? change(doc) : doc, isReady)
    const isGood = isReady && !checked.isChecking && (checked.plan !== null || isOnlySecret(checked, secret))
    const set = (key: keyof typeof typed) => (event: { currentTarget: { value: string } }) => setTyped({ ...typed, [key]: event.currentTarget.value })
    const takeOut = () => {
        if (password !== '') {
            setTyped({ ...typed, address })
            setSecret({ name: NEW, made: `${name || 'camera'}-password`, value: password })
        }
    }
    const sending = useSending(async () => {
        const of = place!.ion.project ?? project.value ?? 'default'
        await keep(of, secret)
        await apply(place!.ion.name, change)
        toast(`${name} is added: its first picture comes when its replica has connected`)
        onClose()
        go(cameraHref(place!.ion.name, name))
    })
    return (
        <FormDialog title="Add a camera" wide sending={sending} isReady={isGood} confirm={name ? `Add ${name}` : 'Add it'} onClose={onClose}>
            <label class="field">
                <span>Address: rtsp://USER@HOST/PATH, the same with http, /dev/videoN or a file of the node</span>
                <input class="input" name="address" autofocus required autocomplete="off" spellcheck={false} value={typed.address} onInput={set('address')} onChange={takeOut} />
            </label>
            <div class="pair">
                <label class="field">
                    <span>Name: what decisions call it</span>
                    <input class="input" name="name" autocomplete="off" maxLength={63} placeholder={nameOfAddress(address)} value={typed.name} onInput={set('name')} />
                </label>
                <label class="field">
                    <span>Who looks at its frames</span>
                    <select class="input" name="place" value={place ? `${place.ion.name}:${place.pipeline}` : ''} disabled={fitting.length === 0} onChange={set('place')}>
                        {fitting.map((one) => (
                            <option key={`${one.ion.name}:${one.pipeline}`} value={`${one.ion.name}:${one.pipeline}`}>
                                {one.pipeline} of {one.ion.name}
                            </option>
                        ))}
                    </select>
                </label>
            </div>
            {kind?.hasPassword && place && <SecretChoice of={place.ion.project ?? 'default'} chosen={secret} isNeeded={false} onChange={setSecret} />}
            {address !== '' && kind === undefined && <p class="small tone-warn-text">It begins with rtsp: or http: and the name of a host, or with a / of the node. rtsps and https are not supported: put cameras into a network of their own.</p>}
            {kind !== undefined && place === undefined && (
                <p class="small tone-warn-text">
                    No prediction pipeline that you may change has a source of kind {kind.kind}: draw one in <a href={href('ions')}>the builder of an ION</a>, then its cameras are added here.
                </p>
            )}
            {isReady && (
                <div class="said">
                    <h3>What that will do</h3>
                    {isOnlySecret(checked, secret) ? <p class="quiet">The secret is made first; then {place.ion.name} is applied with the camera.</p> : <Said checked={checked} />}
                </div>
            )}
        </FormDialog>
    )
}

export function ChooseSecret({ camera, onClose }: { camera: Camera; onClose: () => void }) {
    const ion = (ions.data.value ?? []).find((one) => one.name === camera.ion)
    const of = camera.project ?? 'default'
    const doc = asIonDoc(ion?.document)
    const now = secretOf(doc, camera.pipeline, camera.name)
    const [secret, setSecret] = useState<Chosen>({ name: now || NEW, made: now ? '' : `${camera.name}-password`, value: '' })
    const name = nameOfChosen(secret)
    const change = (one: IonDoc) => withSecret(one, camera.pipeline, camera.name, name)
    const isNew = name !== '' && (name !== now || secret.name === NEW)
    const checked = usePlan(isNew ? change(doc) : doc, isNew)
    const sending = useSending(async () => {
        await keep(of, secret)
        await apply(camera.ion, change)
        toast(`${camera.name} gets its password from ${name}`)
        onClose()
    })
    return (
        <FormDialog title={`The secret of ${camera.name}`} sending={sending} isReady={isNew && !checked.isChecking && (checked.plan !== null || isOnlySecret(checked, secret))} confirm={`Use ${name || 'it'}`} onClose={onClose}>
            <p class="dialog-text">{now ? <>It has its password from {now} now.</> : <>No secret is named for it yet.</>} The value never stands in the document of {camera.ion}.</p>
            <SecretChoice of={of} chosen={secret} isNeeded onChange={setSecret} />
            {isNew && !isOnlySecret(checked, secret) && <Said checked={checked} />}
        </FormDialog>
    )
}
