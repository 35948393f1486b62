/** What a version takes and gives, and what runs it. */
import type { ModelVersion } from '../api'
import { short } from '../format'
import { pictureText, portText, signatureOf } from '../state/signature'
import { Facts, Panel } from './basics'

const LABELS = 8

function Labels({ labels }: { labels: readonly string[] }) {
    return (
        <details>
            <summary>
                {short(labels.length)}: {labels.slice(0, LABELS).join(', ')}
                {labels.length > LABELS && ' …'}
            </summary>
            <ol class="labels" start={0}>
                {labels.map((label, i) => (
                    <li key={i}>{label}</li>
                ))}
            </ol>
        </details>
    )
}

const Ports = ({ ports }: { ports: readonly Parameters<typeof portText>[0][] }) => (
    <>
        {ports.map((port) => (
            <code key={port.name} class="tensor">
                {portText(port)}
            </code>
        ))}
    </>
)

export function SignaturePanel({ version }: { version: ModelVersion }) {
    const signature = signatureOf(version)
    return (
        <Panel title={`Signature of v${version.version}`} window="what it takes and gives, found in the file">
            <div class="panel-body">
                {signature === undefined ? (
                    <p class="muted">Nobody has looked at this file yet: it is looked at when it is deployed.</p>
                ) : (
                    <Facts
                        items={[
                            ['Runs on', <>{signature.executor} <span class="muted">{signature.why}</span></>],
                            ['Inputs', <Ports ports={signature.inputs} />],
                            ['Outputs', <Ports ports={signature.outputs} />],
                            ['Gives', `${signature.output_kind}${signature.is_batched ? ', in batches' : ', one request at a time'}`],
                            ['Pictures', signature.picture ? pictureText(signature.picture) : <span class="muted">it takes tensors only</span>],
                            signature.labels ? ['Labels', <Labels labels={signature.labels} />] : ['Labels', <span class="muted">none: answers are numbers</span>],
                        ]}
                    />
                )}
            </div>
        </Panel>
    )
}
