/** The stage of a version: a word for people, which nothing that runs follows. */
import { useState } from 'preact/hooks'
import type { ModelVersion } from '../api'
import type { Opt } from '../types'
import { InPlace } from './in_place'
import { changeVersion } from './model_aliases'

const STAGES = ['None', 'Staging', 'Production', 'Archived']
const ACTIVE = ['Staging', 'Production']

export function Stage({ version, project }: { version: ModelVersion; project: Opt<string> }) {
    const here = version.stage ?? 'None'
    const [stage, setStage] = useState(here)
    const [isAlone, setAlone] = useState(false)
    const mayBeAlone = ACTIVE.includes(stage)
    return (
        <InPlace
            right="label models"
            project={project}
            verb="Edit"
            what={`the stage of v${version.version}`}
            shown={<span>{here}</span>}
            onOpen={() => {
                setStage(here)
                setAlone(false)
            }}
            act={() => changeVersion(version, { stage, ...(mayBeAlone && isAlone ? { archive_others: true } : {}) })}
        >
            <label class="field">
                <span>Stage of v{version.version}</span>
                <select name="stage" value={stage} onChange={(event) => setStage(event.currentTarget.value)}>
                    {STAGES.map((one) => (
                        <option key={one}>{one}</option>
                    ))}
                </select>
            </label>
            {mayBeAlone && (
                <label>
                    <input type="checkbox" name="archive_others" checked={isAlone} onChange={(event) => setAlone(event.currentTarget.checked)} /> The other versions in {stage} become Archived
                </label>
            )}
        </InPlace>
    )
}
