/** Things by name: identifiers shortened, and links from what a record speaks of ("job/01a2…") to where it is shown. */
import { useState } from 'preact/hooks'
import type { Opt } from '../types'
import { shortId } from '../format'
import { href } from '../state/route'
import { jobs, runs } from '../state/store'

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/

/** The end of an identifier; all of it on hover, and in the clipboard after a click. */
export function Id({ id }: { id: Opt<string> }) {
    const [copied, setCopied] = useState(false)
    if (!id) {
        return <>{shortId(id)}</>
    }
    const copy = async () => {
        try {
            await navigator.clipboard.writeText(id)
            setCopied(true)
            window.setTimeout(() => setCopied(false), 1_500)
        } catch {
            setCopied(false) // no clipboard over plain http: the title has it
        }
    }
    return (
        <button type="button" class="id" title={id} onClick={copy} aria-label={`Copy ${id}`}>
            <code>{copied ? 'copied' : shortId(id)}</code>
        </button>
    )
}

/** A sentence of the server's in which every UUID is cut to the end that tells it apart. */
export function Sentence({ text }: { text: string }) {
    const parts = text.split(new RegExp(`(${UUID.source})`))
    return (
        <>
            {parts.map((part, i) =>
                i % 2 === 0 ? (
                    part
                ) : (
                    <abbr key={i} title={part}>
                        {shortId(part)}
                    </abbr>
                ),
            )}
        </>
    )
}

/** Where the page shows each noun. */
const ADDRESS_OF: Record<string, (name: string) => string> = {
    ion: (name) => href(['ions', name, 'graph']),
    job: (name) => href('jobs', { job: name }),
    node: (name) => href(['nodes', name]),
    model: (name) => href(['models', name]),
    run: (name) => href(['runs', name]),
    dataset: (name) => href(['datasets', name]),
    queue: (name) => href(['queues', name]),
    user: (name) => href('people', { who: name }),
    token: () => href('people', { tab: 'tokens' }),
    session: () => href('people', { tab: 'tokens' }),
    group: () => href('people', { tab: 'groups' }),
    project: () => href('people'),
    server: () => href('storage'),
}

/** What a person calls it: a job and a run by their name. */
function nameOf(noun: string, name: string): string {
    if (noun === 'run') {
        runs.need()
    }
    const list = noun === 'job' ? jobs.data.value : noun === 'run' ? runs.data.value : undefined
    return list?.find((one) => one.id === name)?.name ?? (UUID.test(name) ? shortId(name) : name)
}

/** "ion/NAME", "job/ID" …, as events and alerts name their subject: a link to the screen that shows it. */
export function Subject({ subject }: { subject: Opt<string> }) {
    const [noun = '', name = ''] = (subject ?? '').split('/')
    const address = ADDRESS_OF[noun]
    if (address === undefined || name === '') {
        return <Sentence text={subject ?? ''} />
    }
    return (
        <a href={address(name)} title={subject ?? undefined}>
            {noun === 'ion' ? 'ION' : noun} {nameOf(noun, name)}
        </a>
    )
}

/** A dataset by name and version, as a link; what has no name in the registry stays text. */
export function DatasetLink({ name, version }: { name: Opt<string>; version?: Opt<string | number> }) {
    if (!name) {
        return <>{shortId(name)}</>
    }
    return (
        <a href={href(['datasets', name])}>
            {name}
            {version ? ` ${typeof version === 'number' ? 'v' : ''}${version}` : ''}
        </a>
    )
}
