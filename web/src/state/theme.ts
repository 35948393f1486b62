/** Light, dark, or what the system says. The choice is kept in this browser. */
import { effect, signal } from '@preact/signals'
import { kept } from './view'

const media = window.matchMedia('(prefers-color-scheme: dark)')
const systemIsDark = signal(media.matches)
media.addEventListener('change', (event) => {
    systemIsDark.value = event.matches
})

export const theme = kept('weir.theme', ['system', 'light', 'dark'])

/** 'light' or 'dark', whatever decided it. Charts redraw on it. */
export const shade = signal<'light' | 'dark'>('light')

effect(() => {
    shade.value = theme.value === 'system' ? (systemIsDark.value ? 'dark' : 'light') : theme.value
    document.documentElement.dataset['theme'] = shade.value
})

export function nextTheme(): void {
    const wanted = shade.peek() === 'dark' ? 'light' : 'dark'
    theme.value = (wanted === 'dark') === systemIsDark.peek() ? 'system' : wanted
}
