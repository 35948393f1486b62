#include "api/core/shape.h"

#include "api/core/views.h"
#include "control/lineage.h"
#include "control/live.h"

#include "api/role.h"
#include "capture/replay.h"
#include "capture/snapshot.h"
#include "deploy/deploy.h"
#include "ion/camera.h"
#include "ion/claim.h"
#include "ion/door.h"
#include "ion/drift_table.h"
#include "ion/feedback.h"
#include "ion/kpi.h"
#include "ion/outcome.h"
#include "ion/revision.h"
#include "ion/source.h"
#include "ion/statistic.h"
#include "job/board.h"
#include "job/cluster.h"
#include "job/secret.h"
#include "job/service.h"
#include "notify/notify.h"
#include "retain/retain.h"
#include "store/tenant.h"
#include "sweep/sweep.h"
#include "track/artifact.h"
#include "track/comparison.h"
#include "track/forgotten.h"
#include "track/model_baseline.h"
#include "track/run_groups.h"
#include "visit/hub.h"

#include <string.h>

#include "base/view_table.h"

#include "api/core/views_platform.def"

#include "api/cluster/views_cluster.def"

#include "api/track/views_track.def"

#include "api/model/views_deployment.def"

#include "api/ion/views_ion.def"

#include "api/ion/views_decision.def"

#include "api/ion/views_snapshot.def"

#include "api/data/views_data.def"

#include "api/track/views_lineage.def"

#include "base/view_begin.h"

// clang-format off
#define VIEW(v, title)              {.name = title, .view = v##_view},
#define ANSWER(v, title, route_)    {.name = title, .view = v##_view, .route = route_},
#define SAME(v, title, route_)      {.name = title, .view = v##_view, .route = route_},
#define PART(v)
#define RECORD(v, title, r, filled) RECORD_ANSWER(v, title, r, filled, NULL)
#define RECORD_ANSWER(v, title, r, filled_, route_)                                                \
    {.name = title, .view = v##_view, .record = &r##_resource, .filled = filled_, .route = route_},
#define OVER(v, title, s)           {.name = title, .view = v##_view},
#define FIELD(presence, kind, m, name, doc)
#define END_OVER(v)
#define PLAIN(title, r, filled_)    {.name = title, .record = &r##_resource, .filled = filled_},
#define MEMBER(presence, kind, m, name, doc)
#define HOLDS(presence, words, name, doc)
#define END(v)
#define SHAPE(title, record_, filled_, route_)                                                     \
    {.name = title, .record = record_, .filled = filled_, .route = route_,                         \
     .members = (const struct weir_member[]){
#define BODY(title, record_, route)                                                                \
    {.name = title, .record = record_, .body = route, .members = (const struct weir_member[]){
#define SAYS(presence_, words_, m, doc_)                                                           \
    {.name = #m, .type = WEIR_MEMBER_JSON, .presence = WEIR_MEMBER_##presence_, .words = words_,   \
     .doc = doc_},
#define END_SHAPE {0}}},
// clang-format on

static const struct api_shape shapes[] = {
// clang-format off
#include "store/chain_views.def"
#include "api/core/views_platform.def"
#include "visit/visit_views.def"
#include "api/cluster/views_cluster.def"
#include "control/live_views.def"
#include "api/track/views_track.def"
#include "api/model/views_deployment.def"
#include "api/ion/views_ion.def"
#include "api/ion/views_decision.def"
#include "capture/replay_views.def"
#include "api/ion/views_snapshot.def"
#include "api/data/views_data.def"
#include "control/lineage_views.def"
#include "api/track/views_lineage.def"
    // clang-format on
};

const struct api_shape *api_shape_at(size_t i)
{
    return i < WEIR_ARRAY_LEN(shapes) ? &shapes[i] : NULL;
}

const struct weir_member *api_shape_members(const struct api_shape *shape, size_t *out_n)
{
    const struct weir_member *members = shape->members;
    *out_n = 0;
    if (shape->view != NULL) {
        *out_n = shape->view()->n_members;
        return shape->view()->members;
    }
    while (members != NULL && members[*out_n].name != NULL) {
        ++*out_n;
    }
    return members;
}

const struct api_shape *api_shape_of_record(const struct weir_resource *record)
{
    const struct api_shape *shape;
    for (size_t i = 0; (shape = api_shape_at(i)) != NULL; i++) {
        if (record != NULL && shape->record == record && shape->route == NULL &&
            shape->body == NULL) {
            return shape;
        }
    }
    return NULL;
}

static bool is_route(const char *route, const char *method, const char *pattern)
{
    size_t len = strlen(method);
    return route != NULL && strncmp(route, method, len) == 0 && route[len] == ' ' &&
           strcmp(route + len + 1, pattern) == 0;
}

const struct api_shape *api_shape_of_route(const char *method, const char *pattern)
{
    const struct api_shape *shape;
    for (size_t i = 0; (shape = api_shape_at(i)) != NULL; i++) {
        if (is_route(shape->route, method, pattern)) {
            return shape;
        }
    }
    return NULL;
}

const struct api_shape *api_shape_of_body(const char *method, const char *pattern)
{
    const struct api_shape *shape;
    for (size_t i = 0; (shape = api_shape_at(i)) != NULL; i++) {
        if (is_route(shape->body, method, pattern)) {
            return shape;
        }
    }
    return NULL;
}
