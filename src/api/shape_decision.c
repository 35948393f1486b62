/** What answers have about decisions: counts, live accuracy, drift, feedback. */
#include "api/shape_private.h"

#include "ion/decision.h"
#include "ion/feedback.h"
#include "ion/outcome.h"
#include "ion/statistic.h"

static const struct api_member count_members[] = {
    ALWAYS("grant", "integer", "Granted"),
    ALWAYS("deny", "integer", "Denied"),
    ALWAYS("unknown", "integer", "Nobody known, or no label"),
    ALWAYS("error", "integer", "Not decided"),
    ALWAYS("label", "integer", "A label, of a classifier"),
};
static const struct api_member bucket_members[] = {
    ALWAYS("time_ms", "time", "Begin of this part of the time"),
    ALWAYS("grant", "integer", "Granted"),
    ALWAYS("deny", "integer", "Denied"),
    ALWAYS("unknown", "integer", "Nobody known, or no label"),
    ALWAYS("error", "integer", "Not decided"),
    ALWAYS("label", "integer", "A label, of a classifier"),
};
static const struct api_member latency_members[] = {
    OR_NULL("p50", "number", "Median (ms)"),
    OR_NULL("p90", "number", "90 % are no slower (ms)"),
    OR_NULL("p99", "number", "99 % are no slower (ms)"),
    OR_NULL("max", "number", "The slowest (ms)"),
};
static const struct api_member decision_summary_members[] = {
    ALWAYS("decisions", "integer", "How many were counted"),
    ALWAYS("verdicts", "verdict counts", "By verdict"),
    ALWAYS("latency_ms", "latency quantiles", "From frame to decision"),
    OR_NULL("durable_p99_ms", "number", "99 % were on disk no later (ms)"),
    ALWAYS("last_seq", "integer", "Number of the newest; 0: none"),
    OR_NULL("from_ms", "time", "From when on the counts are complete"),
    ALWAYS("per_second", "number", "Rate since then"),
    MAY_MISS("buckets", "list of decision bucket",
             "Counts by equal parts of the time, if asked for"),
};
#define ACCURACY                                                                                   \
    ALWAYS("n", "integer", "Decisions whose truth is known"),                                      \
        ALWAYS("right", "integer", "Those that said it"),                                          \
        OR_NULL("accuracy", "number", "Their share; null: none is known"),                         \
        ALWAYS("low", "number", "Lower end of its 95 % interval"),                                 \
        ALWAYS("high", "number", "Upper end of that interval")
