/** Where one can go: groups at the left, in the order of the view; on a phone five places at the bottom. */
import { useState } from 'preact/hooks'
import { Count } from '../components/basics'
import { Dialog } from '../components/dialog'
import { Icon } from '../components/icon'
import { allScreens, current, partsOf } from '../registry'
import { GROUPS, type Screen } from '../screen'
import { session } from '../state/http'
import { href } from '../state/route'
import { view } from '../state/view'
import { helpIsOpen } from './help'

const ON_PHONE = ['home', 'ions', 'alerts', 'jobs']

function isCurrent(screen: Screen): boolean {
    const shown = current.value?.screen
    return shown?.id === screen.id || shown?.under === screen.id
}

function Entry({ screen }: { screen: Screen }) {
    const badge = screen.badge?.()
    return (
        <a href={href(partsOf(screen))} aria-current={isCurrent(screen) ? 'page' : undefined} title={screen.title}>
            <Icon name={screen.icon} />
            <span>{screen.title}</span>
            {badge && badge.count > 0 && <Count count={badge.count} tone={badge.tone} what={badge.what} />}
        </a>
    )
}

function Groups() {
    return (
        <>
            {GROUPS[view.value].map((group) => {
                const entries = allScreens().filter((screen) => screen.group?.[view.value] === group)
                return (
                    entries.length > 0 && (
                        <div key={group} class="nav-group">
                            {group && <p class="nav-head">{group}</p>}
                            <ul>
                                {entries.map((screen) => (
                                    <li key={screen.id}>
                                        <Entry screen={screen} />
                                    </li>
                                ))}
                            </ul>
                        </div>
                    )
                )
            })}
        </>
    )
}

export function Navigation() {
    return (
        <nav class="nav" aria-label="Main">
            <Groups />
            <p class="foot">
                <span>{session.value?.version ? `Weir ${session.value.version}` : 'Weir'}</span>
                <button
                    type="button"
                    class="link"
                    onClick={() => {
                        helpIsOpen.value = true
                    }}
                >
                    <kbd>?</kbd> keys
                </button>
            </p>
        </nav>
    )
}

/** For people on call: what they need under the thumb, all else behind More. */
export function PhoneBar() {
    const [isOpen, setOpen] = useState(false)
    const places = ON_PHONE.map((id) => allScreens().find((screen) => screen.id === id)).filter((screen): screen is Screen => screen !== undefined)
    return (
        <nav class="phone-nav" aria-label="Main, phone">
            {places.map((screen) => {
                const badge = screen.badge?.()
                return (
                    <a key={screen.id} href={href(partsOf(screen))} aria-current={isCurrent(screen) ? 'page' : undefined}>
                        <Icon name={screen.icon} />
                        {screen.title}
                        {badge && badge.count > 0 && badge.tone !== 'plain' && (
                            <span class={`pip ${badge.tone}`}>
                                {badge.count}
                                <span class="hidden"> {badge.what}</span>
                            </span>
                        )}
                    </a>
                )
            })}
            <button type="button" aria-haspopup="dialog" onClick={() => setOpen(true)}>
                <Icon name="more" />
                More
            </button>
            {isOpen && (
                <Dialog title="All screens" onClose={() => setOpen(false)}>
                    <nav class="nav-sheet" aria-label="All screens" onClick={(event) => (event.target as Element).closest('a') && setOpen(false)}>
                        <Groups />
                    </nav>
                </Dialog>
            )}
        </nav>
    )
}
