/** Submit a job: kinds and options as the server knows them; beside them what there is now, and the same as YAML, CLI and REST. */
import { useEffect, useState } from 'preact/hooks'
import type { Job, Kind, Run, Secret } from '../api'
import { Choices, Loaded, Loading, Owner, PageHead, Panel } from '../components/basics'
import { Code } from '../components/code'
import { Icon } from '../components/icon'
import { Act } from '../components/locked'
import { OptionField } from '../components/option_field'
import { QuotaBar } from '../components/quota_bar'
import { Parameters } from '../components/run_tables'
import { toast } from '../components/toast'
import { sentence, words } from '../format'
import type { Args, Screen } from '../screen'
import { accelerators, devices } from '../state/devices'
import { call, get, getAll, messageOf, segment } from '../state/http'
import { CODE, commandOf, documentOf, optionsOf, RESOURCES, requestOf, textsOf, yamlOf, type JobDocument, type Option, type Texts } from '../state/job_form'
import { projectsThatMay } from '../state/rights'
import { project, projectList, projects } from '../state/project'
import { amountOf, capacityOf, models, plainAmount, queues, shareOf } from '../state/queues'
import { Resource, useResource } from '../state/resource'
import { go, href, hrefWith, param } from '../state/route'
import { jobAgain, type JobBefore } from '../state/run_again'
import { datasets, jobs, nodes } from '../state/store'

const kinds = new Resource<Kind[]>(() => getAll<Kind>('/kinds', { noun: 'job-kind' }))

const USUAL = 'command'
/** What people say of most jobs; the rest is folded, and found by a word. */
const MAIN = ['argv', 'script', 'command', 'model', 'data', 'validation', 'dataset', 'datasets', 'epochs', 'env', 'python', 'secrets', 'files', 'image']
const WHERE = ['tasks', 'nodes', 'processes_per_node', 'min_nodes', 'workers', 'parameter_servers', 'chief', 'evaluator', 'array', 'parallel', 'replicas', 'cpus', 'memory_max_bytes', 'priority', 'preemptible', 'time_limit', 'node_selector', 'tolerations', 'topology', 'clusters', 'overflow_after']

const WORDS = { yaml: yamlOf, cli: commandOf, rest: requestOf }
const WORD_NAMES: Record<keyof typeof WORDS, string> = { yaml: 'YAML', cli: 'CLI', rest: 'REST' }

/* ---- what there is now ---------------------------------------------------------------------------------------------- */

function Now({ job }: { job: JobDocument }) {
    const wants = (job.spec['resources'] ?? {}) as Record<string, unknown>
    const each = Number(wants['accelerators'] ?? 0)
    const model = wants['accelerator_model'] as string | undefined
    const tasks = Number(job.spec['tasks'] ?? job.spec['workers'] ?? 1) || 1
    const queue = queues.data.value?.find((one) => one.project === job.project)
    const free = [...accelerators.value]
        .map(([node, list]) => ({ node, count: list.filter((one) => one.state === 'ok' && one.used_milli === 0 && (!model || one.model === model)).length }))
        .filter((one) => one.count > 0)
        .sort((a, b) => b.count - a.count)
    const share = queue ? shareOf(queue, 'accelerators') : { guarantee: 0, limit: null, weight: 1 }
    const used = queue ? amountOf(queue.used, 'accelerators') : 0
    const after = used + each * tasks
    const isOver = share.limit !== null && after > share.limit
    const borrows = Math.max(0, after - Math.max(used, share.guarantee ?? Infinity))
    const places = free.reduce((sum, one) => sum + Math.floor(one.count / Math.max(1, each)), 0)
    return (
        <Panel title="What there is now" window="no forecast: the scheduler says the rest">
            <div class="panel-body stack">
                <p class="row">
                    <Owner project={job.project} />
                    <span class="grow">
                        <QuotaBar used={used} guarantee={share.guarantee ?? capacityOf('accelerators')} waiting={each * tasks} whole={share.limit ?? capacityOf('accelerators')} project={job.project} label={`${job.project} uses ${used} devices, and this job asks for ${each * tasks}`} />
                    </span>
                </p>
                <ul class="list short" aria-label="What there is now">
                    <li>
                        {`${job.project} uses ${plainAmount(used, 'accelerators')} devices of a guarantee of ${share.guarantee === null ? 'all' : plainAmount(share.guarantee, 'accelerators')}${share.limit === null ? '' : ` and a limit of ${plainAmount(share.limit, 'accelerators')}`}.`}
                    </li>
                    {each > 0 && isOver && <li class="tone-warn-text">With this job it would be over its limit: the job waits until others of it end.</li>}
                    {each > 0 && !isOver && borrows > 0 && <li>{plainAmount(borrows, 'accelerators')} of them would be borrowed, and may be taken back for others.</li>}
                    {each > 0 && (
                        <li>
                            {free.length === 0
                                ? `No device is free${model ? ` of model ${model}` : ''} now.`
                                : `Free now: ${free.slice(0, 4).map((one) => `${one.node} ${one.count}`).join(' · ')}. Room for ${Math.min(places, tasks)} of ${tasks} ${tasks === 1 ? 'task' : 'tasks'}.`}
                        </li>
                    )}
                </ul>
            </div>
        </Panel>
    )
}

