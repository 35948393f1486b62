/** Asks the scheduler what a change would do, while somebody makes up the change: the last question counts. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { WhatIf } from '../api'
import { askDraft } from './http'

const PAUSE_MS = 250 // a hand that still moves is not asked about

export interface Asked {
    answer: WhatIf | undefined
    error: unknown
    isAsking: boolean
}

/** @param change Body of POST /what-if; null: there is none. */
export function useWhatIf(change: Record<string, unknown> | null): Asked {
    const [asked, setAsked] = useState<Asked>({ answer: undefined, error: null, isAsking: false })
    const text = change === null ? '' : JSON.stringify(change)
    const latest = useRef('')
    latest.current = text
    useEffect(() => {
        if (text === '') {
            setAsked({ answer: undefined, error: null, isAsking: false })
            return undefined
        }
        setAsked((old) => ({ ...old, isAsking: true }))
        const timer = window.setTimeout(async () => {
            let next: Asked
            try {
                next = { answer: await askDraft<WhatIf>('/what-if', JSON.parse(text)), error: null, isAsking: false }
            } catch (error) {
                next = { answer: undefined, error, isAsking: false }
            }
            if (latest.current === text) {
                setAsked(next)
            }
        }, PAUSE_MS)
        return () => window.clearTimeout(timer)
    }, [text])
    return asked
}
