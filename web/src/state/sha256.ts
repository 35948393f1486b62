/** SHA-256 of a file in parts (FIPS 180-4). Browsers have their own over TLS only, and only of what is in memory whole. */

const PART_BYTES = 4 << 20

/** The first 32 bits of the fractions of the square or cube roots of the first primes. */
function fractions(count: number, root: (prime: number) => number): Uint32Array {
    const found = new Uint32Array(count)
    for (let n = 2, i = 0; i < count; n++) {
        let isPrime = true
        for (let k = 2; k * k <= n && isPrime; k++) {
            isPrime = n % k !== 0
        }
        if (isPrime) {
            found[i++] = Math.floor((root(n) % 1) * 2 ** 32)
        }
    }
    return found
}

const K = new Int32Array(fractions(64, Math.cbrt))

export class Sha256 {
    private readonly state = fractions(8, Math.sqrt)
    private readonly block = new Uint8Array(64)
    private readonly words = new Int32Array(64)
    private length = 0

    update(bytes: Uint8Array): void {
        let at = 0
        let fill = this.length % 64
        this.length += bytes.length
        if (fill > 0) {
            at = Math.min(64 - fill, bytes.length)
            this.block.set(bytes.subarray(0, at), fill)
            fill += at
            if (fill < 64) {
                return
            }
            this.compress(this.block, 0)
        }
        for (; at + 64 <= bytes.length; at += 64) {
            this.compress(bytes, at)
        }
        this.block.set(bytes.subarray(at))
    }

    hex(): string {
        const bits = this.length * 8
        const rest = this.length % 64
        const tail = new Uint8Array((rest < 56 ? 64 : 128) - rest)
        tail[0] = 0x80
        const view = new DataView(tail.buffer)
        view.setUint32(tail.length - 8, Math.floor(bits / 2 ** 32))
        view.setUint32(tail.length - 4, bits >>> 0)
        this.update(tail)
        return [...this.state].map((word) => word.toString(16).padStart(8, '0')).join('')
    }

    private compress(bytes: Uint8Array, at: number): void {
        const w = this.words
        for (let i = 0; i < 16; i++, at += 4) {
            w[i] = (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!
        }
        for (let i = 16; i < 64; i++) {
            const x = w[i - 15]!
            const y = w[i - 2]!
            const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3)
            const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10)
            w[i] = w[i - 16]! + s0 + w[i - 7]! + s1
        }
        const s = this.state
        let a = s[0]! | 0
        let b = s[1]! | 0
        let c = s[2]! | 0
        let d = s[3]! | 0
        let e = s[4]! | 0
        let f = s[5]! | 0
        let g = s[6]! | 0
        let h = s[7]! | 0
        for (let i = 0; i < 64; i++) {
            const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7))
            const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K[i]! + w[i]!) | 0
            const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10))
            const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
            h = g
            g = f
            f = e
            e = (d + t1) | 0
            d = c
            c = b
            b = a
            a = (t1 + t2) | 0
        }
        s[0] = s[0]! + a
        s[1] = s[1]! + b
        s[2] = s[2]! + c
        s[3] = s[3]! + d
        s[4] = s[4]! + e
        s[5] = s[5]! + f
        s[6] = s[6]! + g
        s[7] = s[7]! + h
    }
}

/** @param onProgress So much of it is done, 0 to 1. */
export async function sha256Of(file: Blob, onProgress: (part: number) => void): Promise<string> {
    const hash = new Sha256()
    for (let at = 0; at < file.size; at += PART_BYTES) {
        hash.update(new Uint8Array(await file.slice(at, at + PART_BYTES).arrayBuffer()))
        onProgress(Math.min(1, (at + PART_BYTES) / file.size))
    }
    return hash.hex()
}
