/** Tests: an ION with a history in a store, and a snapshot of it. */
#ifndef WEIR_CAPTURE_CAPTURE_FIXTURE_H
#define WEIR_CAPTURE_CAPTURE_FIXTURE_H

#include "blob/blob.h"
#include "capture/rows.h"
#include "capture/snapshot.h"
#include "ion/decision.h"
#include "ion/ion_fixture.h"
#include "store/event.h"
#include "store/identity.h"
#include "store/stmt.h"
#include "store/store_fixture.h"
#include "store/table.h"
#include "track/track.h"

#define HOUR_MS  ((int64_t)3600000)
#define BEGIN_MS ((int64_t)1700000000000)

static struct store_fixture fixture;
static struct weir_capture capture;

/** An event of the ION "x", as the server applies it. */
struct capture_turn {
    struct weir_ion_event event;
    int64_t now_ms;
};

static inline weir_status capture_populate(struct weir_txn *txn, void *context,
                                           struct weir_error *err)
{
    (void)context;
    return weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "default"},
                           err);
}

static inline void capture_set_up(void)
{
    char *blobs;
    fixture_make(&fixture, capture_populate);
    blobs = weir_arena_printf(&fixture.arena, "%s/blobs", fixture.dir);
    capture = (struct weir_capture){.state_dir = fixture.dir};
    ck_assert_int_eq(weir_blobs_open(blobs, &capture.blobs, &fixture.err), WEIR_OK);
}

static inline void capture_tear_down(void)
{
    weir_blobs_close(capture.blobs);
    fixture_fini(&fixture);
}

static inline weir_status capture_take_turn(struct weir_txn *txn, void *context,
                                            struct weir_error *err)
{
    struct capture_turn *turn = context;
    struct weir_ion_state state;
    struct weir_ion_actions actions = {0};
    if (turn->event.type == WEIR_ION_EVENT_MODEL) {
        const struct weir_ion_model *made = &turn->event.models[0];
        struct weir_model_version version = {.id = (char *)made->model_version,
                                             .model = (char *)made->name,
                                             .blob = (char *)made->blob,
                                             .bytes = 5};
        WEIR_TRY(weir_model_register(txn, &version, "default", turn->now_ms, &fixture.arena,
                                     &version, NULL, err));
    }
    if (weir_ion_load(txn, "x", &fixture.arena, &state, err) == WEIR_ERR_NOT_FOUND) {
        weir_ion_state_new("x", &fixture.arena, &state);
    }
    WEIR_TRY(weir_ion_step(&state, &turn->event, turn->now_ms, &fixture.arena, &actions, err));
    return weir_ion_save(txn, &state, &actions, turn->now_ms, err);
}

static inline void capture_turn(struct weir_ion_event event, int64_t now_ms)
{
    struct capture_turn turn = {event, now_ms};
    fixture_write(&fixture, capture_take_turn, &turn);
}

/** A model version whose file is in the blob store. */
static inline struct weir_ion_event capture_model(int64_t version)
{
    char sha256[WEIR_SHA256_TEXT_BYTES];
    struct weir_ion_event event = model(&fixture.arena, "t", version);
    char *bytes = weir_arena_printf(&fixture.arena, "m%04lld", (long long)version);
    ck_assert_int_eq(weir_blob_put(capture.blobs, bytes, strlen(bytes), NULL, sha256, &fixture.err),
                     WEIR_OK);
    struct weir_ion_model *made = WEIR_ARENA_NEW(&fixture.arena, struct weir_ion_model);
    *made = event.models[0];
    made->blob = weir_arena_strdup(&fixture.arena, sha256);
    event.models = made;
    return event;
}

static inline weir_status capture_add_rows(struct weir_txn *txn, void *context,
                                           struct weir_error *err)
{
    (void)context;
    for (int i = 0; i < 10; i++) {
        int64_t time_ms = BEGIN_MS + (i + 1) * HOUR_MS;
        const struct weir_decision decision = {.id = weir_arena_printf(&fixture.arena, "d%d", i),
                                               .ion = "x",
                                               .pipeline = "p",
                                               .camera = "front, \"main\" door",
                                               .frame = i,
                                               .time_ms = time_ms,
                                               .verdict = i % 2 == 0 ? "grant" : "deny",
                                               .score = 0.5,
                                               .latency_us = 100 * i};
        const struct weir_health_report report = {.id = weir_arena_printf(&fixture.arena, "h%d", i),
                                                  .ion = "x",
                                                  .pipeline = "p",
                                                  .signal = i < 5 ? "score" : "brightness",
                                                  .statistic = "location",
                                                  .value = i,
                                                  .p_value = i == 4 || i == 3 ? 0.0004 : 0.5,
                                                  .drifted = i == 4,
                                                  .n_samples = 200,
                                                  .time_ms = time_ms};
        size_t n;
        WEIR_TRY(weir_decisions_store(txn, &decision, 1, NULL, 0, &n, err));
        WEIR_TRY(weir_health_report_store(txn, &report, err));
    }
    const struct weir_run run = {.id = "r1",
                                 .name = "x-t-1",
                                 .project = "default",
                                 .kind = "train",
                                 .status = "FINISHED",
                                 .ion = "x",
                                 .pipeline = "t",
                                 .created_ms = BEGIN_MS + HOUR_MS,
                                 .finished_ms = BEGIN_MS + 2 * HOUR_MS};
    const struct weir_metric metrics[] = {{"r1", "loss", 1, 0.5, BEGIN_MS + HOUR_MS},
                                          {"r1", "loss", 2, 0.25, BEGIN_MS + HOUR_MS + 1}};
    const struct weir_alert alert = {
        .id = "a1", .key = "k", .kind = "drift", .subject = "ion/x", .message = "scores, moved"};
    WEIR_TRY(weir_txn_insert(txn, &weir_run_resource, &run, err));
    WEIR_TRY(weir_metrics_put(txn, "r1", metrics, 2, err));
    WEIR_TRY(weir_alert_raise(txn, &alert, BEGIN_MS + 3 * HOUR_MS, NULL, err));
    return weir_alert_resolve(txn, "k", BEGIN_MS + 5 * HOUR_MS, err);
}

