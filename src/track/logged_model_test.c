/* Logged models against lists that the test keeps itself. */
#include "track/logged_model.h"

#include "store/identity.h"
#include "store/stmt.h"
#include "store/store_fixture.h"
#include "store/table.h"
#include "track/experiment.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define N_MODELS 12

static struct store_fixture fixture;
static char ids[N_MODELS][WEIR_LOGGED_MODEL_ID_BYTES];

/* Model i: accuracy is (7 * i) % 12, depth is i % 3, kind is "net" or "tree". */
static double accuracy_of(int i)
{
    return 7 * i % N_MODELS;
}

static weir_status add(struct weir_txn *txn, int i, struct weir_error *err)
{
    char depth[8], name[16];
    (void)snprintf(ids[i], sizeof ids[i], "m-%032x", i);
    (void)snprintf(depth, sizeof depth, "%d", i % 3);
    (void)snprintf(name, sizeof name, "model %d", i);
    const struct weir_logged_model model = {.id = ids[i],
                                            .project = "default",
                                            .experiment = 0,
                                            .run = "r",
                                            .name = name,
                                            .status = i % 2 == 0 ? "READY" : "PENDING",
                                            .created_ms = 100 + i,
                                            .updated_ms = 100 + i};
    const struct weir_tag param = {"depth", depth}, tag = {"kind", i % 4 == 0 ? "net" : "tree"};
    const struct weir_logged_model_metric metric = {
        .model = ids[i],
        .run = "r",
        .dataset = "",
        .digest = "",
        .metric = {.key = "accuracy", .value = accuracy_of(i), .step = 1, .time_ms = 5}};
    WEIR_TRY(weir_txn_insert(txn, &weir_logged_model_resource, &model, err));
    WEIR_TRY(weir_logged_model_params_put(txn, ids[i], &param, 1, err));
    WEIR_TRY(weir_logged_model_tags_put(txn, ids[i], &tag, 1, err));
    return weir_logged_model_metric_put(txn, &metric, err);
}

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    int64_t id, run;
    (void)context;
    MUST(weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "default"},
                         err));
    MUST(weir_experiment_ensure(txn, "default", WEIR_EXPERIMENT_DEFAULT, NULL, 1, &id, err));
    const struct weir_run made = {
        .id = "r", .name = "r", .project = "default", .kind = "external", .status = "RUNNING"};
    MUST(weir_run_insert(txn, &made, &run, err));
    for (int i = 0; i < N_MODELS; i++) {
        MUST(add(txn, i, err));
    }
    return WEIR_OK;
}

static void set_up(void)
{
    fixture_make(&fixture, populate);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

START_TEST(an_identifier_has_one_form)
{
    ck_assert(weir_logged_model_is_id("m-0123456789abcdef0123456789abcdef"));
    ck_assert(!weir_logged_model_is_id("m-0123456789abcdef0123456789abcde"));
    ck_assert(!weir_logged_model_is_id("m-0123456789abcdef0123456789abcdef0"));
    ck_assert(!weir_logged_model_is_id("m-0123456789ABCDEF0123456789abcdef"));
    ck_assert(!weir_logged_model_is_id("m-0123456789abcdef0123456789abcde/"));
    ck_assert(!weir_logged_model_is_id("n-0123456789abcdef0123456789abcdef"));
    ck_assert(!weir_logged_model_is_id("m-"));
    ck_assert(!weir_logged_model_is_id(""));
}

END_TEST

static weir_status write_pairs(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct weir_tag same = {"depth", "0"}, other = {"depth", "9"}, tag = {"kind", "other"};
    struct weir_tag *found;
    size_t n;
    (void)context;
    MUST(weir_logged_model_params_put(txn, ids[0], &same, 1, err));
    ck_assert_int_eq(weir_logged_model_params_put(txn, ids[0], &other, 1, err), WEIR_ERR_CONFLICT);
    MUST(weir_logged_model_params(txn, ids[0], &fixture.arena, &found, &n, err));
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(found[0].value, "0");
    MUST(weir_logged_model_tags_put(txn, ids[0], &tag, 1, err));
    MUST(weir_logged_model_tags(txn, ids[0], &fixture.arena, &found, &n, err));
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(found[0].value, "other");
    MUST(weir_logged_model_tag_delete(txn, ids[0], "kind", err));
    ck_assert_int_eq(weir_logged_model_tag_delete(txn, ids[0], "kind", err), WEIR_ERR_NOT_FOUND);
    const struct weir_tag nameless = {"", "x"};
    ck_assert_int_eq(weir_logged_model_tags_put(txn, ids[0], &nameless, 1, err), WEIR_ERR_INVALID);
    return WEIR_OK;
}

START_TEST(a_parameter_is_written_once_and_a_tag_changes)
{
    fixture_write(&fixture, write_pairs, NULL);
}

END_TEST

static weir_status write_metrics(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const struct {
        const char *dataset;
        int64_t step, time_ms;
        double value;
    } written[] = {{"", 3, 5, 0.5},         {"", 2, 9, 0.1},   {"", 3, 6, 0.7},
                   {"", 3, 5, 0.2},         {"test", 1, 1, 9}, {"test", 1, 2, INFINITY},
                   {"x", 0, 0, (double)NAN}};
    struct weir_logged_model_metric *found;
    size_t n;
    (void)context;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(written); i++) {
        const struct weir_logged_model_metric metric = {.model = ids[1],
                                                        .run = "r",
                                                        .dataset = (char *)written[i].dataset,
                                                        .digest = "",
                                                        .metric = {.key = "f1",
                                                                   .step = written[i].step,
                                                                   .time_ms = written[i].time_ms,
                                                                   .value = written[i].value}};
        MUST(weir_logged_model_metric_put(txn, &metric, err));
    }
    MUST(weir_logged_model_metrics(txn, ids[1], &fixture.arena, &found, &n, err));
    ck_assert_uint_eq(n, 4); /* accuracy, and f1 on nothing, "test" and "x" */
    ck_assert_str_eq(found[1].metric.key, "f1");
    ck_assert_double_eq(found[1].metric.value, 0.7);
    ck_assert_double_ge(found[2].metric.value, 1e308);
    ck_assert(isfinite(found[2].metric.value));
    ck_assert(isnan(found[3].metric.value));
    return WEIR_OK;
}

