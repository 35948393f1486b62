/** The best of some runs, and its model file made a version of a model. */
import type { Artifact, List, ModelVersion, Run } from '../api'
import { call, get, getAll, segment } from './http'
import { paramsOf, type Wanted } from './tracking'
import { models } from './store'

const LOOK_MS = 180_000 // longer than the server lets one look take
const FOLDERS_MAX = 60

/** How good a file is as the one to serve, less is better, as the server ranks what MLflow's client registers; 0: it is none. */
function rankOf(path: string): number {
    const name = path.split('/').at(-1)!
    const found = [name === 'model.onnx', name.endsWith('.onnx'), name === 'model.safetensors', name.endsWith('.safetensors')].indexOf(true)
    return found < 0 ? 0 : 1 + found * 1000 + path.split('/').length
}

/** The file among a run's artifacts that Weir can serve; undefined: there is none. */
export async function modelFileOf(run: string): Promise<Artifact | undefined> {
    const folders = ['']
    const files: Artifact[] = []
    for (let i = 0; i < folders.length && i < FOLDERS_MAX; i++) {
        const items = await getAll<Artifact>(`/runs/${segment(run)}/artifacts`, { path: folders[i]!, limit: 1000 })
        folders.push(...items.flatMap((one) => (one.is_folder && one.path ? [one.path] : [])))
        files.push(...items.filter((one) => !one.is_folder && rankOf(one.path ?? '') > 0))
    }
    return files.sort((a, b) => rankOf(a.path ?? '') - rankOf(b.path ?? ''))[0]
}

/** The run with the best last measurement: the greatest (1) or the least (-1); undefined: none has measured it. */
export async function bestRun(wanted: Wanted, ids: readonly string[], metric: string, end: 1 | -1): Promise<Run | undefined> {
    const filter = ids.length > 0 ? `run_id in (${ids.map((id) => `"${id}"`).join(', ')})` : wanted.filter
    const column = `metrics.${metric}`
    const list = await get<List<Run>>('/runs', { ...paramsOf({ ...wanted, filter, sort: `${end > 0 ? '-' : ''}${column}`, columns: [column] }), limit: 1 })
    const first = list.items[0]
    return typeof first?.metrics[metric] === 'number' ? get<Run>(`/runs/${segment(first.id)}`) : undefined
}

/** @param id Made by whoever asks: the same again is the same version. */
export async function registerRun(id: string, run: Run, file: Artifact, model: string): Promise<ModelVersion> {
    const known = run.dataset ? { dataset: run.dataset, dataset_version: run.dataset_version } : {}
    const code = run.code_version ?? run.tags['mlflow.source.git.commit']
    const version = await call<ModelVersion>(
        'POST',
        `/models/${segment(model)}/versions`,
        { id, blob: file.blob, run: run.id, project: run.project, metrics: run.metrics, parameters: { ...run.parameters, ...run.params }, ...known, ...(code ? { code_version: code } : {}) },
        LOOK_MS,
    )
    await models.load()
    return version
}
