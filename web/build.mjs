// Bundles src/ into dist/{index.html,app.js,app.css,plot.js,dagre.js,alerts.js,cameras.js,clusters.js,enrol.js,passage.js,snapshots.js}. The output depends only on the sources and on the
// versions in package-lock.json: no times, no paths, no hashes of the machine. check-bundle.sh relies on it.
// Files name each other with "?v=" and the first digits of their SHA-256, so that a browser keeps what has not changed.
import { build } from 'esbuild'
import { createHash } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { minify } from 'terser'

const web = dirname(fileURLToPath(import.meta.url))
const out = process.argv[2] ?? join(web, 'dist')
const LIMIT_BYTES = 200 * 1000 // as browsers fetch it, compressed: what they need to draw a page; charts, graphs and screens of their own come after it
const TARGET = ['es2022', 'chrome109', 'firefox115', 'safari16.4']

const smallGraphlib = {
    name: 'small-graphlib',
    setup(bundler) {
        bundler.onResolve({ filter: /^@dagrejs\/graphlib$/ }, () => ({ path: join(web, 'src', 'graphlib.cjs') }))
    },
}

await mkdir(out, { recursive: true })
const common = {
    absWorkingDir: web,
    outdir: out,
    bundle: true,
    minify: true,
    target: TARGET,
    charset: 'utf8',
    legalComments: 'none', // the notices are in THIRD-PARTY.txt, named by the banner
    logLevel: 'warning',
}

/** A second pass: terser finds 5 KB that esbuild leaves. */
async function shrink(name, parts, isModule) {
    const script = join(out, name)
    const { code } = await minify(await readFile(script, 'utf8'), {
        ecma: 2020,
        module: isModule,
        compress: { passes: 3 },
        format: { comments: false, preamble: `/* Weir console.${parts && ` Contains ${parts} (MIT): see web/THIRD-PARTY.txt`} */` },
    })
    await writeFile(script, code + '\n')
}

/** Its address with what stands for its bytes. */
async function named(name) {
    const digest = createHash('sha256').update(await readFile(join(out, name))).digest('hex')
    return `/${name}?v=${digest.slice(0, 16)}`
}

// What draws charts and what places the boxes of graphs, each a file of its own: the page fetches it with the first.
await build({
    ...common,
    entryPoints: { plot: 'src/plot.ts', dagre: 'src/dagre.ts' },
    format: 'esm',
    plugins: [smallGraphlib],
})
await shrink('plot.js', 'uPlot', true)
await shrink('dagre.js', 'dagre', true)

// Screens in a file of their own. What src/lent.ts names they have from the page; else they carry it, and nothing that the page has.
const lent = new Map([...(await readFile(join(web, 'src', 'lent.ts'), 'utf8')).matchAll(/^import \{(.*)\} from '(.*)'/gm)].map(([, names, path]) => [path.replace('./', ''), names]))
const borrowed = {
    name: 'borrowed',
    setup(bundler) {
        bundler.onResolve({ filter: /./ }, ({ path, resolveDir }) => {
            const name = path.startsWith('.') ? relative(join(web, 'src'), join(resolveDir, path)) : path
            return lent.has(name) ? { path: name, namespace: 'lent' } : undefined
        })
        bundler.onLoad({ filter: /./, namespace: 'lent' }, ({ path }) => ({ contents: `export const {${lent.get(path)}} = globalThis.lent` }))
    },
}
const APART = { alerts: 'src/alerts/settings.tsx', cameras: 'src/cameras/page.tsx', clusters: 'src/clusters/page.tsx', enrol: 'src/enrol/page.tsx', passage: 'src/passage/page.tsx', snapshots: 'src/snapshots/page.ts' }
const apart = await build({
    ...common,
    metafile: true,
    entryPoints: APART,
    format: 'esm',
    loader: { '.css': 'text' },
    plugins: [borrowed],
})
for (const name of Object.keys(APART)) {
    await shrink(`${name}.js`, '', true)
}

const whole = await build({
    ...common,
    metafile: true,
    entryPoints: { app: 'src/main.tsx' },
    format: 'iife',
    define: Object.fromEntries(await Promise.all(['plot', 'dagre', ...Object.keys(APART)].map(async (one) => [`${one.toUpperCase()}_ADDRESS`, JSON.stringify(await named(`${one}.js`))]))),
})
await shrink('app.js', 'preact', false)

const carried = [whole.metafile, ...Object.values(apart.metafile.outputs)].flatMap(({ inputs }) => Object.keys(inputs))
const twice = [...new Set(carried.filter((file, i) => carried.indexOf(file) < i && !file.startsWith('lent:')))]
if (twice.length > 0) {
    console.error(`two files of the page carry ${twice.join(', ')}: lend them in src/lent.ts`)
    process.exit(1)
}

let page = await readFile(join(web, 'index.html'), 'utf8')
for (const name of ['app.js', 'app.css']) {
    page = page.replace(`/${name}`, await named(name))
}
await writeFile(join(out, 'index.html'), page)

let total = 0
const LATER = ['plot', 'dagre', ...Object.keys(APART)].map((one) => `${one}.js`)
for (const name of [...LATER, 'index.html', 'app.js', 'app.css']) {
    const content = await readFile(join(out, name))
    const packed = gzipSync(content).length
    total += LATER.includes(name) ? 0 : packed
    console.log(`${name.padEnd(12)}${String(content.length).padStart(8)} bytes${String(packed).padStart(8)} compressed`)
}
console.log(`${'page'.padEnd(12)}${String(total).padStart(22)} compressed`)
if (total > LIMIT_BYTES) {
    console.error(`the bundle is over its limit of ${LIMIT_BYTES} bytes compressed`)
    process.exit(1)
}
