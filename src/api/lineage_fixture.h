/** Tests: a dataset version, the run and model version that came of it, a link that it passed and what it decided,
 *  in the project "blue"; and a caller of that project and of another. */
#ifndef WEIR_API_LINEAGE_FIXTURE_H
#define WEIR_API_LINEAGE_FIXTURE_H

#include "api/caller_fixture.h"
#include "ion/decision.h"
#include "ion/ion.h"
#include "track/run.h"

static char blue[BEARER_BYTES], red[BEARER_BYTES];

static inline weir_status add_track(struct weir_txn *txn, int64_t now_ms, struct weir_error *err)
{
    int64_t number;
    const struct weir_dataset_version data = {.id = "dv",
                                              .dataset = "staff",
                                              .version = 1,
                                              .digest = "abc",
                                              .n_files = 3,
                                              .n_classes = 2,
                                              .created_by = "ann",
                                              .created_ms = now_ms};
    const struct weir_run run = {.id = "run-1",
                                 .name = "learn.1",
                                 .project = "blue",
                                 .kind = "train",
                                 .status = "FINISHED",
                                 .dataset = "staff",
                                 .dataset_version = 1,
                                 .parameters = "{\"epochs\":7}",
                                 .created_by = "bea",
                                 .created_ms = now_ms};
    const struct weir_run measure = {.id = "run-2",
                                     .name = "measure",
                                     .project = "blue",
                                     .kind = "measure",
                                     .status = "FINISHED",
                                     .dataset = "staff",
                                     .dataset_version = 1,
                                     .parameters = "{\"model\":\"face@v1\"}",
                                     .created_ms = now_ms};
    const struct weir_metric accuracy = {.key = "accuracy", .value = 0.75};
    const struct weir_model model = {.name = "face", .project = "blue", .created_ms = now_ms};
    const struct weir_model_version version = {.id = "mv",
                                               .model = "face",
                                               .version = 1,
                                               .run = "run-1",
                                               .blob = "b",
                                               .bytes = 9,
                                               .stage = "None",
                                               .description = "For **doors** [x](y)",
                                               .metrics = "{\"loss\":0.5}",
                                               .created_by = "bea",
                                               .created_ms = now_ms};
    WEIR_TRY(weir_txn_insert(txn, &weir_dataset_version_resource, &data, err));
    WEIR_TRY(weir_run_insert(txn, &run, &number, err));
    WEIR_TRY(weir_run_insert(txn, &measure, &number, err));
    WEIR_TRY(weir_metrics_log(txn, number, &accuracy, 1, err));
    WEIR_TRY(weir_txn_insert(txn, &weir_model_resource, &model, err));
    return weir_txn_insert(txn, &weir_model_version_resource, &version, err);
}

static inline weir_status add_served(struct weir_txn *txn, int64_t now_ms, struct weir_error *err)
{
    const struct weir_ion_candidate candidate = {.id = "c",
                                                 .ion = "door",
                                                 .link = "learn:see",
                                                 .model = "face",
                                                 .model_version = "mv",
                                                 .version = 1,
                                                 .blob = "b",
                                                 .state = "SERVING",
                                                 .served_seq = 1,
                                                 .served_ms = now_ms};
    const struct weir_policy_decision policy = {.id = "door:1",
                                                .ion = "door",
                                                .link = "learn:see",
                                                .candidate = "c",
                                                .model_version = "mv",
                                                .version = 1,
                                                .policy = "manual",
                                                .inputs = "{}",
                                                .rule = "a person approves",
                                                .verdict = "promote",
                                                .actor = "rev",
                                                .note = "looks | right",
                                                .time_ms = now_ms};
    WEIR_TRY(weir_txn_insert(txn, &weir_ion_candidate_resource, &candidate, err));
    return weir_txn_insert(txn, &weir_policy_decision_resource, &policy, err);
}

static inline weir_status fill_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static char *const ids[] = {"d0", "d1", "d2"};
    int64_t now_ms = callers_now(&callers.clock);
    size_t n;
    (void)context;
    WEIR_TRY(add_track(txn, now_ms, err));
    WEIR_TRY(add_served(txn, now_ms, err));
    for (int64_t i = 0; i < 3; i++) {
        const struct weir_decision decision = {.id = ids[i],
                                               .ion = "door",
                                               .pipeline = "see",
                                               .camera = "north",
                                               .frame = i,
                                               .time_ms = now_ms + i,
                                               .verdict = "grant",
                                               .person = "ann",
                                               .model_version = 1};
        WEIR_TRY(weir_decisions_store(txn, &decision, 1, NULL, 0, &n, err));
    }
    return WEIR_OK;
}

/** Of callers that are open. */
static inline void lineage_fill(void)
{
    struct weir_error err = {0};
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"blue\"}");
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"red\"}");
    EXPECT(200, "POST " API "/datasets\n\n{\"name\":\"staff\",\"project\":\"blue\"}");
    EXPECT(200, "POST " API "/ions\n\n{\"name\":\"door\",\"project\":\"blue\",\"pipelines\":["
                "{\"name\":\"learn\",\"type\":\"training\",\"dataset\":\"staff\","
                "\"model\":\"face-embed\"}],\"links\":[]}");
    must(weir_store_write(callers.fixture.store, fill_in, NULL, &err), &err);
    make_caller("bea", "member", ",\"project\":\"blue\"", blue);
    make_caller("rex", "member", ",\"project\":\"red\"", red);
    EXPECT(200, "PUT " API "/projects/blue/members/user/bea\n\n{\"role\":\"viewer\"}");
    EXPECT(200, "PUT " API "/projects/red/members/user/rex\n\n{\"role\":\"viewer\"}");
}

#endif
