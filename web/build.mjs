// Bundles src/ into dist/{index.html,app.js,app.css,plot.js,dagre.js}. The output depends only on the sources and on the
// versions in package-lock.json: no times, no paths, no hashes of the machine. check-bundle.sh relies on it.
import { build } from 'esbuild'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { minify } from 'terser'

const web = dirname(fileURLToPath(import.meta.url))
const out = process.argv[2] ?? join(web, 'dist')
const LIMIT_BYTES = 200 * 1000 // as browsers fetch it, compressed: what they need to draw a page; charts and graphs come after it
const TARGET = ['es2022', 'chrome109', 'firefox115', 'safari16.4']

const smallGraphlib = {
    name: 'small-graphlib',
    setup(bundler) {
        bundler.onResolve({ filter: /^@dagrejs\/graphlib$/ }, () => ({ path: join(web, 'src', 'graphlib.cjs') }))
    },
}

await mkdir(out, { recursive: true })
await build({
    absWorkingDir: web,
    entryPoints: { app: 'src/main.tsx' },
    outdir: out,
    bundle: true,
    minify: true,
    format: 'iife',
    target: TARGET,
    charset: 'utf8',
    legalComments: 'none', // the notices are in THIRD-PARTY.txt, named by the banner
    logLevel: 'warning',
})

// What draws charts and what places the boxes of graphs, each a file of its own: the page fetches it with the first.
await build({
    absWorkingDir: web,
    entryPoints: { plot: 'src/plot.ts', dagre: 'src/dagre.ts' },
    outdir: out,
    bundle: true,
    minify: true,
    format: 'esm',
    target: TARGET,
    charset: 'utf8',
    plugins: [smallGraphlib],
    legalComments: 'none',
    logLevel: 'warning',
})

// A second pass: terser finds 5 KB that esbuild leaves.
for (const [name, parts, isModule] of [['app.js', 'preact', false], ['plot.js', 'uPlot', true], ['dagre.js', 'dagre', true]]) {
    const script = join(out, name)
    const { code } = await minify(await readFile(script, 'utf8'), {
        ecma: 2020,
        module: isModule,
        compress: { passes: 3 },
        format: { comments: false, preamble: `/* Weir console. Contains ${parts} (MIT): see web/THIRD-PARTY.txt */` },
    })
    await writeFile(script, code + '\n')
}
await cp(join(web, 'index.html'), join(out, 'index.html'))

let total = 0
for (const name of ['plot.js', 'dagre.js', 'index.html', 'app.js', 'app.css']) {
    const content = await readFile(join(out, name))
    const packed = gzipSync(content).length
    total += name === 'plot.js' || name === 'dagre.js' ? 0 : packed
    console.log(`${name.padEnd(12)}${String(content.length).padStart(8)} bytes${String(packed).padStart(8)} compressed`)
}
console.log(`${'page'.padEnd(12)}${String(total).padStart(22)} compressed`)
if (total > LIMIT_BYTES) {
    console.error(`the bundle is over its limit of ${LIMIT_BYTES} bytes compressed`)
    process.exit(1)
}
