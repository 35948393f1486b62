/** What a person may do to an ION as a whole, on each of its tabs and in the palette: go back, set a model, keep a snapshot, pause, train. */
import { useState } from 'preact/hooks'
import type { Ion, Link, ModelVersion } from '../api'
import { dayMinute, plainValue, words } from '../format'
import type { Action } from '../screen'
import { candidates, pendingCandidates, type IonCandidate } from '../state/candidates'
import { getAll, segment, send } from '../state/http'
import { useResource } from '../state/resource'
import { CHANGE_DATASETS, may } from '../state/rights'
import { go, href } from '../state/route'
import { now } from '../state/store'
import { isSandbox } from '../state/verdict'
import { approveQuestion, chooseVersion, pauseQuestion, promoteQuestion, rejectQuestion, resumeQuestion, triggerQuestion, type Way } from '../state/versions'
import { Loaded } from './basics'
import { ask, openDialog } from './dialog'
import { Form, FormDialog, useSending } from './form'
import { Icon } from './icon'
import { Act } from './locked'
import { Menu } from './menu'
import { is } from './state'
import { localText } from './time_range'
import { toast } from './toast'

const REVIEW = 'review ions'
const ROLL_BACK = 'roll back ions'
const TRIGGER = 'trigger ions'
const PAUSE = 'pause ions'
export const SNAPSHOT = 'change snapshots'

export const enrolHref = (ion: string) => href(['ions', ion, 'people', 'new'])

const runnable = (ion: Ion) => ion.pipelines.filter((one) => one.type !== 'prediction')

const hasPaused = (ion: Ion) => ion.pipelines.some((one) => one.paused_by)

const goesOn = (ion: Ion) => ion.pipelines.some((one) => !one.paused_by)

const keyOf = (link: Link) => `${link.from}:${link.to}`

/** Versions that served at this link and do no more, the one that served last first. */
function servedBefore(ion: Ion, link: Link): IonCandidate[] {
    const mine = (candidates.data.value ?? []).filter((one) => one.ion === ion.name && one.link === keyOf(link))
    return mine.filter((one) => one.served_seq > 0 && is(one.state, 'retired', 'rolled_back') && one.version !== link.serving_version).sort((a, b) => b.served_seq - a.served_seq)
}

/** Links of which there is something to choose. */
const linksFor = (ion: Ion, way: Way) => (way === 'rollback' ? ion.links.filter((link) => servedBefore(ion, link).length > 0) : ion.links)

/** The registered model that a link carries: its own name, or the training pipeline's. */
function modelOf(ion: Ion, link: Link): string {
    const known = (candidates.data.value ?? []).find((one) => one.ion === ion.name && one.link === keyOf(link))
    return known?.model ?? (link.from.startsWith('model/') ? link.from.slice('model/'.length) : `${ion.name}.${link.from}`)
}

interface Choice {
    version: number
    text: string
}

function measures(metrics: Readonly<Record<string, unknown>> | null | undefined): string {
    return Object.entries(metrics ?? {})
        .filter(([, value]) => typeof value === 'number')
        .slice(0, 2)
        .map(([key, value]) => ` · ${words(key)} ${plainValue(value)}`)
        .join('')
}

const TITLES: Record<Way, string> = { rollback: 'Roll back', 'set-model': 'Set the model of' }