/* ---- the form ------------------------------------------------------------------------------------------------------- */

/** The field that the server's sentence is about: "$.spec.time_limit: …". */
function fieldOf(message: string): string | undefined {
    return /^\$\.(?:spec\.)?((?:resources\.)?[a-z_]+)/.exec(message)?.[1]
}

function Fields(props: { options: readonly Option[]; texts: Texts; errors: Texts; suggest: (name: string) => readonly string[]; onInput: (name: string, text: string) => void }) {
    return (
        <>
            {props.options.map((option) => (
                <OptionField
                    key={option.name}
                    option={option}
                    text={props.texts[option.name] ?? ''}
                    error={props.errors[option.name]}
                    suggestions={props.suggest(option.name)}
                    onInput={(text) => props.onInput(option.name, text)}
                />
            ))}
        </>
    )
}

function Submit({ all, from, again }: { all: Kind[]; from: JobBefore | undefined; again: Run | undefined }) {
    const usable = all.filter((kind) => !kind.is_planned)
    const kind = usable.find((one) => one.name === (param('kind') || from?.kind || USUAL)) ?? usable[0]
    const options = optionsOf(kind)
    const [name, setName] = useState(from?.name ?? '')
    const open = projectsThatMay('submit jobs')
    const [picked, setOwner] = useState('')
    const first = open.find((one) => one === from?.project) ?? open[0] // worked out again: the list of projects may come later
    const owner = picked || (first ?? project.value ?? projects.value[0] ?? 'default')
    const [restarts, setRestarts] = useState(from?.max_restarts ? String(from.max_restarts) : '')
    const [texts, setTexts] = useState<Texts>(from ? textsOf(options, (from.spec ?? {}) as Record<string, unknown>) : {})
    const [touched, setTouched] = useState<ReadonlySet<string>>(new Set())
    const [refusal, setRefusal] = useState('')
    const [search, setSearch] = useState('')
    const [isBusy, setBusy] = useState(false)
    const { spec, errors } = documentOf(options, texts)
    const job: JobDocument = { name, kind: kind?.name ?? '', project: owner, ...(restarts === '' ? {} : { max_restarts: Number(restarts) }), spec }
    if (!/^[a-z0-9]([a-z0-9._-]*)$/.test(name)) {
        errors['name'] = name === '' ? 'it must have one' : 'expected a name of a-z 0-9 . _ -'
    }
    const refused = fieldOf(refusal)
    const shown: Texts = Object.fromEntries(Object.entries(errors).filter(([field]) => touched.has(field) || touched.has('all')))
    if (refused) {
        shown[refused] = refusal
    }
    const onInput = (field: string, text: string) => {
        setTexts({ ...texts, [field]: text })
        setTouched(new Set([...touched, field]))
        setRefusal('')
    }
    const secrets = useResource(`secrets:${owner}`, () => getAll<Secret>(`/projects/${segment(owner)}/secrets`, { limit: 200 }).catch(() => [])) // who may not see their names types them
    const suggest = (field: string): readonly string[] =>
        field === 'resources.accelerator_model' ? models() : field === 'dataset' || field === 'datasets' ? (datasets.data.value ?? []).map((one) => one.name) : []
    const known = (secrets.data.value ?? []).map((one) => one.name).join(', ')
    const said = (option: Option) => (option.name === 'secrets' && known ? { ...option, doc: `${option.doc}. There are ${known}` } : option)
    const isMain = (option: Option) => option.required || MAIN.includes(option.name)
    const where = options.filter((one) => WHERE.includes(one.name))
    const main = options.filter((one) => isMain(one) && !WHERE.includes(one.name))
    const rest = options.filter((one) => !isMain(one) && !WHERE.includes(one.name) && one.name !== 'resources' && one.name !== 'code')
    const found = rest.filter((one) => search === '' || `${one.name} ${one.doc}`.toLowerCase().includes(search.toLowerCase()) || (texts[one.name] ?? '') !== '')
    const submit = async () => {
        setTouched(new Set(['all']))
        if (Object.keys(errors).length > 0) {
            return
        }
        setBusy(true)
        try {
            const made = await call<Job>('POST', '/jobs', job)
            await jobs.load()
            toast(`${job.name} is submitted`)
            go(href('jobs', { job: made.id }))
        } catch (failure) {
            setRefusal(messageOf(failure))
            setBusy(false)
        }
    }
    const as = (Object.keys(WORDS) as (keyof typeof WORDS)[]).find((one) => one === param('as')) ?? 'yaml'
    return (
        <>
            <PageHead
                title="Submit a job"
                crumbs={[['Jobs', href('jobs')]]}
                sub={from ? `${again ? `Runs ${again.name} again` : `Copied from ${from.name}`} · values of secrets are not copied: write them anew` : 'Every field has its line in the document beside it'}
            >
                <a class="button" href={href('jobs')}>
                    Cancel
                </a>
                <Act right="submit jobs" project={owner} tone="primary" disabled={isBusy} onClick={() => void submit()}>
                    {isBusy ? 'Submitting…' : 'Submit'}
                </Act>
            </PageHead>
            {refusal && (
                <p class="failed" role="alert">
                    <Icon name="warning" />
                    <span>{refusal}</span>
                </p>
            )}
            <div class="grid split-job">
                <div class="stack">
                    <Panel title="What">
                        <div class="panel-body stack">
                            <Choices label="Kind" items={usable.map((one) => ({ name: sentence(words(one.name ?? '')), address: hrefWith({ kind: one.name ?? '' }), isCurrent: one === kind }))} />
                            <p class="small muted">
                                {kind?.doc}
                                {all.some((one) => one.is_planned) && ` Not in this version: ${all.filter((one) => one.is_planned).map((one) => one.name).join(', ')}.`}
                            </p>
                            <div class="grid g2">
                                <OptionField option={{ name: 'name', type: 'text', doc: 'What it is called', required: true }} text={name} error={shown['name']} onInput={(text) => { setName(text); setTouched(new Set([...touched, 'name'])) }} />
                                <div class="field">
                                    <label for="job-project">Project</label>
                                    <select id="job-project" class="input" name="project" value={owner} onChange={(event) => setOwner(event.currentTarget.value)}>
                                        {(open.length > 0 ? open : [owner]).map((one) => (
                                            <option key={one}>{one}</option>
                                        ))}
                                    </select>
                                    <span class="small muted">It waits in this project's queue</span>
                                </div>
                            </div>
                            {options.some((one) => one.name === 'code') && (
                                <div class="grid g2">
                                    <Fields options={CODE.filter((one) => one.name !== 'code.manifest' || texts[one.name])} texts={texts} errors={shown} suggest={suggest} onInput={onInput} />
                                </div>
                            )}
                            <Fields options={main.map(said)} texts={texts} errors={shown} suggest={suggest} onInput={onInput} />
                        </div>
                    </Panel>
                    <Panel title="Where">
                        <div class="panel-body grid g4">
                            {options.some((one) => one.name === 'resources') && <Fields options={RESOURCES} texts={texts} errors={shown} suggest={suggest} onInput={onInput} />}
                            <Fields options={where} texts={texts} errors={shown} suggest={suggest} onInput={onInput} />
                            <OptionField option={{ name: 'max_restarts', type: 'integer', doc: 'How often it starts again after an error' }} text={restarts} error={shown['max_restarts']} onInput={setRestarts} />
                        </div>
                    </Panel>
                    {rest.length > 0 && (
                        <Panel
                            title="Other options"
                            window={`${rest.length}, each as its default says`}
                            aside={<input type="search" class="input small" placeholder="Find an option" aria-label="Find an option" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />}
                        >
                            <details class="panel-body" open={search !== '' || rest.some((one) => (texts[one.name] ?? '') !== '')}>
                                <summary>{search === '' ? 'Show all' : `${found.length} of ${rest.length}`}</summary>
                                <div class="grid g2">
                                    <Fields options={found} texts={texts} errors={shown} suggest={suggest} onInput={onInput} />
                                </div>
                            </details>
                        </Panel>
                    )}
                </div>
                <div class="stack">
                    <Now job={job} />
                    {again && (
                        <>
                            <p class="quiet">
                                {again.job ? 'The fields are those of the job that ran it, with its code.' : `Weir did not start ${again.name}: the fields have the code and the program that it names; say the rest.`} What the program logged as its
                                parameters stands below; it sets those that are in its command or its variables.
                            </p>
                            <Parameters run={again} />
                        </>
                    )}
                    <Panel
                        title="Document"
                        aside={<Choices label="Document as" items={(Object.keys(WORDS) as (keyof typeof WORDS)[]).map((one) => ({ name: WORD_NAMES[one], address: hrefWith({ as: one === 'yaml' ? '' : one }), isCurrent: one === as }))} />}
                    >
                        <Code text={WORDS[as](job)} label={`The job as ${WORD_NAMES[as]}`} />
                    </Panel>
                </div>
            </div>
        </>
    )
}

