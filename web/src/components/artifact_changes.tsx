/** Puts files with a run, and deletes them: what is on its way with how far it is, each to be cancelled, or tried again after a break. */
import { useRef, useState } from 'preact/hooks'
import { bytes } from '../format'
import { artifactPath, putArtifact } from '../state/artifact_upload'
import { messageOf, send } from '../state/http'
import { may } from '../state/rights'
import { Progress } from './basics'
import { ask } from './dialog'
import { Icon } from './icon'
import { Act } from './locked'
import { toast } from './toast'

const RIGHT = 'change runs'

interface Item {
    path: string
    file: File
    part: number
    error: string
    stop: AbortController
}

/** @param folder Where chosen files go: "" is the top. @param onDone A file is there, or gone. */
export function useUploads(run: string, onDone: () => void) {
    const [items, setItems] = useState<readonly Item[]>([])
    const change = (path: string, news: Partial<Item> | null) => setItems((all) => all.flatMap((one) => (one.path !== path ? one : news === null ? [] : { ...one, ...news })))
    const start = async (path: string, file: File) => {
        const stop = new AbortController()
        setItems((all) => [...all.filter((one) => one.path !== path), { path, file, part: 0, error: '', stop }])
        try {
            await putArtifact({ run, path, file, signal: stop.signal, onPart: (part) => change(path, { part }) })
            change(path, null)
            toast(`${path} is there`)
            onDone()
        } catch (error) {
            change(path, stop.signal.aborted ? null : { error: messageOf(error) })
        }
    }
    return { items, start, forget: (path: string) => change(path, null) }
}

export function UploadButton({ project, folder, onFile }: { project: string; folder: string; onFile: (path: string, file: File) => void }) {
    const input = useRef<HTMLInputElement>(null)
    return (
        <>
            <Act right={RIGHT} project={project} isSmall onClick={() => input.current!.click()}>
                <Icon name="sink" /> Upload
            </Act>
            <input
                ref={input}
                type="file"
                name="artifact"
                multiple
                hidden
                aria-label="Files to upload"
                onChange={(event) => {
                    for (const file of event.currentTarget.files ?? []) {
                        onFile(folder === '' ? file.name : `${folder}/${file.name}`, file)
                    }
                    event.currentTarget.value = '' // the same file may be chosen again
                }}
            />
        </>
    )
}

/** Whoever may only look is told so. */
export const mayOnlyLook = (project: string): string | undefined => (may(RIGHT, project) ? undefined : 'You may look at the files: putting one there, or deleting one, takes the right to change runs.')

export function Uploads({ uploads }: { uploads: ReturnType<typeof useUploads> }) {
    return uploads.items.length === 0 ? null : (
        <ul class="list uploads" aria-label="On their way" role="status">
            {uploads.items.map(({ path, file, part, error, stop }) => (
                <li key={path}>
                    <span class="grow">
                        <b class="clip">{path}</b>
                        {error === '' ? (
                            <>
                                <Progress value={part} label={`${path} on its way`} />
                                <small class="muted">{part < 1 ? `${bytes(part * file.size)} of ${bytes(file.size)}` : 'The server puts it together …'}</small>
                            </>
                        ) : (
                            <small class="wrong" role="alert">
                                {error}
                            </small>
                        )}
                    </span>
                    {error !== '' && (
                        <button type="button" class="button small" onClick={() => void uploads.start(path, file)}>
                            Try again
                        </button>
                    )}
                    <button type="button" class="button small" onClick={() => (error === '' ? stop.abort() : uploads.forget(path))}>
                        {error === '' ? 'Cancel' : 'Leave it'}
                        <span class="hidden"> {path}</span>
                    </button>
                </li>
            ))}
        </ul>
    )
}

export function DeleteArtifact({ run, project, path, isFolder, onDone }: { run: string; project: string; path: string; isFolder: boolean; onDone: () => void }) {
    return may(RIGHT, project) ? (
        <button
            type="button"
            class="icon-button"
            aria-label={`Delete ${path}`}
            onClick={() =>
                ask({
                    title: `Delete ${path}?`,
                    text: <p>{isFolder ? 'The folder goes with all files below it.' : 'The file goes.'} It cannot be brought back; a model version that was made of it keeps its own.</p>,
                    confirm: isFolder ? 'Delete the folder' : 'Delete the file',
                    danger: true,
                    done: `${path} is deleted`,
                    act: async () => {
                        await send('DELETE', artifactPath(run, path))
                        onDone()
                    },
                })
            }
        >
            <Icon name="cross" />
        </button>
    ) : null
}
