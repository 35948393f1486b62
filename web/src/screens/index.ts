/** Every screen, in the order of the navigation within its group: a new one is a file beside this one, and a line here. */
import type { Screen } from '../screen'
import { alertsScreen } from './alerts'
import { auditScreen } from './audit'
import { camerasScreen } from './cameras'
import { clustersScreen } from './clusters'
import { compareScreens } from './compare'
import { datasetsScreen } from './datasets'
import { deploymentsScreen } from './deployments'
import { eventsScreen } from './events'
import { experimentsScreen, runsScreen } from './experiments'
import { homeScreen } from './home'
import { ionBuilderScreen, ionNewScreen } from './ion_builder'
import { ionDecisionsScreen } from './ion_decisions'
import { ionDocumentScreen } from './ion_document'
import { ionEnrolScreen } from './ion_enrol'
import { ionGraphScreen } from './ion_graph'
import { ionHealthScreen } from './ion_health'
import { ionListsScreen } from './ion_lists'
import { ionPassageScreen, ionPassagesScreen } from './ion_passages'
import { ionReviewScreen } from './ion_review'
import { ionSnapshotsScreen } from './ion_snapshots'
import { ionsScreen } from './ions'
import { jobNewScreen } from './job_new'
import { jobsScreen } from './jobs'
import { modelsScreen } from './models'
import { nodeScreen } from './node'
import { nodesScreen } from './nodes'
import { notebooksScreen } from './notebooks'
import { peopleScreen } from './people'
import { queuesScreen } from './queues'
import { runScreen } from './run'
import { storageScreen } from './storage'
import { sweepScreen, sweepsScreen } from './sweeps'
import { usageScreen } from './usage'

export const screens: readonly Screen[] = [
    homeScreen,
    ionsScreen,
    ionGraphScreen,
    ionHealthScreen,
    ionDecisionsScreen,
    ionPassagesScreen,
    ionPassageScreen,
    ionReviewScreen,
    ionSnapshotsScreen,
    ionListsScreen,
    ionEnrolScreen,
    ionBuilderScreen,
    ionDocumentScreen,
    ionNewScreen,
    ...compareScreens,
    experimentsScreen,
    runsScreen,
    runScreen,
    sweepsScreen,
    notebooksScreen,
    sweepScreen,
    nodesScreen,
    nodeScreen,
    clustersScreen,
    queuesScreen,
    usageScreen,
    jobNewScreen,
    jobsScreen,
    datasetsScreen,
    modelsScreen,
    deploymentsScreen,
    camerasScreen,
    alertsScreen,
    eventsScreen,
    auditScreen,
    peopleScreen,
    storageScreen,
]
