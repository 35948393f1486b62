/** How deployments are: what is proven, what is asked for, what can be gone back to. */
import type { Deployment, DeploymentReplica, ServedVersion, Share } from '../api'
import { is, type Tone } from '../components/state'
import { ago, clockTime, dayTime, millis } from '../format'
import { deployments, now } from './store'
import { connection } from './stream'
import { call, get, segment, send } from './http'

const YOUNG_MS = 15_000 // a replica reports every few seconds

export interface DeploymentVerdict {
    tone: Tone
    isKnown: boolean
    word: string
    /** What shows it, or the server's sentence why not. */
    evidence: string
    /** Lists begin with the least: failed, changing, working, nothing expected. */
    rank: number
}

export const isReady = (replica: DeploymentReplica) => is(replica.state, 'ready')

/** When a replica that answers reported last; 0: none does. */
function lastReport(one: Deployment): number {
    return Math.max(0, ...one.replicas.filter(isReady).map((replica) => millis(replica.time_ms) || 0))
}

const refusedOf = (one: Deployment): ServedVersion | undefined => one.versions.find((it) => it.reason && (it.percent !== it.live_percent || is(it.state ?? '', 'failed')))

const countText = (one: Deployment) => `${one.n_ready} of ${one.n_wanted} ${one.n_wanted === 1 ? 'replica answers' : 'replicas answer'}`

export function verdictOf(one: Deployment): DeploymentVerdict {
    const refused = refusedOf(one)
    const reported = lastReport(one)
    const isProven = reported > 0 && now.value - reported < YOUNG_MS && connection.value.state !== 'lost'
    if (is(one.state, 'failed')) {
        return { tone: 'bad', isKnown: true, word: 'failed', evidence: one.reason ?? one.failure ?? `since ${dayTime(one.state_ms)}`, rank: 0 }
    }
    if (refused) {
        return { tone: 'bad', isKnown: true, word: `v${refused.version} refused`, evidence: refused.reason!, rank: 0 }
    }
    if (is(one.state, 'deploying')) {
        const waits = one.replicas.find((replica) => replica.reason)
        return { tone: 'busy', isKnown: true, word: 'deploys', evidence: one.reason ?? waits?.reason ?? one.failure ?? `since ${clockTime(one.state_ms)}, ${countText(one)}`, rank: 1 }
    }
    if (is(one.state, 'idle')) {
        return { tone: 'plain', isKnown: true, word: 'idle', evidence: `no replica since ${dayTime(one.state_ms)}; the next request starts one`, rank: 3 }
    }
    if (!isProven) {
        return { tone: 'plain', isKnown: false, word: 'unknown', evidence: reported > 0 ? `since ${dayTime(reported)}, when a replica reported last` : 'no replica reports', rank: 1 }
    }
    if (!one.is_settled) {
        return { tone: 'busy', isKnown: true, word: 'changes shares', evidence: one.reason ?? `in effect: ${one.traffic}`, rank: 1 }
    }
    return { tone: 'good', isKnown: true, word: 'serves', evidence: `${countText(one)}, reported ${ago(reported, now.value)}`, rank: 2 }
}

export function byNeed(all: readonly Deployment[]): Deployment[] {
    const rank = new Map(all.map((one) => [one.name, verdictOf(one).rank]))
    return [...all].sort((a, b) => rank.get(a.name)! - rank.get(b.name)! || a.name.localeCompare(b.name))
}

/** Versions that are asked for, that answer, or that are the mirror; not those that are merely loaded still. */
export const inUse = (one: Deployment) => one.versions.filter((it) => it.percent > 0 || it.live_percent > 0 || it.is_mirror)

export const sharesOf = (one: Deployment): Share[] => one.versions.filter((it) => it.percent > 0).map(({ version, percent }) => ({ version, percent }))

/** "v1 90 %, v2 10 %" */
export const sharesText = (shares: readonly Share[]) => shares.map((one) => `v${one.version} ${Math.round(one.percent * 100) / 100} %`).join(', ')

/** Shares in whole percents that add up to 100, with this version's changed: the others keep their proportion. */
export function sharesWith(shares: readonly Share[], version: number, percent: number): Share[] {
    const others = shares.filter((one) => one.version !== version)
    const left = 100 - percent
    const sum = others.reduce((all, one) => all + one.percent, 0)
    const exact = others.map((one) => ({ version: one.version, percent: sum > 0 ? (one.percent * left) / sum : left / others.length }))
    const floors = exact.map((one) => ({ version: one.version, percent: Math.floor(one.percent), rest: one.percent % 1 }))
    let missing = Math.round(left - floors.reduce((all, one) => all + one.percent, 0))
    for (const one of [...floors].sort((a, b) => b.rest - a.rest)) {
        one.percent += missing > 0 ? 1 : 0
        missing -= missing > 0 ? 1 : 0
    }
    return shares.map((one) => (one.version === version ? { version, percent } : { version: one.version, percent: floors.find((it) => it.version === one.version)!.percent }))
}

const pathOf = (name: string) => `/deployments/${segment(name)}`

export async function change(name: string, body: Record<string, unknown>): Promise<Deployment> {
    const answer = await call<Deployment>('PUT', pathOf(name), body)
    deployments.data.value = [...(deployments.data.peek() ?? []).filter((one) => one.name !== name), answer]
    return answer
}

/** Once what was asked for is in effect or has failed, or as it is after so long. */
export async function settled(name: string, waitS = 20): Promise<Deployment> {
    const answer = await get<Deployment>(pathOf(name), { wait_s: waitS })
    await deployments.load()
    return answer
}

export const setShares = (name: string, shares: readonly Share[]) => change(name, { traffic: shares.filter((one) => one.percent > 0) })

export async function undeploy(name: string): Promise<void> {
    await send('DELETE', pathOf(name))
    await deployments.load()
}
