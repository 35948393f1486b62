/** Makes the best of some runs a version of a model: says which run that is, and which file, before it happens. */
import { useMemo, useState } from 'preact/hooks'
import type { Run } from '../api'
import { bytes, short } from '../format'
import { goodEnd, interest } from '../state/curves'
import { get, segment } from '../state/http'
import { newId } from '../state/push'
import { bestRun, modelFileOf, registerRun } from '../state/register'
import { useResource } from '../state/resource'
import { go, href } from '../state/route'
import { models } from '../state/store'
import type { Wanted } from '../state/tracking'
import { Loaded } from './basics'
import { FormDialog, useSending } from './form'
import { toast } from './toast'

const ALL: Wanted = { experiment: undefined, project: undefined, filter: '', sort: '', columns: [], isDeleted: false }

interface Choice {
    metrics: readonly string[]
    metric: string
    setMetric: (metric: string) => void
    end: 1 | -1
    setEnd: (end: 1 | -1) => void
    of: number // so many are chosen; 0: all that match
}

function Best({ metrics, metric, setMetric, end, setEnd, of }: Choice) {
    return (
        <>
            <p class="dialog-text">{of > 0 ? `Of the ${of} chosen` : 'Of all that match'}: the one whose last measurement is best.</p>
            <label class="field">
                <span>Metric</span>
                <select
                    class="input"
                    name="metric"
                    autofocus
                    value={metric}
                    onChange={(event) => {
                        setMetric(event.currentTarget.value)
                        setEnd(goodEnd(event.currentTarget.value) || end)
                    }}
                >
                    {metrics.map((one) => (
                        <option key={one}>{one}</option>
                    ))}
                </select>
            </label>
            <label class="field">
                <span>Best is</span>
                <select class="input" name="direction" value={String(end)} onChange={(event) => setEnd(event.currentTarget.value === '1' ? 1 : -1)}>
                    <option value="1">the greatest</option>
                    <option value="-1">the least</option>
                </select>
            </label>
        </>
    )
}

/**
 * @param ids Among these; none: among all that fit what is wanted; a single one is it, whatever it measured.
 * @param metrics What may say which is best.
 */
export function RegisterBest({ wanted = ALL, ids, metrics = [], name, onClose }: { wanted?: Wanted; ids: readonly string[]; metrics?: readonly string[]; name: string; onClose: () => void }) {
    const id = useMemo(newId, [])
    const isOne = ids.length === 1
    const offered = useMemo(() => [...metrics].sort((a, b) => interest(b) - interest(a) || a.localeCompare(b)), [metrics])
    const [metric, setMetric] = useState(offered[0] ?? '')
    const [end, setEnd] = useState<1 | -1>(goodEnd(metric) || 1)
    const [model, setModel] = useState(name)
    const best = useResource(`${metric} ${end}`, async () => {
        const run = isOne ? await get<Run>(`/runs/${segment(ids[0]!)}`) : metric === '' ? undefined : await bestRun(wanted, ids, metric, end)
        return { run, file: run && (await modelFileOf(run.id)) }
    })
    const found = best.data.value
    const sending = useSending(async () => {
        const made = await registerRun(id, found!.run!, found!.file!, model.trim())
        toast(`${made.model} v${made.version} is registered`)
        onClose()
        go(href(['models', made.model!, `v${made.version}`]))
    })
    return (
        <FormDialog
            title={isOne ? 'Register the run’s model' : 'Register the best run'}
            sending={sending}
            isReady={!best.loading.value && found?.file !== undefined}
            confirm={sending.isBusy ? 'The server looks at the file…' : 'Register it'}
            onClose={onClose}
        >
            {!isOne && <Best {...{ metrics: offered, metric, setMetric, end, setEnd, of: ids.length }} />}
            <label class="field">
                <span>Model that gets a version</span>
                <input class="input" name="model" type="text" required autocomplete="off" list={`${id}-models`} value={model} onInput={(event) => setModel(event.currentTarget.value)} />
                <datalist id={`${id}-models`}>
                    {(models.data.value ?? []).map((one) => (
                        <option key={one.name} value={one.name} />
                    ))}
                </datalist>
            </label>
            <div class="dialog-text best-run" role="status">
                <Loaded resource={best} rows={1}>
                    {({ run, file }) =>
                        run === undefined ? (
                            <p>{metric === '' ? 'No run has measured anything: there is no best one.' : `No run among them has measured ${metric}: there is no best one.`}</p>
                        ) : (
                            <p>
                                <a href={href(['runs', run.id])}>{run.name}</a>
                                {!isOne && `, ${metric} ${short(run.metrics[metric])}`}:{' '}
                                {file ? (
                                    <>
                                        <code>{file.path}</code>, {bytes(file.bytes)}, becomes a version.
                                    </>
                                ) : (
                                    <b>it has no model artifact: no ONNX or safetensors file is among its artifacts, so there is nothing to register.</b>
                                )}
                                {run.registered && ` It is ${run.registered.model} v${run.registered.version} already.`}
                            </p>
                        )
                    }
                </Loaded>
            </div>
        </FormDialog>
    )
}
