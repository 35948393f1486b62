/** The frame of every screen: skip link, top bar, navigation, banners, the screen that the address names, what floats. */
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { Empty } from '../components/basics'
import { Confirm, opened, question } from '../components/dialog'
import { Toasts } from '../components/toast'
import { allScreens, current, isTop, partsOf } from '../registry'
import type { Screen } from '../screen'
import { ALL_PROJECTS, go, href, route } from '../state/route'
import { onKeys } from '../state/keys'
import { cameras } from '../state/cameras'
import { candidates } from '../state/candidates'
import { projectList } from '../state/project'
import { alerts, ions, jobs, models, nodes, platform } from '../state/store'
import { folded, view } from '../state/view'
import { Banners } from './banners'
import { HelpDialog, helpIsOpen } from './help'
import { Navigation, PhoneBar } from './navigation'
import { openPalette, Palette } from './palette'
import { openSwitcher, TopBar } from './top_bar'

/** What the frame itself shows: counts, verdict, names for the palette. After what the screen needs. */
const OWN = [alerts, ions, platform, projectList, jobs, models, nodes, candidates, cameras]

/** After a change of screen: title, scroll and focus start again, as a page load would have done. */
function useScreenChange(key: string, title: string): void {
    const first = useRef(true)
    useEffect(() => {
        if (first.current) {
            first.current = false
            return
        }
        window.scrollTo(0, 0)
        document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true })
    }, [key])
    useEffect(() => {
        document.title = `${title} · Weir`
    }, [title])
}

function useLoad(screen: Screen | undefined): void {
    useEffect(() => {
        for (const resource of screen?.load ?? []) {
            resource.need()
        }
        const later = window.setTimeout(() => OWN.forEach((resource) => resource.need()), 0)
        return () => window.clearTimeout(later)
    }, [screen])
}

/** The keys that work everywhere; a screen's own go before. */
function useKeys(): void {
    useEffect(() => {
        let isGoing = false // after "g"
        const everywhere: Record<string, () => void> = {
            '?': () => {
                helpIsOpen.value = true
            },
            '/': () => document.querySelector<HTMLInputElement>('main input[type=search]')?.focus(),
            '.': () => openPalette('>'),
            t: () => document.querySelector<HTMLElement>('main .time-range summary')?.click(),
            '[': () => {
                folded.value = folded.value === 'open' ? 'folded' : 'open'
            },
        }
        return onKeys((key) => {
            const wasGoing = isGoing
            isGoing = key === 'g' && !wasGoing
            if (wasGoing && key === 'p') {
                openSwitcher()
                return true
            }
            const there = wasGoing ? allScreens().find((screen) => screen.letter === key && isTop(screen)) : undefined
            if (there) {
                go(href(partsOf(there)))
                return true
            }
            const found = current.value
            const own = found?.screen.keys?.(found.args).find((one) => one.key === key)
            const run = own?.run ?? everywhere[key]
            run?.()
            return isGoing || run !== undefined
        })
    }, [])
}

/** What is shown is being fetched again: seen only where that takes long. */
function WorkBar() {
    const isWorking = current.value?.screen.load.some((resource) => resource.loading.value)
    return isWorking ? <div class="work-bar" aria-hidden="true" /> : null
}

export function Frame() {
    const found = current.value
    const { project, parts } = route.value
    const title = parts.length > 1 && found ? `${found.screen.tab?.name ?? parts[1]} · ${found.args['ion'] ?? found.screen.title}` : (found?.screen.title ?? 'Not found')
    useScreenChange(`${project}/${found?.screen.id ?? ''}/${found?.args['ion'] ?? ''}`, title)
    useLoad(found?.screen)
    useKeys()
    useLayoutEffect(() => { // with the drawing: later it would take away where somebody has gone meanwhile
        if (parts.length === 0) {
            go(href('home', {}, ALL_PROJECTS), true)
        }
    }, [parts.length])
    const Render = found?.screen.render
    return (
        <div class={`app ${folded.value === 'folded' ? 'is-folded' : ''}`} data-view={view.value} data-screen={found?.screen.id ?? ''}>
            <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
                Skip to the content
            </button>
            <TopBar />
            <WorkBar />
            <Navigation />
            <main id="main" tabIndex={-1}>
                <Banners />
                {found && Render ? (
                    <Render key={found.screen.id} args={found.args} />
                ) : (
                    parts.length > 0 && (
                        <>
                            <h1 tabIndex={-1} class="hidden">
                                Not found
                            </h1>
                            <Empty icon="question" title="There is no such page" more={<a href={href('home')}>Home</a>}>
                                Choose one from the navigation, or look for it by name with Ctrl K.
                            </Empty>
                        </>
                    )
                )}
            </main>
            <PhoneBar />
            <Palette />
            {helpIsOpen.value && <HelpDialog />}
            {question.value && (
                <Confirm
                    question={question.value}
                    onClose={() => {
                        question.value = null
                    }}
                />
            )}
            {opened.value?.(() => {
                opened.value = null
            })}
            <Toasts />
        </div>
    )
}
