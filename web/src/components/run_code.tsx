/** The folder that a run's program came with: its files by content (a list of "kind TAB sha256 TAB bytes TAB path"), each with a preview. */
import { useState } from 'preact/hooks'
import { bytes } from '../format'
import { apiUrl, request, segment } from '../state/http'
import { useResource } from '../state/resource'
import { hrefWith, param } from '../state/route'
import { Loaded, Panel } from './basics'
import { Icon } from './icon'
import { Preview } from './run_artifacts'

const SHOWN = 300

interface CodeFile {
    path: string
    sha256: string
    bytes: number
}

export const blobAddress = (sha256: string) => apiUrl(`/blobs/${segment(sha256)}`)

/** Files of such a list; links have no bytes of their own. */
export function filesOf(list: string): CodeFile[] {
    return list.split('\n').flatMap((line): CodeFile[] => {
        const [kind, sha256 = '', size, path = ''] = line.split('\t')
        return kind === 'f' || kind === 'x' ? [{ path, sha256, bytes: Number(size) }] : []
    })
}

export function CodeFiles({ manifest }: { manifest: string }) {
    const [word, setWord] = useState('')
    const files = useResource(manifest, async () => filesOf(await (await request(blobAddress(manifest))).text()))
    return (
        <Loaded resource={files}>
            {(all) => {
                const found = all.filter((one) => one.path.toLowerCase().includes(word.toLowerCase()))
                const file = all.find((one) => one.path === param('at'))
                return (
                    <div class="grid split-files">
                        <Panel
                            title="Files"
                            window={word === '' ? all.length : `${found.length} of ${all.length}`}
                            aside={all.length > 12 && <input type="search" class="input small" placeholder="Find" aria-label="Find a file" value={word} onInput={(event) => setWord(event.currentTarget.value)} />}
                        >
                            <ul class="list" aria-label="Files of the code">
                                {found.slice(0, SHOWN).map((one) => (
                                    <li key={one.path} class={one === file ? 'sel' : ''}>
                                        <Icon name="audit" />
                                        <a class="clip" href={hrefWith({ at: one.path })} aria-current={one === file ? 'true' : undefined}>
                                            {one.path}
                                        </a>
                                        <span class="push small muted">{bytes(one.bytes)}</span>
                                    </li>
                                ))}
                            </ul>
                        </Panel>
                        {file ? <Preview key={file.path} address={blobAddress(file.sha256)} file={file} /> : <p class="quiet">Choose a file to see it.</p>}
                    </div>
                )
            }}
        </Loaded>
    )
}
