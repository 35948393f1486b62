/** Defines a role of projects, or changes one: its rights as boxes, by noun, and what whoever has it gains and loses. */
import { useState } from 'preact/hooks'
import type { Role } from '../api'
import { sentence } from '../format'
import { segment, send } from '../state/http'
import { nounOf, roles, verbOf } from '../state/roles'
import { ask } from './dialog'
import { FormDialog, useSending } from './form'
import { Rights } from './role_change'

/** Who reads a noun looks at it, too: the server adds that. */
const readOf = (right: string) => (right.startsWith('look ') ? `read ${right.slice('look '.length)}` : '')

function closed(rights: readonly string[], all: readonly string[]): string[] {
    return all.filter((one) => rights.includes(one) || rights.includes(readOf(one)))
}

function Boxes({ all, chosen, onChange }: { all: readonly string[]; chosen: readonly string[]; onChange: (rights: string[]) => void }) {
    const nouns = [...new Set(all.map(nounOf))].sort()
    const toggle = (right: string) => {
        const without = chosen.filter((one) => one !== right && readOf(one) !== right)
        onChange(chosen.includes(right) ? without : closed([...chosen, right], all))
    }
    return (
        <div class="role-boxes">
            {nouns.map((noun) => (
                <fieldset key={noun}>
                    <legend>{noun === 'ions' ? 'IONs' : sentence(noun)}</legend>
                    {all
                        .filter((right) => nounOf(right) === noun)
                        .map((right) => (
                            <label key={right} class="row small">
                                <input type="checkbox" name={right} checked={chosen.includes(right)} disabled={chosen.includes(readOf(right))} onChange={() => toggle(right)} />
                                {verbOf(right)}
                            </label>
                        ))}
                </fieldset>
            ))}
        </div>
    )
}

function askDelete(name: string): void {
    ask({
        title: `Delete the role ${name}?`,
        text: <p>Only a role that nobody has goes: the server says who has it, if somebody does.</p>,
        confirm: `Delete ${name}`,
        danger: true,
        done: `The role ${name} is gone`,
        act: async () => {
            await send('DELETE', `/roles/${segment(name)}`)
            await roles.load()
        },
    })
}

/** `role` is null for a new one. */
export function RoleForm({ role, all, onClose }: { role: Role | null; all: readonly Role[]; onClose: () => void }) {
    const rights = all.find((one) => one.name === 'admin')?.project_rights ?? []
    const before = role?.project_rights ?? []
    const [name, setName] = useState(role?.name ?? '')
    const [description, setDescription] = useState(role?.description ?? '')
    const [chosen, setChosen] = useState<string[]>([...before])
    const sending = useSending(async () => {
        const body = { description: description || null, rights: chosen }
        await (role ? send('PUT', `/roles/${segment(role.name)}`, body) : send('POST', '/roles', { name, ...body }))
        await roles.load()
        onClose()
    })
    const remove = role && (
        <button
            type="button"
            class="button danger"
            onClick={() => {
                onClose()
                askDelete(role.name)
            }}
        >
            Delete
        </button>
    )
    return (
        <FormDialog
            title={role ? `The role ${role.name}` : 'New role'}
            wide
            sending={sending}
            isReady={chosen.length > 0}
            confirm={role ? 'Change the role' : 'Make the role'}
            other={remove}
            onClose={onClose}
        >
            {!role && (
                <label class="field">
                    <span>Name</span>
                    <input class="input" name="name" type="text" autocomplete="off" autofocus required value={name} onInput={(event) => setName(event.currentTarget.value)} />
                </label>
            )}
            <label class="field">
                <span>
                    Whom it is for<span class="muted"> (optional)</span>
                </span>
                <input class="input" name="description" type="text" autocomplete="off" value={description} onInput={(event) => setDescription(event.currentTarget.value)} />
            </label>
            <label class="field">
                <span>Begin like</span>
                <select class="input" name="like" onChange={(event) => setChosen([...(all.find((one) => one.name === event.currentTarget.value)?.project_rights ?? before)])}>
                    <option value="">{role ? 'what it allows now' : 'nothing'}</option>
                    {all
                        .filter((one) => one.is_of_projects && one.name !== role?.name)
                        .map((one) => (
                            <option key={one.name}>{one.name}</option>
                        ))}
                </select>
            </label>
            <Boxes all={rights} chosen={chosen} onChange={setChosen} />
            {role && (
                <div class="dialog-text" aria-live="polite">
                    <Rights title="Whoever has it gains" icon="plus" rights={chosen.filter((one) => !before.includes(one))} />
                    <Rights title="Loses" icon="cross" rights={before.filter((one) => !chosen.includes(one))} />
                </div>
            )}
        </FormDialog>
    )
}
