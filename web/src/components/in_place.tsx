/** What people say of something, changed where it stands. Whoever lacks the right reads it as plain text. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { may } from '../state/rights'
import { connection } from '../state/stream'
import type { Opt } from '../types'
import { Refusal, useSending } from './form'
import { Icon } from './icon'

const LONG = 800 // letters of a text that may have to be scrolled

interface Owner {
    right: string // that it takes to change it
    project: Opt<string>
}

/** As it is read, with a button that puts fields in its place. Escape leaves it as it was; the focus goes back to the button. */
export function InPlace(
    props: Owner & {
        verb: string // on the button
        what: string // goes on after it, for readers: "the description of digits"
        shown: ComponentChildren // false: there is nothing to read
        children: ComponentChildren // the fields
        onOpen: () => void // they begin with what is
        act: () => Promise<unknown>
    },
) {
    const [isOpen, setOpen] = useState(false)
    const button = useRef<HTMLButtonElement>(null)
    const form = useRef<HTMLFormElement>(null)
    const wasOpen = useRef(false)
    const sending = useSending(async () => {
        await props.act()
        setOpen(false)
    })
    useEffect(() => {
        if (isOpen) {
            form.current!.querySelector<HTMLElement>('textarea, select')!.focus()
        } else if (wasOpen.current) {
            button.current?.focus()
        }
        wasOpen.current = isOpen
    }, [isOpen])
    const isAllowed = may(props.right, props.project)
    const isLost = connection.value.state === 'lost'
    const onKeyDown = (event: KeyboardEvent) => {
        if (event.key === 'Escape') {
            event.preventDefault()
            event.stopPropagation()
            setOpen(false)
        } else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
            form.current!.requestSubmit()
        }
    }
    if (!isOpen) {
        return !isAllowed && !props.shown ? null : (
            <div class="in-place">
                {props.shown}
                {isAllowed && (
                    <button
                        ref={button}
                        type="button"
                        class="button small"
                        onClick={() => {
                            props.onOpen()
                            sending.clear()
                            setOpen(true)
                        }}
                    >
                        <Icon name="edit" />
                        {props.verb}
                        <span class="hidden"> {props.what}</span>
                    </button>
                )}
            </div>
        )
    }
    return (
        <form ref={form} class="in-place stack mid" aria-label={`${props.verb} ${props.what}`} onSubmit={sending.submit} onKeyDown={onKeyDown}>
            {props.children}
            <Refusal text={sending.error} />
            <span class="acts">
                <button type="submit" class="button small primary" disabled={sending.isBusy || isLost}>
                    {isLost ? 'Offline' : 'Save'}
                </button>
                <button type="button" class="button small" onClick={() => setOpen(false)}>
                    Cancel
                </button>
                <span class="small muted only-desk">Ctrl Enter saves, Esc leaves it as it was</span>
            </span>
        </form>
    )
}

/** @param put Is given null when nothing is left of the text. */
export function Description({ text, of, put, ...owner }: Owner & { text: Opt<string>; of: string; put: (text: string | null) => Promise<unknown> }) {
    const [draft, setDraft] = useState('')
    const [before, setBefore] = useState('')
    const here = text ?? ''
    return (
        <InPlace
            {...owner}
            verb={here === '' ? 'Describe' : 'Edit'}
            what={here === '' ? of : `the description of ${of}`}
            shown={
                here !== '' && (
                    <p class="described" tabIndex={here.length > LONG ? 0 : undefined}>
                        {here}
                    </p>
                )
            }
            onOpen={() => {
                setDraft(here)
                setBefore(here)
            }}
            act={() => put(draft.trim() || null)}
        >
            <label class="field">
                <span>Description of {of}</span>
                <textarea name="description" rows={4} value={draft} onInput={(event) => setDraft(event.currentTarget.value)} />
            </label>
            {here !== before && (
                <p class="small" role="status">
                    {here === '' ? 'Somebody has taken it away meanwhile.' : `Somebody has changed it meanwhile, to “${here}”.`} Saving puts yours in its place.
                </p>
            )}
        </InPlace>
    )
}
