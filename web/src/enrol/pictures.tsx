/** The pictures that somebody is to be enrolled with, each with what the page can say of it. */
import { useEffect, useState } from 'preact/hooks'
import { decodePortable, isPortable } from '../components/portable'
import { Icon } from '../components/icon'
import { State } from '../components/state'
import { fixed } from '../format'
import { ownerOf, type Known, type Picture } from './enrolment'

const GRADES = { good: ['good', 'good'], usable: ['warn', 'usable'], out: ['bad', 'left out'] } as const

/** Its address, while it is shown. */
function usePreview(picture: Picture): string {
    const [url, setUrl] = useState('')
    useEffect(() => {
        let made = ''
        let isOver = false
        void picture.look.file.arrayBuffer().then((buffer) => {
            const bytes = new Uint8Array(buffer)
            if (!isOver) {
                made = URL.createObjectURL(isPortable(bytes) ? decodePortable(bytes) : picture.look.file)
                setUrl(made)
            }
        })
        return () => {
            isOver = true
            URL.revokeObjectURL(made)
        }
    }, [picture])
    return url
}

/** "640 × 480 · light 0.55 · sharp 31" */
function Figures({ look, seen }: Pick<Picture, 'look' | 'seen'>) {
    const its = look.measures
    return its ? (
        <>
            {its.width} × {its.height}
            {look.isTurned && ', turned upright'} · light {fixed(its.light, 2)} · sharp {Math.round(its.sharp)}
            {(seen?.faces ?? 0) > 1 && ` · ${seen!.faces} faces`}
            {seen?.quality && ` · face ${Math.round(seen.quality.width)} px wide`}
        </>
    ) : null
}

/** Why it is left out; '': it is not. */
export function whyOut(known: Known, picture: Picture): string {
    const owner = ownerOf(known, picture)
    const { look, seen } = picture
    return look.grade === 'out' ? look.why : owner !== undefined ? `the gallery has it already, of ${owner}` : seen?.usable === false ? (seen.why ?? (seen.faces === 0 ? 'no face is found in it' : 'it is not good enough')) : ''
}

function One({ known, picture, onRemove }: { known: Known; picture: Picture; onRemove: (() => void) | undefined }) {
    const url = usePreview(picture)
    const why = whyOut(known, picture)
    const [tone, word] = GRADES[why !== '' ? 'out' : picture.look.grade]
    return (
        <li>
            <span class="face picture">{url && picture.look.measures ? <img src={url} alt={picture.from} /> : <Icon name="camera" />}</span>
            <span class="row">
                <State tone={tone}>{word}</State>
                {onRemove && (
                    <button type="button" class="icon-button push" aria-label={`Remove ${picture.from}`} onClick={onRemove}>
                        <Icon name="cross" />
                    </button>
                )}
            </span>
            {(why || picture.look.why) && <small class="wrap">{why || picture.look.why}</small>}
            <small class="muted wrap">{picture.from}</small>
            <small class="muted wrap">
                <Figures look={picture.look} {...(picture.seen && { seen: picture.seen })} />
            </small>
        </li>
    )
}

export function Pictures({ known, pictures, onRemove }: { known: Known; pictures: readonly Picture[]; onRemove?: (sha256: string) => void }) {
    return (
        <ul class="taken" aria-label="Pictures">
            {pictures.map((one) => (
                <One key={one.sha256} known={known} picture={one} onRemove={onRemove && (() => onRemove(one.sha256))} />
            ))}
        </ul>
    )
}
