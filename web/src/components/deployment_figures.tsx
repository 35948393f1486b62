/** Requests, errors and latency by version, from the gateway's counters. */
import type { Deployment } from '../api'
import { clockTime, counted, latency, NONE, rateText, short } from '../format'
import { inUse } from '../state/deployments'
import { perSecond, type FigureLog, type Window } from '../state/figures'
import { Panel } from './basics'
import { VersionMark } from './deployment_shares'
import { TimeChart, type Line } from './time_chart'

function linesOf(log: FigureLog, versions: readonly number[], of: (window: Window) => number | null): Line[] {
    return versions.map((version, i) => ({ name: `v${version}`, colour: `--series-${(i % 6) + 1}`, values: log.series(version, of) }))
}

const inMs = (us: number | null) => us && us / 1000

export function FiguresTable({ deployment, log, error }: { deployment: Deployment; log: FigureLog; error: string }) {
    const versions = inUse(deployment).map((one) => one.version)
    const refused = log.total(0)
    return (
        <Panel title="By version" window={log.samples.length > 1 ? 'last 60 s, as far as this page looked; totals since the server started' : 'totals since the server started'}>
            {error && <p class="failed" role="alert">{error}</p>}
            <div class="table-wrap" tabIndex={0} role="group" aria-label="Figures by version">
                <table class="plain inset">
                    <thead>
                        <tr>
                            <th scope="col">Version</th>
                            {['Requests/s', 'p50', 'p99', 'Errors', 'In flight', 'Requests', 'Errors in all'].map((name) => (
                                <th key={name} scope="col" class="num">
                                    {name}
                                </th>
                            ))}
                        </tr>
                    </thead>
                    <tbody>
                        {versions.map((version) => {
                            const window = log.latest(version)
                            const total = log.total(version)
                            return (
                                <tr key={version} data-row={`v${version}`}>
                                    <td>
                                        <VersionMark deployment={deployment} version={version} />
                                    </td>
                                    <td class="num">{window ? rateText(perSecond(window)) : NONE}</td>
                                    <td class="num">{window?.p50 ? latency(window.p50) : NONE}</td>
                                    <td class="num">{window?.p99 ? latency(window.p99) : NONE}</td>
                                    <td class="num">{window ? short(window.failed + window.refused) : NONE}</td>
                                    <td class="num">{short(total?.n_in_flight ?? 0)}</td>
                                    <td class="num">{short(total?.n_requests ?? 0)}</td>
                                    <td class="num">{short((total?.n_failed ?? 0) + (total?.n_refused ?? 0))}</td>
                                </tr>
                            )
                        })}
                    </tbody>
                </table>
            </div>
            {deployment.mirror > 0 && (
                <p class="panel-note muted">
                    Mirror v{deployment.mirror}: {short(log.total(deployment.mirror)?.n_mirrored ?? 0)} copies answered, {short(log.total(deployment.mirror)?.n_disagreed ?? 0)} not as the first answer,{' '}
                    {short(log.total(deployment.mirror)?.n_mirror_dropped ?? 0)} not sent or not answered.
                </p>
            )}
            {refused !== undefined && refused.n_refused + refused.n_held > 0 && (
                <p class="panel-note muted">
                    Before a version was chosen: {counted(refused.n_held, 'request waits', 'requests wait')} now, {counted(refused.n_refused, 'was', 'were')} refused since the server started.
                </p>
            )}
        </Panel>
    )
}

export function FigureCharts({ deployment, log }: { deployment: Deployment; log: FigureLog }) {
    const versions = inUse(deployment).map((one) => one.version)
    const window = `5 s · since ${clockTime(log.sinceMs)}` // when this page began to look
    return (
        <div class="grid g2 chart-pair">
            <TimeChart title="Latency p99" window={`ms · ${window}`} times={log.times} lines={linesOf(log, versions, (one) => inMs(one.p99))} />
            <TimeChart title="Requests" window={`per second · ${window}`} times={log.times} lines={linesOf(log, versions, perSecond)} isStacked />
        </div>
    )
}