function JobNew() {
    const [from, run] = [param('from'), param('run')]
    const source = useResource(`job:${from}`, async () => (from === '' ? undefined : await get<Job>(`/jobs/${segment(from)}`)))
    const again = useResource(`again:${run}`, async () => (run === '' ? undefined : await get<Run>(`/runs/${segment(run)}`)))
    useEffect(() => {
        kinds.need()
        datasets.need()
    }, [])
    const isReady = [
        [from, source],
        [run, again],
    ].every(([id, one]) => id === '' || (one as typeof source).data.value !== undefined || (one as typeof source).error.value !== null)
    const found = again.data.value
    return (
        <Loaded resource={kinds} rows={6}>
            {(all) => (isReady ? <Submit key={`${from} ${run}`} all={all} from={found ? jobAgain(found, source.data.value) : source.data.value} again={found} /> : <Loading rows={6} />)}
        </Loaded>
    )
}

export const jobNewScreen: Screen = {
    id: 'job-new',
    title: 'Submit a job',
    icon: 'jobs',
    address: 'jobs/new',
    query: ['kind', 'from', 'as', 'run'],
    under: 'jobs',
    load: [queues, devices, nodes, projectList],
    render: JobNew as (props: { args: Args }) => ReturnType<typeof JobNew>,
}
