/** The pieces every screen is made of: heads, panels, empty and error states, commands to copy, times, facts. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Opt } from '../types'
import { ago, clockTime, dayMinute, fullTime, type Moment } from '../format'
import { ownerClass } from '../state/project'
import { session } from '../state/http'
import type { Resource } from '../state/resource'
import { rolesThatMay } from '../state/roles'
import { now } from '../state/store'
import { connection } from '../state/stream'
import { Icon, type IconName } from './icon'

const SKELETON_MS = 200 // what comes sooner needs no stand-in
const RETRY_S = 15

export function Ago({ time }: { time: Moment }) {
    const full = fullTime(time)
    return (
        <time dateTime={typeof time === 'string' ? time : undefined} title={full}>
            {ago(time, now.value)}
        </time>
    )
}

/** When, to the minute, in grey: of a row in a table. */
export function When({ time }: { time: Moment }) {
    return (
        <time class="muted" title={fullTime(time)}>
            {dayMinute(time)}
        </time>
    )
}

/** A project: its square and its name. */
export function Owner({ project }: { project: Opt<string> }) {
    return project ? (
        <span class={`own ${ownerClass(project)}`}>
            <i />
            {project}
        </span>
    ) : null
}

/** A model version: live in solid green, a candidate in dashed amber. */
export function Version({ number, is }: { number: number; is?: 'live' | 'candidate' | undefined }) {
    return <span class={`ver ${is === 'live' ? 'live' : is === 'candidate' ? 'cand' : ''}`}>v{number}</span>
}

export function Count({ count, tone = 'plain', what }: { count: ComponentChildren; tone?: 'bad' | 'warn' | 'plain'; what?: string }) {
    return (
        <span class={`count ${tone === 'plain' ? '' : tone}`}>
            {count}
            {what && <span class="hidden"> {what}</span>}
        </span>
    )
}

export function Panel(props: {
    title: string
    id?: string
    window?: ComponentChildren // the time it is of, the order, a count
    aside?: ComponentChildren
    foot?: ComponentChildren
    class?: string
    children: ComponentChildren
}) {
    const id = props.id ?? 'p-' + props.title.toLowerCase().replace(/\W+/g, '-')
    return (
        <section class={`panel ${props.class ?? ''}`} aria-labelledby={id}>
            <header class="panel-head">
                <h2 id={id}>{props.title}</h2>
                {props.window && <span class="window">{props.window}</span>}
                {props.aside && <span class="aside">{props.aside}</span>}
            </header>
            {props.children}
            {props.foot && <footer class="panel-foot">{props.foot}</footer>}
        </section>
    )
}

export function PageHead(props: {
    title: ComponentChildren
    crumbs?: [string, string][] // name and address of what it is in
    state?: ComponentChildren
    sub?: ComponentChildren
    children?: ComponentChildren
}) {
    return (
        <header class="page-head">
            <div>
                {props.crumbs && (
                    <nav class="crumbs" aria-label="Path">
                        {props.crumbs.map(([name, address], i) => (
                            <span key={address}>
                                {i > 0 && <span aria-hidden="true"> / </span>}
                                <a href={address}>{name}</a>
                            </span>
                        ))}
                    </nav>
                )}
                <div class="title">
                    <h1 tabIndex={-1}>{props.title}</h1>
                    {props.state}
                </div>
                {props.sub && <p class="sub">{props.sub}</p>}
            </div>
            {props.children && <div class="tools">{props.children}</div>}
        </header>
    )
}

/** Links side by side of which one is chosen; each has its own address. */
export function Choices(props: { label: string; items: { name: ComponentChildren; address: string; isCurrent: boolean }[] }) {
    return (
        <nav class="seg" aria-label={props.label}>
            {props.items.map((item) => (
                <a key={item.address} href={item.address} aria-current={item.isCurrent ? 'true' : undefined}>
                    {item.name}
                </a>
            ))}
        </nav>
    )
}