function Fields(props: { ion: Ion; link: Link; choices: readonly Choice[]; way: Way; onClose: () => void; setLink: (key: string) => void }) {
    const { ion, link, choices, way } = props
    const [version, setVersion] = useState(choices[0]?.version ?? 0)
    const [note, setNote] = useState('')
    const links = linksFor(ion, way)
    const sending = useSending(async () => {
        await chooseVersion(ion.name, way, { version, link: keyOf(link), note })
        toast(`${link.to} goes ${way === 'rollback' ? 'back ' : ''}to version ${version}`)
        props.onClose()
    })
    return (
        <FormDialog title={`${TITLES[way]} ${ion.name}`} sending={sending} isReady={version > 0} confirm={version > 0 ? `${way === 'rollback' ? 'Roll back to' : 'Serve'} v${version}` : 'No version'} onClose={props.onClose}>
            <div class="dialog-text">
                <p>
                    <b>{link.to}</b> {typeof link.serving_version === 'number' ? `serves version ${link.serving_version} now and switches without losing a frame.` : 'serves nothing now.'}
                    {way === 'set-model' && ' No policy is asked.'}
                </p>
            </div>
            {links.length > 1 && (
                <label class="field">
                    <span>Link</span>
                    <select class="input" name="link" value={keyOf(link)} onChange={(event) => props.setLink(event.currentTarget.value)}>
                        {links.map((one) => (
                            <option key={keyOf(one)} value={keyOf(one)}>
                                {one.from} → {one.to}
                            </option>
                        ))}
                    </select>
                </label>
            )}
            {choices.length === 0 ? (
                <p class="quiet">There is no other version that it could serve.</p>
            ) : (
                <label class="field">
                    <span>Version</span>
                    <select class="input" name="version" value={version} autofocus onChange={(event) => setVersion(Number(event.currentTarget.value))}>
                        {choices.map((one) => (
                            <option key={one.version} value={one.version}>
                                {one.text}
                            </option>
                        ))}
                    </select>
                </label>
            )}
            <label class="field">
                <span>
                    Why <span class="muted">(optional)</span>
                </span>
                <textarea name="note" rows={2} maxLength={1000} value={note} onInput={(event) => setNote(event.currentTarget.value)} />
            </label>
        </FormDialog>
    )
}

function VersionForm({ ion, way, onClose }: { ion: Ion; way: Way; onClose: () => void }) {
    const links = linksFor(ion, way)
    const [key, setLink] = useState(links[0] ? keyOf(links[0]) : '')
    const link = links.find((one) => keyOf(one) === key)
    const model = link ? modelOf(ion, link) : ''
    const versions = useResource(`${way}:${model}`, () => (way === 'rollback' || model === '' ? Promise.resolve([]) : getAll<ModelVersion>(`/models/${segment(model)}/versions`)))
    if (link === undefined) {
        return null
    }
    return (
        <Loaded resource={versions}>
            {(all) => {
                const choices: Choice[] =
                    way === 'rollback'
                        ? servedBefore(ion, link).map((one) => ({ version: one.version, text: `v${one.version} · served from ${dayMinute(one.served_ms)}${measures(one.metrics)}` }))
                        : all.filter((one) => one.version !== link.serving_version).sort((a, b) => b.version - a.version).map((one) => ({ version: one.version, text: `v${one.version} · made ${dayMinute(one.created_ms)}${measures(one.metrics)}` }))
                return <Fields key={`${key} ${choices[0]?.version}`} ion={ion} link={link} choices={choices} way={way} onClose={onClose} setLink={setLink} />
            }}
        </Loaded>
    )
}

/** What a snapshot keeps, and of which time. */
export function SnapshotForm({ ion, onClose, onTaken }: { ion: Ion; onClose: () => void; onTaken?: () => void }) {
    return (
        <Form
            title={`Take a snapshot of ${ion.name}`}
            fields={[
                { name: 'name', label: 'Name', value: `${ion.name}-${new Date(now.peek()).toISOString().slice(0, 16).replace(/\D/g, '')}` },
                { name: 'from', label: 'From (an hour ago, unless it says another time)', value: localText(now.peek() - 3_600_000) },
                { name: 'to', label: 'To, or now', isOptional: true },
                { name: 'models', label: 'Models', options: ['by reference', 'whole'] },
            ]}
            confirm="Take it"
            onClose={onClose}
            act={async (values) => {
                const time = (text: string | undefined) => {
                    if (!text?.trim()) {
                        return undefined // the server's own: the page's clock stands still between two ticks
                    }
                    const ms = Date.parse(text)
                    if (Number.isNaN(ms)) {
                        throw new Error(`"${text}" is no time: write ${localText(now.peek())}`)
                    }
                    return new Date(ms).toISOString()
                }
                await send('POST', '/snapshots', { name: values['name'], ion: ion.name, from: time(values['from']), to: time(values['to']), models: values['models'] === 'whole' })
                toast(`${values['name']} is taken`)
                onTaken?.()
                go(href(['ions', ion.name, 'snapshots', values['name'] ?? '']))
            }}
        />
    )
}

const chooseOf = (ion: Ion, way: Way) => openDialog((close) => <VersionForm ion={ion} way={way} onClose={close} />)
const snapshotOf = (ion: Ion) => openDialog((close) => <SnapshotForm ion={ion} onClose={close} />)

const hasWayBack = (ion: Ion) => linksFor(ion, 'rollback').length > 0

