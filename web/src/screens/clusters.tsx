/** Clusters: its address and badge. What it shows is a file of its own. */
import { WithLibrary } from '../components/library'
import { plural } from '../format'
import type { Screen } from '../screen'
import { allocations, clusters, needsYou } from '../state/clusters'
import { devices } from '../state/devices'
import { queues } from '../state/queues'
import { jobs, nodes } from '../state/store'

export const clustersScreen: Screen = {
    id: 'clusters',
    title: 'Clusters',
    icon: 'cloud',
    address: 'clusters',
    query: ['sort', 'job'],
    group: { science: 'Share', operations: 'Cluster' },
    load: [clusters, allocations, nodes, devices, jobs, queues],
    badge: () => {
        const count = (clusters.data.value ?? []).filter(needsYou).length
        return { count, tone: 'warn', what: plural(count, 'needs you', 'need you') }
    },
    render: () => <WithLibrary name="clusters">{({ Clusters }) => <Clusters />}</WithLibrary>,
}
