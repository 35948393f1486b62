/** What versions of datasets were frozen from. */
import type { DatasetVersion } from '../api'
import { apiUrl, request } from './http'

export const FILES_MAX = 50_000 // the page reads the list of a version with so many

/** The blob of a version. */
export interface Manifest {
    files: { class: string; file: string; sha256: string; bytes: number }[]
}

export const manifestOf = async (version: DatasetVersion) => (await (await request(apiUrl(`/blobs/${version.blob}`))).json()) as Manifest

export function byClass(files: Manifest['files']): Map<string, Manifest['files']> {
    const found = new Map<string, Manifest['files']>()
    for (const one of files) {
        const its = found.get(one.class)
        if (its) {
            its.push(one)
        } else {
            found.set(one.class, [one])
        }
    }
    return found
}
