/** Numbers and times as text. Missing values become an en dash, never "null" or "NaN". */
import type { Time } from './api'
import type { Opt } from './types'

export const NONE = '–'

/** A time as the server gives it, or as the page's own clock does: milliseconds since 1970. */
export type Moment = Opt<Time | number>

export function millis(time: Moment): number {
    if (time === null || time === undefined || time === '') {
        return NaN
    }
    return typeof time === 'number' ? time : Date.parse(time)
}

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false })
const DAY = new Intl.DateTimeFormat(undefined, { weekday: 'short', day: 'numeric', month: 'short' })
const YEAR = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', year: 'numeric' })
const MINUTE = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hour12: false })
const FULL = new Intl.DateTimeFormat(undefined, {
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    fractionalSecondDigits: 3,
    hour12: false,
    timeZoneName: 'short',
})

export function clockTime(time: Moment): string {
    const ms = millis(time)
    return Number.isNaN(ms) ? NONE : CLOCK.format(ms)
}

/** The time of day, and the day unless it is today: "20:17:51", "Mon 23 Nov, 20:17:51". */
export function dayTime(time: Moment, nowMs = Date.now()): string {
    const ms = millis(time)
    if (Number.isNaN(ms)) {
        return NONE
    }
    const [then, today] = [new Date(ms), new Date(nowMs)]
    if (then.toDateString() === today.toDateString()) {
        return CLOCK.format(ms)
    }
    return `${(then.getFullYear() === today.getFullYear() ? DAY : YEAR).format(ms)}, ${CLOCK.format(ms)}`
}

/** As dayTime, to the minute: "20:17", "Mon 23 Nov 20:17". */
export function dayMinute(time: Moment, nowMs = Date.now()): string {
    const ms = millis(time)
    if (Number.isNaN(ms)) {
        return NONE
    }
    const [then, today] = [new Date(ms), new Date(nowMs)]
    if (then.toDateString() === today.toDateString()) {
        return MINUTE.format(ms)
    }
    return `${(then.getFullYear() === today.getFullYear() ? DAY : YEAR).format(ms).replace(/^(\w+),/, '$1')} ${MINUTE.format(ms)}`
}

/** All of it, with milliseconds and zone: what a shorter time says when one points at it. */
export function fullTime(time: Moment): string {
    const ms = millis(time)
    return Number.isNaN(ms) ? NONE : FULL.format(ms)
}

export function ago(time: Moment, nowMs: number): string {
    const ms = millis(time)
    if (Number.isNaN(ms)) {
        return NONE
    }
    const seconds = Math.round((nowMs - ms) / 1000)
    if (seconds < 2) {
        return 'now' // also when the server's clock runs a little ahead of this one
    }
    return duration(seconds * 1000) + ' ago'
}

export function duration(ms: number): string {
    if (!Number.isFinite(ms) || ms < 0) {
        return NONE
    }
    const seconds = Math.floor(ms / 1000)
    if (seconds < 60) {
        return `${seconds} s`
    }
    const minutes = Math.floor(seconds / 60)
    if (minutes < 60) {
        return `${minutes} min`
    }
    const hours = Math.floor(minutes / 60)
    if (hours < 48) {
        return minutes % 60 && hours < 10 ? `${hours} h ${minutes % 60} min` : `${hours} h`
    }
    return `${Math.floor(hours / 24)} d`
}

const SPANS: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Milliseconds of "90m", "12h", "2d" or seconds alone; NaN: none of these. */
export function spanOf(text: string): number {
    const found = /^(\d+(?:\.\d+)?)\s*([smhd]?)$/.exec(text.trim())
    return found ? Math.round(Number(found[1]) * SPANS[found[2] || 's']!) : NaN
}

/** As spanOf() reads it: in the greatest unit that is whole. */
export function spanText(ms: number): string {
    const unit = ['d', 'h', 'm'].find((one) => ms > 0 && ms % SPANS[one]! === 0) ?? 's'
    return `${ms / SPANS[unit]!}${unit}`
}

