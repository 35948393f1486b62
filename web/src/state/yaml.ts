/** YAML as people write ION documents: out, with the line of each value; and in, the part of YAML that documents use. Pure. */

export interface Written {
    lines: string[]
    /** Line, from 1, by the server's name of a place: "$.pipelines[0].source". */
    at: Map<string, number>
}

const FLOW_MAX = 76 // a flat object stays on its line up to that many letters

const PLAIN = /^[A-Za-z_/][\w ./+@-]*$/
const WORDS = /^(true|false|null|yes|no|on|off|y|n)$/i

function scalar(value: unknown): string {
    return typeof value === 'string' && PLAIN.test(value) && !value.endsWith(' ') && !WORDS.test(value) ? value : JSON.stringify(value ?? null)
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)
const isFlat = (value: unknown) => typeof value !== 'object' || value === null
const keyText = (key: string) => (/^[\w.-]+$/.test(key) && !WORDS.test(key) ? key : JSON.stringify(key))

function flow(value: unknown): string {
    if (Array.isArray(value)) {
        return `[${value.map(flow).join(', ')}]`
    }
    if (isObject(value)) {
        return `{${Object.entries(value)
            .map(([key, one]) => `${keyText(key)}: ${flow(one)}`)
            .join(', ')}}`
    }
    const text = scalar(value)
    return /[,[\]{}]/.test(text) && !text.startsWith('"') ? JSON.stringify(value) : text
}

/** On one line: what has no parts, lists of such, and in a list a short object of such. */
function isInline(value: unknown, isItem: boolean): boolean {
    if (isFlat(value)) {
        return true
    }
    const parts = Array.isArray(value) ? value : Object.values(value as object)
    if (parts.length === 0) {
        return true
    }
    return (Array.isArray(value) || isItem) && parts.every((one) => isFlat(one) || (Array.isArray(one) && one.every(isFlat))) && flow(value).length <= FLOW_MAX
}

function write(value: unknown, indent: string, place: string, out: Written): void {
    const put = (head: string, one: unknown, where: string, isItem: boolean) => {
        out.at.set(where, out.lines.length + 1)
        if (isInline(one, isItem)) {
            out.lines.push(`${head}${isItem ? ' ' : ': '}${flow(one)}`)
            return
        }
        if (!isItem) {
            out.lines.push(`${head}:`)
            write(one, indent + '  ', where, out)
            return
        }
        const first = out.lines.length // the item's first line stands behind its dash
        write(one, indent + '  ', where, out)
        out.lines[first] = `${head} ${out.lines[first]!.trimStart()}`
    }
    if (Array.isArray(value)) {
        value.forEach((one, i) => put(`${indent}-`, one, `${place}[${i}]`, true))
    } else {
        Object.entries(value as object)
            .filter(([, one]) => one !== undefined)
            .forEach(([key, one]) => put(`${indent}${keyText(key)}`, one, `${place}.${key}`, false))
    }
}

export function writeYaml(value: object): Written {
    const out: Written = { lines: [], at: new Map() }
    write(value, '', '$', out)
    return out
}

/** The line of a place, or of what it is in; undefined: the document has neither. */
export function lineOf(written: Written, place: string): number | undefined {
    for (let at = place; at.length > 1; at = at.replace(/(\.[^.[\]]+|\[\d+\])$/, '')) {
        const line = written.at.get(at)
        if (line !== undefined) {
            return line
        }
        if (!/(\.[^.[\]]+|\[\d+\])$/.test(at)) {
            return undefined
        }
    }
    return undefined
}

// ----------------------------------------------------------------------------------------------------------- reading

export class YamlError extends Error {
    constructor(
        readonly line: number,
        message: string,
    ) {
        super(`line ${line}: ${message}`)
    }
}

interface Line {
    indent: number
    text: string
    number: number
}

const KEY = /^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s[\]{},#&*!|>'"%@`-][^:#]*?|-[^\s:#][^:#]*?)\s*:(?:\s+(.*))?$/

