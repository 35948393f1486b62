/** The screens of the page, and which of them the address names. */
import { computed } from '@preact/signals'
import { match, type Args, type Screen } from './screen'
import { route } from './state/route'

let screens: readonly Screen[] = []

/** Once, before anything is drawn. */
export function register(all: readonly Screen[]): void {
    screens = all
}

export function allScreens(): readonly Screen[] {
    return screens
}

/** Undefined: the address names no screen. */
export const current = computed<{ screen: Screen; args: Args } | undefined>(() => {
    for (const screen of screens) {
        const args = match(screen.address, route.value.parts)
        if (args !== undefined) {
            return { screen, args }
        }
    }
    return undefined
})

/** The tabs of something, in the order of the registry. */
export function tabsOf(of: string): Screen[] {
    return screens.filter((screen) => screen.tab?.of === of)
}

/** The address of a screen with these values for its pattern's names, as parts for href(). */
export function partsOf(screen: Screen, args: Args = {}): string[] {
    return screen.address
        .split('/')
        .map((part) => (part.startsWith(':') ? args[part.replace(/[:?]/g, '')] : part))
        .filter((part): part is string => part !== undefined)
}

/** Whether a screen stands on its own: its address has no name that must be given. */
export function isTop(screen: Screen): boolean {
    return !/:\w+($|\/)/.test(screen.address)
}