/** The same as actions of the palette: those that the caller may do. */
export function actionsOfIon(ion: Ion): Action[] {
    const allowed = (right: string, is: boolean, name: string, run: () => void): Action[] => (is && may(right, ion.project) ? [{ name, run }] : [])
    const waiting = pendingCandidates.value.filter((one) => one.ion === ion.name)
    return [
        ...allowed(ROLL_BACK, hasWayBack(ion), `Roll back ${ion.name}`, () => chooseOf(ion, 'rollback')),
        ...allowed(ROLL_BACK, ion.links.length > 0, `Set the model of ${ion.name}`, () => chooseOf(ion, 'set-model')),
        ...runnable(ion).flatMap((one) =>
            allowed(TRIGGER, true, `${one.type === 'training' ? 'Train' : 'Run'} ${one.name} of ${ion.name} now`, () => ask(triggerQuestion(ion.name, one.name, one.type === 'training'))),
        ),
        ...allowed(PAUSE, hasPaused(ion), `Resume ${ion.name}`, () => ask(resumeQuestion(ion))),
        ...allowed(PAUSE, goesOn(ion), `Pause ${ion.name}`, () => ask(pauseQuestion(ion))),
        ...allowed(CHANGE_DATASETS, true, `Enrol a person for ${ion.name}`, () => go(enrolHref(ion.name))),
        ...allowed(SNAPSHOT, true, `Take a snapshot of ${ion.name}`, () => snapshotOf(ion)),
        ...waiting.flatMap((one) => [
            ...allowed(REVIEW, true, `Approve version ${one.version} of ${one.model}`, () => ask(approveQuestion(ion.name, one))),
            ...allowed(REVIEW, true, `Reject version ${one.version} of ${one.model}`, () => ask(rejectQuestion(ion.name, one))),
        ]),
    ]
}

/** Let a version through, or refuse it. */
export function Decide({ ion, candidate, withIcons = false }: { ion: Ion; candidate: IonCandidate; withIcons?: boolean }) {
    return (
        <span class={`acts ${withIcons ? 'thumb' : ''}`}>
            <Act right={REVIEW} project={ion.project} tone="primary" onClick={() => ask(approveQuestion(ion.name, candidate))}>
                {withIcons && <Icon name="check" />}
                Approve<span class="hidden"> version {candidate.version}</span>
            </Act>
            <Act right={REVIEW} project={ion.project} onClick={() => ask(rejectQuestion(ion.name, candidate))}>
                {withIcons && <Icon name="cross" />}
                Reject<span class="hidden"> version {candidate.version}</span>
            </Act>
        </span>
    )
}

/** The buttons of its head. */
export function IonActs({ ion }: { ion: Ion }) {
    return (
        <>
            {isSandbox(ion) && (
                <Act right="promote ions" project={ion.project} onClick={() => ask(promoteQuestion(ion))}>
                    To production…
                </Act>
            )}
            {hasPaused(ion) && (
                <Act right={PAUSE} project={ion.project} onClick={() => ask(resumeQuestion(ion))}>
                    Resume…
                </Act>
            )}
            {hasWayBack(ion) && (
                <Act right={ROLL_BACK} project={ion.project} onClick={() => chooseOf(ion, 'rollback')}>
                    <Icon name="undo" />
                    Roll back…
                </Act>
            )}
            {runnable(ion).map((one) => (
                <Act key={one.name} right={TRIGGER} project={ion.project} onClick={() => ask(triggerQuestion(ion.name, one.name, one.type === 'training'))}>
                    <Icon name="play" />
                    {one.type !== 'training' ? `Run ${one.name}` : runnable(ion).length > 1 ? `Train ${one.name}` : 'Train now'}
                </Act>
            ))}
            <Menu label={`More acts of ${ion.name}`} text="More">
                {ion.links.length > 0 && (
                    <Act right={ROLL_BACK} project={ion.project} onClick={() => chooseOf(ion, 'set-model')}>
                        Set model…
                    </Act>
                )}
                <Act right={SNAPSHOT} project={ion.project} onClick={() => snapshotOf(ion)}>
                    Snapshot…
                </Act>
                {goesOn(ion) && (
                    <Act right={PAUSE} project={ion.project} onClick={() => ask(pauseQuestion(ion))}>
                        Pause…
                    </Act>
                )}
            </Menu>
        </>
    )
}