/** Without what stands behind a "#" that no quote holds. */
function uncommented(text: string): string {
    let quote = ''
    for (let i = 0; i < text.length; i++) {
        const letter = text[i]!
        if (quote !== '') {
            if (letter === '\\' && quote === '"') {
                i++
            } else if (letter === quote) {
                quote = ''
            }
        } else if (letter === '"' || letter === "'") {
            quote = /[\w]/.test(text[i - 1] ?? '') ? '' : letter
        } else if (letter === '#' && (i === 0 || /\s/.test(text[i - 1]!))) {
            return text.slice(0, i)
        }
    }
    return text
}

function plain(text: string, line: number): unknown {
    if (text.startsWith('"')) {
        try {
            return JSON.parse(text) as unknown
        } catch {
            throw new YamlError(line, `${text.slice(0, 30)} is no text in double quotes`)
        }
    }
    if (text.startsWith("'")) {
        if (!/^'(?:[^']|'')*'$/.test(text)) {
            throw new YamlError(line, `the quote of ${text.slice(0, 30)} has no end`)
        }
        return text.slice(1, -1).replace(/''/g, "'")
    }
    if (/^[&*!%@`|>]/.test(text)) {
        throw new YamlError(line, `"${text[0]}" is not understood here: apply the file with the command line`)
    }
    if (/^(null|Null|NULL|~|)$/.test(text)) {
        return null
    }
    if (/^(true|True|TRUE|false|False|FALSE)$/.test(text)) {
        return text.toLowerCase() === 'true'
    }
    return /^[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?$/.test(text) ? Number(text) : text
}

/** [a, b] and {key: value}, to their end. */
class Flow {
    private at = 0

    constructor(
        private readonly text: string,
        private readonly line: number,
    ) {}

    read(): unknown {
        const value = this.value()
        this.skip()
        if (this.at < this.text.length) {
            throw new YamlError(this.line, `"${this.text.slice(this.at, this.at + 20)}" stands behind the end`)
        }
        return value
    }

    private skip(): void {
        while (/\s/.test(this.text[this.at] ?? '')) {
            this.at++
        }
    }

    private token(stop: RegExp): string {
        this.skip()
        const quote = this.text[this.at]
        const from = this.at
        if (quote === '"' || quote === "'") {
            for (this.at++; this.at < this.text.length && this.text[this.at] !== quote; this.at++) {
                if (this.text[this.at] === '\\' && quote === '"') {
                    this.at++
                }
            }
            this.at++
            return this.text.slice(from, this.at)
        }
        while (this.at < this.text.length && !stop.test(this.text.slice(this.at, this.at + 2))) {
            this.at++
        }
        return this.text.slice(from, this.at).trim()
    }

    private value(): unknown {
        this.skip()
        const open = this.text[this.at]
        if (open === '[') {
            const items: unknown[] = []
            this.list(']', () => items.push(this.value()))
            return items
        }
        if (open === '{') {
            const found: Record<string, unknown> = {}
            this.list('}', () => {
                const key = String(plain(this.token(/^(:\s|:$|[,}])/), this.line))
                this.skip()
                if (this.text[this.at] === ':') {
                    this.at++
                    found[key] = this.value()
                } else {
                    found[key] = null
                }
            })
            return found
        }
        return plain(this.token(/^[,\]}]/), this.line)
    }

    private list(close: string, item: () => void): void {
        this.at++
        for (;;) {
            this.skip()
            if (this.text[this.at] === close) {
                this.at++
                return
            }
            if (this.at >= this.text.length) {
                throw new YamlError(this.line, `"${close}" is missing`)
            }
            item()
            this.skip()
            if (this.text[this.at] === ',') {
                this.at++
            } else if (this.text[this.at] !== close) {
                throw new YamlError(this.line, `expected "," or "${close}"`)
            }
        }
    }
}

const depthOf = (text: string) => {
    const bare = text.replace(/"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'/g, '')
    return (bare.match(/[[{]/g)?.length ?? 0) - (bare.match(/[\]}]/g)?.length ?? 0)
}

class Reader {
    private at = 0
    private readonly lines: Line[] = []
    private readonly raw: string[]

    constructor(text: string) {
        this.raw = text.split(/\r?\n/)
        this.raw.forEach((whole, i) => {
            const bare = uncommented(whole).trimEnd()
            if (/^\s*\t/.test(bare)) {
                throw new YamlError(i + 1, 'a tab cannot indent: write spaces')
            }
            const isMark = bare === '---' && this.lines.length === 0
            if (bare.trim() !== '' && !isMark) {
                this.lines.push({ indent: bare.length - bare.trimStart().length, text: bare.trim(), number: i + 1 })
            }
        })
    }

    read(): unknown {
        const first = this.lines[0]
        const value = first === undefined ? null : this.block(first.indent)
        const left = this.lines[this.at]
        if (left !== undefined) {
            throw new YamlError(left.number, left.text.startsWith('---') ? 'one document at a time' : 'it is not indented as what it belongs to')
        }
        return value
    }

    private block(indent: number): unknown {
        const line = this.lines[this.at]!
        return /^-(\s|$)/.test(line.text) ? this.sequence(indent) : KEY.test(line.text) ? this.mapping(indent) : this.inline(line.text, line)
    }

    private sequence(indent: number): unknown[] {
        const items: unknown[] = []
        for (let line = this.lines[this.at]; line !== undefined && line.indent === indent && /^-(\s|$)/.test(line.text); line = this.lines[this.at]) {
            const rest = line.text.slice(1).trimStart()
            if (rest === '') {
                this.at++
                items.push(this.below(indent, false))
            } else if (KEY.test(rest) || /^-\s/.test(rest)) {
                line.indent += line.text.length - rest.length
                line.text = rest
                items.push(this.block(line.indent))
            } else {
                items.push(this.inline(rest, line))
            }
        }
        return items
    }

    private mapping(indent: number): Record<string, unknown> {
        const found: Record<string, unknown> = {}
        for (let line = this.lines[this.at]; line !== undefined && line.indent === indent; line = this.lines[this.at]) {
            const parts = KEY.exec(line.text)
            if (parts === null) {
                throw new YamlError(line.number, `expected "key: value", got "${line.text.slice(0, 30)}"`)
            }
            const key = String(plain(parts[1]!, line.number))
            if (Object.hasOwn(found, key)) {
                throw new YamlError(line.number, `"${key}" is there twice`)
            }
            if ((parts[2] ?? '') === '') {
                this.at++
                found[key] = this.below(indent, true)
            } else {
                found[key] = this.inline(parts[2]!, line)
            }
        }
        return found
    }

    /** What is indented further; of a key a list may stand as far left as the key. */
    private below(indent: number, isKey: boolean): unknown {
        const next = this.lines[this.at]
        const isBelow = next !== undefined && (next.indent > indent || (isKey && next.indent === indent && /^-(\s|$)/.test(next.text)))
        return isBelow ? this.block(next.indent) : null
    }

    private inline(text: string, line: Line): unknown {
        this.at++
        if (/^[|>][+-]?$/.test(text)) {
            return this.literal(text, line)
        }
        if (/^[[{]/.test(text)) {
            let whole = text
            while (depthOf(whole) > 0 && this.at < this.lines.length) {
                whole += ' ' + this.lines[this.at++]!.text
            }
            return new Flow(whole, line.number).read()
        }
        return plain(text, line.number)
    }

    /** Lines as they are ("|") or joined (">"): all that are indented further than the key's line. */
    private literal(mark: string, line: Line): string {
        const outer = this.raw[line.number - 1]!.search(/\S/)
        const kept: string[] = []
        let last = line.number
        while (last < this.raw.length && (this.raw[last]!.trim() === '' || this.raw[last]!.search(/\S/) > outer)) {
            kept.push(this.raw[last++]!)
        }
        while (this.at < this.lines.length && this.lines[this.at]!.number <= last) {
            this.at++
        }
        const least = Math.min(...kept.filter((one) => one.trim() !== '').map((one) => one.search(/\S/)))
        const body = kept.map((one) => one.slice(least)).join(mark[0] === '|' ? '\n' : ' ')
        return body.trimEnd() + (mark[1] === '-' || mark[0] === '>' ? '' : '\n')
    }
}

/** Throws a YamlError that names the line. */
export function readYaml(text: string): unknown {
    return new Reader(text).read()
}
