/** What can be done to runs, one or several: tag, run again, register, stop, delete to the bin, and back from it. */
import { useState } from 'preact/hooks'
import type { Run } from '../api'
import { counted } from '../format'
import { call, messageOf, segment, send } from '../state/http'
import { go, href } from '../state/route'
import { services } from '../state/services'
import { ask } from './dialog'
import { Form } from './form'
import { Act } from './locked'
import { RegisterBest } from './register_best'
import { is } from './state'
import { toast } from './toast'

const AT_A_TIME = 8

/** Some at a time; throws the first refusal after the others are done. */
async function each(runs: readonly Run[], act: (run: Run) => Promise<void>): Promise<void> {
    const left = [...runs]
    const refused: string[] = []
    const work = async () => {
        for (let run = left.pop(); run !== undefined; run = left.pop()) {
            try {
                await act(run)
            } catch (error) {
                refused.push(`${run.name}: ${messageOf(error)}`)
            }
        }
    }
    await Promise.all(Array.from({ length: AT_A_TIME }, work))
    if (refused.length > 0) {
        throw new Error(`${refused[0]}${refused.length > 1 ? ` And ${refused.length - 1} more were refused.` : ''}`)
    }
}

export const changeRun = (run: Run, change: object) => send('PATCH', `/runs/${segment(run.id)}`, change)

/** A service that shows them; it is opened from the list of notebooks once it runs. */
async function tensorboard(runs: readonly Run[]): Promise<void> {
    try {
        await call('POST', '/services', { name: `tensorboard-${runs[0]!.id.slice(-6).toLowerCase()}`, kind: 'tensorboard', project: runs[0]!.project, runs: runs.map((run) => run.id) })
        await services.load()
        go(href('notebooks', { kind: 'tensorboard' }))
    } catch (error) {
        toast(messageOf(error), 'bad')
    }
}

function TagForm({ runs, onClose, onDone }: { runs: readonly Run[]; onClose: () => void; onDone: () => void }) {
    return (
        <Form
            title={`Tag ${counted(runs.length, 'run')}`}
            confirm="Set the tag"
            fields={[
                { name: 'key', label: 'Tag' },
                { name: 'value', label: 'Value; without one the tag is taken away', isOptional: true },
            ]}
            act={async ({ key = '', value = '' }) => {
                await each(runs, (run) => changeRun(run, { tags: { [key]: value === '' ? null : value } }))
                toast(`${key} is ${value === '' ? 'gone' : 'set'} on ${counted(runs.length, 'run')}`)
                onDone()
            }}
            onClose={onClose}
        />
    )
}

export function RunActs({ runs, isDeleted, onDone }: { runs: readonly Run[]; isDeleted: boolean; onDone: () => void }) {
    const [isTagging, setTagging] = useState(false)
    const [isRegistering, setRegistering] = useState(false)
    const project = runs[0]?.project
    const running = runs.filter((run) => run.job && is(run.status, 'running'))
    const n = counted(runs.length, 'run')
    const restore = () =>
        void each(runs, (run) => changeRun(run, { lifecycle: 'active' })).then(
            () => toast(`${n} restored`),
            (error: unknown) => toast(messageOf(error), 'bad'),
        ).finally(onDone)
    return (
        <>
            {isDeleted ? (
                <Act right="change runs" project={project} isSmall onClick={restore}>
                    Restore
                </Act>
            ) : (
                <>
                    <Act right="change runs" project={project} isSmall onClick={() => setTagging(true)}>
                        Tag
                    </Act>
                    <Act right="submit jobs" project={project} isSmall title="Start TensorBoard on what was logged of them" onClick={() => void tensorboard(runs)}>
                        TensorBoard
                    </Act>
                    {runs.length === 1 && (
                        <>
                            <Act right="submit jobs" project={project} isSmall title="The form of a job, with its job, code and parameters" onClick={() => go(href(['jobs', 'new'], { from: runs[0]!.job ?? '', run: runs[0]!.id }))}>
                                Run again
                            </Act>
                            <Act right="register models" project={project} isSmall onClick={() => setRegistering(true)}>
                                Register
                            </Act>
                        </>
                    )}
                    {running.length > 0 && (
                        <Act
                            right="cancel jobs"
                            project={project}
                            isSmall
                            onClick={() =>
                                ask({
                                    title: `Stop ${counted(running.length, 'run')}?`,
                                    text: <p>Their jobs are cancelled: the tasks are asked to stop and write a last checkpoint; what was logged is kept.</p>,
                                    confirm: `Stop ${counted(running.length, 'run')}`,
                                    danger: true,
                                    done: `${counted(running.length, 'run')} will stop`,
                                    act: () => each(running, (run) => send('POST', `/jobs/${segment(run.job!)}/cancel`)),
                                })
                            }
                        >
                            Stop
                        </Act>
                    )}
                    <Act
                        right="change runs"
                        project={project}
                        isSmall
                        tone="danger"
                        onClick={() =>
                            ask({
                                title: `Delete ${n}?`,
                                text: <p>{runs.length === 1 ? `${runs[0]!.name} goes` : 'They go'} to the bin: nobody can log to a deleted run, and it can be restored from there.</p>,
                                confirm: `Delete ${n}`,
                                danger: true,
                                done: `${n} deleted`,
                                act: async () => {
                                    await each(runs, (run) => changeRun(run, { lifecycle: 'deleted' })).finally(onDone)
                                },
                            })
                        }
                    >
                        Delete
                    </Act>
                </>
            )}
            {isRegistering && <RegisterBest ids={[runs[0]!.id]} name={runs[0]!.experiment_name} onClose={() => setRegistering(false)} />}
            {isTagging && <TagForm runs={runs} onClose={() => setTagging(false)} onDone={onDone} />}
        </>
    )
}
