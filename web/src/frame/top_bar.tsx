/** The top bar: mark, project, search, view, connection, alerts, person. */
import { useEffect, useRef } from 'preact/hooks'
import { Owner } from '../components/basics'
import { Icon, Mark } from '../components/icon'
import { clockTime } from '../format'
import { session } from '../state/http'
import { project, projects, ownerClass } from '../state/project'
import { ALL_PROJECTS, href, route } from '../state/route'
import { openAlerts, signOut } from '../state/store'
import { connection } from '../state/stream'
import { nextTheme, shade } from '../state/theme'
import { view } from '../state/view'
import { openPalette } from './palette'

let switcher: HTMLDetailsElement | null = null

/** g p */
export function openSwitcher(): void {
    if (switcher) {
        switcher.open = true
        switcher.querySelector<HTMLElement>('a')?.focus()
    }
}

/** A menu goes when one chooses from it, clicks elsewhere or presses Escape. */
function useMenu(onRef?: (menu: HTMLDetailsElement | null) => void) {
    const menu = useRef<HTMLDetailsElement>(null)
    useEffect(() => {
        const element = menu.current!
        onRef?.(element)
        const onClick = (event: Event) => {
            const target = event.target as Element
            if (element.open && (!element.contains(target) || target.closest('a'))) {
                element.open = false
            }
        }
        const onKey = (event: KeyboardEvent) => {
            if (event.key === 'Escape' && element.open) {
                element.open = false
                element.querySelector('summary')!.focus()
                event.preventDefault()
            }
        }
        document.addEventListener('click', onClick)
        document.addEventListener('keydown', onKey, true)
        return () => {
            document.removeEventListener('click', onClick)
            document.removeEventListener('keydown', onKey, true)
            onRef?.(null)
        }
    }, [])
    return menu
}

/** The same screen in another project; what is chosen there belongs to this one, and stays behind. */
function ProjectSwitch() {
    const menu = useMenu((element) => {
        switcher = element
    })
    const chosen = project.value
    const there = route.value.parts.slice(0, 1)
    return (
        <details class="menu" ref={menu}>
            <summary class="switcher" title="Switch project: g p">
                {chosen && (
                    <span class={`own ${ownerClass(chosen)}`}>
                        <i />
                    </span>
                )}
                <span class="clip">{chosen ?? 'All projects'}</span>
                <Icon name="down" />
            </summary>
            <ul class="menu-body" aria-label="Projects">
                <li>
                    <a href={href(there, {}, ALL_PROJECTS)} aria-current={chosen === undefined ? 'true' : undefined}>
                        All projects
                    </a>
                </li>
                {projects.value.map((name) => (
                    <li key={name}>
                        <a href={href(there, {}, name)} aria-current={name === chosen ? 'true' : undefined}>
                            <Owner project={name} />
                        </a>
                    </li>
                ))}
            </ul>
        </details>
    )
}

function ViewSwitch() {
    return (
        <div class="seg view-switch" role="group" aria-label="View">
            {(['science', 'operations'] as const).map((name) => (
                <button
                    key={name}
                    type="button"
                    aria-pressed={view.value === name}
                    onClick={() => {
                        view.value = name
                    }}
                >
                    {name === 'science' ? 'Data science' : 'Operations'}
                </button>
            ))}
        </div>
    )
}

function Connection() {
    const current = connection.value
    const isLost = current.state === 'lost'
    const text = current.state === 'live' ? 'Live' : isLost ? 'Offline' : 'Connecting'
    return (
        <span class={`live connection ${isLost ? 'lost' : current.state}`} title={isLost ? 'What you see may be old' : 'Changes appear as they happen'}>
            <span class="dot" aria-hidden="true" />
            <span class="word">{text}</span>
            {isLost && <span class="word only-desk">· as of {clockTime(current.since)}</span>}
        </span>
    )
}

function initials(user: string): string {
    return (user.match(/[a-z0-9]+/gi) ?? []).map((part) => part[0]!.toUpperCase()).slice(0, 2).join('')
}

function Person() {
    const menu = useMenu()
    const isDark = shade.value === 'dark'
    const user = session.value?.user ?? ''
    return (
        <details class="menu person" ref={menu}>
            <summary class="icon-button" aria-label={`Account of ${user || 'nobody'}`}>
                <span class="avatar" aria-hidden="true">
                    {initials(user)}
                </span>
            </summary>
            <div class="menu-body">
                <p>
                    <b>{user}</b>
                    <small class="muted">
                        {session.value?.role} · times in {Intl.DateTimeFormat().resolvedOptions().timeZone}
                    </small>
                </p>
                <button type="button" class="button" onClick={nextTheme} aria-label={isDark ? 'Switch to light colours' : 'Switch to dark colours'}>
                    <Icon name={isDark ? 'sun' : 'moon'} />
                    {isDark ? 'Light colours' : 'Dark colours'}
                </button>
                <button type="button" class="button" onClick={() => void signOut()}>
                    Sign out
                </button>
            </div>
        </details>
    )
}

export function TopBar() {
    const firing = openAlerts.value.length
    return (
        <header class="topbar">
            <a class="brand" href={href('home')} aria-label="Weir, home">
                <Mark />
                <span>Weir</span>
            </a>
            <ProjectSwitch />
            <button type="button" class="search" onClick={() => openPalette('')} aria-haspopup="dialog">
                <Icon name="search" />
                <span>Search, or run a command</span>{' '}
                <kbd>Ctrl K</kbd>
            </button>
            <span class="push" />
            <ViewSwitch />
            <Connection />
            <a class="icon-button" href={href('alerts')} aria-label={firing === 1 ? '1 alert fires' : `${firing} alerts fire`} title="Alerts">
                <Icon name="alerts" />
                {firing > 0 && <span class="pip">{firing}</span>}
            </a>
            <Person />
        </header>
    )
}
