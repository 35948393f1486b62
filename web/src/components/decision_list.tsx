/** Decisions as rows that hold still for whoever points at them, with the line that says what is shown, and a pause. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Decision } from '../api'
import { short } from '../format'
import type { DecisionList } from '../state/decisions'
import { hrefWith } from '../state/route'
import { DecisionRow } from './decision_row'
import { Icon } from './icon'
import { VirtualList } from './virtual_list'

const PHONE = window.matchMedia('(max-width: 760px)')
const ROW_PX = 44
const PHONE_ROW_PX = 64
const TOUCH_HOLD_MS = 4_000 // after the last touch
const JUST_MOVED_MS = 600 // a finger aims at what was there that long ago

/** The pause button, and beside it what the list shows of what comes. */
export function LiveControls({ list }: { list: DecisionList }) {
    const isPaused = list.isHeldFor('pause')
    const toggle = () => list.hold('pause', !isPaused)
    const missed = list.missed.value
    const release = () => {
        if (document.activeElement instanceof HTMLElement) {
            document.activeElement.blur()
        }
        window.scrollTo(0, 0)
        for (const reason of ['pause', 'scrolled', 'focus', 'touch', 'drawer']) {
            list.hold(reason, false)
        }
    }
    const rate = list.perSecond.value > 0 ? `${short(list.perSecond.value)} new/s` : ''
    const sampled = list.oneIn.value > 1 ? `showing 1 in ${list.oneIn.value} while live` : ''
    return (
        <>
            <span class="live-state muted">
                {list.isHeld.value ? (missed > 0 ? '' : 'Held') : [rate, sampled].filter(Boolean).join(' · ')}
                {list.isHeld.value && missed > 0 && (
                    <button type="button" class="link" onClick={release}>
                        {short(missed)} new: show
                    </button>
                )}
            </span>
            <button type="button" class="button small" aria-pressed={isPaused} onClick={toggle} title="Pause: Space">
                <Icon name={isPaused ? 'play' : 'pause'} size={14} />
                {isPaused ? 'Resume' : 'Pause'}
            </button>
        </>
    )
}

/** Holds the list while the pointer is on it, a key's focus is in it, a finger was on it, or its top is out of sight. */
function useHolds(list: DecisionList) {
    const host = useRef<HTMLDivElement>(null)
    const touch = useRef(0)
    const movedAt = useRef(0)
    const isHasty = useRef(false)
    const rows = list.rows.value
    useEffect(() => {
        movedAt.current = performance.now()
    }, [rows])
    useEffect(() => {
        const onScroll = () => list.hold('scrolled', (host.current?.getBoundingClientRect().top ?? 0) < -ROW_PX)
        window.addEventListener('scroll', onScroll, { passive: true })
        return () => {
            window.removeEventListener('scroll', onScroll)
            window.clearTimeout(touch.current)
        }
    }, [list])
    const pointer = (isOver: boolean) => (event: PointerEvent) => {
        if (event.pointerType !== 'touch') {
            list.hold('pointer', isOver)
        }
    }
    const onPointerDown = (event: PointerEvent) => {
        isHasty.current = event.pointerType === 'touch' && performance.now() - movedAt.current < JUST_MOVED_MS
        if (event.pointerType === 'touch') {
            list.hold('touch', true)
            window.clearTimeout(touch.current)
            touch.current = window.setTimeout(() => list.hold('touch', false), TOUCH_HOLD_MS)
        }
    }
    // A tap on a list that has just moved hits another row than it was meant for: it only holds the list.
    const onClickCapture = (event: Event) => {
        if (isHasty.current) {
            isHasty.current = false
            event.preventDefault()
            event.stopPropagation()
        }
    }
    return {
        ref: host,
        onClickCapture,
        onPointerEnter: pointer(true),
        onPointerLeave: pointer(false),
        onPointerDown,
        onFocusIn: () => list.hold('focus', document.activeElement?.matches(':focus-visible') ?? false),
        onFocusOut: () => list.hold('focus', false),
    }
}

/** @param addressOf Where the details of one are; without: in a drawer of this screen. @param noteOf What a wide row says beside its camera; without: versions. */
export function DecisionRows(props: { list: DecisionList; chosen: string; addressOf?: (decision: Decision) => string; noteOf?: (decision: Decision) => string; note?: string }) {
    const { list, chosen } = props
    const [isPhone, setPhone] = useState(PHONE.matches)
    const holds = useHolds(list)
    const rows = list.rows.value ?? []
    useEffect(() => {
        const onChange = () => setPhone(PHONE.matches)
        PHONE.addEventListener('change', onChange)
        return () => PHONE.removeEventListener('change', onChange)
    }, [])
    return (
        <div class="decision-list" {...holds}>
            <div class="decision-head" aria-hidden="true">
                <span />
                <span>Verdict</span>
                <span>Who</span>
                <span>Score</span>
                <span class="place">Camera</span>
                <span class="versions">{props.note ?? 'Model, gallery'}</span>
                <span class="speed num">Latency</span>
                <span class="when num">Time</span>
            </div>
            <VirtualList
                items={rows}
                height={isPhone ? PHONE_ROW_PX : ROW_PX}
                label="Decisions"
                keyOf={(decision) => decision.id}
                render={(decision) => (
                    <DecisionRow decision={decision} address={props.addressOf?.(decision) ?? hrefWith({ id: decision.id })} note={props.noteOf?.(decision)} isChosen={decision.id === chosen} isNew={list.fresh.has(decision.id)} />
                )}
                onNearEnd={() => void list.loadOlder()}
            />
        </div>
    )
}
