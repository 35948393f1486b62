/** What a job is that runs again what a run ran: from the run's job, its code and its parameters, as far as they are known. Pure. */
import type { Job, Run } from '../api'

export type JobBefore = Pick<Job, 'name' | 'project' | 'kind' | 'max_restarts' | 'spec'>

const KIND = 'command'

/** Where its code is, as a job's specification has it; undefined: it says nothing of it. */
function codeOf(run: Run): Record<string, string> | undefined {
    const { tags } = run
    const [manifest, git, commit] = [tags['weir.code.manifest'], tags['mlflow.source.git.repoURL'], tags['mlflow.source.git.commit'] ?? run.code_version]
    return manifest ? { manifest } : git && commit ? { git, commit } : undefined
}

/** Of a program that ran elsewhere: the file that its client names. */
function commandOf(run: Run): string[] | undefined {
    const source = run.tags['mlflow.source.name']
    return source ? [...(source.endsWith('.py') ? ['python3'] : []), source] : undefined
}

/** @param job Undefined: Weir did not start it, or the job was removed. */
export function jobAgain(run: Run, job: Job | undefined): JobBefore {
    const known = (job?.spec ?? run.parameters ?? {}) as Record<string, unknown>
    const code = known['code'] ? undefined : codeOf(run)
    const argv = job || run.parameters ? undefined : commandOf(run)
    return {
        name: (job?.name ?? run.name).toLowerCase().replace(/[^a-z0-9._-]+/g, '-').replace(/^[-._]+/, ''),
        project: run.project,
        kind: job?.kind ?? (run.kind === 'external' ? KIND : run.kind),
        max_restarts: job?.max_restarts ?? 0,
        spec: { ...known, ...(code ? { code } : {}), ...(argv ? { argv } : {}) },
    }
}
