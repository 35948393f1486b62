/** Notebooks and other programs that a browser is brought to: who has one, how long it was not used, open, stop, come back. */
import { useState } from 'preact/hooks'
import type { Service } from '../api'
import { COMMANDS } from '../commands'
import { Choices, Empty, Loaded, Owner, PageHead, Panel } from '../components/basics'
import { ask } from '../components/dialog'
import { Filter, filtered, NothingMatches, type FilterOf } from '../components/filter'
import { Form } from '../components/form'
import { Act } from '../components/locked'
import { is, State, StateWord } from '../components/state'
import { Table, type Column } from '../components/table'
import { toast } from '../components/toast'
import { ago, duration, fullTime, millis, NONE, plural, sentence, spanOf } from '../format'
import type { Screen } from '../screen'
import { shellWords } from '../state/job_form'
import { call, messageOf, segment, send } from '../state/http'
import { inProject, project, projectList } from '../state/project'
import { projectsThatMay } from '../state/rights'
import { href, hrefWith, param } from '../state/route'
import { jobs, now } from '../state/store'
import { services } from '../state/services'

const IDLE_MS = 3_600_000 // without a request for longer: it holds what others wait for

const runs = (one: Service) => is(one.state, 'running', 'starting')

const GROUPS: Record<string, { name: string; has: (one: Service) => boolean }> = {
    '': { name: 'All', has: () => true },
    notebook: { name: 'Notebooks', has: (one) => one.kind === 'notebook' },
    tensorboard: { name: 'TensorBoard', has: (one) => one.kind === 'tensorboard' },
    service: { name: 'Services', has: (one) => one.kind === 'service' },
}

const FILTER: FilterOf<Service> = {
    text: (one) => one.name,
    keys: { name: (one) => one.name, state: (one) => one.state, kind: (one) => one.kind ?? '', project: (one) => one.project ?? '', owner: (one) => one.owner ?? '', node: (one) => one.node ?? '' },
}

/** Lets this browser in, once: the page of the program is at an address of its own. */
async function open(one: Service): Promise<void> {
    const tab = window.open('', '_blank') // before the answer: a browser opens none that nobody has clicked for
    try {
        const ticket = await call<{ url: string }>('POST', `/services/${segment(one.id)}/ticket`)
        if (tab) {
            tab.opener = null
            tab.location.replace(ticket.url)
        } else {
            location.assign(ticket.url)
        }
    } catch (error) {
        tab?.close()
        toast(messageOf(error), 'bad')
    }
}

async function act(one: Service, verb: 'start' | 'stop', done: string): Promise<void> {
    try {
        await send('POST', `/services/${segment(one.id)}/${verb}`)
        toast(done)
    } catch (error) {
        toast(messageOf(error), 'bad')
    }
    await services.load()
}

function Acts({ one }: { one: Service }) {
    return (
        <span class="row acts">
            {is(one.state, 'running') && one.is_mine && one.url && (
                <Act right="submit jobs" project={one.project} isSmall tone="primary" onClick={() => void open(one)}>
                    Open<span class="hidden"> {one.name}</span>
                </Act>
            )}
            {runs(one) && (
                <Act
                    right="cancel jobs"
                    project={one.project}
                    isSmall
                    onClick={() =>
                        ask({
                            title: `Stop ${one.name}?`,
                            text: <p>Its program ends, and what it holds in memory is lost. Its folder stays: started again, it finds its files.</p>,
                            confirm: `Stop the ${one.kind}`,
                            done: `${one.name} is stopped`,
                            act: async () => {
                                await send('POST', `/services/${segment(one.id)}/stop`)
                                await services.load()
                            },
                        })
                    }
                >
                    Stop<span class="hidden"> {one.name}</span>
                </Act>
            )}
            {is(one.state, 'stopped', 'failed') && (
                <>
                    <Act right="submit jobs" project={one.project} isSmall onClick={() => void act(one, 'start', `${one.name} starts`)}>
                        Start<span class="hidden"> {one.name}</span>
                    </Act>
                    <Act
                        right="submit jobs"
                        project={one.project}
                        isSmall
                        tone="danger"
                        onClick={() =>
                            ask({
                                title: `Delete ${one.name}?`,
                                text: <p>It is forgotten, and its folder goes with all files in it. This cannot be undone.</p>,
                                confirm: `Delete the ${one.kind}`,
                                danger: true,
                                done: `${one.name} is deleted`,
                                act: async () => {
                                    await send('DELETE', `/services/${segment(one.id)}`)
                                    await services.load()
                                },
                            })
                        }
                    >
                        Delete<span class="hidden"> {one.name}</span>
                    </Act>
                </>
            )}
        </span>
    )
}

