/* The grammar of searches, and pages of runs compared with what a plain look at every run finds. */
#include "track/run_search.h"

#include "base/rng.h"
#include "store/identity.h"
#include "store/store_fixture.h"
#include "store/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct store_fixture fixture;
static struct weir_rng rng;

static void set_up(void)
{
    const char *text = getenv("WEIR_TEST_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 10) : 31;
    printf("seed %" PRIu64 "\n", seed);
    weir_rng_init(&rng, seed, 0);
    fixture_make(&fixture, NULL);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

static size_t below(size_t n)
{
    return (size_t)weir_rng_below(&rng, n);
}

/* ---- the grammar ----------------------------------------------------------------------------- */

static const char *const good[] = {
    "",
    "  ",
    "metrics.loss > 0.5",
    "metric.loss>-1e-3 AND params.a = '1'",
    "params.`learning rate` != \"0.1\"",
    "params.\"a.b\" like '%x_'",
    "tags.mlflow.source.name ILIKE 'Train%'",
    "status = 'FINISHED' or (not attributes.run_id in ('a', 'b') and end_time >= 5)",
    "attribute.run_id NOT IN ('x')",
    "dataset.name = 'd' AND datasets.digest LIKE 'x%' and dataset.context = 'train'",
    "run.run_name = 'it''s'",
    "attributes.`Run name` = 'x'",
    "NOT NOT status = 'RUNNING'",
    "created < 7",
    "dataset = 'faces' or dataset.name = 'faces'",
};

/* Each with a part of what is said, and the place. */
static const char *const bad[][2] = {
    {"metrics.loss", "character 13: expected one of ="},
    {"metrics.loss > 'a'", "character 16: expected a number"},
    {"params.a = 1", "character 12: expected a text in quotes"},
    {"params.a > 'x'", "character 10: a text is compared"},
    {"metrics.a LIKE 'x'", "character 11: a number is compared"},
    {"foo.a = 'x'", "'foo' is none of"},
    {"attributes.nothing = 'x'", "has no attribute 'nothing'"},
    {"status = 'a' AND", "but the text ends"},
    {"status = 'a' status = 'b'", "character 14: expected AND, OR"},
    {"(status = 'a'", "expected AND, OR or \")\""},
    {"status = 'a", "character 10: the quote is not closed"},
    {"status in ()", "expected a text in quotes"},
    {"status in ('a'", "expected \",\" or \")\""},
    {"metrics. > 1", "the name is empty"},
    {"dataset.size = 'x'", "of a dataset there are"},
    {"status = 'a' ; DROP TABLE runs", "belongs to no filter"},
    {"metrics.a > 1e999", "expected a number"},
    {"'a' = 'b'", "expected a name"},
};

START_TEST(filters_are_read_or_refused_with_their_place)
{
    struct weir_search_node *root;
    struct weir_search_order order;
    struct weir_error err;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(good); i++) {
        ck_assert_msg(weir_search_parse(good[i], &weir_run_noun, &fixture.arena, &root, &err) ==
                          WEIR_OK,
                      "%s: %s", good[i], err.message);
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_int_eq(weir_search_parse(bad[i][0], &weir_run_noun, &fixture.arena, &root, &err),
                         WEIR_ERR_INVALID);
        ck_assert_msg(strstr(err.message, bad[i][1]) != NULL, "%s: %s", bad[i][0], err.message);
    }
    ck_assert_int_eq(
        weir_search_parse("metrics.a > 1", &weir_experiment_noun, &fixture.arena, &root, &err),
        WEIR_ERR_INVALID);
    ck_assert_int_eq(
        weir_search_parse_order("metrics.`a b` desc", &weir_run_noun, &fixture.arena, &order, &err),
        WEIR_OK);
    ck_assert(order.is_descending);
    ck_assert_str_eq(order.key, "a b");
    ck_assert_int_eq(
        weir_search_parse_order("status down", &weir_run_noun, &fixture.arena, &order, &err),
        WEIR_ERR_INVALID);
}

END_TEST

START_TEST(filters_are_bounded)
{
    char text[WEIR_SEARCH_TEXT_MAX + 2];
    struct weir_search_node *root;
    struct weir_error err;
    memset(text, '(', sizeof text);
    text[100] = '\0';
    ck_assert_int_eq(weir_search_parse(text, &weir_run_noun, &fixture.arena, &root, &err),
                     WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "too deep"));
    size_t n = 0;
    for (int i = 0; i <= WEIR_SEARCH_COMPARISONS_MAX; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%smetrics.a > 1", i > 0 ? " OR " : "");
    }
    ck_assert_int_eq(weir_search_parse(text, &weir_run_noun, &fixture.arena, &root, &err),
                     WEIR_ERR_INVALID);
    memset(text, ' ', sizeof text);
    text[sizeof text - 1] = '\0';
    ck_assert_int_eq(weir_search_parse(text, &weir_run_noun, &fixture.arena, &root, &err),
                     WEIR_ERR_INVALID);
}