START_TEST(the_last_measurement_of_each_dataset_is_kept)
{
    fixture_write(&fixture, write_metrics, NULL);
}

END_TEST

static weir_status write_uses(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_logged_model_use *found;
    size_t n;
    const struct weir_logged_model_use uses[] = {
        {ids[2], true, 5}, {ids[1], true, 3}, {ids[2], false, 0}, {ids[2], true, 7}};
    (void)context;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(uses); i++) {
        MUST(weir_logged_model_use_put(txn, "r", &uses[i], err));
    }
    MUST(weir_logged_model_uses(txn, "r", &fixture.arena, &found, &n, err));
    ck_assert_uint_eq(n, 3);
    ck_assert(!found[0].is_output);
    ck_assert_int_eq(found[1].step, 3);
    ck_assert_int_eq(found[2].step, 7);
    return WEIR_OK;
}

START_TEST(a_run_made_some_and_read_others)
{
    fixture_write(&fixture, write_uses, NULL);
}

END_TEST

/* ---- searching ------------------------------------------------------------------------------- */

struct asked {
    const char *filter, *order;
    bool (*fits)(int i);
    double (*key)(int i); /**< Greatest first. */
};

static bool is_deep(int i)
{
    return accuracy_of(i) > 5 && i % 3 == 1;
}

static bool is_net(int i)
{
    return i % 4 == 0;
}

static bool is_ready(int i)
{
    return i % 2 == 0;
}

static bool all(int i)
{
    (void)i;
    return true;
}

static double by_time(int i)
{
    return i;
}

static double by_name(int i)
{
    return i < 2    ? -i
           : i < 10 ? -i - 2
                    : 8 - i; /* "model 1" < "model 10" < "model 11" < "model 2" */
}

static const struct asked asked[] = {
    {NULL, NULL, all, by_time},
    {NULL, "metrics.accuracy DESC", all, accuracy_of},
    {"metrics.accuracy > 5 AND params.depth = '1'", NULL, is_deep, by_time},
    {"tags.kind = 'net'", "metrics.accuracy DESC", is_net, accuracy_of},
    {"status = 'READY'", "creation_time DESC", is_ready, by_time},
    {"name LIKE 'model %'", "name ASC", all, by_name},
};

static size_t expect(const struct asked *one, int *out)
{
    size_t n = 0;
    for (int i = 0; i < N_MODELS; i++) {
        if (one->fits(i)) {
            size_t k = n++;
            for (; k > 0 && one->key(out[k - 1]) < one->key(i); k--) {
                out[k] = out[k - 1];
            }
            out[k] = i;
        }
    }
    return n;
}

