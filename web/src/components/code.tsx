/** A document to read and to copy. */
import { useState } from 'preact/hooks'
import { Icon } from './icon'

export function Code({ text, label }: { text: string; label: string }) {
    const [isCopied, setCopied] = useState(false)
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
        <div class="code">
            <button type="button" class="button small" onClick={copy}>
                <Icon name={isCopied ? 'check' : 'copy'} /> {isCopied ? 'Copied' : 'Copy'}
            </button>
            <pre class="document" tabIndex={0} role="region" aria-label={label}>
                {text}
            </pre>
        </div>
    )
}