/** Since when nobody has asked it for anything; amber after an hour. */
function Idle({ one }: { one: Service }) {
    const since = millis(one.used_ms ?? one.started_ms)
    const idle = now.value - since
    if (!is(one.state, 'running') || Number.isNaN(since)) {
        return <span class="muted">{one.used_ms ? `used ${ago(one.used_ms, now.value)}` : NONE}</span>
    }
    const ends = one.idle_after_ms > 0 ? `, stops after ${duration(one.idle_after_ms)}` : ''
    return idle > IDLE_MS ? (
        <State tone="warn" title={`Last used ${fullTime(since)}${ends}`}>{`idle ${duration(idle)}`}</State>
    ) : (
        <span title={`Last used ${fullTime(since)}${ends}`}>{idle < 60_000 ? 'in use' : `idle ${duration(idle)}`}</span>
    )
}

const COLUMNS: Column<Service>[] = [
    {
        id: 'name',
        name: 'Name',
        phone: 'name',
        sort: (one) => one.name,
        render: (one) => (
            <b class="main" title={one.name}>
                {one.name}
            </b>
        ),
    },
    { id: 'state', name: 'State', width: '112px', phone: 'state', sort: (one) => one.state, render: (one) => <StateWord state={one.state} /> },
    { id: 'kind', name: 'Kind', width: '96px', sort: (one) => one.kind ?? '', render: (one) => one.kind },
    { id: 'owner', name: 'Owner', width: '112px', phone: 'more', sort: (one) => one.owner ?? '', render: (one) => <span title={one.is_shared ? 'Others of the project may open it' : 'Only its owner may open it'}>{one.owner}{one.is_shared ? ', shared' : ''}</span> },
    { id: 'project', name: 'Project', width: '104px', sort: (one) => one.project ?? '', render: (one) => <Owner project={one.project} /> },
    { id: 'node', name: 'Node', width: '104px', sort: (one) => one.node ?? '', render: (one) => (one.node ? <a href={href(['nodes', one.node])}>{one.node}</a> : NONE) },
    { id: 'idle', name: 'Use', width: '128px', phone: 'more', sort: (one) => -millis(one.used_ms), render: (one) => <Idle one={one} /> },
    { id: 'job', name: 'Job', width: '56px', render: (one) => (one.job ? <a href={href('jobs', { job: one.job })}>log</a> : NONE) },
    { id: 'why', name: 'Why', render: (one) => <span class="muted" title={one.why ?? undefined}>{one.why}</span> },
    { id: 'acts', name: '', width: '144px', render: (one) => <Acts one={one} /> },
]

