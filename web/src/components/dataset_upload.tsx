/** Datasets made, filled and frozen on the page. */
import { useRef, useState } from 'preact/hooks'
import type { Dataset } from '../api'
import { bytes, counted, short } from '../format'
import { call } from '../state/http'
import { chosen, dropped, forget, freeze, pick, sendAgain, sendAll, uploads, type Found, type FreezeView, type Upload } from '../state/dataset_upload'
import { project } from '../state/project'
import { CHANGE_DATASETS, projectsThatMay } from '../state/rights'
import { go, href } from '../state/route'
import { datasets } from '../state/store'
import { Progress } from './basics'
import { Form, Refusal, useSending } from './form'
import { Icon } from './icon'
import { Act } from './locked'
import { toast } from './toast'

const NAMED = 50 // files that are named one by one

/** "Faces of July" → "faces-of-july" */
const nameOf = (text: string) => text.toLowerCase().replace(/[^a-z0-9._-]+/g, '-').replace(/^[-.]+|[-.]+$/g, '')

/** @param files What it begins with. */
export function NewDataset({ files, onClose }: { files: readonly Found[]; onClose: () => void }) {
    const open = projectsThatMay(CHANGE_DATASETS)
    const folder = files[0]?.path.split('/').filter(Boolean) ?? []
    return (
        <Form
            title={files.length > 0 ? `A dataset of ${counted(files.length, 'file')}` : 'New dataset'}
            confirm={files.length > 0 ? 'Make it, and send the files' : 'Make it'}
            fields={[
                { name: 'name', label: 'Name', value: folder.length > 2 ? nameOf(folder[0]!) : '' },
                { name: 'project', label: 'Project', options: open.length > 0 ? open : [project.value ?? 'default'] },
                ...(files.some((one) => !one.path.includes('/')) ? [{ name: 'class', label: 'Class of files that lie in no folder' }] : []),
            ]}
            act={async (values) => {
                const made = await call<Dataset>('POST', '/datasets', { name: values.name!.trim(), project: values.project })
                await datasets.load()
                const { picked, refused } = pick(files, values.class ?? '')
                if (picked.length + refused.length > 0) {
                    void sendAll(made.name, picked, refused)
                }
                go(href(['datasets', made.name]))
            }}
            onClose={onClose}
        />
    )
}

function Standing({ dataset, upload }: { dataset: string; upload: Upload }) {
    const { nFiles, nDone, doneBytes, refused, isOver } = upload
    const seconds = (Date.now() - upload.startedMs) / 1000
    const rate = seconds > 0 ? doneBytes / seconds : 0
    const nBroken = refused.filter((one) => one.item !== undefined).length
    return (
        <div class="stack" role="status">
            <p class="row">
                <span class="grow">
                    <b>
                        {short(nDone)} of {counted(nFiles, 'file')}
                    </b>{' '}
                    <span class="muted">
                        {bytes(doneBytes)} of {bytes(upload.bytes)}
                        {!isOver && rate > 0 && ` · ${bytes(rate)}/s · ${Math.ceil((upload.bytes - doneBytes) / rate)} s left`}
                    </span>
                </span>
                {nBroken > 0 && isOver && (
                    <button type="button" class="button small" onClick={() => sendAgain(dataset)}>
                        Send {nBroken === 1 ? 'it' : `${nBroken}`} again
                    </button>
                )}
                <button type="button" class="button small" onClick={() => forget(dataset)}>
                    {isOver ? 'Done' : 'Stop'}
                </button>
            </p>
            {!isOver && <Progress value={upload.bytes > 0 ? doneBytes / upload.bytes : 1} label={`Files of ${dataset} on their way`} />}
            {refused.length > 0 && (
                <>
                    <p class="failed">
                        <Icon name="warning" />
                        <span>{counted(refused.length, 'file')} {refused.length === 1 ? 'is' : 'are'} not taken; the others are not held up.</span>
                    </p>
                    <ul class="list" aria-label="Files that are not taken">
                        {refused.slice(0, NAMED).map((one) => (
                            <li key={one.path}>
                                <span class="grow">
                                    <code class="wrap">{one.path}</code>
                                    <br />
                                    <small class="muted">{one.why}</small>
                                </span>
                            </li>
                        ))}
                    </ul>
                    {refused.length > NAMED && <p class="muted">and {short(refused.length - NAMED)} more</p>}
                </>
            )}
        </div>
    )
}

