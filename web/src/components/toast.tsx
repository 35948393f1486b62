/** Short confirmations at the edge of the page, read out politely. */
import { signal } from '@preact/signals'
import { Icon } from './icon'

const SHOW_MS = 5_000
const KEEP = 3

const toasts = signal<{ id: number; text: string; tone: 'good' | 'bad' }[]>([])
let lastId = 0

export function toast(text: string, tone: 'good' | 'bad' = 'good'): void {
    const id = ++lastId
    toasts.value = [...toasts.value, { id, text, tone }].slice(-KEEP)
    window.setTimeout(() => {
        toasts.value = toasts.value.filter((one) => one.id !== id)
    }, SHOW_MS)
}

export function Toasts() {
    return (
        <div class="toasts" role="status" aria-live="polite">
            {toasts.value.map((one) => (
                <div key={one.id} class="toast">
                    <Icon name={one.tone === 'good' ? 'check' : 'warning'} />
                    {one.text}
                </div>
            ))}
        </div>
    )
}