export function Tabs(props: { label: string; items: { name: string; address: string; isCurrent: boolean; badge?: ComponentChildren }[] }) {
    const host = useRef<HTMLElement>(null)
    const current = props.items.find((item) => item.isCurrent)?.name
    useEffect(() => {
        const tab = host.current?.querySelector<HTMLElement>('[aria-current]')
        if (tab) {
            host.current!.scrollLeft = tab.offsetLeft - (host.current!.clientWidth - tab.offsetWidth) / 2
        }
    }, [current])
    return (
        <nav class="tabs" aria-label={props.label} ref={host}>
            {props.items.map((item) => (
                <a key={item.name} href={item.address} aria-current={item.isCurrent ? 'page' : undefined}>
                    {item.name}
                    {item.badge}
                </a>
            ))}
        </nav>
    )
}

/** A command to type, with a button that copies it. */
export function Command({ text }: { text: string }) {
    const [copied, setCopied] = useState(false)
    const copy = async () => {
        try {
            await navigator.clipboard.writeText(text)
            setCopied(true)
            window.setTimeout(() => setCopied(false), 1_500)
        } catch {
            setCopied(false) // no clipboard over plain http: the text can be selected
        }
    }
    return (
        <span class="command">
            <code>{text}</code>
            <button type="button" class="icon-button" onClick={copy} aria-label={`Copy the command ${text}`}>
                <Icon name={copied ? 'check' : 'copy'} />
            </button>
            <span class="hidden" role="status">
                {copied ? 'Copied' : ''}
            </span>
        </span>
    )
}

/** What would stand here, when, and the command or act that really works. */
export function Empty(props: { icon: IconName; title: string; command?: string; children?: ComponentChildren; more?: ComponentChildren }) {
    return (
        <div class="empty">
            <Icon name={props.icon} size={24} />
            <h2>{props.title}</h2>
            {props.children && <p>{props.children}</p>}
            {props.command && <Command text={props.command} />}
            {props.more}
        </div>
    )
}

/** Bars in the shape of what comes, once it takes long enough to be noticed. */
export function Loading({ rows = 3 }: { rows?: number }) {
    const [isSlow, setSlow] = useState(false)
    useEffect(() => {
        const timer = window.setTimeout(() => setSlow(true), SKELETON_MS)
        return () => window.clearTimeout(timer)
    }, [])
    return (
        <div class={`loading ${isSlow ? '' : 'early'}`} role="status" aria-label="Loading">
            {Array.from({ length: rows }, (_, i) => (
                <span key={i} class="skeleton" style={{ width: `${92 - ((i * 23) % 40)}%` }} />
            ))}
        </div>
    )
}

/** The right that the caller lacks, as the server names it: "read groups". */
const rightIn = (message: string) => /needs the right to ([^;,]+?)(?: (?:in (?:some )?project|on the platform)[^;]*)?(?:;|$)/.exec(message)?.[1]

/** It is not the caller's to see: that is no outage, and asking again changes nothing. */
function Denied({ message }: { message: string }) {
    const right = rightIn(message)
    const roles = right ? rolesThatMay(right, false) : []
    return (
        <div class="empty denied">
            <Icon name="lock" size={24} />
            <h2>{right ? `You may not ${right}` : 'This is not yours to see'}</h2>
            <p title={message}>
                {roles.length > 0 ? `It takes the role ${roles.join(' or ')}: an admin can give it.` : 'An admin can give a role that may.'} You are {session.value?.user}, {session.value?.role}.
            </p>
        </div>
    )
}

/** The request itself is wrong: not that somebody else has to wait, or be waited for. */
const isFinal = (httpStatus: number) => httpStatus >= 400 && httpStatus < 500 && ![408, 409, 425, 429].includes(httpStatus)

