/** The pieces every screen is made of: panels, empty and error states, commands to copy, times, key-value lists. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { Opt, Time } from '../api'
import { ago, fullTime } from '../format'
import type { Resource } from '../state/resource'
import { now } from '../state/store'
import { Icon, type IconName } from './icon'

export function Ago({ time }: { time: Opt<Time> }) {
    const full = fullTime(time)
    return (
        <time dateTime={typeof time === 'string' ? time : undefined} title={full}>
            {ago(time, now.value)}
        </time>
    )
}

export function Panel(props: { title: string; id?: string; aside?: ComponentChildren; class?: string; children: ComponentChildren }) {
    const id = props.id ?? 'p-' + props.title.toLowerCase().replace(/\W+/g, '-')
    return (
        <section class={`panel ${props.class ?? ''}`} aria-labelledby={id}>
            <header class="panel-head">
                <h2 id={id}>{props.title}</h2>
                <div class="panel-aside">{props.aside}</div>
            </header>
            {props.children}
        </section>
    )
}

export function PageHead(props: { title: ComponentChildren; sub?: ComponentChildren; children?: ComponentChildren }) {
    return (
        <header class="page-head">
            <div>
                <h1 tabIndex={-1}>{props.title}</h1>
                {props.sub && <p class="sub">{props.sub}</p>}
            </div>
            <div class="actions">{props.children}</div>
        </header>
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

/** What to do when there is nothing to show: why, and the command to type. */
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

export function Loading({ rows = 3 }: { rows?: number }) {
    return (
        <div class="loading" role="status" aria-label="Loading">
            {Array.from({ length: rows }, (_, i) => (
                <span key={i} class="skeleton" style={{ width: `${92 - ((i * 23) % 40)}%` }} />
            ))}
        </div>
    )
}

export function Failed({ resource }: { resource: Resource<unknown> }) {
    const error = resource.error.value
    if (error === null) {
        return null
    }
    return (
        <div class="failed" role="alert">
            <Icon name="warning" />
            <p>
                {error.message} <span class="muted">({error.code})</span>
            </p>
            <button type="button" class="button small" onClick={() => void resource.load()} disabled={resource.loading.value}>
                Try again
            </button>
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

export function Facts({ items }: { items: [string, ComponentChildren][] }) {
    return (
        <dl class="facts">
            {items.map(([key, value]) => (
                <div key={key}>
                    <dt>{key}</dt>
                    <dd>{value}</dd>
                </div>
            ))}
        </dl>
    )
}

export function Progress({ value, label }: { value: Opt<number>; label: string }) {
    const part = Math.min(1, Math.max(0, value ?? 0))
    return (
        <div
            class="progress"
            role="progressbar"
            aria-label={label}
            aria-valuemin={0}
            aria-valuemax={100}
            aria-valuenow={Math.round(part * 100)}
        >
            <span style={{ width: `${part * 100}%` }} />
        </div>
    )
}
