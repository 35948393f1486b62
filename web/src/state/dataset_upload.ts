/** Pictures that the page puts into datasets: a folder is a class. What goes on does so on every screen, until the tab is closed. */
import { signal } from '@preact/signals'
import type { DatasetVersion } from '../api'
import { apiUrl, call, get, messageOf, segment } from './http'
import { sendBytes } from './push'

export const FILE_MAX = 64 << 20 // the server's
const AT_ONCE = 4
const WAIT_S = 20 // for the end of a freeze
const PART_BYTES_MAX = 128 // a class, or a name; the server has the bound

export interface Found {
    path: string // from the folder that was given
    file: File
}

export interface Picked {
    className: string
    name: string
    file: File
}

export interface Refused {
    path: string
    why: string
    item?: Picked // what can be sent again
}

export interface Upload {
    nFiles: number
    nDone: number
    bytes: number
    doneBytes: number
    startedMs: number
    isOver: boolean
    refused: readonly Refused[]
    stop: AbortController
}

/** By the dataset's name. */
export const uploads = signal<Readonly<Record<string, Upload>>>({})

const isHidden = (part: string) => part.startsWith('.') || part === '__MACOSX' || part === 'Thumbs.db' || part === 'desktop.ini'
const byteLength = (text: string) => new TextEncoder().encode(text).length

function whyNot({ file }: Found, className: string, name: string, isTwice: boolean): string {
    return file.size === 0
        ? 'It is empty.'
        : file.size > FILE_MAX
          ? 'It is larger than 64 MB.'
          : className === ''
            ? 'It has no class: put it into a folder with the name of its class, or name the class beside.'
            : byteLength(className) > PART_BYTES_MAX || byteLength(name) > PART_BYTES_MAX
              ? 'Its name is longer than 128 bytes.'
              : isTwice
                ? `Another file of this name is in the class ${className}.`
                : ''
}

/** Which of these files can be sent and under which names; what file managers leave is passed over. @param loose Class of files that lie in no folder. */
export function pick(files: readonly Found[], loose: string): { picked: Picked[]; refused: Refused[] } {
    const picked: Picked[] = []
    const refused: Refused[] = []
    const names = new Set<string>()
    for (const one of files) {
        const parts = one.path.split('/').filter(Boolean)
        if (parts.some(isHidden)) {
            continue
        }
        const name = parts.at(-1) ?? ''
        const className = parts.at(-2) ?? loose.trim()
        const why = whyNot(one, className, name, names.has(`${className}/${name}`))
        if (why !== '') {
            refused.push({ path: one.path, why })
        } else {
            names.add(`${className}/${name}`)
            picked.push({ className, name, file: one.file })
        }
    }
    return { picked, refused }
}

/** All files of what was dropped, also in folders. Begin before the event's end: what is in it is gone then. */
export async function dropped(items: DataTransferItemList): Promise<Found[]> {
    const found: Found[] = []
    const walk = async (entry: FileSystemEntry): Promise<void> => {
        if (entry.isFile) {
            const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject))
            found.push({ path: entry.fullPath.replace(/^\//, ''), file })
            return
        }
        const reader = (entry as FileSystemDirectoryEntry).createReader()
        for (;;) {
            const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject))
            if (some.length === 0) {
                return
            }
            for (const one of some) {
                await walk(one)
            }
        }
    }
    const entries = [...items].map((one) => one.webkitGetAsEntry()).filter((one): one is FileSystemEntry => one !== null)
    for (const entry of entries) {
        await walk(entry)
    }
    return found
}

/** What a field for files, or for a folder, has. */
export const chosen = (files: FileList | null): Found[] => [...(files ?? [])].map((file) => ({ path: file.webkitRelativePath || file.name, file }))

function change(dataset: string, news: (one: Upload) => Partial<Upload>): void {
    const one = uploads.value[dataset]
    if (one !== undefined) {
        uploads.value = { ...uploads.value, [dataset]: { ...one, ...news(one) } }
    }
}

export function forget(dataset: string): void {
    const { [dataset]: gone, ...others } = uploads.value
    gone?.stop.abort()
    uploads.value = others
}

async function sendOne(dataset: string, item: Picked, signal: AbortSignal): Promise<void> {
    let sent = 0
    const progress = (part: number) => {
        const now = part * item.file.size
        change(dataset, (one) => ({ doneBytes: one.doneBytes + now - sent }))
        sent = now
    }
    try {
        await sendBytes(apiUrl(`/datasets/${segment(dataset)}/files/${segment(item.className)}/${segment(item.name)}`), item.file, progress, signal)
        progress(1)
        change(dataset, (one) => ({ nDone: one.nDone + 1 }))
    } catch (error) {
        progress(0)
        if (!signal.aborted) {
            change(dataset, (one) => ({ refused: [...one.refused, { path: `${item.className}/${item.name}`, why: messageOf(error), item }] }))
        }
    }
}

/** Sends them; what comes of it stands in `uploads`. Files that are sent again replace those of their names. */
export async function sendAll(dataset: string, items: readonly Picked[], refused: readonly Refused[]): Promise<void> {
    uploads.value[dataset]?.stop.abort()
    const stop = new AbortController()
    const bytes = items.reduce((sum, one) => sum + one.file.size, 0)
    uploads.value = { ...uploads.value, [dataset]: { nFiles: items.length, nDone: 0, bytes, doneBytes: 0, startedMs: Date.now(), isOver: false, refused, stop } }
    const left = [...items].reverse()
    const work = async () => {
        for (let item = left.pop(); item !== undefined && !stop.signal.aborted; item = left.pop()) {
            await sendOne(dataset, item, stop.signal)
        }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
    if (uploads.value[dataset]?.stop === stop) {
        change(dataset, () => ({ isOver: true }))
    }
}

/** Those that broke on their way, once more. */
export function sendAgain(dataset: string): void {
    const one = uploads.value[dataset]
    const items = (one?.refused ?? []).flatMap((refused) => refused.item ?? [])
    void sendAll(dataset, items, (one?.refused ?? []).filter((refused) => refused.item === undefined))
}

export interface FreezeView {
    state: string
    files: number
    bytes: number
    version: DatasetVersion | null
    n_damaged: number
    damaged: string[]
    error: { message: string } | null
}

/** A version of what is there now: how it ended, or the server's reason. @param onView Told how far it is. */
export async function freeze(dataset: string, onView: (view: FreezeView) => void): Promise<FreezeView> {
    const path = `/datasets/${segment(dataset)}`
    await call('POST', `${path}/versions`, {})
    let now = await get<FreezeView>(`${path}/freeze`, { wait_s: WAIT_S })
    for (; now.state === 'running'; now = await get<FreezeView>(`${path}/freeze`, { wait_s: 1 })) {
        onView(now)
    }
    onView(now)
    if (now.error) {
        throw new Error(now.error.message)
    }
    return now
}