static weir_status search(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct asked *one = context;
    int expected[N_MODELS];
    const int64_t experiment = 0;
    struct weir_search_node *filter;
    struct weir_search_order order;
    size_t n_expected = expect(one, expected), n_seen = 0, n;
    char *next = NULL;
    MUST(weir_search_parse(one->filter, &weir_logged_model_noun, &fixture.arena, &filter, err));
    if (one->order != NULL) {
        MUST(weir_search_parse_order(one->order, &weir_logged_model_noun, &fixture.arena, &order,
                                     err));
    }
    do { /* in pages of 5 */
        struct weir_logged_model *found;
        const struct weir_logged_model_search page = {.experiments = &experiment,
                                                      .n_experiments = 1,
                                                      .filter = filter,
                                                      .orders = &order,
                                                      .n_orders = one->order != NULL,
                                                      .cursor = next,
                                                      .limit = 5};
        MUST(weir_logged_model_search(txn, &page, &fixture.arena, &found, &n, &next, err));
        for (size_t i = 0; i < n; i++) {
            ck_assert_uint_lt(n_seen, n_expected);
            ck_assert_str_eq(found[i].id, ids[expected[n_seen++]]);
        }
        ck_assert(next == NULL || n == 5);
    } while (next != NULL);
    ck_assert_uint_eq(n_seen, n_expected);
    return WEIR_OK;
}

START_TEST(a_search_finds_what_a_loop_over_all_does)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(asked); i++) {
        ck_assert_msg(weir_store_read(fixture.store, search, (void *)&asked[i], &fixture.err) ==
                          WEIR_OK,
                      "%zu: %s", i, fixture.err.message);
    }
}

END_TEST

static weir_status search_deleted(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_logged_model model, *found;
    const int64_t experiment = 0;
    char *next;
    size_t n;
    (void)context;
    MUST(weir_logged_model_get(txn, ids[3], &fixture.arena, &model, err));
    model.deleted_ms = 7;
    MUST(weir_txn_update(txn, &weir_logged_model_resource, &model, WEIR_FIELDS("deleted_ms"), err));
    struct weir_logged_model_search all_of = {
        .experiments = &experiment, .n_experiments = 1, .limit = 100};
    MUST(weir_logged_model_search(txn, &all_of, &fixture.arena, &found, &n, &next, err));
    ck_assert_uint_eq(n, N_MODELS - 1);
    ck_assert_ptr_null(next);
    all_of.n_experiments = 0;
    MUST(weir_logged_model_search(txn, &all_of, &fixture.arena, &found, &n, &next, err));
    ck_assert_uint_eq(n, 0);
    MUST(weir_logged_model_get(txn, ids[3], &fixture.arena, &model, err)); /* its files are there */
    ck_assert_int_eq(weir_logged_model_get(txn, "m-none", &fixture.arena, &model, err),
                     WEIR_ERR_NOT_FOUND);
    return WEIR_OK;
}

START_TEST(a_deleted_one_is_not_found_by_searches)
{
    fixture_write(&fixture, search_deleted, NULL);
}

END_TEST

static weir_status forget_run(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char *const tables[] = {"logged_models", "logged_model_params",
                                         "logged_model_tags", "logged_model_metrics",
                                         "run_logged_models"};
    const struct weir_logged_model_use use = {ids[0], true, 1};
    (void)context;
    MUST(weir_logged_model_use_put(txn, "r", &use, err));
    MUST(weir_txn_exec(txn, "DELETE FROM runs WHERE id = 'r'", WEIR_NO_BINDS, NULL, err));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(tables); i++) {
        int64_t n;
        MUST(weir_txn_query_int(
            txn, weir_arena_printf(&fixture.arena, "SELECT count(*) FROM %s", tables[i]),
            WEIR_NO_BINDS, -1, &n, err));
        ck_assert_msg(n == 0, "%s has %lld", tables[i], (long long)n);
    }
    return WEIR_OK;
}

START_TEST(they_go_with_their_run)
{
    fixture_write(&fixture, forget_run, NULL);
}

END_TEST

WEIR_TEST_MAIN_WITH("logged model", set_up, tear_down, an_identifier_has_one_form,
                    a_parameter_is_written_once_and_a_tag_changes,
                    the_last_measurement_of_each_dataset_is_kept, a_run_made_some_and_read_others,
                    a_search_finds_what_a_loop_over_all_does,
                    a_deleted_one_is_not_found_by_searches, they_go_with_their_run)
