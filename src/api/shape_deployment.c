/** What answers have about deployments: shares, replicas, figures. */
#include "api/shape_private.h"

#include "deploy/deploy.h"

static const struct api_member share_members[] = {
    ALWAYS("version", "integer", "Version"),
    ALWAYS("percent", "number", "Its part of the requests"),
};
static const struct api_member served_version_members[] = {
    ALWAYS("version", "integer", "Version"),
    ALWAYS("percent", "number", "Share that is asked for"),
    ALWAYS("live_percent", "number", "Share in effect"),
    ALWAYS("is_mirror", "bool", "It gets a copy of each request"),
    OR_NULL("state", "text", "READY on some replica, LOADING or FAILED; null: no replica says"),
    OR_NULL("reason", "text", "Why it failed"),
    ALWAYS("n_ready", "integer", "Replicas that have it ready"),
};
static const struct api_member deployed_replica_members[] = {
    OR_NULL("versions", "list of any", "What it has loaded: version, state, reason, executor …"),
    OR_NULL("stats", "map of any", "Its figures"),
    OR_NULL("job_state", "text", "State of its job"),
    OR_NULL("reason", "text", "Why its job waits or failed"),
};
static const struct api_member deployment_version_figures_members[] = {
    ALWAYS("version", "integer", "Version; 0: requests for which none was chosen"),
#define X(field, name, help) ALWAYS(#field, "integer", help),
#include "gateway/figures.def"
#undef X
    ALWAYS("n_in_flight", "integer", "Now, at replicas"),
    ALWAYS("n_held", "integer", "Now, waiting for a replica"),
    ALWAYS("sum_us", "integer", "Times from request to answer, added up (us)"),
    ALWAYS("p50_us", "integer", "Half of the requests took no longer (us)"),
    ALWAYS("p99_us", "integer", "99 % took no longer (us)"),
    ALWAYS(
        "classes", "list of integer",
        "What a classifier answered: how often each class was the likeliest, by number; the 64th "
        "has all beyond, and zeros at the end are left out"),
    ALWAYS(
        "scores", "list of integer",
        "By how much: answers by margin in logits m between the likeliest class and the next, in "
        "the bin 8 * log2(1 + m), at most 63"),
    ALWAYS(
        "buckets", "list of any",
        "[end, count]: how many took less than end, in us, and not less than the end before; the "
        "difference of two answers is what came between them"),
};
static const struct api_member deployment_figures_members[] = {
    ALWAYS("time_ms", "time", "When they were read (ms)"),
    ALWAYS("items", "list of deployment version figures", "By version"),
    OR_NULL("next", "text", "Always null: all versions are there"),
};
static const struct api_member differed_members[] = {
    ALWAYS("time_ms", "time", "When both had answered (ms)"),
    ALWAYS("version", "integer", "Mirrored version"),
    ALWAYS("live_version", "integer", "Version whose answer went out"),
    OR_NULL("request", "text", "\"id\" of the request, where it had one"),
    ALWAYS("answer", "text", "First 512 bytes of the mirrored version's answer"),
    ALWAYS("status", "integer", "HTTP status of it"),
    ALWAYS("live_answer", "text", "First 512 bytes of the other"),
    ALWAYS("live_status", "integer", "HTTP status of it"),
};
static const struct api_member deployment_disagreements_members[] = {
    ALWAYS("items", "list of differed answer",
           "At most 50 of each version, the newest first; since the server started"),
    OR_NULL("next", "text", "Always null: all are there"),
};
static const struct api_member served_members[] = {
    OR_NULL("previous", "list of share", "Shares in effect before these"),
    ALWAYS("cpus", "number", "CPUs of each replica"),
    ALWAYS("versions", "list of served version", "What its replicas load"),
    ALWAYS("replicas", "list of deployment replica", "Its replicas"),
    ALWAYS("comparisons", "list of ab_comparison", "Versions that are compared among its requests"),
    ALWAYS("n_ready", "integer", "Replicas that answer"),
    ALWAYS("traffic", "text", "Shares in effect: v3=90,v4=10; none"),
    MAY_MISS("warnings", "list of text",
             "Of a change: what callers of the version that served will notice"),
    ALWAYS("is_settled", "bool", "What was asked for is in effect, or has failed"),
};

static const struct api_shape shapes[] = {
    SHAPE("share", NULL, NULL, share_members),
    SHAPE("served version", NULL, NULL, served_version_members),
    RECORD("deployment replica", weir_deployment_replica_resource, "deployment state created_ms",
           deployed_replica_members),
    RECORD("deployment", weir_deployment_resource,
           "project model state created_ms updated_ms state_ms", served_members),
    SHAPE("deployment version figures", NULL, NULL, deployment_version_figures_members),
    SHAPE("deployment figures", NULL, "GET /api/v1/deployments/{name}/figures",
          deployment_figures_members),
    SHAPE("differed answer", NULL, NULL, differed_members),
    SHAPE("deployment disagreements", NULL, "GET /api/v1/deployments/{name}/disagreements",
          deployment_disagreements_members),
};

const struct api_shape_list api_shapes_of_deployments = API_SHAPE_LIST(shapes);
