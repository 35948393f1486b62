/** Names for versions: shown as tags, moved and taken away. */
import type { ModelVersion } from '../api'
import { segment, send } from '../state/http'
import { candidatesVersion, models } from '../state/store'
import type { Question } from './dialog'
import { Form } from './form'

export const aliasesOf = (version: ModelVersion): string[] => version.aliases ?? []

export function Aliases({ version }: { version: ModelVersion }) {
    return (
        <>
            {aliasesOf(version).map((alias) => (
                <span key={alias} class="alias">
                    @{alias}
                </span>
            ))}
        </>
    )
}

const addressOf = (model: string, alias: string) => `/models/${segment(model)}/aliases/${segment(alias)}`

async function reload(): Promise<void> {
    candidatesVersion.value++
    await models.load()
}

/** PATCH of a version, or of its model: {description, stage, …}. */
export async function changeVersion(of: { model: string; version?: number }, change: object): Promise<void> {
    await send('PATCH', `/models/${segment(of.model)}${of.version === undefined ? '' : `/versions/${of.version}`}`, change)
    await reload()
}

export function AliasForm({ version, onClose }: { version: ModelVersion; onClose: () => void }) {
    const set = async (values: Record<string, string>) => {
        await send('PUT', addressOf(version.model, (values['alias'] ?? '').replace(/^@/, '')), { version: version.version })
        await reload()
    }
    return (
        <Form
            title={`Name v${version.version} of ${version.model}`}
            fields={[{ name: 'alias', label: 'Alias; if another version has it, it moves here' }]}
            confirm="Set the alias"
            act={set}
            onClose={onClose}
        />
    )
}

export function removeQuestion(version: ModelVersion, alias: string): Question {
    return {
        title: `Take @${alias} from v${version.version}?`,
        text: <p>{version.model}@{alias} then names no version. Deployments keep the versions that they have.</p>,
        confirm: `Remove @${alias}`,
        danger: true,
        done: `@${alias} is gone`,
        act: async () => {
            await send('DELETE', addressOf(version.model, alias))
            await reload()
        },
    }
}
