/** Which columns a list of runs has: found by a word, in the order in which they were chosen (?cols=). */
import { useState } from 'preact/hooks'
import { setQuery } from '../state/route'
import { Dialog } from './dialog'
import { Icon } from './icon'

const SHOWN = 200

export function ColumnChoice({ all, chosen }: { all: readonly string[]; chosen: readonly string[] }) {
    const [isOpen, setOpen] = useState(false)
    const [word, setWord] = useState('')
    const found = [...chosen, ...all.filter((one) => !chosen.includes(one))].filter((one) => one.toLowerCase().includes(word.toLowerCase()))
    const choose = (one: string) => setQuery({ cols: (chosen.includes(one) ? chosen.filter((other) => other !== one) : [...chosen, one]).join() || '-' }, true)
    return (
        <>
            <button type="button" class="button" onClick={() => setOpen(true)}>
                <Icon name="table" /> Columns {chosen.length} of {all.length}
            </button>
            {isOpen && (
                <Dialog title="Columns" onClose={() => setOpen(false)}>
                    <div class="dialog-text stack">
                        <label class="input">
                            <Icon name="search" />
                            <input type="search" aria-label="Find a column" placeholder="Find a column" value={word} onInput={(event) => setWord(event.currentTarget.value)} />
                        </label>
                        <ul class="choices" aria-label="Columns">
                            {found.slice(0, SHOWN).map((one) => (
                                <li key={one}>
                                    <label>
                                        <input type="checkbox" name={one} checked={chosen.includes(one)} onChange={() => choose(one)} /> {one}
                                    </label>
                                </li>
                            ))}
                        </ul>
                        {found.length > SHOWN && <p class="small muted">{`${SHOWN} of ${found.length} are shown: find the others by a word.`}</p>}
                        <p>
                            <button type="button" class="button small" onClick={() => setQuery({ cols: '' })}>
                                As they were at first
                            </button>
                        </p>
                    </div>
                </Dialog>
            )}
        </>
    )
}
