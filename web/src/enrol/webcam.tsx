/** The camera of this computer: its picture with a guide, and one taken for each pose. */
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Icon } from '../components/icon'
import { State } from '../components/state'
import { shutter } from '../screens/ion_enrol'
import { href, route } from '../state/route'
import { jpegOf } from './look'

export const POSES = ['ahead', 'left', 'right', 'up'] as const
type Pose = (typeof POSES)[number]

const SAYINGS: Record<Pose, string> = { ahead: 'Look straight ahead', left: 'Turn a little to your left', right: 'Turn a little to your right', up: 'Look up a little' }

/** What stands in the way of a camera, and what to do. */
const REASONS: Record<string, string> = {
    NotAllowedError: 'The browser does not let this page use the camera. Press the camera or the lock beside the address, allow the camera for this page, and try again.',
    NotFoundError: 'This computer has no camera that the browser sees. Plug one in and try again.',
    NotReadableError: 'The camera is used by another program. Close that and try again.',
}

function reasonOf(error: unknown): string {
    const name = error instanceof DOMException ? error.name : ''
    return REASONS[name] ?? `The camera cannot be opened (${error instanceof Error ? error.message || name : String(error)}).`
}

function Denied({ reason, onAgain }: { reason: string; onAgain?: () => void }) {
    return (
        <div class="panel-body stack">
            <p class="failed" role="alert">
                <Icon name="camera" />
                <span>{reason}</span>
            </p>
            <p class="acts">
                {onAgain && (
                    <button type="button" class="button" onClick={onAgain}>
                        Try again
                    </button>
                )}
                <a class="button" href={href(route.value.parts, { from: 'photo' })}>
                    Choose photos instead
                </a>
            </p>
        </div>
    )
}

/** The poses, which of them is next, and which are there. */
function Poses({ next, has, onChoose }: { next: Pose; has: (pose: Pose) => boolean; onChoose: (pose: Pose) => void }) {
    return (
        <>
            {POSES.map((pose) => (
                <button key={pose} type="button" class="button small" aria-pressed={pose === next} onClick={() => onChoose(pose)}>
                    <State tone={has(pose) ? 'good' : pose === next ? 'busy' : 'plain'}>{pose}</State>
                </button>
            ))}
        </>
    )
}

/** @param taken Poses of which there is a picture that is not left out. */
export function Webcam({ taken, onPicture }: { taken: readonly string[]; onPicture: (file: Blob, from: string) => void }) {
    const video = useRef<HTMLVideoElement>(null)
    const [attempt, setAttempt] = useState(0)
    const [reason, setReason] = useState('')
    const [isOn, setOn] = useState(false)
    const [wanted, setWanted] = useState<Pose>()
    const isTaken = (pose: Pose) => taken.includes(`webcam, ${pose}`)
    const pose = wanted ?? POSES.find((one) => !isTaken(one)) ?? 'ahead'
    const hasCameras = navigator.mediaDevices !== undefined
    useEffect(() => {
        let stream: MediaStream | undefined
        let isOver = false
        const stop = () => stream?.getTracks().forEach((track) => track.stop())
        if (hasCameras) {
            setReason('')
            navigator.mediaDevices.getUserMedia({ video: { width: { ideal: 1280 }, facingMode: 'user' }, audio: false }).then(
                (found) => {
                    stream = found
                    if (isOver) {
                        stop()
                    } else if (video.current) {
                        found.getTracks().forEach((track) => (track.onended = () => setReason('The camera was unplugged, or taken back.')))
                        video.current.srcObject = found
                    }
                },
                (error: unknown) => isOver || setReason(reasonOf(error)),
            )
        }
        return () => {
            isOver = true
            setOn(false)
            stop()
        }
    }, [attempt])
    const take = () => {
        const from = video.current
        if (!from || !from.videoWidth) {
            return
        }
        const canvas = document.createElement('canvas')
        canvas.width = from.videoWidth
        canvas.height = from.videoHeight
        canvas.getContext('2d')!.drawImage(from, 0, 0)
        setWanted(undefined)
        jpegOf(canvas).then((blob) => onPicture(blob, `webcam, ${pose}`), (error: unknown) => setReason(reasonOf(error)))
    }
    useLayoutEffect(() => { // with the drawing: when the guide is there the key takes
        shutter.value = isOn ? take : null
        return () => {
            shutter.value = null
        }
    })
    if (!hasCameras) {
        return <Denied reason={`Browsers give a page the camera over https, or on this computer, only; this page came from ${location.origin}. Give the server a certificate, or take the photos otherwise.`} />
    }
    if (reason !== '') {
        return <Denied reason={reason} onAgain={() => setAttempt(attempt + 1)} />
    }
    return (
        <>
            <div class="webcam">
                <video ref={video} autoplay muted playsinline aria-label="The camera of this computer" onPlaying={() => setOn(true)} />
                <span class="guide" aria-hidden="true" />
                <p class="label top only-desk">Your camera · pictures are kept nowhere until you enrol</p>
                <p class="label" role="status">
                    {isOn ? SAYINGS[pose] : 'The camera is being opened. The browser may ask you first.'}
                </p>
            </div>
            <div class="panel-body row wrap">
                <Poses next={pose} has={isTaken} onChoose={setWanted} />
                <button type="button" class="button primary push" disabled={!isOn} onClick={take}>
                    <Icon name="camera" /> Take
                </button>
                <kbd class="only-desk">Space</kbd>
            </div>
        </>
    )
}
