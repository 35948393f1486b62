/** Ctrl K: objects, screens and actions by name; ">" actions only. What can be done with a click can be done here. */
import { signal } from '@preact/signals'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Icon, type IconName } from '../components/icon'
import { millis } from '../format'
import { allScreens, current, isTop, partsOf } from '../registry'
import { inProject, projects } from '../state/project'
import { ALL_PROJECTS, go, href, route } from '../state/route'
import { datasets, ions, jobs, models, nodes, runs, signOut } from '../state/store'
import { nextTheme } from '../state/theme'
import { view } from '../state/view'

const SHOWN = 20

/** What is typed in it; null: it is closed. */
const text = signal<string | null>(null)

export function openPalette(start: string): void {
    datasets.need()
    runs.need()
    text.value = start
}

interface Found {
    id: string
    icon: IconName
    name: string
    kind: string
    at: number // newest first, where nothing else decides
    run: () => void
}

function objects(): Found[] {
    const to = (icon: IconName, kind: string, name: string, address: string, at: number): Found => ({ id: kind + address, icon, name, kind, at, run: () => go(address) })
    return [
        ...(ions.data.value ?? []).filter(inProject).map((one) => to('ions', 'ION', one.name, href(['ions', one.name, 'graph']), millis(one.updated_ms ?? one.created_ms))),
        ...(models.data.value ?? []).filter(inProject).map((one) => to('models', 'model', one.name, href(['models', one.name]), millis(one.created_ms))),
        ...(datasets.data.value ?? []).filter(inProject).map((one) => to('data', 'dataset', one.name, href(['datasets', one.name]), millis(one.created_ms))),
        ...(runs.data.value ?? []).filter(inProject).map((one) => to('runs', 'run', one.name, href(['runs', one.id]), millis(one.created_ms))),
        ...(jobs.data.value ?? []).filter(inProject).map((one) => to('jobs', 'job', one.name, href('jobs', { job: one.id }), millis(one.created_ms))),
        ...(nodes.data.value ?? []).map((one) => to('nodes', 'node', one.name, href(['nodes', one.name]), 0)),
    ]
}

function screens(): Found[] {
    return allScreens()
        .filter((screen) => isTop(screen) && screen.group)
        .map((screen) => ({ id: screen.id, icon: screen.icon, name: screen.title, kind: 'screen', at: 0, run: () => go(href(partsOf(screen))) }))
}

function actions(): Found[] {
    const found = current.value
    const act = (name: string, run: () => void, kind = 'action'): Found => ({ id: kind + name, icon: 'bolt', name, kind, at: 0, run })
    const other = view.value === 'science' ? 'operations' : 'science'
    const there = route.value.parts.slice(0, 1)
    const here = [...(found?.screen.actions?.(found.args) ?? []), ...allScreens().flatMap((screen) => screen.always?.() ?? [])]
    return [
        ...[...new Map(here.map((one) => [one.name, one])).values()].map(({ name, run }) => act(name, run)),
        act(`Switch to the view ${other === 'science' ? 'Data science' : 'Operations'}`, () => {
            view.value = other
        }),
        act('Switch between light and dark colours', nextTheme),
        ...[ALL_PROJECTS, ...projects.value]
            .filter((name) => name !== route.value.project)
            .map((name) => act(name === ALL_PROJECTS ? 'Show all projects' : `Show project ${name}`, () => go(href(there, {}, name)))),
        act('Sign out', () => void signOut()),
    ]
}

/** Names that begin with what was typed, then words that do, then what contains it. */
function rank(name: string, needle: string): number {
    const place = name.toLowerCase().indexOf(needle)
    return place < 0 ? -1 : place === 0 ? 3 : /[\s./_-]/.test(name[place - 1]!) ? 2 : 1
}

function find(typed: string): Found[] {
    const isAction = typed.startsWith('>')
    const needle = typed.replace(/^>\s*/, '').trim().toLowerCase()
    if (needle === '') {
        const newest = objects().sort((a, b) => (b.at || 0) - (a.at || 0))
        return isAction ? actions() : [...screens(), ...newest].slice(0, SHOWN)
    }
    const all = isAction ? actions() : [...actions(), ...screens(), ...objects()]
    return all
        .map((one) => ({ one, rank: rank(one.name, needle) }))
        .filter(({ rank }) => rank >= 0)
        .sort((a, b) => b.rank - a.rank || (b.one.at || 0) - (a.one.at || 0))
        .slice(0, SHOWN)
        .map(({ one }) => one)
}

function PaletteDialog({ typed }: { typed: string }) {
    const dialog = useRef<HTMLDialogElement>(null)
    const [at, setAt] = useState(0)
    const found = useMemo(() => find(typed), [typed, runs.data.value, datasets.data.value])
    useLayoutEffect(() => {
        const opener = document.activeElement
        const element = dialog.current!
        element.showModal()
        element.onclose = () => {
            text.value = null
        }
        return () => {
            element.onclose = null
            element.close()
            if (opener instanceof HTMLElement && opener.isConnected && document.activeElement === document.body) {
                opener.focus()
            }
        }
    }, [])
    useEffect(() => {
        dialog.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' })
    }, [at])
    const choose = (one: Found | undefined) => {
        text.value = null
        one?.run()
    }
    const onKey = (event: KeyboardEvent) => {
        const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
        if (step !== 0) {
            event.preventDefault()
            setAt((at + step + found.length) % Math.max(1, found.length))
        } else if (event.key === 'Enter') {
            event.preventDefault()
            choose(found[at])
        }
    }
    return (
        <dialog class="palette" ref={dialog} aria-label="Search, or run a command" onClick={(event) => event.target === dialog.current && choose(undefined)}>
            <div class="dialog-body">
                <label class="palette-input">
                    <Icon name="search" />
                    <input
                        type="text"
                        role="combobox"
                        aria-label="Search, or run a command"
                        aria-expanded="true"
                        aria-controls="palette-list"
                        aria-activedescendant={found[at] ? `palette-${at}` : undefined}
                        autocomplete="off"
                        spellcheck={false}
                        autofocus
                        value={typed}
                        onInput={(event) => {
                            text.value = event.currentTarget.value
                            setAt(0)
                        }}
                        onKeyDown={onKey}
                    />
                    <kbd>Esc</kbd>
                </label>
                <ul id="palette-list" role="listbox" aria-label="What was found">
                    {found.map((one, i) => (
                        <li key={one.id} id={`palette-${i}`} role="option" aria-selected={i === at} onPointerMove={() => setAt(i)} onClick={() => choose(one)}>
                            <Icon name={one.icon} />
                            <span class="clip">{one.name}</span>
                            <small class="muted push">{one.kind}</small>
                        </li>
                    ))}
                </ul>
                {found.length === 0 && <p class="quiet">Nothing is called so. Older things than the page holds are found by their own screens.</p>}
                <p class="palette-foot small muted" aria-hidden="true">
                    <kbd>↑</kbd> <kbd>↓</kbd> move <kbd>Enter</kbd> open <kbd>&gt;</kbd> actions only
                </p>
            </div>
        </dialog>
    )
}

export function Palette() {
    useEffect(() => {
        const onKey = (event: KeyboardEvent) => {
            if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
                event.preventDefault()
                if (text.value === null && !document.querySelector('dialog[open]')) {
                    openPalette('')
                }
            }
        }
        document.addEventListener('keydown', onKey)
        return () => document.removeEventListener('keydown', onKey)
    }, [])
    return text.value === null ? null : <PaletteDialog typed={text.value} />
}
