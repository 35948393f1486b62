/** The form that puts a model's version behind an address. */
import { useEffect, useState } from 'preact/hooks'
import type { ModelVersion } from '../api'
import { change } from '../state/deployments'
import { getAll, segment } from '../state/http'
import { inProject } from '../state/project'
import { useResource } from '../state/resource'
import { go, href } from '../state/route'
import { deployments, models } from '../state/store'
import { FormDialog, useSending } from './form'
import { Icon } from './icon'
import { aliasesOf } from './model_aliases'
import { toast } from './toast'

interface Values {
    name: string
    version: string
    replicas: string
    batch: string
    delay: string
    cpus: string
}

const FIRST: Omit<Values, 'name' | 'version'> = { replicas: '1..1', batch: '8', delay: '2', cpus: '0.1' }
const NUMBERS: { key: 'replicas' | 'batch' | 'delay' | 'cpus'; label: string }[] = [
    { key: 'replicas', label: 'Replicas by load, A..B; 0..B goes down to none' },
    { key: 'batch', label: 'Requests computed together at most' },
    { key: 'delay', label: 'How long one waits for others (ms)' },
    { key: 'cpus', label: 'CPUs of each replica' },
]

function versionText(one: ModelVersion): string {
    const names = aliasesOf(one).map((alias) => ` @${alias}`).join('')
    return `v${one.version}${names}${one.executor ? `, ${one.executor}` : ''}`
}

/** @param wanted "squeezenet@v2", or "" for any. */
export function DeployForm({ wanted, onClose }: { wanted: string; onClose: () => void }) {
    const all = (models.data.value ?? []).filter((one) => inProject(one) || wanted.startsWith(`${one.name}@`))
    const [wantedModel, wantedVersion] = wanted.split('@')
    const [model, setModel] = useState(wantedModel || '')
    const chosen = model || all[0]?.name || ''
    const versions = useResource(`deploy:${chosen}`, async () => (chosen ? await getAll<ModelVersion>(`/models/${segment(chosen)}/versions`, { limit: 200 }) : []))
    const [values, setValues] = useState<Values>({ name: '', version: wantedVersion ?? '', ...FIRST })
    useEffect(() => setValues((old) => ({ ...old, version: chosen === wantedModel ? (wantedVersion ?? '') : '' })), [chosen])
    const name = values.name.trim() || chosen
    const there = deployments.data.value?.find((one) => one.name === name)
    const items = [...(versions.data.value ?? [])].sort((a, b) => b.version - a.version)
    const version = values.version || (items[0] ? `v${items[0].version}` : '')
    const sending = useSending(async () => {
        const numbers = { replicas: values.replicas, batch_max: Number(values.batch), delay_max_us: Math.round(Number(values.delay) * 1000), cpus: Number(values.cpus) }
        await change(name, { model: chosen, version, ...(there ? {} : numbers) })
        toast(there ? `${version} gets all requests of ${name} once a replica has it` : `${name} is being deployed`)
        onClose()
        go(href(['deployments', name]))
    })
    return (
        <FormDialog
            title="Deploy a model"
            wide
            sending={sending}
            isReady={version !== ''}
            confirm={there ? `Give all requests to ${version}` : `Deploy ${chosen} ${version}`}
            onClose={onClose}
        >
            <div class="grid g2 form-grid">
                <label class="field">
                    <span>Model</span>
                    <select class="input" name="model" value={chosen} onChange={(event) => setModel(event.currentTarget.value)}>
                        {all.map((one) => (
                            <option key={one.name}>{one.name}</option>
                        ))}
                    </select>
                </label>
                <label class="field">
                    <span>Version</span>
                    <select class="input" name="version" value={version} onChange={(event) => setValues({ ...values, version: event.currentTarget.value })}>
                        {items.map((one) => (
                            <option key={one.version} value={`v${one.version}`}>
                                {versionText(one)}
                            </option>
                        ))}
                    </select>
                </label>
                <label class="field">
                    <span>Name, in the address of requests</span>
                    <input class="input" name="name" type="text" autocomplete="off" placeholder={chosen} value={values.name} onInput={(event) => setValues({ ...values, name: event.currentTarget.value })} />
                </label>
                {!there &&
                    NUMBERS.map(({ key, label }) => (
                        <label key={key} class="field">
                            <span>{label}</span>
                            <input class="input" name={key} type="text" autocomplete="off" required value={values[key]} onInput={(event) => setValues({ ...values, [key]: event.currentTarget.value })} />
                        </label>
                    ))}
            </div>
            {there && (
                <p class="note tone-warn">
                    <Icon name="warning" />
                    <span>
                        {name} is there already, with {there.traffic === 'none' ? 'no version in effect' : there.traffic}. All of its requests would go to {version}.
                    </span>
                </p>
            )}
        </FormDialog>
    )
}
