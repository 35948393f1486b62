#include "api/routes.h"

#include "api/core/functions.h"
#include "api/core/rows.h"
#include "api/data/blob.h"
#include "api/kind.h"
#include "api/role.h"
#include "capture/snapshot.h"
#include "capture/state.h"
#include "deploy/deploy.h"
#include "ion/camera.h"
#include "ion/decision.h"
#include "ion/door.h"
#include "ion/feedback.h"
#include "ion/ion.h"
#include "ion/ion_step.h"
#include "ion/kpi.h"
#include "ion/outcome.h"
#include "ion/replica.h"
#include "ion/revision.h"
#include "ion/source.h"
#include "ion/statistic.h"
#include "ion/threshold.h"
#include "job/board.h"
#include "job/device.h"
#include "job/job.h"
#include "job/past_use.h"
#include "job/queue.h"
#include "job/queue_history.h"
#include "job/reservation.h"
#include "job/secret.h"
#include "job/service.h"
#include "job/usage.h"
#include "notify/notify.h"
#include "retain/retain.h"
#include "store/event.h"
#include "store/identity.h"
#include "store/tenant.h"
#include "sweep/sweep.h"
#include "track/artifact.h"
#include "track/experiment.h"
#include "track/forgotten.h"
#include "track/model_baseline.h"
#include "track/track.h"

#define ROUTE(fn_, method, pattern, summary_, right, access, ...)                                  \
    {ROUTE_ROW(method, pattern, right, access), .summary = (summary_), .fn = fn_, __VA_ARGS__},

static const struct weir_route rows[] = {
#include "api/core/routes.def"
};

const struct weir_route_table *const api_routes[] = {
    &(const struct weir_route_table){rows, WEIR_ARRAY_LEN(rows)}, NULL};
