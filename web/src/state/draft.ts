/** The document that somebody draws: its steps back, its places on the canvas, kept in this browser; and what the server says of it. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { AppliedIon } from '../api'
import { askDraft, messageOf } from './http'
import { appliedForm, type IonDoc } from './ion_doc'

export interface Places {
    [node: string]: { x: number; y: number }
}

export interface Drawing {
    doc: IonDoc
    places: Places
}

interface Kept extends Drawing {
    base: number // revision that it began from; 0: a new ION
    savedAt: number
}

const STEPS_MAX = 100
const keyOf = (name: string) => `weir.draft.${name}`

function load(name: string): Kept | null {
    try {
        return JSON.parse(localStorage.getItem(keyOf(name)) ?? 'null') as Kept | null
    } catch {
        return null // damaged, or no storage: the draft begins again
    }
}

const MASK = '***' // what the server shows for a secret, and keeps when it comes back
const LOST = '*** type it again ***' // stands for one that was typed, until it is typed again

const isSecret = (key: string) => key === 'token' || key === 'password'

/** A secret that was typed is not kept in the browser; that there is one is, for without it the document says something else. */
function withoutSecrets(key: string, value: unknown): unknown {
    return isSecret(key) && typeof value === 'string' && value !== '' && value !== MASK ? LOST : value
}

/** Places of secrets that a kept draft does not have any more: "$.pipelines[0].source.token". */
export function lostSecrets(value: unknown, place = '$'): string[] {
    if (Array.isArray(value)) {
        return value.flatMap((one, i) => lostSecrets(one, `${place}[${i}]`))
    }
    if (typeof value !== 'object' || value === null) {
        return []
    }
    return Object.entries(value).flatMap(([key, one]) => (isSecret(key) && one === LOST ? [`${place}.${key}`] : lostSecrets(one, `${place}.${key}`)))
}

function store(name: string, kept: Kept | null): void {
    try {
        if (kept === null) {
            localStorage.removeItem(keyOf(name))
        } else {
            localStorage.setItem(keyOf(name), JSON.stringify(kept, withoutSecrets))
        }
    } catch {
        // No storage: the draft lasts as long as the page.
    }
}

export interface Draft extends Drawing {
    base: number
    savedAt: number // 0: nothing was changed yet
    change: (next: Partial<Drawing>) => void
    undo: () => void
    redo: () => void
    canUndo: boolean
    canRedo: boolean
    /** Begin again from this document. */
    restart: (doc: IonDoc, base: number) => void
    /** Go on with what is drawn, on top of this revision. */
    rebase: (base: number) => void
}

export function useDraft(name: string, begin: () => IonDoc, base: number): Draft {
    const [kept, setKept] = useState<Kept>(() => load(name) ?? { doc: begin(), places: {}, base, savedAt: 0 })
    const past = useRef<Drawing[]>([])
    const future = useRef<Drawing[]>([])
    const put = (next: Kept) => {
        setKept(next)
        store(name, next.savedAt === 0 ? null : next)
    }
    const step = (from: Drawing[], to: Drawing[]) => {
        const next = from.pop()
        if (next !== undefined) {
            to.push({ doc: kept.doc, places: kept.places })
            put({ ...kept, ...next, savedAt: Date.now() })
        }
    }
    return {
        ...kept,
        change: (next) => {
            past.current = [...past.current, { doc: kept.doc, places: kept.places }].slice(-STEPS_MAX)
            future.current = []
            put({ ...kept, ...next, savedAt: Date.now() })
        },
        undo: () => step(past.current, future.current),
        redo: () => step(future.current, past.current),
        canUndo: past.current.length > 0,
        canRedo: future.current.length > 0,
        restart: (doc, from) => {
            past.current = []
            future.current = []
            put({ doc, places: kept.places, base: from, savedAt: 0 })
        },
        rebase: (from) => put({ ...kept, base: from }),
    }
}

export interface Checked {
    plan: AppliedIon | null // of a dry run
    problem: string // the server's sentence, with the place; "": none
    at: number
    isChecking: boolean
    check: () => void
}

const PAUSE_MS = 500

/** The server's word on the document, asked for after each pause in typing. */
export function usePlan(doc: IonDoc, isWanted: boolean): Checked {
    const text = JSON.stringify(appliedForm(doc))
    const [state, setState] = useState<Omit<Checked, 'check'>>({ plan: null, problem: '', at: 0, isChecking: isWanted })
    const latest = useRef(text)
    latest.current = text
    const check = async () => {
        setState((old) => ({ ...old, isChecking: true }))
        const asked = text
        let found: Omit<Checked, 'check'>
        try {
            found = { plan: await askDraft<AppliedIon>('/ions?dry_run=1', JSON.parse(asked)), problem: '', at: Date.now(), isChecking: false }
        } catch (error) {
            found = { plan: null, problem: messageOf(error), at: Date.now(), isChecking: false }
        }
        if (latest.current === asked) {
            setState(found)
        }
    }
    useEffect(() => {
        if (!isWanted) {
            return undefined
        }
        setState((old) => ({ ...old, isChecking: true }))
        const timer = window.setTimeout(() => void check(), PAUSE_MS)
        return () => window.clearTimeout(timer)
    }, [text, isWanted])
    return { ...state, check: () => void check() }
}
