/**
 * What a browser can say of a picture by itself: can it be read, how large, how light and how sharp is it. Whether there
 * is a face in it, and whose, it cannot say.
 */
import { decodePortable, isPortable } from '../components/portable'

export type Grade = 'good' | 'usable' | 'out'

export interface Measures {
    width: number // upright
    height: number
    light: number // mean of the luma, 0 to 1
    sharp: number // variance of the Laplacian, of the luma from 0 to 255 with the longer side at most SIDE
}

export interface Look {
    grade: Grade
    why: string // '': nothing is to be said
    measures?: Measures // without: it cannot be read
    isTurned: boolean // EXIF says that the camera was held otherwise; readers of the dataset turn it as well
    file: Blob // what is to be sent: JPEG, PNG or a portable map
}

const SIDE = 256
const PIXELS_MAX = 64 << 20 // the server's
// Of 300 sharp faces of 92 x 112 pixels all have a sharpness over 250; blurred with a deviation of 1.5 pixels most have less than 20, of 3 pixels less than 5.
const LIMITS = { side: { out: 48, usable: 96 }, dark: { out: 0.1, usable: 0.22 }, bright: { out: 0.95, usable: 0.82 }, sharp: { out: 5, usable: 20 } }

/** A pure rule over what was measured. */
export function judge({ width, height, light, sharp }: Measures): { grade: Grade; why: string } {
    const side = Math.min(width, height)
    const found: [boolean, boolean, string][] = [
        [side < LIMITS.side.out, side < LIMITS.side.usable, 'small'],
        [light < LIMITS.dark.out, light < LIMITS.dark.usable, 'dark'],
        [light > LIMITS.bright.out, light > LIMITS.bright.usable, 'bright'],
        [sharp < LIMITS.sharp.out, sharp < LIMITS.sharp.usable, 'blurred, or of one colour'],
    ]
    const outs = found.filter(([isOut]) => isOut).map(([, , word]) => `too ${word}`)
    const usables = found.filter(([, isUsable]) => isUsable).map(([, , word]) => `rather ${word}`)
    return outs.length > 0 ? { grade: 'out', why: outs.join(', ') } : { grade: usables.length > 0 ? 'usable' : 'good', why: usables.join(', ') }
}

/** Mean of the luma, and how much its Laplacian varies. @param rgba Rows of pixels. */
export function measure(rgba: Uint8ClampedArray, width: number, height: number): { light: number; sharp: number } {
    const luma = new Float32Array(width * height)
    let sum = 0
    for (let i = 0; i < luma.length; i++) {
        luma[i] = 0.299 * rgba[4 * i]! + 0.587 * rgba[4 * i + 1]! + 0.114 * rgba[4 * i + 2]!
        sum += luma[i]!
    }
    let n = 0
    let mean = 0
    let squares = 0
    for (let y = 1; y < height - 1; y++) {
        for (let x = 1; x < width - 1; x++) {
            const i = y * width + x
            const value = luma[i - 1]! + luma[i + 1]! + luma[i - width]! + luma[i + width]! - 4 * luma[i]!
            n++
            const far = value - mean
            mean += far / n
            squares += far * (value - mean)
        }
    }
    return { light: sum / luma.length / 255, sharp: n > 0 ? squares / n : 0 }
}

/** Whether the EXIF of a JPEG says anything but "upright" (CIPA DC-008, tag 274). */
export function isTurned(bytes: Uint8Array): boolean {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    for (let at = 2; at + 18 < bytes.length && bytes[at] === 0xff; at += 2 + view.getUint16(at + 2)) {
        if (bytes[at + 1] !== 0xe1 || view.getUint32(at + 4) !== 0x45786966) {
            continue
        }
        const tiff = at + 10
        const isLittle = bytes[tiff] === 0x49
        const entries = tiff + view.getUint32(tiff + 4, isLittle)
        for (let entry = entries + 2; entry + 12 <= bytes.length && entry < entries + 2 + 12 * view.getUint16(entries, isLittle); entry += 12) {
            if (view.getUint16(entry, isLittle) === 0x0112) {
                return view.getUint16(entry + 8, isLittle) > 1
            }
        }
        return false
    }
    return false
}

export const HEAD_BYTES = 64 << 10

function turnedOf(head: Uint8Array): boolean {
    try {
        return head[0] === 0xff && head[1] === 0xd8 && isTurned(head)
    } catch {
        return false // cut short: it says nothing
    }
}

const isPng = (head: Uint8Array) => head[0] === 0x89 && head[1] === 0x50
const isJpeg = (head: Uint8Array) => head[0] === 0xff && head[1] === 0xd8

function drawn(image: ImageBitmap, width: number, height: number): CanvasRenderingContext2D {
    const canvas = document.createElement('canvas')
    canvas.width = width
    canvas.height = height
    const context = canvas.getContext('2d', { willReadFrequently: true })!
    context.imageSmoothingQuality = 'high'
    context.fillStyle = '#fff' // behind what lets something through
    context.fillRect(0, 0, width, height)
    context.drawImage(image, 0, 0, width, height)
    return context
}

const COPY_SIDE = 1280

/** A picture as a question sends it: as it is if it is small, else a copy. @param file As lookAt() keeps it. */
export async function smallCopy(file: Blob): Promise<Blob> {
    const bytes = new Uint8Array(await file.arrayBuffer())
    const image = await createImageBitmap(isPortable(bytes) ? decodePortable(bytes) : file, { imageOrientation: 'from-image' })
    try {
        const scale = Math.min(1, COPY_SIDE / Math.max(image.width, image.height))
        return isJpeg(bytes) && scale === 1 ? file : await jpegOf(drawn(image, Math.round(image.width * scale), Math.round(image.height * scale)).canvas)
    } finally {
        image.close()
    }
}

export const jpegOf = (canvas: HTMLCanvasElement): Promise<Blob> =>
    new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('The browser could not write the picture.'))), 'image/jpeg', 0.95))

/** Does not reject: what cannot be read is left out. */
export async function lookAt(file: Blob): Promise<Look> {
    const head = new Uint8Array(await file.slice(0, HEAD_BYTES).arrayBuffer())
    const none = { grade: 'out' as const, isTurned: false, file }
    let image: ImageBitmap
    try {
        image = await createImageBitmap(isPortable(head) ? decodePortable(new Uint8Array(await file.arrayBuffer())) : file, { imageOrientation: 'from-image' })
    } catch {
        return { ...none, why: 'the browser cannot read it as a picture' }
    }
    const { width, height } = image
    try {
        if (width * height > PIXELS_MAX) {
            return { ...none, why: 'it has more than 64 million pixels' }
        }
        const scale = Math.min(1, SIDE / Math.max(width, height))
        const [w, h] = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))]
        const measures = { width, height, ...measure(drawn(image, w, h).getImageData(0, 0, w, h).data, w, h) }
        const isKept = isJpeg(head) || isPng(head) || isPortable(head)
        return { ...judge(measures), measures, isTurned: turnedOf(head), file: isKept ? file : await jpegOf(drawn(image, width, height).canvas) }
    } catch {
        return { ...none, why: 'the browser has no room for it' }
    } finally {
        image.close()
    }
}
