/** The frame: skip link, top bar, navigation, connection banner, and the screen that the route names. */
import type { ComponentType } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Datasets } from '../screens/datasets'
import { Decisions } from '../screens/decisions'
import { Events } from '../screens/events'
import { Jobs } from '../screens/jobs'
import { Models } from '../screens/models'
import { Nodes } from '../screens/nodes'
import { Overview } from '../screens/overview'
import { Training } from '../screens/training'
import { pendingCandidates } from '../state/candidates'
import { session } from '../state/http'
import { href, route, SCREENS, type Screen } from '../state/route'
import { now, openAlerts, signOut, stream } from '../state/store'
import { connection } from '../state/stream'
import { nextTheme, shade } from '../state/theme'
import { Empty } from './basics'
import { Icon, Mark, type IconName } from './icon'
import { Toasts } from './toast'

const NAV: Record<Screen, { label: string; icon: IconName; screen: ComponentType }> = {
    overview: { label: 'Overview', icon: 'overview', screen: Overview },
    training: { label: 'Training', icon: 'training', screen: Training },
    models: { label: 'Models', icon: 'models', screen: Models },
    decisions: { label: 'Decisions', icon: 'decisions', screen: Decisions },
    jobs: { label: 'Jobs', icon: 'jobs', screen: Jobs },
    events: { label: 'Events', icon: 'events', screen: Events },
    nodes: { label: 'Nodes', icon: 'nodes', screen: Nodes },
    datasets: { label: 'Datasets', icon: 'data', screen: Datasets },
}

function badgeOf(screen: Screen): { count: number; what: string } {
    if (screen === 'events') {
        return { count: openAlerts.value.length, what: 'open alerts' }
    }
    return screen === 'models' ? { count: pendingCandidates.value.length, what: 'waiting for approval' } : { count: 0, what: '' }
}

function Navigation() {
    return (
        <nav class="nav" aria-label="Main">
            <ul>
                {SCREENS.map((screen) => {
                    const { label, icon } = NAV[screen]
                    const { count, what } = badgeOf(screen)
                    return (
                        <li key={screen}>
                            <a href={href(screen)} aria-current={route.value.screen === screen ? 'page' : undefined}>
                                <Icon name={icon} size={18} />
                                <span>{label}</span>
                                {count > 0 && (
                                    <span class="badge">
                                        {count}
                                        <span class="hidden"> {what}</span>
                                    </span>
                                )}
                            </a>
                        </li>
                    )
                })}
            </ul>
        </nav>
    )
}

function ConnectionState() {
    const state = connection.value.state
    const text = state === 'live' ? 'Live' : state === 'lost' ? 'Offline' : 'Connecting'
    return (
        <span class={`connection ${state}`} title={state === 'live' ? 'Changes appear as they happen' : 'What you see may be old'}>
            <span class="dot" aria-hidden="true" />
            <span>{text}</span>
        </span>
    )
}

function ConnectionBanner() {
    const current = connection.value
    if (current.state !== 'lost') {
        return null
    }
    const seconds = Math.max(0, Math.ceil((current.retryAt - now.value) / 1000))
    return (
        <div class="banner" role="alert">
            <Icon name="offline" />
            <p>
                <b>Connection lost.</b> What you see may be old; retrying{' '}
                <span aria-hidden="true">{seconds > 0 ? `in ${seconds} s` : 'now'}</span>
            </p>
            <button type="button" class="button small" onClick={() => stream.retryNow()}>
                Retry now
            </button>
        </div>
    )
}

function TopBar() {
    const isDark = shade.value === 'dark'
    return (
        <header class="topbar">
            <a class="brand" href="#/">
                <Mark />
                <span>Weir</span>
            </a>
            <ConnectionState />
            <button type="button" class="icon-button" onClick={nextTheme} aria-label={isDark ? 'Switch to light colours' : 'Switch to dark colours'}>
                <Icon name={isDark ? 'sun' : 'moon'} size={18} />
            </button>
            <details class="menu">
                <summary aria-label={`Account of ${session.value?.user ?? 'nobody'}`}>
                    <Icon name="person" size={18} />
                    <span class="user">{session.value?.user}</span>
                </summary>
                <div class="menu-body">
                    <p>
                        <b>{session.value?.user}</b>
                        <small class="muted">
                            {session.value?.role}
                            {session.value?.version ? ` · Weir ${session.value.version}` : ''}
                        </small>
                    </p>
                    <button type="button" class="button" onClick={() => void signOut()}>
                        Sign out
                    </button>
                </div>
            </details>
        </header>
    )
}

/** After a change of screen: title, scroll and focus start anew, as a page load would have done. */
function useScreenChange(screen: string, label: string): void {
    const first = useRef(true)
    useEffect(() => {
        document.title = `${label} · Weir`
        if (first.current) {
            first.current = false
            return
        }
        window.scrollTo(0, 0)
        document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true })
    }, [screen])
}

export function Shell() {
    const screen = route.value.screen as Screen
    const entry = NAV[screen]
    useScreenChange(screen, entry?.label ?? 'Not found')
    const Current = entry?.screen
    return (
        <>
            <button
                type="button"
                class="skip"
                onClick={() => {
                    document.getElementById('main')?.focus()
                }}
            >
                Skip to the content
            </button>
            <TopBar />
            <Navigation />
            <main id="main" tabIndex={-1}>
                <ConnectionBanner />
                {Current ? (
                    <Current />
                ) : (
                    <Empty icon="question" title="There is no such page">
                        Choose one from the navigation.
                    </Empty>
                )}
            </main>
            <Toasts />
        </>
    )
}