END_TEST

/* ---- against a plain look -------------------------------------------------------------------- */

enum { N_RUNS = 120, N_KEYS = 3, N_FILTERS = 300 };

static const char *const texts[] = {"", "a", "A", "ab", "aB", "b%", "a*c", "x_y"};
static const char *const patterns[] = {"%", "a%", "A%", "_b", "a*c", "%B", "x__", "b\\%", ""};
static const char *const statuses[] = {"RUNNING", "FINISHED", "FAILED"};

static struct known {
    char id[16];
    int64_t experiment, start_ms;
    size_t status;
    double metrics[N_KEYS]; /* INFINITY: it has none */
    int parameters[N_KEYS]; /* index of texts; -1: none */
    bool is_deleted;
} known[N_RUNS];

static weir_status add_run(struct weir_txn *txn, struct known *k, size_t i, struct weir_error *err)
{
    int64_t number;
    (void)snprintf(k->id, sizeof k->id, "r%03zu", (i * 37) % N_RUNS);
    k->experiment = (int64_t)below(2);
    k->start_ms = (int64_t)below(20);
    k->status = below(WEIR_ARRAY_LEN(statuses));
    k->is_deleted = below(10) == 0;
    const struct weir_run run = {.id = k->id,
                                 .name = k->id,
                                 .project = "default",
                                 .experiment = k->experiment,
                                 .kind = "external",
                                 .status = (char *)statuses[k->status],
                                 .start_ms = k->start_ms,
                                 .deleted_ms = k->is_deleted};
    MUST(weir_run_insert(txn, &run, &number, err));
    for (size_t m = 0; m < N_KEYS; m++) {
        char key[2] = {(char)('m' + m), '\0'};
        k->metrics[m] = below(3) == 0 ? INFINITY : below(8) == 0 ? NAN : (double)below(5) - 2;
        k->parameters[m] = (int)below(WEIR_ARRAY_LEN(texts) + 2) - 2;
        k->parameters[m] = k->parameters[m] < 0 ? -1 : k->parameters[m];
        if (!isinf(k->metrics[m])) {
            MUST(weir_metrics_log(
                txn, number, &(struct weir_metric){.key = key, .value = k->metrics[m]}, 1, err));
        }
        if (k->parameters[m] >= 0) {
            MUST(weir_run_parameters_put(
                txn, number, &(struct weir_tag){key, (char *)texts[k->parameters[m]]}, 1, err));
        }
    }
    return WEIR_OK;
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

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool is_like(const char *text, const char *pattern, bool any_case)
{
    if (*pattern == '\0') {
        return *text == '\0';
    }
    if (*pattern == '%') {
        return is_like(text, pattern + 1, any_case) ||
               (*text != '\0' && is_like(text + 1, pattern, any_case));
    }
    bool fits = *text != '\0' && (*pattern == '_' || *text == *pattern ||
                                  (any_case && lower(*text) == lower(*pattern)));
    return fits && is_like(text + 1, pattern + 1, any_case);
}

static bool compare(int order, size_t op)
{
    switch (op) {
    case 0:
        return order == 0;
    case 1:
        return order != 0;
    case 2:
        return order < 0;
    case 3:
        return order <= 0;
    case 4:
        return order > 0;
    default:
        return order >= 0;
    }
}

/* A random filter as text, and what it says of each run. */
static void make_comparison(char *out, size_t size, bool fits[N_RUNS])
{
    static const char *const ops[] = {"=", "!=", "<", "<=", ">", ">=", "LIKE", "ilike"};
    size_t key = below(N_KEYS), what = below(4);
    if (what == 0) {
        size_t op = below(6);
        int value = (int)below(5) - 2;
        (void)snprintf(out, size, "metrics.%c %s %d", (char)('m' + key), ops[op], value);
        for (size_t i = 0; i < N_RUNS; i++) {
            double v = known[i].metrics[key];
            fits[i] = isfinite(v) && compare((v > value) - (v < value), op);
        }
    } else if (what == 1) {
        size_t op = below(4);
        const char *value = op < 2 ? texts[below(WEIR_ARRAY_LEN(texts))]
                                   : patterns[below(WEIR_ARRAY_LEN(patterns))];
        (void)snprintf(out, size, "params.`%c` %s '%s'", (char)('m' + key),
                       ops[op < 2 ? op : op + 4], value);
        for (size_t i = 0; i < N_RUNS; i++) {
            const char *v = known[i].parameters[key] < 0 ? NULL : texts[known[i].parameters[key]];
            fits[i] = v != NULL && (op == 0   ? strcmp(v, value) == 0
                                    : op == 1 ? strcmp(v, value) != 0
                                              : is_like(v, value, op == 3));
        }
    } else if (what == 2) {
        size_t a = below(3), b = below(3);
        bool is_not = below(2) == 0;
        (void)snprintf(out, size, "attributes.status %s ('%s', '%s')", is_not ? "not in" : "IN",
                       statuses[a], statuses[b]);
        for (size_t i = 0; i < N_RUNS; i++) {
            fits[i] = (known[i].status == a || known[i].status == b) != is_not;
        }
    } else {
        size_t op = below(6);
        int64_t value = (int64_t)below(20);
        (void)snprintf(out, size, "start_time %s %" PRId64, ops[op], value);
        for (size_t i = 0; i < N_RUNS; i++) {
            int64_t v = known[i].start_ms;
            fits[i] = compare((v > value) - (v < value), op);
        }
    }
}

static void make_filter(char *out, size_t size, bool fits[N_RUNS], int depth)
{
    char left[512], right[512];
    bool other[N_RUNS];
    size_t what = depth == 0 ? 0 : below(4);
    if (what == 0) {
        make_comparison(out, size, fits);
    } else if (what == 1) {
        make_filter(left, sizeof left, fits, depth - 1);
        (void)snprintf(out, size, "not (%.500s)", left);
        for (size_t i = 0; i < N_RUNS; i++) {
            fits[i] = !fits[i];
        }
    } else {
        make_filter(left, sizeof left, fits, depth - 1);
        make_filter(right, sizeof right, other, depth - 1);
        (void)snprintf(out, size, "(%.500s) %s (%.500s)", left, what == 2 ? "AND" : "or", right);
        for (size_t i = 0; i < N_RUNS; i++) {
            fits[i] = what == 2 ? fits[i] && other[i] : fits[i] || other[i];
        }
    }
}

/* What the runs are ordered by in this check. */
static size_t order_key;
static int order_what; /* 0: start, latest first; 1, 2: a metric up, down; 3: a parameter */

static int by_metric(const struct known *a, const struct known *b, bool is_down)
{
    double x = a->metrics[order_key], y = b->metrics[order_key];
    int rank_x = isinf(x) ? 2 : isnan(x), rank_y = isinf(y) ? 2 : isnan(y);
    if (rank_x != rank_y || rank_x > 0) {
        return rank_x - rank_y;
    }
    int order = (x > y) - (x < y);
    return is_down ? -order : order;
}

static int in_order(const void *left, const void *right)
{
    const struct known *a = *(const struct known *const *)left;
    const struct known *b = *(const struct known *const *)right;
    int order = 0;
    if (order_what == 1 || order_what == 2) {
        order = by_metric(a, b, order_what == 2);
    } else if (order_what == 3) {
        int x = a->parameters[order_key], y = b->parameters[order_key];
        order = x < 0 || y < 0 ? (x < 0) - (y < 0) : strcmp(texts[x], texts[y]);
    }
    order = order != 0 ? order : (b->start_ms > a->start_ms) - (b->start_ms < a->start_ms);
    return order != 0 ? order : strcmp(a->id, b->id);
}

static weir_status look(struct weir_txn *txn, const char *text, const bool fits[N_RUNS],
                        struct weir_error *err)
{
    static const int64_t experiments[] = {0, 1};
    const struct known *expected[N_RUNS];
    char order_text[32];
    struct weir_search_node *filter;
    struct weir_search_order order;
    size_t n_experiments = 1 + below(2), n_expected = 0, n_read = 0;
    struct weir_run_search search = {.experiments = experiments,
                                     .n_experiments = n_experiments,
                                     .orders = &order,
                                     .limit = 1 + below(30)};
    order_key = below(N_KEYS);
    order_what = (int)below(4);
    MUST(weir_search_parse(text, &weir_run_noun, &fixture.arena, &filter, err));
    search.filter = filter;
    if (order_what != 0) {
        (void)snprintf(order_text, sizeof order_text, "%s.%c%s",
                       order_what == 3 ? "params" : "metrics", (char)('m' + order_key),
                       order_what == 2 ? " DESC" : "");
        MUST(weir_search_parse_order(order_text, &weir_run_noun, &fixture.arena, &order, err));
        search.n_orders = 1;
    }
    for (size_t i = 0; i < N_RUNS; i++) {
        if (fits[i] && !known[i].is_deleted && (size_t)known[i].experiment < n_experiments) {
            expected[n_expected++] = &known[i];
        }
    }
    qsort(expected, n_expected, sizeof expected[0], in_order); /* NOLINT: pointers are sorted */
    search.skip = below(3) == 0 ? (int64_t)below(N_RUNS) : 0; /* from anywhere, and on from there */
    n_read = WEIR_MIN((size_t)search.skip, n_expected);
    do {
        struct weir_run_row *rows;
        size_t n;
        char *next;
        MUST(weir_run_search(txn, &search, &fixture.arena, &rows, &n, &next, err));
        for (size_t i = 0; i < n; i++, n_read++) {
            ck_assert_msg(
                n_read < n_expected && strcmp(rows[i].record.id, expected[n_read]->id) == 0,
                "%s, order %d: at %zu got %s", text, order_what, n_read, rows[i].record.id);
        }
        search.cursor = next;
        search.skip = 0;
    } while (search.cursor != NULL);
    ck_assert_msg(n_read == n_expected, "%s: %zu of %zu", text, n_read, n_expected);
    return WEIR_OK;
}

static weir_status look_often(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    for (int i = 0; i < N_FILTERS; i++) {
        char text[2048];
        bool fits[N_RUNS];
        make_filter(text, sizeof text, fits, (int)below(3));
        if (below(3) == 0) { /* no filter: pages by a metric are read off its index */
            text[0] = '\0';
            for (size_t k = 0; k < N_RUNS; k++) {
                fits[k] = true;
            }
        }
        MUST(look(txn, text, fits, err));
    }
    return WEIR_OK;
}

START_TEST(pages_of_runs_are_what_a_plain_look_finds_in_the_same_order)
{
    fixture_write(&fixture, populate, NULL);
    fixture_read(&fixture, look_often, NULL);
}

END_TEST

static weir_status cursors(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char *const wrong[] = {"x",           "", "W10=", "WzEsMl0=", "WyJhIiwiYiJd",
                                        "bm9uc2Vuc2U="};
    (void)context;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        struct weir_run_row *rows;
        size_t n;
        char *next;
        const struct weir_run_search search = {.cursor = wrong[i], .limit = 5};
        ck_assert_int_eq(weir_run_search(txn, &search, &fixture.arena, &rows, &n, &next, err),
                         WEIR_ERR_INVALID);
    }
    return WEIR_OK;
}

START_TEST(a_cursor_of_another_search_is_refused)
{
    fixture_read(&fixture, cursors, NULL);
}

END_TEST

WEIR_TEST_MAIN_WITH("search", set_up, tear_down, filters_are_read_or_refused_with_their_place,
                    filters_are_bounded,
                    pages_of_runs_are_what_a_plain_look_finds_in_the_same_order,
                    a_cursor_of_another_search_is_refused)
