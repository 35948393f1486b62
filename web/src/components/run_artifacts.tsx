/** Files that a run has made: folders to walk through (?at=), a preview of what a page can show, and each to fetch. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Artifact } from '../api'
import { bytes, NONE } from '../format'
import { artifactPath } from '../state/artifact_upload'
import { apiUrl, getAll, messageOf, request, segment } from '../state/http'
import { useResource } from '../state/resource'
import { hrefWith, param, setQuery } from '../state/route'
import { DeleteArtifact, mayOnlyLook, UploadButton, Uploads, useUploads } from './artifact_changes'
import { Empty, Loaded, Loading, Panel } from './basics'
import { Icon } from './icon'

const SHOWN_BYTES = 256 * 1024
const PICTURE_BYTES = 16 << 20
const ROWS = 100

const PICTURE = /\.(png|jpe?g|gif|webp|svg|bmp)$/i
const TABLE = /\.(csv|tsv)$/i
const TEXT = /\.(txt|md|json|ya?ml|log|py|sh|toml|cfg|ini|html|xml|patch|diff|sql|js|ts|c|h|rst)$|(^|\/)(MLmodel|requirements|README|LICENSE)[^/]*$/i

const addressOf = (run: string, path: string) => apiUrl(artifactPath(run, path))
const nameOf = (path: string | null) => (path ?? '').split('/').at(-1)!

/** Rows of a CSV's beginning; a cell in quotes may hold what divides cells. */
export function rowsOf(text: string, divider: string): string[][] {
    const rows: string[][] = [[]]
    let [cell, isQuoted] = ['', false]
    for (let i = 0; i < text.length && rows.length <= ROWS + 1; i++) {
        const letter = text[i]!
        if (isQuoted) {
            if (letter !== '"') {
                cell += letter
            } else if (text[i + 1] === '"') {
                cell += text[i++]
            } else {
                isQuoted = false
            }
        } else if (letter === '"') {
            isQuoted = true
        } else if (letter === divider || letter === '\n') {
            rows.at(-1)!.push(cell.replace(/\r$/, ''))
            cell = ''
            if (letter === '\n') {
                rows.push([])
            }
        } else {
            cell += letter
        }
    }
    rows.at(-1)!.push(cell)
    return rows.filter((row) => row.length > 1 || row[0] !== '').slice(0, ROWS + 1)
}

function TableOf({ text, divider }: { text: string; divider: string }) {
    const [head = [], ...rows] = rowsOf(text, divider)
    return (
        <div class="table-wrap preview" tabIndex={0} role="group" aria-label="Beginning of the table">
            <table class="dense">
                <thead>
                    <tr>
                        {head.map((cell, i) => (
                            <th key={i} scope="col">
                                {cell}
                            </th>
                        ))}
                    </tr>
                </thead>
                <tbody>
                    {rows.map((row, i) => (
                        <tr key={i}>
                            {row.map((cell, k) => (
                                <td key={k}>{cell}</td>
                            ))}
                        </tr>
                    ))}
                </tbody>
            </table>
        </div>
    )
}

function pretty(path: string, text: string): string {
    try {
        return path.endsWith('.json') ? JSON.stringify(JSON.parse(text), null, 2) : text
    } catch {
        return text // cut off, or no JSON: as it is
    }
}

