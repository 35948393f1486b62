/** A field for one option whose value stands in a document: what cannot be read stays as text, and says why. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { messageOf } from '../state/http'
import { textOf, valueOf, type Option } from '../state/job_form'
import { OptionField } from './option_field'

export function ValueField(props: {
    option: Option
    value: unknown
    error?: string | undefined
    suggestions?: readonly string[]
    hint?: ComponentChildren
    onValue: (value: unknown) => void
}) {
    const { option, value } = props
    const [typed, setTyped] = useState<{ text: string; error: string; of: string } | null>(null)
    const known = JSON.stringify(value)
    const held = typed !== null && typed.of === known ? typed : null // what came from elsewhere since, counts
    const onInput = (text: string) => {
        if (text.trim() === '') {
            setTyped({ text, error: '', of: JSON.stringify(undefined) })
            props.onValue(undefined)
            return
        }
        try {
            const next = valueOf(option, text)
            setTyped({ text, error: '', of: JSON.stringify(next) })
            props.onValue(next)
        } catch (failure) {
            setTyped({ text, error: messageOf(failure), of: known })
        }
    }
    return <OptionField option={option} text={held?.text ?? textOf(option, value)} error={held?.error || props.error} suggestions={props.suggestions ?? []} hint={props.hint} onInput={onInput} />
}
