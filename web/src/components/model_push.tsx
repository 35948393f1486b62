/** The form that makes a model version of a file. */
import { useMemo, useState } from 'preact/hooks'
import { bytes } from '../format'
import { project } from '../state/project'
import { projectsThatMay } from '../state/rights'
import { labelsOf, newId, push, ruleOf, type Step } from '../state/push'
import { go, href } from '../state/route'
import { Progress } from './basics'
import { FormDialog, useSending } from './form'
import { toast } from './toast'

type Texts = Record<string, string>

/** What of the picture rule no file says; empty: as the file has it, or the server's default. */
const RULE: { name: string; label: string; options?: string[] }[] = [
    { name: 'width', label: 'Width' },
    { name: 'height', label: 'Height' },
    { name: 'fit', label: 'Fit', options: ['stretch', 'crop'] },
    { name: 'shorter', label: 'Shorter side, of a crop' },
    { name: 'order', label: 'Colours', options: ['RGB', 'BGR'] },
    { name: 'scale', label: 'Pixels are 0 to', options: ['1', '255'] },
    { name: 'mean', label: 'Mean' },
    { name: 'std', label: 'Deviation' },
    { name: 'layout', label: 'Layout', options: ['NCHW', 'NHWC'] },
    { name: 'output_kind', label: 'It gives', options: ['logits', 'probabilities', 'embedding', 'tensor'] },
]

function Text(props: { label: string; name: string; value: string; onChange: (value: string) => void; options?: string[] | undefined; isRequired?: boolean; hint?: string }) {
    const { name, value, options } = props
    return (
        <label class="field">
            <span>
                {props.label}
                {props.hint && <span class="muted"> {props.hint}</span>}
            </span>
            {options ? (
                <select class="input" name={name} value={value} onChange={(event) => props.onChange(event.currentTarget.value)}>
                    <option value="">as the file says</option>
                    {options.map((option) => (
                        <option key={option}>{option}</option>
                    ))}
                </select>
            ) : (
                <input class="input" name={name} type="text" autocomplete="off" required={props.isRequired} value={value} onInput={(event) => props.onChange(event.currentTarget.value)} />
            )}
        </label>
    )
}

function File(props: { label: string; name: string; accept?: string; isRequired?: boolean; onChange: (file: globalThis.File | undefined) => void }) {
    return (
        <label class="field">
            <span>{props.label}</span>
            <input class="input" name={props.name} type="file" accept={props.accept} required={props.isRequired} onChange={(event) => props.onChange(event.currentTarget.files?.[0])} />
        </label>
    )
}

/** "face-embed" of "Face embed.onnx" */
const nameOf = (file: string) => file.toLowerCase().replace(/\.[a-z]+$/, '').replace(/[^a-z0-9._-]+/g, '-').replace(/^[-.]+|[-.]+$/g, '')

function Doing({ step, size }: { step: Step; size: number }) {
    const isLook = step.doing === 'looks at the file'
    return (
        <div class="stack" role="status">
            <p>
                {isLook ? 'The server looks at the file, in a process of its own …' : `${step.doing === 'uploads' ? 'Sent' : 'Read'}: ${bytes(step.part * size)} of ${bytes(size)}`}
            </p>
            {!isLook && <Progress value={step.part} label={step.doing} />}
        </div>
    )
}

/** @param model Of which a version is made; "": a new one. */
export function PushForm({ model, onClose }: { model: string; onClose: () => void }) {
    const id = useMemo(newId, [])
    const [name, setName] = useState(model)
    const [alias, setAlias] = useState('')
    const open = projectsThatMay('register models')
    const [picked, setOwner] = useState('')
    const owner = picked || (open[0] ?? project.value ?? 'default')
    const [file, setFile] = useState<globalThis.File>()
    const [labels, setLabels] = useState<globalThis.File>()
    const [rule, setRule] = useState<Texts>({})
    const [step, setStep] = useState<Step>()
    const sending = useSending(async () => {
        try {
            const made = await push(
                id,
                { model: name.trim(), file: file!, labels: labels && labelsOf(await labels.text()), preprocess: ruleOf(rule), alias: alias.trim() || undefined, project: model ? undefined : owner },
                setStep,
            )
            toast(`${made.model} v${made.version} is registered`)
            onClose()
            go(href(['models', made.model, `v${made.version}`]))
        } finally {
            setStep(undefined)
        }
    })
    const choose = (one: globalThis.File | undefined) => {
        setFile(one)
        sending.clear()
        if (one && name === '') {
            setName(nameOf(one.name))
        }
    }
    return (
        <FormDialog
            title={model ? `A new version of ${model}` : 'Register a file'}
            wide
            sending={sending}
            isReady={file !== undefined}
            confirm={sending.isBusy ? 'Working…' : 'Register it'}
            onClose={onClose}
        >
            <p class="dialog-text">ONNX, or what Weir trained. The server loads it within limits of memory and time; only what runs becomes a version.</p>
            <div class="grid g2 form-grid">
                <File label="Model file" name="file" isRequired onChange={choose} />
                <File label="Labels (optional): one a line, or a JSON array" name="labels" accept=".txt,.json,text/plain,application/json" onChange={setLabels} />
                <Text label="Model" name="model" isRequired value={name} onChange={setName} />
                <Text label="Alias" hint="(optional)" name="alias" value={alias} onChange={setAlias} />
                {!model && (
                    <label class="field">
                        <span>Project</span>
                        <select class="input" name="project" value={owner} onChange={(event) => setOwner(event.currentTarget.value)}>
                            {(open.length > 0 ? open : [owner]).map((one) => (
                                <option key={one}>{one}</option>
                            ))}
                        </select>
                    </label>
                )}
            </div>
            <details class="form-more">
                <summary>How a picture becomes its input: what is empty is as the file says</summary>
                <div class="grid g4">
                    {RULE.map((one) => (
                        <Text key={one.name} {...one} value={rule[one.name] ?? ''} onChange={(value) => setRule({ ...rule, [one.name]: value })} />
                    ))}
                </div>
            </details>
            {step && <Doing step={step} size={file?.size ?? 0} />}
        </FormDialog>
    )
}
