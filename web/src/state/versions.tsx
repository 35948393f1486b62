/** The changes a person can make to what an ION serves, as questions for the confirmation dialog. */
import type { Candidate, Ion } from '../api'
import type { Question } from '../components/dialog'
import { plainValue, words } from '../format'
import { segment, send } from './http'
import { candidatesVersion, ions, models } from './store'

/** How a version comes to serve by a person's word: one that served before, or any. */
export type Way = 'rollback' | 'set-model'

/** @param one.link FROM:TO; null: the server knows which. */
export async function chooseVersion(ion: string, verb: 'approve' | 'reject' | Way, one: { version: number; link: string | null; note: string }): Promise<void> {
    await send('POST', `/ions/${segment(ion)}/${verb}`, { version: one.version, link: one.link ?? undefined, note: one.note.trim() || undefined })
    candidatesVersion.value++
    void models.load()
    await ions.load()
}

function MetricsLine({ candidate }: { candidate: Candidate }) {
    const entries = Object.entries(candidate.metrics ?? {})
    if (entries.length === 0) {
        return null
    }
    return <p class="muted">{entries.map(([key, value]) => `${words(key)} ${plainValue(value)}`).join(' · ')}</p>
}

export function approveQuestion(ion: string, candidate: Candidate): Question {
    return {
        title: `Approve ${candidate.model} v${candidate.version}?`,
        text: (
            <>
                <p>
                    <b>{candidate.link_to}</b> in {ion} switches to version {candidate.version} without losing a frame.
                </p>
                <MetricsLine candidate={candidate} />
            </>
        ),
        confirm: 'Approve',
        note: 'Note',
        done: `Version ${candidate.version} approved`,
        act: (note) => chooseVersion(ion, 'approve', { version: candidate.version, link: candidate.link, note }),
    }
}

export function rejectQuestion(ion: string, candidate: Candidate): Question {
    return {
        title: `Reject ${candidate.model} v${candidate.version}?`,
        text: (
            <p>
                Version {candidate.version} will not go to <b>{candidate.link_to}</b>. What is served now stays.
            </p>
        ),
        confirm: 'Reject',
        danger: true,
        note: 'Why it is rejected',
        noteRequired: true,
        done: `Version ${candidate.version} rejected`,
        act: (note) => chooseVersion(ion, 'reject', { version: candidate.version, link: candidate.link, note }),
    }
}

export function rollbackQuestion(ion: string, candidate: Candidate, serving: number): Question {
    const { model, version } = candidate
    return {
        title: `Roll back to ${model} v${version}?`,
        text: (
            <p>
                {ion} serves version {serving} now and will serve version {version} instead.
            </p>
        ),
        confirm: 'Roll back',
        danger: true,
        note: 'Why',
        done: `Rolled back to version ${version}`,
        act: (note) => chooseVersion(ion, 'rollback', { version: candidate.version, link: candidate.link, note }),
    }
}

export function triggerQuestion(ion: string, pipeline: string, trains = true): Question {
    return {
        title: `Start ${pipeline} now?`,
        text: <p>A new {trains ? 'training run' : 'run'} of {ion} waits for free slots and starts as soon as it gets them.</p>,
        confirm: trains ? 'Start training' : 'Start it',
        done: `${pipeline} was asked to ${trains ? 'train' : 'run'}`,
        act: async () => {
            await send('POST', `/ions/${segment(ion)}/trigger`, { pipeline })
            await ions.load()
        },
    }
}

/** Pause all of an ION, or let what is paused go on. */
export function pauseQuestion(ion: Ion): Question {
    return {
        title: `Pause ${ion.name}?`,
        text: (
            <>
                <p>Its replicas stop, so that it decides nothing, and no training begins. A training that runs goes on to its end.</p>
                <p class="muted">Versions stay chosen, and what triggers a training is remembered, until it is resumed.</p>
            </>
        ),
        confirm: 'Pause',
        danger: true,
        done: `${ion.name} is paused`,
        act: () => pauseOrResume(ion, 'pause'),
    }
}

export function resumeQuestion(ion: Ion): Question {
    const by = [...new Set(ion.pipelines.map((one) => one.paused_by).filter(Boolean))].join(', ')
    return {
        title: `Let ${ion.name} go on?`,
        text: <p>It was paused by {by}. Its replicas start, and a training that was wanted meanwhile begins.</p>,
        confirm: 'Resume',
        done: `${ion.name} goes on`,
        act: () => pauseOrResume(ion, 'resume'),
    }
}

async function pauseOrResume(ion: Ion, verb: 'pause' | 'resume'): Promise<void> {
    await send('POST', `/ions/${segment(ion.name)}/${verb}`, {})
    await ions.load()
}

export function promoteQuestion(ion: Ion): Question {
    return {
        title: `Take ${ion.name} into production?`,
        text: (
            <>
                <p>
                    Revision {ion.revision}, as it was tried, goes on in production: its sinks are written, its alerts reach people, and its source's frames are taken.
                </p>
                <p class="muted">Its tables and versions stay. Its replicas start anew.</p>
            </>
        ),
        confirm: 'Take it into production',
        done: `${ion.name} is in production`,
        act: async () => {
            await send('POST', `/ions/${segment(ion.name)}/promote`, {})
            await ions.load()
        },
    }
}

export function memberQuestion(ion: string, person: string, list: 'allow' | 'deny'): Question {
    const isDeny = list === 'deny'
    return {
        title: isDeny ? `Bar ${person}?` : `Allow ${person}?`,
        text: (
            <p>
                From the next frame on, {ion} {isDeny ? 'denies' : 'grants'} {person} at every camera.
            </p>
        ),
        confirm: isDeny ? 'Bar' : 'Allow',
        danger: isDeny,
        done: isDeny ? `${person} is barred` : `${person} is allowed`,
        act: () => send('PUT', `/ions/${segment(ion)}/members/${segment(person)}`, { list }),
    }
}

/** The pipelines of all IONs that serve this model now: where, and which version. */
export function servings(all: Ion[], model: string): { ion: string; pipeline: string; version: number }[] {
    return all.flatMap((ion) =>
        ion.pipelines.flatMap((pipeline) => {
            const served = pipeline.deployment?.model
            return served && served.name === model ? [{ ion: ion.name, pipeline: pipeline.name, version: served.version }] : []
        }),
    )
}
