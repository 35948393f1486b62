/**
 * Dialogs on the browser's own <dialog>: showModal() makes the rest of the page inert, so focus cannot leave, and
 * Escape closes. Focus goes back to what opened it.
 */
import type { ComponentChildren } from 'preact'
import { signal } from '@preact/signals'
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { messageOf } from '../state/http'
import { connection } from '../state/stream'
import { Icon } from './icon'
import { toast } from './toast'

export function Dialog(props: { title: string; onClose: () => void; children: ComponentChildren; wide?: boolean }) {
    const ref = useRef<HTMLDialogElement>(null)
    const id = useId()
    const latest = useRef(props.onClose)
    latest.current = props.onClose
    useLayoutEffect(() => { // with the drawing: what is there can be pressed
        const opener = document.activeElement
        const dialog = ref.current!
        dialog.showModal()
        dialog.onclose = () => latest.current()
        return () => {
            dialog.onclose = null // closed by the page, not by the person: nobody is to be told
            if (dialog.open) {
                dialog.close()
            }
            if (opener instanceof HTMLElement && opener.isConnected) {
                opener.focus()
            }
        }
    }, [])
    return (
        <dialog
            ref={ref}
            class={props.wide ? 'wide' : ''}
            aria-labelledby={id}
            onClick={(event) => event.target === ref.current && ref.current!.close()}
        >
            <div class="dialog-body">
                <header>
                    <h2 id={id}>{props.title}</h2>
                    <button type="button" class="icon-button" aria-label="Close" onClick={() => ref.current!.close()}>
                        <Icon name="cross" />
                    </button>
                </header>
                {props.children}
            </div>
        </dialog>
    )
}

export interface Question {
    title: string
    text: ComponentChildren
    confirm: string
    danger?: boolean
    /** Label of a note field; absent: no note is asked for. */
    note?: string
    noteRequired?: boolean
    done: string // the toast after success
    act: (note: string) => Promise<void>
}

/** The question that is asked now; the frame shows it. */
export const question = signal<Question | null>(null)

export function ask(one: Question): void {
    question.value = one
}

/** A dialog with fields that is open now, or null; the frame shows it. */
export const opened = signal<((close: () => void) => ComponentChildren) | null>(null)

export function openDialog(draw: (close: () => void) => ComponentChildren): void {
    opened.value = draw
}

/** Asks before a change that matters; stays open with the server's reason when the change is refused. */
export function Confirm({ question, onClose }: { question: Question; onClose: () => void }) {
    const [note, setNote] = useState('')
    const [busy, setBusy] = useState(false)
    const [error, setError] = useState('')
    const isLost = connection.value.state === 'lost' // what was typed is kept until the server is back
    const submit = async (event: Event) => {
        event.preventDefault()
        setBusy(true)
        setError('')
        try {
            await question.act(note.trim())
            toast(question.done)
            onClose()
        } catch (failure) {
            setError(messageOf(failure))
            setBusy(false)
        }
    }
    return (
        <Dialog title={question.title} onClose={onClose}>
            <form onSubmit={submit}>
                <div class="dialog-text">{question.text}</div>
                {question.note && (
                    <label class="field">
                        <span>
                            {question.note}
                            {!question.noteRequired && <span class="muted"> (optional)</span>}
                        </span>
                        <textarea
                            name="note"
                            rows={3}
                            autofocus
                            maxLength={1000}
                            required={question.noteRequired ?? false}
                            value={note}
                            onInput={(event) => setNote(event.currentTarget.value)}
                        />
                    </label>
                )}
                {error && (
                    <p class="failed" role="alert">
                        <Icon name="warning" />
                        <span>{error}</span>
                    </p>
                )}
                <footer>
                    <button type="button" class="button" autofocus={!question.note} onClick={onClose}>
                        Cancel
                    </button>
                    <button type="submit" class={`button ${question.danger ? 'danger' : 'primary'}`} disabled={busy || isLost}>
                        {busy ? 'Working…' : isLost ? 'Offline' : question.confirm}
                    </button>
                </footer>
            </form>
        </Dialog>
    )
}
