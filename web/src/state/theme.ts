/** Light, dark, or what the system says. The choice is kept in this browser. */
import { effect, signal } from '@preact/signals'

export type Theme = 'system' | 'light' | 'dark'

const KEY = 'weir.theme'
const media = window.matchMedia('(prefers-color-scheme: dark)')
const systemIsDark = signal(media.matches)
media.addEventListener('change', (event) => {
    systemIsDark.value = event.matches
})

function stored(): Theme {
    try {
        const value = localStorage.getItem(KEY)
        return value === 'light' || value === 'dark' ? value : 'system'
    } catch {
        return 'system' // storage is refused in some private modes
    }
}

export const theme = signal<Theme>(stored())

/** 'light' or 'dark', whatever decided it. Charts redraw on it. */
export const shade = signal<'light' | 'dark'>('light')

effect(() => {
    shade.value = theme.value === 'system' ? (systemIsDark.value ? 'dark' : 'light') : theme.value
    document.documentElement.dataset['theme'] = shade.value
})

export function nextTheme(): void {
    const wanted = shade.peek() === 'dark' ? 'light' : 'dark'
    theme.value = (wanted === 'dark') === systemIsDark.peek() ? 'system' : wanted
    try {
        localStorage.setItem(KEY, theme.peek())
    } catch {
        // Then the choice lasts as long as the page.
    }
}
