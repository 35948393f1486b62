/** The keys, those of the screen first. */
import { signal } from '@preact/signals'
import { Dialog } from '../components/dialog'
import { allScreens, current, isTop } from '../registry'
import { shortcuts } from '../state/view'

export const helpIsOpen = signal(false)

const EVERYWHERE: [string, string][] = [
    ['Ctrl K', 'search, or run a command'],
    ['/', 'filter'],
    ['j k', 'next and previous row'],
    ['Enter', 'open'],
    ['Esc', 'close'],
    ['t', 'time range'],
    ['.', 'actions of what is shown'],
    ['[', 'fold the navigation'],
    ['?', 'these keys'],
    ['g p', 'switch project'],
]

const NAMES: Record<string, string> = { ' ': 'Space', ArrowLeft: '←', ArrowRight: '→' }

function Keys({ items }: { items: [string, string][] }) {
    return (
        <dl class="keys">
            {items.map(([key, name]) => (
                <div key={key}>
                    <dt>
                        {key.split(' ').map((one) => (
                            <kbd key={one}>{one}</kbd>
                        ))}
                    </dt>
                    <dd>{name}</dd>
                </div>
            ))}
        </dl>
    )
}

export function HelpDialog() {
    const found = current.value
    const own = (found?.screen.keys?.(found.args) ?? []).map(({ key, name }): [string, string] => [NAMES[key] ?? key, name])
    const letters = allScreens()
        .filter((screen) => screen.letter && isTop(screen))
        .map((screen): [string, string] => [`g ${screen.letter}`, screen.title])
    const isOn = shortcuts.value === 'on'
    return (
        <Dialog
            title="Keys"
            wide
            onClose={() => {
                helpIsOpen.value = false
            }}
        >
            {own.length > 0 && (
                <>
                    <h3>{found?.screen.tab?.name ?? found?.screen.title}</h3>
                    <Keys items={own} />
                </>
            )}
            <h3>Everywhere</h3>
            <Keys items={[...EVERYWHERE, ...letters]} />
            <label class="check-line">
                <input
                    type="checkbox"
                    checked={isOn}
                    onChange={(event) => {
                        shortcuts.value = event.currentTarget.checked ? 'on' : 'off'
                    }}
                />
                Single keys work (Ctrl K always does)
            </label>
        </Dialog>
    )
}
