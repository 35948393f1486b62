/** Tiles of one page, the worst first; all others as a line of names with their state. */
import type { RefObject } from 'preact'
import { State } from '../components/state'
import type { Camera } from '../api'
import { hrefWith, param } from '../state/route'
import type { Judge } from './judge'
import { Tile } from './tile'

const FAST_MS = 500
const SLOW_MS = 1000
const FAST_TILES = 9 // with more tiles each has its picture once a second

export function Wall({ host, found, of, size, isHidden }: { host: RefObject<HTMLDivElement | null>; found: readonly Camera[]; of: Judge; size: number; isHidden: boolean }) {
    const pages = Math.ceil(found.length / size)
    const page = Math.min(Math.max(1, Number(param('page')) || 1), pages)
    const shown = found.slice((page - 1) * size, page * size)
    return (
        <>
            <div class={`wall of-${size}`} ref={host}>
                {shown.map((one) => (
                    <Tile key={one.id} camera={one} of={of} periodMs={shown.length > FAST_TILES ? SLOW_MS : FAST_MS} isHidden={isHidden} />
                ))}
            </div>
            {pages > 1 && (
                <nav class="panel others" aria-label="Other cameras">
                    {found.map((one, i) => {
                        const its = Math.floor(i / size) + 1
                        return (
                            its !== page && (
                                <a key={one.id} href={hrefWith({ page: its === 1 ? undefined : String(its) })} title={of(one).evidence}>
                                    <State tone={of(one).tone} isKnown={of(one).isKnown}>
                                        {one.name} <span class="muted">{of(one).word}</span>
                                    </State>
                                </a>
                            )
                        )
                    })}
                </nav>
            )}
        </>
    )
}
