/** Binary portable graymaps (P5) and pixmaps (P6), 8 or 16 bits, to a bitmap file, which every browser draws. */

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

const HEAD_BYTES = 54

/** Windows' bitmap: 24 bits a pixel, blue first, rows padded to 4 bytes; a negative height says that they run downwards. */
export function portableToBitmap(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
    const { channels, width, height, max, start } = readHeader(bytes)
    const wide = max > 255 ? 2 : 1
    if (bytes.length < start + width * height * channels * wide) {
        throw new Error('portable image cut short')
    }
    const stride = (width * 3 + 3) & ~3
    const out = new Uint8Array(HEAD_BYTES + stride * height)
    const head = new DataView(out.buffer)
    head.setUint16(0, 0x424d)
    head.setUint32(2, out.length, true)
    head.setUint32(10, HEAD_BYTES, true)
    head.setUint32(14, 40, true)
    head.setInt32(18, width, true)
    head.setInt32(22, -height, true)
    head.setUint16(26, 1, true)
    head.setUint16(28, 24, true)
    const sample = (index: number): number => {
        const at = start + index * wide
        return ((wide === 1 ? bytes[at]! : bytes[at]! * 256 + bytes[at + 1]!) * 255) / max
    }
    for (let y = 0; y < height; y++) {
        for (let x = 0; x < width; x++) {
            const pixel = (y * width + x) * channels
            const at = HEAD_BYTES + y * stride + x * 3
            for (let c = 0; c < 3; c++) {
                out[at + 2 - c] = sample(channels === 1 ? pixel : pixel + c)
            }
        }
    }
    return out
}

export function decodePortable(bytes: Uint8Array): Blob {
    return new Blob([portableToBitmap(bytes)], { type: 'image/bmp' })
}