export function span(from: Moment, to: Moment, nowMs: number): string {
    const start = millis(from)
    const end = millis(to)
    return duration((Number.isNaN(end) ? nowMs : end) - start)
}

export function fixed(value: Opt<number>, digits = 3): string {
    return typeof value === 'number' && Number.isFinite(value) ? value.toFixed(digits) : NONE
}

/** The word for so many: plural(1, 'run') is "run", of others "runs". */
export function plural(n: number, one: string, many = one + 's'): string {
    return n === 1 ? one : many
}

/** "1 run", "2 runs", "1,000 runs"; with a verb: counted(n, 'run waits', 'runs wait'). */
export function counted(n: number, one: string, many = one + 's'): string {
    return `${short(n)} ${plural(n, one, many)}`
}

/** About three significant digits, thousands separated: 0.0123, 4.56, 1,234. */
export function short(value: Opt<number>): string {
    if (typeof value !== 'number' || !Number.isFinite(value)) {
        return NONE
    }
    const size = Math.abs(value)
    if (size >= 100 || Number.isInteger(value)) {
        return Math.round(value).toLocaleString('en')
    }
    if (size !== 0 && size < 0.001) {
        const rounded = Number(value.toPrecision(2))
        return size < 1e-6 ? rounded.toExponential() : String(rounded)
    }
    return value.toFixed(size >= 10 ? 1 : size >= 1 ? 2 : 4)
}

/** A p-value: what is next to nothing is a bound, since its digits say nothing. */
export function probability(value: Opt<number>): string {
    return typeof value === 'number' && value < 0.0001 ? '< 0.0001' : fixed(value, 4)
}

export function percent(value: Opt<number>, digits = 1): string {
    return typeof value === 'number' && Number.isFinite(value) ? (value * 100).toFixed(digits) + '%' : NONE
}

export function latency(us: Opt<number>): string {
    if (typeof us !== 'number' || !Number.isFinite(us)) {
        return NONE
    }
    if (us < 1000) {
        return `${Math.round(us)} µs`
    }
    return us < 100_000 ? `${(us / 1000).toFixed(1)} ms` : us < 1_000_000 ? `${Math.round(us / 1000)} ms` : `${(us / 1e6).toFixed(2)} s`
}

export function bytes(value: Opt<number>): string {
    if (typeof value !== 'number' || !Number.isFinite(value)) {
        return NONE
    }
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
    let size = value
    let unit = 0
    while (size >= 1024 && unit < units.length - 1) {
        size /= 1024
        unit++
    }
    return `${unit === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${units[unit]}`
}

/** The part of an id that people compare: UUIDv7 starts with the time, so the end tells them apart. */
export function shortId(id: Opt<string>): string {
    return id ? (id.length > 12 ? id.slice(-8) : id) : NONE
}

export function plainValue(value: unknown): string {
    if (value === null || value === undefined) {
        return NONE
    }
    if (typeof value === 'number') {
        return short(value)
    }
    return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** "learning rate" → "Learning rate" */
export function sentence(text: string): string {
    return text.charAt(0).toUpperCase() + text.slice(1)
}

/** A name within its ION: "door.training.5" of "door" is "training.5", whose end tells it apart. */
export function nameIn(ion: Opt<string>, name: string): string {
    return ion && name.startsWith(ion + '.') ? name.slice(ion.length + 1) : name
}

/** "images_per_second" → "images per second" */
export function words(key: string): string {
    return key.replace(/[_-]+/g, ' ')
}

/** Decisions per second: 412, 31.2, 0.004. */
export function rateText(perSecond: number): string {
    return perSecond >= 100 ? String(Math.round(perSecond)) : perSecond.toFixed(perSecond > 0 && perSecond < 0.1 ? 3 : 1)
}
