/**
 * From when to when: presets that follow the clock (from=-30m), or two times that stand still (from=…&to=…). In the
 * address, and shared by everything on the screen.
 */
import { useEffect, useRef } from 'preact/hooks'
import { dayTime } from '../format'
import { param, setQuery } from '../state/route'
import { now } from '../state/store'
import { Icon } from './icon'

const UNITS: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000 }
const UNIT_NAMES: Record<string, string> = { m: 'min', h: 'h', d: 'd' }
const PRESETS = ['-5m', '-30m', '-1h', '-6h', '-24h', '-7d']

/** Milliseconds since 1970, null for no bound: of "-5m", or of a local date and time. */
export function momentOf(text: string, nowMs: number): number | null {
    const back = /^-(\d+)([mhd])$/.exec(text)
    const ms = back ? nowMs - Number(back[1]) * UNITS[back[2]!]! : Date.parse(text)
    return Number.isNaN(ms) ? null : ms
}

/** "last 30 min", "10:34 – 10:42", or what stands for no bound. */
export function rangeText(from: string, to: string, fallback: string): string {
    const back = /^-(\d+)([mhd])$/.exec(from)
    if (back && to === '') {
        return `last ${back[1]} ${UNIT_NAMES[back[2]!]}`
    }
    if (from === '' && to === '') {
        return fallback
    }
    const clock = (text: string) => dayTime(momentOf(text, now.peek())).replace(/:\d\d$/, '')
    return `${from ? clock(from) : 'the first'} – ${to ? clock(to) : 'now'}`
}

/** For an <input type=datetime-local>: local time without a zone. */
export function localText(ms: number): string {
    const date = new Date(ms)
    return new Date(ms - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19)
}

/** @param fallback What no time means here, as a preset ("-30m") or in words. */
export function TimeRange({ fallback, presets = PRESETS }: { fallback: string; presets?: readonly string[] }) {
    const [from, to] = [param('from'), param('to')]
    const menu = useRef<HTMLDetailsElement>(null)
    const name = fallback.startsWith('-') ? rangeText(fallback, '', '') : fallback
    const set = (change: { from?: string; to?: string }) => setQuery({ from, to, ...change })
    const close = () => {
        menu.current!.open = false
    }
    useEffect(() => {
        const onClick = (event: Event) => {
            if (menu.current?.open && !menu.current.contains(event.target as Node)) {
                close()
            }
        }
        document.addEventListener('click', onClick)
        return () => document.removeEventListener('click', onClick)
    }, [])
    const choose = (value: string) => {
        set({ from: value === fallback ? '' : value, to: '' })
        close()
    }
    return (
        <details class="menu time-range" ref={menu}>
            <summary class="button" title="Time range: t">
                <Icon name="clock" />
                <span>
                    {to === '' && 'Live · '}
                    {rangeText(from, to, name)}
                </span>
                <Icon name="down" />
            </summary>
            <div class="menu-body">
                <div class="presets">
                    {(fallback.startsWith('-') ? presets : ['', ...presets]).map((value) => (
                        <button
                            key={value}
                            type="button"
                            class="button small"
                            aria-pressed={to === '' && (from || fallback) === (value || fallback)}
                            onClick={() => choose(value)}
                        >
                            {value === '' ? `Live, ${fallback}` : `Last ${rangeText(value, '', '').slice(5)}`}
                        </button>
                    ))}
                </div>
                {(['from', 'to'] as const).map((key) => {
                    const text = key === 'from' ? from : to
                    return (
                        <label key={key} class="field">
                            <span>{key === 'from' ? 'From' : 'To'}</span>
                            <input
                                type="datetime-local"
                                step={1}
                                name={key}
                                value={text.startsWith('-') ? '' : text}
                                onChange={(event) => set({ [key]: event.currentTarget.value })}
                            />
                        </label>
                    )
                })}
            </div>
        </details>
    )
}
