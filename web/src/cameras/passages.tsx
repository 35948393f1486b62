/** The people that came last, through all doors that are shown: as it comes, and held still on demand. */
import { useEffect, useMemo } from 'preact/hooks'
import { Panel } from '../components/basics'
import { Face } from '../components/face'
import { Icon } from '../components/icon'
import { VERDICTS, VerdictWord } from '../components/state'
import { ago, counted, millis, plural } from '../format'
import type { Camera, Decision } from '../api'
import { DecisionList, NO_FILTER } from '../state/decisions'
import { whoOf } from '../state/finding'
import { href, param, setQuery } from '../state/route'
import { now } from '../state/store'
import { addressOf } from './tile'

const SHOWN = 10
const KEEP = 100
const MINUTE_MS = 60_000

const isYoung = (one: Decision) => now.value - millis(one.time_ms) < MINUTE_MS

/** Decisions in the last minute: counted while the list goes back so far, else by the rate of the last seconds. */
function minuteOf(mine: readonly Decision[], list: DecisionList): number {
    const rows = list.rows.value ?? []
    const goesBack = list.oneIn.value === 1 && (rows.length < KEEP || !isYoung(rows.at(-1)!))
    return goesBack ? mine.filter(isYoung).length : 60 * list.perSecond.value
}

export function Passages({ all, isHidden, isHeld, onHold }: { all: readonly Camera[]; isHidden: boolean; isHeld: boolean; onHold: () => void }) {
    const verdict = param('verdict')
    const list = useMemo(() => new DecisionList({ ...NO_FILTER, verdict }, KEEP), [verdict])
    useEffect(() => list.start(), [list])
    useEffect(() => list.hold('pause', isHeld), [list, isHeld])
    const there = new Set(all.map((one) => `${one.ion}:${one.name}`))
    const mine = (list.rows.value ?? []).filter((one) => there.has(`${one.ion}:${one.camera}`))
    const perMinute = minuteOf(mine, list)
    const rate = [perMinute > 0 && `${counted(perMinute, 'decision')} a minute`, list.oneIn.value > 1 && `1 in ${list.oneIn.value} shown`].filter(Boolean).join(', ')
    const ion = new Set(all.map((one) => one.ion)).size === 1 ? all[0]!.ion : undefined
    return (
        <Panel
            title="Passages"
            window={['newest first', rate].filter(Boolean).join(' · ')}
            aside={
                <>
                    <select class="input" aria-label="Verdict" value={verdict} onChange={(event) => setQuery({ verdict: event.currentTarget.value })}>
                        <option value="">Every verdict</option>
                        {['grant', 'unknown', 'deny'].map((one) => (
                            <option key={one} value={one}>
                                {VERDICTS[one]!.label}
                            </option>
                        ))}
                    </select>
                    <button type="button" class="button small" aria-pressed={!isHeld} title="Space" onClick={onHold}>
                        <Icon name={isHeld ? 'play' : 'down'} size={14} /> {isHeld ? `Held${list.missed.value > 0 ? `, ${list.missed.value} new` : ''}` : 'Following'}
                    </button>
                    {ion && <a href={href(['ions', ion, 'decisions'])}>All decisions</a>}
                </>
            }
        >
            {list.rows.value !== undefined && mine.length === 0 ? (
                <p class="quiet">
                    {verdict ? `None of the last ${KEEP} decisions of ${plural(all.length, 'this camera', 'these cameras')} is ${VERDICTS[verdict]?.label.toLowerCase() ?? verdict}.` : 'Nobody has come yet: who comes through a door is shown here.'}
                </p>
            ) : (
                <ul class="film" aria-label="Last passages">
                    {mine.slice(0, SHOWN).map((one) => (
                        <li key={one.id}>
                            <a href={addressOf(one)} data-decision={one.id}>
                                {isHidden ? (
                                    <span class="face small">
                                        <Icon name="person" size={20} />
                                    </span>
                                ) : (
                                    <Face decision={one} size="small" />
                                )}
                                <span class="whom">
                                    {!isHidden && <b class="clip">{one.verdict === 'unknown' ? 'nobody' : whoOf(one)}</b>}
                                    <small class="muted clip">{one.camera}</small>
                                </span>
                                <span class="how small">
                                    <VerdictWord verdict={one.verdict} />
                                    <span class="muted">{ago(one.time_ms, now.value).replace(' ago', '')}</span>
                                </span>
                            </a>
                        </li>
                    ))}
                </ul>
            )}
        </Panel>
    )
}
