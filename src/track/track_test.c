#include "track/track.h"

#include "store/identity.h"
#include "store/store_fixture.h"
#include "store/table.h"

#include <math.h>
#include <string.h>

static struct store_fixture fixture;

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    MUST(weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "default"},
                         err));
    MUST(weir_txn_insert(
        txn, &weir_dataset_resource,
        &(struct weir_dataset){
            .name = "faces", .project = "default", .kind = "folder", .path = "/data/faces"},
        err));
    return weir_txn_insert(
        txn, &weir_run_resource,
        &(struct weir_run){
            .id = "r", .name = "r", .project = "default", .kind = "train", .status = "RUNNING"},
        err);
}

static void set_up(void)
{
    fixture_make(&fixture, populate);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

static weir_status scan(struct weir_txn *txn, const char *id, const char *digest, int64_t number,
                        bool expect_new, struct weir_error *err)
{
    struct weir_dataset_version out;
    bool is_new;
    const struct weir_dataset_version in = {
        .id = (char *)id, .dataset = "faces", .digest = (char *)digest, .n_files = 3};
    MUST(weir_dataset_add_version(txn, &in, 1000, &fixture.arena, &out, &is_new, err));
    ck_assert_int_eq(out.version, number);
    ck_assert_str_eq(out.digest, digest);
    ck_assert(is_new == expect_new);
    return WEIR_OK;
}

static weir_status dataset_versions(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_dataset_version out;
    ck_assert_int_eq(weir_dataset_version_get(txn, "faces", 0, &fixture.arena, &out, err),
                     WEIR_ERR_NOT_FOUND);
    MUST(scan(txn, "1", "aa", 1, true, err));
    MUST(scan(txn, "2", "aa", 1, false, err));
    MUST(scan(txn, "3", "bb", 2, true, err));
    MUST(scan(txn, "4", "aa", 3, true, err)); /* Back to what it was: a third version. */
    MUST(weir_dataset_version_get(txn, "faces", 2, &fixture.arena, &out, err));
    ck_assert_str_eq(out.digest, "bb");
    MUST(weir_dataset_version_get(txn, "faces", 0, &fixture.arena, &out, err));
    ck_assert_int_eq(out.version, 3);
    ck_assert_int_eq(weir_dataset_version_get(txn, "faces", 4, &fixture.arena, &out, err),
                     WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(
        weir_dataset_add_version(
            txn, &(struct weir_dataset_version){.id = "5", .dataset = "none", .digest = "x"}, 1,
            &fixture.arena, &out, NULL, err),
        WEIR_ERR_NOT_FOUND);
    return WEIR_OK;
}

START_TEST(a_dataset_has_a_new_version_when_its_digest_changed)
{
    fixture_write(&fixture, dataset_versions, NULL);
}

END_TEST

static weir_status metrics(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    const struct weir_metric first[] = {
        {NULL, "loss", 1, 2.5, 10}, {NULL, "loss", 2, NAN, 20}, {NULL, "accuracy", -3, 0.5, 30}};
    const struct weir_metric again[] = {{NULL, "loss", 2, 1.5, 25}, {NULL, "loss", 10, 1.0, 40}};
    MUST(weir_metrics_put(txn, "r", first, 3, err));
    MUST(weir_metrics_put(txn, "r", first, 3, err));
    struct weir_metric *out;
    size_t n;
    MUST(weir_metrics_list(txn, "r", NULL, 0, 100, &fixture.arena, &out, &n, err));
    ck_assert_uint_eq(n, 3);
    ck_assert_str_eq(out[0].key, "accuracy");
    ck_assert_int_eq(out[0].step, -3);
    ck_assert(isnan(out[2].value));
    MUST(weir_metrics_put(txn, "r", again, 2, err));
    MUST(weir_metrics_list(txn, "r", "loss", 1, 100, &fixture.arena, &out, &n, err));
    ck_assert_uint_eq(n, 2);
    ck_assert_double_eq(out[0].value, 1.5);
    ck_assert_int_eq(out[0].time_ms, 25);
    ck_assert_int_eq(out[1].step, 10); /* By number, not as text. */
    MUST(weir_metrics_list(txn, "r", "accuracy", INT64_MIN, 100, &fixture.arena, &out, &n, err));
    ck_assert_uint_eq(n, 1);
    MUST(weir_metrics_list(txn, "r", "loss", INT64_MIN, 2, &fixture.arena, &out, &n, err));
    ck_assert_uint_eq(n, 2);
    MUST(weir_metrics_latest(txn, "r", &fixture.arena, &out, &n, err));
    ck_assert_uint_eq(n, 2);
    ck_assert_double_eq(out[1].value, 1.0);
    ck_assert_int_eq(weir_metrics_put(txn, "nobody", first, 1, err), WEIR_ERR_NOT_FOUND);
    return WEIR_OK;
}

START_TEST(measurements_are_stored_once_per_run_key_and_step)
{
    fixture_write(&fixture, metrics, NULL);
}

END_TEST

static weir_status register_one(struct weir_txn *txn, const char *id, const char *model,
                                const char *blob, struct weir_model_version *out, bool *is_new,
                                struct weir_error *err)
{
    const struct weir_model_version in = {.id = (char *)id,
                                          .model = (char *)model,
                                          .run = "r",
                                          .blob = (char *)blob,
                                          .bytes = 7,
                                          .parameters = "{\"epochs\":3}",
                                          .version = 99};
    return weir_model_register(txn, &in, "default", 1000, &fixture.arena, out, is_new, err);
}

static weir_status models(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_model_version out;
    bool is_new;
    MUST(register_one(txn, "a", "face", "b1", &out, &is_new, err));
    ck_assert(is_new);
    ck_assert_int_eq(out.version, 1);
    MUST(register_one(txn, "b", "face", "b2", &out, &is_new, err));
    ck_assert_int_eq(out.version, 2);
    MUST(register_one(txn, "a", "face", "b1", &out, &is_new, err));
    ck_assert(!is_new);
    ck_assert_int_eq(out.version, 1);
    ck_assert_str_eq(out.parameters, "{\"epochs\":3}");
    MUST(register_one(txn, "c", "other", "b1", &out, &is_new, err));
    ck_assert_int_eq(out.version, 1);
    ck_assert_int_eq(register_one(txn, "a", "face", "b9", &out, &is_new, err), WEIR_ERR_CONFLICT);
    ck_assert_int_eq(register_one(txn, "a", "other", "b1", &out, &is_new, err), WEIR_ERR_CONFLICT);
    MUST(weir_model_version_get(txn, "face", 0, &fixture.arena, &out, err));
    ck_assert_str_eq(out.id, "b");
    MUST(weir_model_version_get(txn, "face", 1, &fixture.arena, &out, err));
    ck_assert_str_eq(out.id, "a");
    struct weir_model_version orphan = {.id = "d", .model = "face", .run = "nobody", .blob = "b"};
    ck_assert_int_eq(
        weir_model_register(txn, &orphan, "default", 1, &fixture.arena, &out, NULL, err),
        WEIR_ERR_CONFLICT);
    int64_t n;
    MUST(weir_txn_count(txn, &weir_model_version_resource, NULL, &n, err));
    ck_assert_int_eq(n, 3);
    MUST(weir_txn_count(txn, &weir_model_resource, NULL, &n, err));
    ck_assert_int_eq(n, 2);
    return WEIR_OK;
}

START_TEST(the_same_identifier_is_the_same_model_version_and_numbers_count_per_model)
{
    fixture_write(&fixture, models, NULL);
}

END_TEST

WEIR_TEST_MAIN_WITH("track", set_up, tear_down, a_dataset_has_a_new_version_when_its_digest_changed,
                    measurements_are_stored_once_per_run_key_and_step,
                    the_same_identifier_is_the_same_model_version_and_numbers_count_per_model)