/**
 * Version 1 serves from hour 1 on; version 2, of hour 2, waits until hour 3 for the rate limit, and
 * then for bob, who approves at hour 4; version 3 comes at hour 7 and is rejected at hour 8.
 */
static inline void capture_history(void)
{
    struct weir_ion_event tick = {.type = WEIR_ION_EVENT_TICK};
    struct weir_ion_event approve = {.type = WEIR_ION_EVENT_APPROVE, .actor = "bob"};
    struct weir_ion_event reject = {.type = WEIR_ION_EVENT_REJECT, .actor = "bob"};
    capture_turn(applied(&fixture.arena, "always-update", "{manual: true}", 1), BEGIN_MS);
    capture_turn(capture_model(1), BEGIN_MS + HOUR_MS);
    capture_turn(applied(&fixture.arena,
                         "[{kind: rate-limit, min_interval_s: 7200}, {kind: manual}]",
                         "{manual: true}", 1),
                 BEGIN_MS + HOUR_MS + 1000);
    capture_turn(capture_model(2), BEGIN_MS + 2 * HOUR_MS);
    capture_turn(tick, BEGIN_MS + 3 * HOUR_MS);
    capture_turn(approve, BEGIN_MS + 4 * HOUR_MS);
    capture_turn(capture_model(3), BEGIN_MS + 7 * HOUR_MS);
    capture_turn(reject, BEGIN_MS + 8 * HOUR_MS);
    fixture_write(&fixture, capture_add_rows, NULL);
}

/** One snapshot being taken and kept. */
struct capture_taken {
    struct weir_snapshot_wanted wanted;
    struct weir_snapshot_taking *taking;
    struct weir_snapshot made;
};

static inline weir_status capture_take_in(struct weir_txn *txn, void *context,
                                          struct weir_error *err)
{
    struct capture_taken *taken = context;
    return weir_snapshot_take(txn, &capture, &taken->wanted, &fixture.arena, &taken->taking, err);
}

static inline weir_status capture_insert(struct weir_txn *txn, void *context,
                                         struct weir_error *err)
{
    return weir_txn_insert(txn, &weir_snapshot_resource, context, err);
}

/** Of the ION "x", from hour 2 to hour 9. */
static inline weir_status capture_try(const char *name, bool with_models, struct weir_snapshot *out)
{
    struct capture_taken taken = {.wanted = {.name = name,
                                             .ion = "x",
                                             .from_ms = BEGIN_MS + 2 * HOUR_MS,
                                             .to_ms = BEGIN_MS + 9 * HOUR_MS,
                                             .with_models = with_models,
                                             .actor = "ann",
                                             .now_ms = BEGIN_MS + 100 * HOUR_MS}};
    weir_status status = weir_store_read(fixture.store, capture_take_in, &taken, &fixture.err);
    status =
        status == WEIR_OK ? weir_snapshot_seal(taken.taking, &taken.made, &fixture.err) : status;
    *out = taken.made;
    return status;
}

static inline struct weir_snapshot capture_make(const char *name, bool with_models)
{
    struct weir_snapshot made;
    weir_status status = capture_try(name, with_models, &made);
    ck_assert_msg(status == WEIR_OK, "%s", fixture.err.message);
    fixture_write(&fixture, capture_insert, &made);
    return made;
}

static inline struct weir_snapshot_file *capture_open(const struct weir_snapshot *snapshot)
{
    struct weir_snapshot_file *file;
    weir_status status =
        weir_snapshot_open(weir_snapshot_path(&capture, snapshot->id, &fixture.arena),
                           &fixture.arena, &file, &fixture.err);
    ck_assert_msg(status == WEIR_OK, "%s", fixture.err.message);
    return file;
}

#endif
