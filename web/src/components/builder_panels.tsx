/** Below the canvas: what is wrong and where, what changes against the running revision, and what Apply will do. */
import { clockTime, plural, words } from '../format'
import type { Checked } from '../state/draft'
import { around, diffLines } from '../state/line_diff'
import { lineOf, type Written } from '../state/yaml'
import { Count, Panel } from './basics'
import { Icon } from './icon'
import { Glyph, type Tone } from './state'

export interface Found {
    place: string
    text: string
    isError: boolean
    /** Node or link that it is about. */
    choice: string | undefined
}

export function Problems({ found, written, checked, onChoose }: { found: readonly Found[]; written: Written; checked: Checked; onChoose: (choice: string) => void }) {
    const errors = found.filter((one) => one.isError).length
    return (
        <Panel
            title="Problems"
            window={
                <>
                    {errors > 0 && <Count count={errors} tone="bad" what={plural(errors, 'error')} />} {found.length > errors && <Count count={found.length - errors} tone="warn" what={plural(found.length - errors, 'warning')} />}{' '}
                    {checked.isChecking ? 'the server checks it…' : checked.at > 0 ? `checked by the server ${clockTime(checked.at)}` : 'not checked yet'}
                </>
            }
        >
            {found.length === 0 ? (
                <p class="quiet">{checked.plan ? <><Icon name="check" /> The server would take it as it is.</> : 'What is drawn is checked after each pause.'}</p>
            ) : (
                <ul class="list" aria-live="polite">
                    {found.map((one) => {
                        const line = lineOf(written, one.place)
                        return (
                            <li key={one.place + one.text}>
                                <span class={`state tone-${one.isError ? 'bad' : 'warn'}`}>
                                    <Glyph tone={one.isError ? 'bad' : 'warn'} />
                                    <span class="hidden">{one.isError ? 'error' : 'warning'}</span>
                                </span>
                                <div class="grow">
                                    {one.place && <b class="mono">{one.place.replace(/^\$\.?/, '') || 'document'}: </b>}
                                    {one.text}
                                    {one.choice && (
                                        <>
                                            {' '}
                                            <button type="button" class="link" onClick={() => onChoose(one.choice!)}>
                                                Show {one.choice.replace('>', ' → ')}
                                            </button>
                                        </>
                                    )}
                                </div>
                                {line !== undefined && <span class="small muted nowrap">line {line}</span>}
                            </li>
                        )
                    })}
                </ul>
            )}
        </Panel>
    )
}

export function Changes({ before, after, revision }: { before: readonly string[]; after: readonly string[]; revision: number | undefined }) {
    const lines = diffLines(before, after)
    const [plus, minus] = [lines.filter((one) => one.mark === '+').length, lines.filter((one) => one.mark === '-').length]
    return (
        <Panel title={revision === undefined ? 'The whole document' : `Change to revision ${revision}`} window={plus + minus === 0 ? 'none' : `+${plus} −${minus} ${plural(plus + minus, 'line')}`}>
            {plus + minus === 0 ? (
                <p class="quiet">It is what runs.</p>
            ) : (
                <div class="diff" tabIndex={0} role="region" aria-label="Change by lines">
                    <table>
                        <tbody>
                            {around(lines).map((line, i) =>
                                line === null ? (
                                    <tr key={i} class="skip-line">
                                        <td colSpan={3}>…</td>
                                    </tr>
                                ) : (
                                    <tr key={i} class={line.mark === '+' ? 'is-new' : line.mark === '-' ? 'is-gone' : ''}>
                                        <td class="num muted">{line.mark === '-' ? line.before : line.after}</td>
                                        <td>{line.mark === ' ' ? '' : <b>{line.mark === '+' ? '+' : '−'}</b>}</td>
                                        <td>
                                            <pre>{line.text}</pre>
                                        </td>
                                    </tr>
                                ),
                            )}
                        </tbody>
                    </table>
                </div>
            )}
        </Panel>
    )
}

const TONES: Record<string, Tone> = { start: 'busy', stop: 'warn', deploy: 'busy', decide: 'plain', alert: 'bad' }

export function Effects({ checked, isSame, isBare = false }: { checked: Checked; isSame: boolean; isBare?: boolean }) {
    const effects = checked.plan?.effects ?? []
    const list =
        checked.plan === null ? (
            <p class="quiet">{checked.isChecking ? 'The server works it out…' : 'Known once the document has no error.'}</p>
        ) : isSame ? (
            <p class="quiet">Nothing: it is what runs.</p>
        ) : effects.length === 0 ? (
            <p class="quiet">Nothing starts or stops at once; the document is revision {checked.plan.revision}.</p>
        ) : (
            <ul class="list">
                {effects.map((one, i) => (
                    <li key={i}>
                        <span class={`state tone-${TONES[one.kind] ?? 'plain'}`}>
                            <Glyph tone={TONES[one.kind] ?? 'plain'} />
                            <span class="hidden">{words(one.kind)}</span>
                        </span>
                        <div class="grow">{one.text}</div>
                    </li>
                ))}
            </ul>
        )
    return isBare ? (
        list
    ) : (
        <Panel title="What Apply will do" window={checked.plan ? `dry run ${clockTime(checked.at)}` : undefined}>
            {list}
        </Panel>
    )
}
