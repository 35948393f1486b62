/* Groups of runs, compared with what a plain look at every run finds. */
#include "track/run_groups.h"

#include "base/rng.h"
#include "store/identity.h"
#include "store/store_fixture.h"
#include "store/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_RUNS = 200, N_LOOKS = 100 };

static const char *const values[] = {NULL, "", "0.1", "0.02", "a'b", "\"", "A", "a"}; /* by bytes */
static const char *const sorted[] = {NULL, "", "\"", "0.02", "0.1", "A", "a", "a'b"};
static const char *const statuses[] = {"FAILED", "FINISHED", "RUNNING"};

static struct store_fixture fixture;
static struct weir_rng rng;

static struct known {
    char id[16];
    int64_t experiment;
    const char *param, *tag, *status;
    double metric; /* INFINITY: it has none */
    bool is_deleted;
} known[N_RUNS];

static size_t below(size_t n)
{
    return (size_t)weir_rng_below(&rng, n);
}

static weir_status add_run(struct weir_txn *txn, struct known *k, size_t i, struct weir_error *err)
{
    int64_t number;
    (void)snprintf(k->id, sizeof k->id, "r%03zu", i);
    *k = (struct known){.experiment = (int64_t)below(2),
                        .param = values[below(WEIR_ARRAY_LEN(values))],
                        .tag = values[below(3)],
                        .status = statuses[below(WEIR_ARRAY_LEN(statuses))],
                        .metric = below(4) == 0   ? INFINITY
                                  : below(5) == 0 ? NAN
                                                  : (double)below(9) / 4,
                        .is_deleted = below(8) == 0};
    (void)snprintf(k->id, sizeof k->id, "r%03zu", i);
    const struct weir_run run = {.id = k->id,
                                 .name = k->id,
                                 .project = "default",
                                 .experiment = k->experiment,
                                 .kind = "external",
                                 .status = (char *)k->status,
                                 .start_ms = (int64_t)i,
                                 .deleted_ms = k->is_deleted};
    MUST(weir_run_insert(txn, &run, &number, err));
    if (k->param != NULL) {
        MUST(weir_run_parameters_put(txn, number, &(struct weir_tag){"p", (char *)k->param}, 1,
                                     err));
    }
    if (k->tag != NULL) {
        MUST(weir_run_tags_put(txn, number, &(struct weir_tag){"t", (char *)k->tag}, 1, err));
    }
    return isinf(k->metric)
               ? WEIR_OK
               : weir_metrics_log(txn, number,
                                  &(struct weir_metric){.key = "m/x", .value = k->metric}, 1, err);
}

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    int64_t id;
    (void)context;
    MUST(weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "default"},
                         err));
    MUST(weir_experiment_ensure(txn, "default", WEIR_EXPERIMENT_DEFAULT, NULL, 1, &id, err));
    MUST(weir_experiment_ensure(txn, "default", "other", NULL, 1, &id, err));
    for (size_t i = 0; i < N_RUNS; i++) {
        MUST(add_run(txn, &known[i], i, err));
    }
    return WEIR_OK;
}