/** Where files are dropped or chosen. */
export function DropFiles({ isOff, hint, onFiles }: { isOff?: boolean; hint: string; onFiles: (files: Found[]) => void }) {
    const [isOver, setOver] = useState(false)
    const folder = useRef<HTMLInputElement>(null)
    const take = (input: HTMLInputElement) => {
        const files = chosen(input.files)
        input.value = ''
        onFiles(files)
    }
    return (
        <div class="stack">
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
                    void dropped(event.dataTransfer!.items).then(onFiles)
                }}
            >
                <Icon name="sink" size={24} />
                <span>
                    <b>Drop a folder or files here</b>
                    <small class="muted">{hint}</small>
                </span>
                <input type="file" name="files" multiple disabled={isOff} onChange={(event) => take(event.currentTarget)} />
            </label>
            <div>
                <button type="button" class="button small" disabled={isOff} onClick={() => folder.current!.click()}>
                    <Icon name="data" /> Choose a folder
                </button>
                <input
                    ref={(input) => {
                        folder.current = input
                        input?.setAttribute('webkitdirectory', '')
                    }}
                    type="file"
                    name="folder"
                    hidden
                    aria-label="A folder with a folder for each class"
                    onChange={(event) => take(event.currentTarget)}
                />
            </div>
        </div>
    )
}

/** Files into a dataset that takes uploads. */
export function UploadFiles({ dataset }: { dataset: Dataset }) {
    const [loose, setLoose] = useState('')
    const upload = uploads.value[dataset.name]
    return (
        <>
            {upload && <Standing dataset={dataset.name} upload={upload} />}
            {(!upload || upload.isOver) && (
                <>
                    <DropFiles
                        hint="A folder is a class: its name is what the pictures show. Files of the same name are replaced."
                        onFiles={(files) => {
                            const { picked, refused } = pick(files, loose)
                            void sendAll(dataset.name, picked, refused)
                        }}
                    />
                    <label class="row">
                        <span class="muted">Class of files that lie in no folder</span>
                        <input class="input grow" type="text" name="class" autocomplete="off" value={loose} onInput={(event) => setLoose(event.currentTarget.value)} />
                    </label>
                </>
            )}
        </>
    )
}

/** A version of what is there now. */
export function Freeze({ dataset, onDone }: { dataset: Dataset; onDone: () => void }) {
    const [view, setView] = useState<FreezeView>()
    const sending = useSending(async () => {
        const now = await freeze(dataset.name, setView)
        toast(`${dataset.name} v${now.version?.version} is frozen`)
        onDone()
    })
    const isSending = uploads.value[dataset.name]?.isOver === false
    return (
        <>
            <p>
                <Act right={CHANGE_DATASETS} project={dataset.project} tone="primary" disabled={sending.isBusy || isSending} onClick={() => void sending.submit(new Event('submit'))}>
                    <Icon name="lock" /> {sending.isBusy ? 'Freezing …' : isSending ? 'Freeze when all files are there' : 'Freeze a version'}
                </Act>
            </p>
            {sending.isBusy && view && (
                <p class="muted" role="status">
                    {counted(view.files, 'file')}, {bytes(view.bytes)} read
                </p>
            )}
            <Refusal text={sending.error} />
            {!sending.isBusy && view?.version && view.n_damaged > 0 && (
                <>
                    <p class="failed">
                        <Icon name="warning" />
                        <span>
                            {counted(view.n_damaged, 'file')} of v{view.version.version} {view.n_damaged === 1 ? 'seems' : 'seem'} damaged: trainings leave {view.n_damaged === 1 ? 'it' : 'them'} out.
                        </span>
                    </p>
                    <ul class="list" aria-label="Files that seem damaged">
                        {view.damaged.slice(0, NAMED).map((one) => (
                            <li key={one}>
                                <span class="grow wrap">{one}</span>
                            </li>
                        ))}
                    </ul>
                </>
            )}
        </>
    )
}