/** What the server said, and a retry that comes by itself too. What was there before stays, with its time. */
export function Failed({ resource }: { resource: Resource<unknown> }) {
    const error = resource.error.value
    const isLost = connection.value.state === 'lost'
    const isOver = error === null || resource.isDenied || isFinal(error.httpStatus) // asking again changes nothing
    const left = Math.max(0, Math.ceil(RETRY_S - (now.value - resource.failedAt) / 1000))
    useEffect(() => {
        if (!isOver && !isLost && left === 0) {
            resource.loadSoon(0)
        }
    }, [left, isOver, isLost])
    if (error === null) {
        return null
    }
    if (resource.isDenied) {
        return <Denied message={error.message} />
    }
    if (isLost && error.isNetwork) {
        // The banner says so, and when it is tried again.
        return resource.data.value === undefined ? <p class="quiet">It was not fetched: the server does not answer.</p> : null
    }
    return (
        <div class="failed" role="alert">
            <Icon name="warning" />
            <p>
                {error.message} <span class="muted">({error.code})</span>
                {resource.data.value !== undefined && resource.loadedAt > 0 && <span class="muted"> Shown below: what it was at {clockTime(resource.loadedAt)}.</span>}
            </p>
            <button type="button" class="button small" onClick={() => void resource.load()} disabled={resource.loading.value}>
                Try again
            </button>
            {!isOver && (
                <small class="muted" aria-hidden="true">
                    by itself in {left} s
                </small>
            )}
        </div>
    )
}

/** Error, loading, or the content: the three states of anything that is fetched. Stale data stays visible. */
export function Loaded<T>(props: { resource: Resource<T>; rows?: number; children: (data: T) => ComponentChildren }) {
    const data = props.resource.data.value
    const error = props.resource.error.value
    return (
        <>
            {error !== null && <Failed resource={props.resource} />}
            {data !== undefined ? props.children(data) : error === null ? <Loading rows={props.rows ?? 3} /> : null}
        </>
    )
}

export function Facts({ items }: { items: ([string, ComponentChildren] | null)[] }) {
    return (
        <dl class="facts">
            {items.map(
                (item) =>
                    item && (
                        <div key={item[0]}>
                            <dt>{item[0]}</dt>
                            <dd>{item[1]}</dd>
                        </div>
                    ),
            )}
        </dl>
    )
}

/** Up to five key figures in one frame. */
export function Strip(props: { label: string; items: { name: ComponentChildren; value: ComponentChildren; note?: ComponentChildren }[] }) {
    return (
        <dl class="strip" aria-label={props.label}>
            {props.items.map((item, i) => (
                <div key={i}>
                    <dt>{item.name}</dt>
                    <dd class="big">
                        {item.value} <small>{item.note}</small>
                    </dd>
                </div>
            ))}
        </dl>
    )
}

export function Progress({ value, label }: { value: Opt<number>; label: string }) {
    const part = Math.min(1, Math.max(0, value ?? 0))
    return (
        <div
            class="bar thin"
            role="progressbar"
            aria-label={label}
            aria-valuemin={0}
            aria-valuemax={100}
            aria-valuenow={Math.round(part * 100)}
        >
            <i style={{ width: `${part * 100}%` }} />
        </div>
    )
}

/** So much of so much, as a bar with both figures. @param others  A part behind it that others have: hatched. */
export function Meter(props: { part: number; others?: number | undefined; label: string; children: ComponentChildren; tone?: 'warn' | 'bad' | undefined }) {
    return (
        <div class={`meter ${props.tone ? `tone-${props.tone}` : ''}`} role="img" aria-label={props.label}>
            <span class="bar">
                <i style={{ width: `${Math.min(1, Math.max(0, props.part)) * 100}%` }} />
                {props.others ? <i class="hatch" style={{ width: `${Math.min(1 - Math.min(1, props.part), props.others) * 100}%` }} /> : null}
            </span>
            <span class="nowrap">{props.children}</span>
        </div>
    )
}
