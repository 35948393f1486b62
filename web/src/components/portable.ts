/** Binary portable graymaps (P5) and pixmaps (P6), 8 or 16 bits, to a PNG the browser can draw. */

const MAX_PIXELS = 16_000_000

interface Header {
    channels: 1 | 3
    width: number
    height: number
    max: number
    start: number
}

function isSpace(byte: number | undefined): boolean {
    return byte === 32 || (byte !== undefined && byte >= 9 && byte <= 13)
}

/** Starts with "P5" or "P6". */
export function isPortable(bytes: Uint8Array): boolean {
    return bytes[0] === 0x50 && (bytes[1] === 0x35 || bytes[1] === 0x36)
}

/** Numbers are separated by white space and comments; exactly one white space stands before the pixels. */
function readHeader(bytes: Uint8Array): Header {
    const numbers: number[] = []
    let at = 2
    while (numbers.length < 3 && at < bytes.length) {
        if (bytes[at] === 35) {
            while (at < bytes.length && bytes[at] !== 10) {
                at++
            }
        } else if (isSpace(bytes[at])) {
            at++
        } else {
            const from = at
            while (at < bytes.length && !isSpace(bytes[at])) {
                at++
            }
            numbers.push(Number(new TextDecoder().decode(bytes.subarray(from, at))))
        }
    }
    const [width = 0, height = 0, max = 0] = numbers
    if (!(width > 0 && height > 0 && width * height <= MAX_PIXELS && max > 0 && max < 65536)) {
        throw new Error('portable image with an impossible header')
    }
    return { channels: bytes[1] === 0x35 ? 1 : 3, width, height, max, start: at + 1 }
}

export function portableToRgba(bytes: Uint8Array): ImageData {
    const { channels, width, height, max, start } = readHeader(bytes)
    const wide = max > 255 ? 2 : 1
    if (bytes.length < start + width * height * channels * wide) {
        throw new Error('portable image cut short')
    }
    const image = new ImageData(width, height)
    const sample = (index: number): number => {
        const at = start + index * wide
        const value = wide === 1 ? bytes[at]! : bytes[at]! * 256 + bytes[at + 1]!
        return (value * 255) / max
    }
    for (let i = 0; i < width * height; i++) {
        for (let c = 0; c < 3; c++) {
            image.data[i * 4 + c] = sample(channels === 1 ? i : i * 3 + c)
        }
        image.data[i * 4 + 3] = 255
    }
    return image
}

export async function decodePortable(bytes: Uint8Array): Promise<Blob> {
    const image = portableToRgba(bytes)
    const canvas = document.createElement('canvas')
    canvas.width = image.width
    canvas.height = image.height
    canvas.getContext('2d')!.putImageData(image, 0, 0)
    return await new Promise((resolve, reject) =>
        canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('the image could not be encoded')))),
    )
}
