/** A field for an option of a kind, after its type; what is wrong with it stands below it at once. */
import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import { plainValue, sentence, words } from '../format'
import type { Option } from '../state/job_form'

const FILES_MAX = 256
const FILES_MAX_BYTES = 1 << 20

export const labelOf = (option: Option): string => sentence(words(option.name.replace(/^.*\./, ''))).replace(/\bArgv\b/, 'Command').replace(/^(Cpu|Mig)/, (word) => word.toUpperCase())

/** Text files by name, as JSON. */
async function readFiles(files: FileList): Promise<string> {
    const found: Record<string, string> = {}
    let bytes = 0
    for (const file of [...files].slice(0, FILES_MAX)) {
        bytes += file.size
        if (bytes > FILES_MAX_BYTES) {
            throw new Error('more than 1 MiB of files: put data into a dataset')
        }
        found[file.name] = await file.text()
    }
    return JSON.stringify(found)
}

export function OptionField(props: { option: Option; text: string; error?: string | undefined; suggestions?: readonly string[]; hint?: ComponentChildren; onInput: (text: string) => void }) {
    const { option, text, error } = props
    const id = useId()
    const fallback = option.default === undefined || option.default === null || option.default === '' ? '' : plainValue(option.default)
    const common = {
        id,
        name: option.name,
        class: `input ${error ? 'is-wrong' : ''}`,
        'aria-invalid': error ? ('true' as const) : undefined,
        'aria-describedby': `${id}-doc`,
    }
    const onInput = (event: { currentTarget: { value: string } }) => props.onInput(event.currentTarget.value)
    const isLong = option.type === 'object' || option.name === 'python' || (option.type === 'array' && option.name !== 'argv')
    const list = props.suggestions && props.suggestions.length > 0 ? `${id}-list` : undefined
    return (
        <div class="field">
            <label for={id}>
                {labelOf(option)}
                {option.required && <span class="muted"> *</span>}
            </label>
            {option.type === 'boolean' || option.words ? (
                <select {...common} value={text} onChange={onInput}>
                    <option value="">{fallback ? `${fallback} (else)` : '–'}</option>
                    {(option.words ?? ['true', 'false']).map((word) => (
                        <option key={word}>{word}</option>
                    ))}
                </select>
            ) : isLong ? (
                <textarea {...common} rows={option.name === 'files' ? 3 : 2} spellcheck={false} placeholder={option.type === 'object' ? 'NAME=VALUE' : option.name === 'python' ? 'torch==2.5.1' : 'one a line'} value={text} onInput={onInput} />
            ) : (
                <input {...common} type="text" inputmode={option.type === 'integer' ? 'numeric' : undefined} autocomplete="off" spellcheck={false} placeholder={fallback} value={text} list={list} onInput={onInput} />
            )}
            {list && (
                <datalist id={list}>
                    {props.suggestions!.map((one) => (
                        <option key={one} value={one} />
                    ))}
                </datalist>
            )}
            {option.name === 'files' && (
                <input
                    type="file"
                    multiple
                    aria-label="Files to send"
                    onChange={(event) => {
                        void readFiles(event.currentTarget.files!).then(props.onInput, (failure: Error) => props.onInput(`# ${failure.message}`))
                    }}
                />
            )}
            {error ? (
                <span id={`${id}-doc`} class="small tone-bad-text" role="alert">
                    {error}
                </span>
            ) : (
                <span id={`${id}-doc`} class="small muted">
                    {props.hint ?? option.doc}
                </span>
            )}
        </div>
    )
}
