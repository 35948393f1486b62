/** A dialog with fields, for what is made or given. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { messageOf } from '../state/http'
import { Dialog } from './dialog'
import { Icon } from './icon'

export type Sending = ReturnType<typeof useSending>

/** Sends what a form has: whether it is on its way, and the server's reason when it refused. */
export function useSending(act: () => Promise<unknown>) {
    const [error, setError] = useState('')
    const [isBusy, setBusy] = useState(false)
    const submit = async (event: Event) => {
        event.preventDefault()
        setBusy(true)
        setError('')
        try {
            await act()
        } catch (failure) {
            setError(messageOf(failure))
        } finally {
            setBusy(false)
        }
    }
    return { error, isBusy, submit, clear: () => setError('') }
}

/** The server's reason, where what it refuses stands; '': none. */
export function Refusal({ text }: { text: string }) {
    return text === '' ? null : (
        <p class="failed" role="alert">
            <Icon name="warning" />
            <span>{text}</span>
        </p>
    )
}

/** A dialog whose fields are sent: it stays open with the server's reason when that refuses, and what is sent closes it. */
export function FormDialog(props: {
    title: string
    wide?: boolean
    sending: Sending
    isReady?: boolean // whether there is something to send; without: there is
    confirm: ComponentChildren
    other?: ComponentChildren // another button, before these
    onClose: () => void
    children: ComponentChildren
}) {
    return (
        <Dialog title={props.title} onClose={props.onClose} {...(props.wide ? { wide: true } : {})}>
            <form onSubmit={props.sending.submit}>
                {props.children}
                <Refusal text={props.sending.error} />
                <footer>
                    {props.other}
                    <button type="button" class="button" onClick={props.onClose}>
                        Cancel
                    </button>
                    <button type="submit" class="button primary" disabled={props.sending.isBusy || props.isReady === false}>
                        {props.confirm}
                    </button>
                </footer>
            </form>
        </Dialog>
    )
}

export interface Field {
    name: string
    label: string
    type?: 'text' | 'password'
    options?: readonly string[]
    value?: string
    isOptional?: boolean
}

function Input(props: { field: Field; isFirst: boolean; value: string; onInput: (event: { currentTarget: { value: string } }) => void }) {
    const common = { name: props.field.name, class: 'input', autofocus: props.isFirst, required: !props.field.isOptional, value: props.value, onInput: props.onInput }
    return props.field.type === 'password' ? <input {...common} type="password" autocomplete="new-password" /> : <input {...common} type="text" autocomplete="off" />
}

/** A dialog with fields that sends what was typed; the server's reason stays beside it. */
export function Form(props: { title: string; fields: Field[]; confirm: string; act: (values: Record<string, string>) => Promise<void>; onClose: () => void }) {
    const [values, setValues] = useState<Record<string, string>>(Object.fromEntries(props.fields.map((one) => [one.name, one.value ?? one.options?.[0] ?? ''])))
    const sending = useSending(async () => {
        await props.act(values)
        props.onClose()
    })
    const change = (name: string) => (event: { currentTarget: { value: string } }) => setValues({ ...values, [name]: event.currentTarget.value })
    return (
        <FormDialog title={props.title} sending={sending} confirm={props.confirm} onClose={props.onClose}>
            {props.fields.map((one, i) => (
                <label key={one.name} class="field">
                    <span>
                        {one.label}
                        {one.isOptional && <span class="muted"> (optional)</span>}
                    </span>
                    {one.options ? (
                        <select class="input" name={one.name} value={values[one.name] ?? ''} onChange={change(one.name)}>
                            {one.options.map((option) => (
                                <option key={option}>{option}</option>
                            ))}
                        </select>
                    ) : (
                        <Input field={one} isFirst={i === 0} value={values[one.name] ?? ''} onInput={change(one.name)} />
                    )}
                </label>
            ))}
        </FormDialog>
    )
}