static void set_up(void)
{
    const char *text = getenv("WEIR_TEST_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 10) : 77;
    printf("seed %" PRIu64 "\n", seed);
    weir_rng_init(&rng, seed, 0);
    fixture_make(&fixture, populate);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

static bool is_same(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* What is grouped by in a look: 0 the parameter, 1 the tag, 2 the status. */
static const char *const names[] = {"params.p", "tags.`t`", "status"};

static const char *value_of(const struct known *k, size_t what)
{
    return what == 0 ? k->param : what == 1 ? k->tag : k->status;
}

/* Of the runs with this value in the experiments 0 … n_experiments - 1. */
static struct weir_run_group expect(size_t what, const char *value, size_t n_experiments,
                                    bool has_filter, bool has_metric)
{
    struct weir_run_group group = {.least = INFINITY, .greatest = -INFINITY};
    for (size_t i = 0; i < N_RUNS; i++) {
        const struct known *k = &known[i];
        if (k->is_deleted || (size_t)k->experiment >= n_experiments ||
            !is_same(value_of(k, what), value) ||
            (has_filter && strcmp(k->status, "FINISHED") != 0)) {
            continue;
        }
        group.n_runs++;
        if (has_metric && isfinite(k->metric)) {
            group.n_measured++;
            group.mean += k->metric;
            group.least = fmin(group.least, k->metric);
            group.greatest = fmax(group.greatest, k->metric);
        }
    }
    group.mean /= (double)group.n_measured;
    return group;
}

static void check_group(const struct weir_run_group *got, const struct weir_run_group *want)
{
    ck_assert_int_eq(got->n_runs, want->n_runs);
    ck_assert_int_eq(got->n_measured, want->n_measured);
    if (want->n_measured == 0) {
        ck_assert(isnan(got->mean) && isnan(got->least) && isnan(got->greatest));
        return;
    }
    ck_assert_double_eq_tol(got->mean, want->mean, 1e-12);
    ck_assert_double_eq(got->least, want->least);
    ck_assert_double_eq(got->greatest, want->greatest);
}

static weir_status look(struct weir_txn *txn, struct weir_error *err)
{
    static const int64_t experiments[] = {0, 1};
    const char *const *all = sorted;
    size_t what = below(3), n_all = WEIR_ARRAY_LEN(sorted), i = 0;
    bool has_filter = below(2) == 0, has_metric = below(3) > 0;
    struct weir_run_search search = {
        .experiments = experiments, .n_experiments = 1 + below(2), .limit = 1 + below(4)};
    struct weir_search_order by;
    struct weir_search_node *filter;
    if (what == 2) {
        all = statuses;
        n_all = WEIR_ARRAY_LEN(statuses);
    }
    MUST(weir_run_groups_parse(names[what], &fixture.arena, &by, err));
    MUST(weir_search_parse(has_filter ? "status = 'FINISHED'" : "", &weir_run_noun, &fixture.arena,
                           &filter, err));
    search.filter = filter;
    do {
        struct weir_run_group *groups;
        size_t n;
        char *next;
        MUST(weir_run_groups(txn, &search, &by, has_metric ? "m/x" : NULL, &fixture.arena, &groups,
                             &n, &next, err));
        ck_assert(n <= search.limit);
        for (size_t k = 0; k < n; i++) {
            ck_assert_uint_lt(i, n_all);
            struct weir_run_group want =
                expect(what, all[i], search.n_experiments, has_filter, has_metric);
            if (want.n_runs > 0) {
                ck_assert(is_same(groups[k].value, all[i]));
                check_group(&groups[k++], &want);
            }
        }
        search.cursor = next;
    } while (search.cursor != NULL);
    for (; i < n_all; i++) {
        ck_assert_int_eq(expect(what, all[i], search.n_experiments, has_filter, has_metric).n_runs,
                         0);
    }
    return WEIR_OK;
}

static weir_status look_often(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    for (int i = 0; i < N_LOOKS; i++) {
        MUST(look(txn, err));
    }
    return WEIR_OK;
}

START_TEST(pages_of_groups_are_what_a_plain_look_finds)
{
    fixture_read(&fixture, look_often, NULL);
}

END_TEST

static weir_status refuse(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char *const wrong[] = {"metrics.m", "start_time",   "params.p DESC",
                                        "color",     "dataset.name", ""};
    const struct weir_run_search search = {.cursor = "x", .limit = 5};
    struct weir_search_order by;
    struct weir_run_group *groups;
    size_t n;
    char *next;
    (void)context;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        ck_assert_int_eq(weir_run_groups_parse(wrong[i], &fixture.arena, &by, err),
                         WEIR_ERR_INVALID);
    }
    MUST(weir_run_groups_parse("params.p", &fixture.arena, &by, err));
    ck_assert_int_eq(
        weir_run_groups(txn, &search, &by, NULL, &fixture.arena, &groups, &n, &next, err),
        WEIR_ERR_INVALID);
    return WEIR_OK;
}

START_TEST(what_is_no_text_and_cursors_of_other_lists_are_refused)
{
    fixture_read(&fixture, refuse, NULL);
}

END_TEST

WEIR_TEST_MAIN_WITH("run_groups", set_up, tear_down, pages_of_groups_are_what_a_plain_look_finds,
                    what_is_no_text_and_cursors_of_other_lists_are_refused)