function Start({ kind, onClose }: { kind: 'notebook' | 'service'; onClose: () => void }) {
    const isNotebook = kind === 'notebook'
    return (
        <Form
            title={isNotebook ? 'Start a notebook' : 'Start a service'}
            confirm={isNotebook ? 'Start the notebook' : 'Start the service'}
            fields={[
                { name: 'name', label: 'Name, once in the project: one that has stopped comes back with its folder', value: kind },
                { name: 'project', label: 'Project', options: projectsThatMay('submit jobs') },
                ...(isNotebook ? [] : [{ name: 'argv', label: 'Program; it listens on $WEIR_PORT, or on the port below' }, { name: 'port', label: 'Port', isOptional: true }]),
                { name: 'gpus', label: 'Accelerators', isOptional: true },
                { name: 'memory', label: 'Memory, as 16GiB', isOptional: true },
                { name: 'python', label: 'Python packages, with a space between them', isOptional: true },
                { name: 'idle', label: 'Stop it when nobody has used it for: 90m, 8h; else as the queue says', isOptional: true },
                { name: 'shared', label: 'Who may open it', options: ['only I', 'others of the project'] },
            ]}
            act={async (values) => {
                const text = (name: string) => (values[name] ?? '').trim()
                const resources = { ...(text('gpus') ? { accelerators: Number(text('gpus')) } : {}), ...(text('memory') ? { memory: text('memory') } : {}) }
                const idle = text('idle') ? spanOf(text('idle')) : 0
                if (Number.isNaN(idle)) {
                    throw new Error('Expected a time as 90m or 8h')
                }
                await call('POST', '/services', {
                    name: text('name'),
                    project: text('project'),
                    kind,
                    is_shared: values['shared'] !== 'only I',
                    ...(idle > 0 ? { idle_after_ms: idle } : {}),
                    ...(text('port') ? { port: Number(text('port')) } : {}),
                    spec: {
                        ...(isNotebook ? {} : { argv: shellWords(text('argv')) }),
                        ...(text('python') ? { python: text('python').split(/\s+/).join('\n') + '\n' } : {}),
                        ...(Object.keys(resources).length > 0 ? { resources } : {}),
                    },
                })
                await services.load()
                toast(`${text('name')} starts`)
            }}
            onClose={onClose}
        />
    )
}

function Notebooks() {
    const [starting, setStarting] = useState<'notebook' | 'service' | null>(null)
    const all = (services.data.value ?? []).filter(inProject)
    const group = GROUPS[param('kind')] ?? GROUPS['']!
    const found = filtered(all, FILTER).filter(group.has)
    const n = all.filter(runs).length
    return (
        <>
            <PageHead title="Notebooks" sub={services.data.value && `${n} of them ${plural(n, 'runs', 'run')} · each has a folder that stays when it stops`}>
                <Act right="submit jobs" project={project.value} onClick={() => setStarting('service')}>
                    Start a service
                </Act>
                <Act right="submit jobs" project={project.value} tone="primary" onClick={() => setStarting('notebook')}>
                    Start a notebook
                </Act>
            </PageHead>
            {starting && <Start kind={starting} onClose={() => setStarting(null)} />}
            <Loaded resource={services} rows={6}>
                {() =>
                    all.length === 0 ? (
                        <div class="panel">
                            <Empty icon="jobs" title="No notebooks yet" command={COMMANDS.notebook}>
                                A notebook runs on the cluster under your project’s quota, and is opened from here:
                            </Empty>
                        </div>
                    ) : (
                        <>
                            <Filter label="Filter notebooks" rows={all} of={FILTER} hint="name, or state:running owner:mara">
                                <Choices label="By kind" items={Object.entries(GROUPS).map(([id, { name, has }]) => ({ name: `${name} ${all.filter(has).length}`, address: hrefWith({ kind: id }), isCurrent: group === GROUPS[id] }))} />
                            </Filter>
                            <Panel title={`${sentence(group === GROUPS[''] ? 'all' : group.name)}`} window={found.length}>
                                {found.length > 0 ? <Table label="Notebooks and services" rows={found} columns={COLUMNS} keyOf={(one) => one.id} /> : <NothingMatches rows={all.filter(group.has)} of={FILTER} what="notebook" />}
                            </Panel>
                        </>
                    )
                }
            </Loaded>
        </>
    )
}

export const notebooksScreen: Screen = {
    id: 'notebooks',
    title: 'Notebooks',
    icon: 'notebooks',
    address: 'notebooks',
    query: ['q', 'kind', 'sort'],
    group: { science: 'Build', operations: 'Build' },
    load: [services, projectList, jobs],
    badge: () => ({ count: (services.data.value ?? []).filter(inProject).filter((one) => is(one.state, 'running') && one.is_mine).length, tone: 'plain', what: 'running' }),
    render: Notebooks,
}
