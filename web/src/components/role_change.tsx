/** Gives a role: shows what whoever gets it gains and loses, before it is given. */
import { useState } from 'preact/hooks'
import { messageOf } from '../state/http'
import { roles } from '../state/roles'
import { Dialog } from './dialog'
import { Icon } from './icon'

function Rights({ title, rights, icon }: { title: string; rights: readonly string[]; icon: 'plus' | 'cross' }) {
    return rights.length === 0 ? null : (
        <p class="small">
            <Icon name={icon} /> <b>{title}:</b> {rights.join(', ')}
        </p>
    )
}

export function RoleChange(props: { title: string; was: string; isOfProject: boolean; act: (role: string) => Promise<void>; onClose: () => void }) {
    const [role, setRole] = useState(props.was)
    const [error, setError] = useState('')
    const [isBusy, setBusy] = useState(false)
    roles.need()
    const all = (roles.data.value ?? []).filter((one) => !props.isOfProject || one.is_of_projects)
    const rightsOf = (name: string) => {
        const found = all.find((one) => one.name === name)
        return (props.isOfProject ? found?.project_rights : found?.rights) ?? []
    }
    const [before, after] = [rightsOf(props.was), rightsOf(role)]
    const submit = async (event: Event) => {
        event.preventDefault()
        setBusy(true)
        try {
            await props.act(role)
            props.onClose()
        } catch (failure) {
            setError(messageOf(failure))
            setBusy(false)
        }
    }
    return (
        <Dialog title={props.title} onClose={props.onClose}>
            <form onSubmit={submit}>
                <label class="field">
                    <span>Role</span>
                    <select class="input" name="role" value={role} onChange={(event) => setRole(event.currentTarget.value)}>
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
                {error && (
                    <p class="failed" role="alert">
                        <Icon name="warning" />
                        <span>{error}</span>
                    </p>
                )}
                <footer>
                    <button type="button" class="button" onClick={props.onClose}>
                        Cancel
                    </button>
                    <button type="submit" class="button primary" disabled={isBusy || role === props.was}>
                        Make it {role}
                    </button>
                </footer>
            </form>
        </Dialog>
    )
}