/** What a page can show of a file, by its name and size, and a way to fetch it. */
export function Preview({ address, file }: { address: string; file: { path: string; bytes: number } }) {
    const [shown, setShown] = useState<{ text?: string; picture?: string; why?: string } | null>(null)
    useEffect(() => {
        let isOver = false
        let picture = ''
        const fetchIt = async () => {
            if (PICTURE.test(file.path) && file.bytes <= PICTURE_BYTES) {
                const body = await (await request(address)).arrayBuffer()
                const type = /svg$/i.test(file.path) ? 'image/svg+xml' : undefined
                picture = URL.createObjectURL(new Blob([body], type ? { type } : {}))
                return { picture }
            }
            if (TEXT.test(file.path) || TABLE.test(file.path)) {
                const headers: Record<string, string> = file.bytes > SHOWN_BYTES ? { Range: `bytes=0-${SHOWN_BYTES - 1}` } : {}
                return { text: await (await request(address, { headers })).text() }
            }
            return { why: 'A page cannot show this kind of file.' }
        }
        setShown(null)
        fetchIt()
            .catch((error: unknown) => ({ why: messageOf(error) }))
            .then((found) => isOver || setShown(found))
        return () => {
            isOver = true
            URL.revokeObjectURL(picture)
        }
    }, [file.path])
    return (
        <Panel
            title={nameOf(file.path)}
            window={bytes(file.bytes)}
            aside={
                <a class="button small" href={address} download={nameOf(file.path)}>
                    <Icon name="download" /> Download
                </a>
            }
            foot={shown?.text !== undefined && file.bytes > SHOWN_BYTES ? `The first ${bytes(SHOWN_BYTES)} are shown.` : undefined}
        >
            <div class="panel-body">
                {shown === null ? (
                    <Loading />
                ) : shown.picture ? (
                    <img class="picture" src={shown.picture} alt={nameOf(file.path)} />
                ) : shown.text === undefined ? (
                    <p class="muted">{shown.why}</p>
                ) : TABLE.test(file.path) ? (
                    <TableOf text={shown.text} divider={/tsv$/i.test(file.path) ? '\t' : ','} />
                ) : (
                    <pre class="log is-wrapped" tabIndex={0} aria-label={nameOf(file.path)}>
                        {pretty(file.path, shown.text)}
                    </pre>
                )}
            </div>
        </Panel>
    )
}

export function Artifacts({ run, project, isOver }: { run: string; project: string; isOver: boolean }) {
    const at = param('at') // a folder, with "/" at its end, or a file
    const folder = at.replace(/[^/]*$/, '').replace(/\/$/, '')
    const list = useResource(`${run} ${folder}`, () => getAll<Artifact>(`/runs/${segment(run)}/artifacts`, { path: folder, limit: 1000 }))
    useEffect(() => list.loadSoon(), [isOver])
    const latest = useRef(list)
    latest.current = list
    const uploads = useUploads(run, () => void latest.current.load())
    const upload = <UploadButton project={project} folder={folder} onFile={(path, file) => void uploads.start(path, file)} />
    const onGone = (path: string) => {
        if (at === path) {
            setQuery({ at: folder === '' ? '' : `${folder}/` })
        }
        void list.load()
    }
    const parts = folder.split('/').filter(Boolean)
    return (
        <Loaded resource={list}>
            {(items) => {
                const file = items.find((one) => !one.is_folder && one.path === at) as (Artifact & { path: string }) | undefined
                return items.length === 0 && folder === '' ? (
                    <div class="panel">
                        <Uploads uploads={uploads} />
                        <Empty icon="data" title="No artifacts" command="mlflow.log_artifact(FILE)" more={upload}>
                            {isOver ? 'The run left no files.' : 'Files appear when a program logs them, and at the end what it wrote to $WEIR_OUTPUT.'}
                        </Empty>
                    </div>
                ) : (
                    <div class="grid split-files">
                        <Panel title="Files" window={folder === '' ? items.length : undefined} aside={upload} foot={mayOnlyLook(project)}>
                            <Uploads uploads={uploads} />
                            {folder !== '' && (
                                <nav class="crumbs panel-body" aria-label="Folder">
                                    <a href={hrefWith({ at: '' })}>all files</a>
                                    {parts.map((part, i) => (
                                        <span key={i}>
                                            {' / '}
                                            <a href={hrefWith({ at: `${parts.slice(0, i + 1).join('/')}/` })}>{part}</a>
                                        </span>
                                    ))}
                                </nav>
                            )}
                            <ul class="list" aria-label="Files">
                                {items.map((one) => (
                                    <li key={one.path} class={one.path === at ? 'sel' : ''}>
                                        <Icon name={one.is_folder ? 'data' : 'audit'} />
                                        <a class="clip" href={hrefWith({ at: `${one.path}${one.is_folder ? '/' : ''}` })} aria-current={one.path === at ? 'true' : undefined}>
                                            {nameOf(one.path)}
                                            {one.is_folder ? '/' : ''}
                                        </a>
                                        <span class="push small muted">{one.is_folder ? NONE : bytes(one.bytes)}</span>
                                        <DeleteArtifact run={run} project={project} path={one.path!} isFolder={one.is_folder} onDone={() => onGone(one.path!)} />
                                    </li>
                                ))}
                            </ul>
                        </Panel>
                        {file ? <Preview key={file.path} address={addressOf(run, file.path)} file={file} /> : <p class="quiet">Choose a file to see it.</p>}
                    </div>
                )
            }}
        </Loaded>
    )
}
