/** Gives a role: shows what whoever gets it gains and loses, before it is given. */
import { useState } from 'preact/hooks'
import { roles } from '../state/roles'
import { FormDialog, useSending } from './form'
import { Icon } from './icon'

export function Rights({ title, rights, icon }: { title: string; rights: readonly string[]; icon: 'plus' | 'cross' }) {
    return rights.length === 0 ? null : (
        <p class="small">
            <Icon name={icon} /> <b>{title}:</b> {rights.join(', ')}
        </p>
    )
}

export function RoleChange(props: { title: string; was: string; isOfProject: boolean; act: (role: string) => Promise<void>; onClose: () => void }) {
    const [role, setRole] = useState(props.was)
    roles.need()
    const all = (roles.data.value ?? []).filter((one) => (props.isOfProject ? one.is_of_projects : !one.is_custom))
    const rightsOf = (name: string) => {
        const found = all.find((one) => one.name === name)
        return (props.isOfProject ? found?.project_rights : found?.rights) ?? []
    }
    const [before, after] = [rightsOf(props.was), rightsOf(role)]
    const sending = useSending(async () => {
        await props.act(role)
        props.onClose()
    })
    return (
        <FormDialog title={props.title} sending={sending} isReady={role !== props.was} confirm={`Make it ${role}`} onClose={props.onClose}>
            <label class="field">
                <span>Role</span>
                <select class="input" name="role" value={role} onChange={(event) => setRole(event.currentTarget.value)}>
                    {!all.some((one) => one.name === props.was) && <option value={props.was}>{`${props.was} (gone)`}</option>}
                    {all.map((one) => (
                        <option key={one.name}>{one.name}</option>
                    ))}
                </select>
            </label>
            <div class="dialog-text" aria-live="polite">
                <Rights title="Gains" icon="plus" rights={after.filter((one) => !before.includes(one))} />
                <Rights title="Loses" icon="cross" rights={before.filter((one) => !after.includes(one))} />
                {role === props.was && <p class="quiet small">It is this role now.</p>}
            </div>
        </FormDialog>
    )
}