static const struct api_member accuracy_members[] = {ACCURACY};
static const struct api_member accuracy_group_members[] = {
    ALWAYS("name", "text", "Camera, person, label, version, pipeline or day"),
    ACCURACY,
};
static const struct api_member ion_health_members[] = {
    ALWAYS("ion", "text", "ION"),
    OR_NULL("since_ms", "time", "Of decisions from then on"),
    ALWAYS("accuracy", "live accuracy", "How often decisions were right, as far as that is known"),
    ALWAYS("by", "text",
           "What the groups are: camera, truth, decided, model_version, pipeline, day"),
    ALWAYS("groups", "list of accuracy group", "The same by group, most errors first"),
    ALWAYS("kpis", "list of kpi", "The newest value of each business figure"),
};
static const struct api_member far_frame_members[] = {
    ALWAYS("camera", "text", "Camera"),
    ALWAYS("frame", "integer", "Number of the frame"),
    ALWAYS("time_ms", "time", "When it came"),
    ALWAYS("value", "number", "What the signal is of it"),
    ALWAYS("sigmas", "number", "How many deviations of training that is away from its mean"),
    OR_NULL("decision", "text", "The decision; null: not there yet, or no longer kept"),
    ALWAYS("has_picture", "bool", "The decision's picture is kept"),
};
static const struct api_member signal_members[] = {
    ALWAYS("pipeline", "text", "Pipeline"),
    ALWAYS("signal", "text", "What was compared: score, brightness, feature:NAME …"),
    OR_NULL("replica", "text", "Replica of the last report"),
    ALWAYS("model_version", "integer", "Model version of the last report"),
    ALWAYS("statistic", "text", "What moved: location, spread, shape, rate … or none"),
    OR_NULL("value", "number", "How far"),
    OR_NULL("p_value", "number", "How often a window like the last comes if nothing has changed"),
    ALWAYS("drifted", "bool", "A confirmed drift, by the last report"),
    ALWAYS("state", "text", "drifts; watch: its p-value is small even among so many signals; none"),
    ALWAYS("n_samples", "integer", "Values of all its windows"),
    ALWAYS("n_windows", "integer", "Reports of this span of time"),
    ALWAYS("n_drifted", "integer", "Those of them with drift"),
    ALWAYS("time_ms", "time", "When the last report came"),
    OR_NULL("began_ms", "time", "Since when it drifts; null: it does not"),
    OR_NULL("effect", "number", "Size of the difference, whatever the number of values"),
    OR_NULL("live_mean", "number", "Mean of the last window"),
    OR_NULL("live_stddev", "number", "Its standard deviation"),
    OR_NULL("baseline_mean", "number", "Mean of training"),
    OR_NULL("baseline_stddev", "number", "Its standard deviation"),
    OR_NULL("distances", "map of number", "ks, psi, js … of the last window"),
    OR_NULL("baseline", "map of any", "Training: edges, counts"),
    OR_NULL("cameras", "list of text", "Which cameras, where that is known"),
    OR_NULL("live", "map of any", "The same of all windows of the span: edges, counts"),
    ALWAYS("farthest", "list of far frame",
           "The frames of the span whose value lies farthest from training, at most 10"),
    ALWAYS("cells", "list of any", "Smallest p-value of each part of the time, or null"),
};
static const struct api_member ion_drift_members[] = {
    ALWAYS("ion", "text", "ION"),
    ALWAYS("since_ms", "time", "From then on"),
    ALWAYS("until_ms", "time", "Until then"),
    ALWAYS("times", "list of text", "Begin of each part of the time, as of signals' cells"),
    ALWAYS("signals", "list of drift signal", "Those that drift first, then by p-value"),
    ALWAYS("is_cut", "bool", "There are more reports than were looked at: take a shorter span"),
};
static const struct api_member finding_members[] = {
    ALWAYS("signal", "text", "feature:NAME, missing:NAME, category:NAME or range:NAME"),
    ALWAYS("statistic", "text", "What moved: location, spread, shape or none; rate"),
    ALWAYS("value", "number", "In standard deviations; of a rate the share of the window"),
    ALWAYS("p_value", "number", "How often a window like this comes if nothing has changed"),
    ALWAYS("differs", "bool", "It differs, among all that was asked of this window"),
    ALWAYS("drifted", "bool", "So did one of the two windows before: a drift"),
};
static const struct api_member window_members[] = {
    ALWAYS("findings", "list of finding", "What was asked of each feature, answered"),
};
static const struct api_member feedback_answer_members[] = {
    ALWAYS("stored", "integer", "How many truths and numbers were stored"),
    ALWAYS("right", "integer",
           "Decisions among them that were right, and requests that were a success"),
    ALWAYS("judged", "integer", "Those that are right or wrong; numbers (KPIs) are neither"),
};
static const struct api_member statistics_answer_members[] = {
    ALWAYS("stored", "integer", "How many were stored; those that were there are not counted"),
};

static const struct api_shape shapes[] = {
    PLAIN_RECORD("health report", weir_health_report_resource,
                 "ion pipeline signal statistic time_ms"),
    SHAPE("verdict counts", NULL, NULL, count_members),
    SHAPE("decision bucket", NULL, NULL, bucket_members),
    SHAPE("latency quantiles", NULL, NULL, latency_members),
    SHAPE("decision summary", NULL, "GET /api/v1/decisions/summary", decision_summary_members),
    SHAPE("live accuracy", NULL, NULL, accuracy_members),
    SHAPE("accuracy group", NULL, NULL, accuracy_group_members),
    SHAPE("ION health", NULL, "GET /api/v1/ions/{name}/health", ion_health_members),
    SHAPE("far frame", NULL, NULL, far_frame_members),
    SHAPE("drift signal", NULL, NULL, signal_members),
    SHAPE("ION drift", NULL, "GET /api/v1/ions/{name}/drift", ion_drift_members),
    SHAPE("finding", NULL, NULL, finding_members),
    SHAPE("tested window", NULL, "POST /api/v1/ions/{name}/pipelines/{pipeline}/windows",
          window_members),
    SHAPE("stored feedback", NULL, "POST /api/v1/feedback", feedback_answer_members),
    SHAPE("stored statistics", NULL, "POST /api/v1/ions/{name}/statistics",
          statistics_answer_members),
    PLAIN_RECORD("decision", weir_decision_resource, "ion pipeline time_ms"),
    PLAIN_RECORD("outcome", weir_outcome_resource, "request deployment name answered_ms time_ms"),
    PLAIN_RECORD("feedback", weir_feedback_resource,
                 "ion pipeline camera decided truth decided_ms time_ms"),
    PLAIN_RECORD("statistic", weir_statistic_resource, "id ion time_ms"),
};

const struct api_shape_list api_shapes_of_decisions = API_SHAPE_LIST(shapes);
