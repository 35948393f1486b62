#include "ion/decision_total.h"

#include "base/rng.h"
#include "base/test_main.h"
#include "ion/ion_fixture.h"
#include "store/store_fixture.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N_DECISIONS 600
#define N_PAIRS     3 /* of versions, each way */

static struct store_fixture fixture;

/** What the test knows of each decision that it stored. */
static struct known {
    struct weir_decision decision;
    bool is_gone;
} known[N_DECISIONS];

static uint64_t seed;

static void set_up(void)
{
    struct weir_rng rng;
    seed = (uint64_t)time(NULL);
    printf("seed %" PRIu64 "\n", seed);
    weir_rng_init(&rng, seed, 0);
    fixture_make(&fixture, NULL);
    for (size_t i = 0; i < N_DECISIONS; i++) {
        known[i] = (struct known){
            .decision = {.id = weir_arena_printf(&fixture.arena, "d%04zu", i),
                         .ion = weir_rng_below(&rng, 4) == 0 ? "y" : "x",
                         .pipeline = weir_rng_below(&rng, 4) == 0 ? "q" : "p",
                         .camera = "door",
                         .frame = (int64_t)i,
                         .time_ms = 1000 + (int64_t)weir_rng_below(&rng, 200), /* many alike */
                         .verdict = "grant",
                         .model_version = (int64_t)weir_rng_below(&rng, N_PAIRS),
                         .gallery_version = (int64_t)weir_rng_below(&rng, N_PAIRS),
                         .is_sandbox = weir_rng_below(&rng, 8) == 0}};
    }
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

static weir_status store_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    size_t n_stored;
    (void)context;
    for (size_t i = 0; i < N_DECISIONS; i++) {
        MUST(weir_decisions_store(txn, &known[i].decision, 1, NULL, 0, &n_stored, err));
        REQUIRE(n_stored == 1);
    }
    return WEIR_OK;
}

/* Retention takes the first that came. */
static weir_status delete_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    int64_t *n = context;
    MUST(weir_txn_exec(txn, "DELETE FROM decisions WHERE seq <= :n",
                       WEIR_BINDS(WEIR_BIND_INT("n", *n)), NULL, err));
    for (int64_t i = 0; i < *n; i++) {
        known[i].is_gone = true;
    }
    return WEIR_OK;
}

static bool is_of(const struct weir_decision *decision, const struct weir_decision_total *total)
{
    return strcmp(decision->ion, total->ion) == 0 &&
           strcmp(decision->pipeline, total->pipeline) == 0 &&
           decision->model_version == total->model_version &&
           decision->gallery_version == total->gallery_version &&
           decision->is_sandbox == total->is_sandbox;
}

static void check_total(const struct weir_decision_total *total)
{
    struct weir_decision_total counted = *total;
    counted.n_made = counted.n_kept = counted.first_ms = counted.last_ms = 0;
    for (size_t i = 0; i < N_DECISIONS; i++) {
        int64_t time_ms = known[i].decision.time_ms;
        if (!is_of(&known[i].decision, total)) {
            continue;
        }
        counted.first_ms = counted.n_made == 0 ? time_ms : WEIR_MIN(counted.first_ms, time_ms);
        counted.last_ms = WEIR_MAX(counted.last_ms, time_ms);
        counted.n_made++;
        counted.n_kept += !known[i].is_gone;
    }
    REQUIRE(counted.n_made == total->n_made);
    REQUIRE(counted.n_kept == total->n_kept);
    REQUIRE(counted.first_ms == total->first_ms);
    REQUIRE(counted.last_ms == total->last_ms);
}

static size_t count_of(const char *ion, const char *pipeline, int64_t model, int64_t gallery)
{
    size_t n = 0;
    for (size_t i = 0; i < N_DECISIONS; i++) {
        const struct weir_decision *one = &known[i].decision;
        n += strcmp(one->ion, ion) == 0 && strcmp(one->pipeline, pipeline) == 0 &&
             (model < 0 || one->model_version == model) &&
             (gallery < 0 || one->gallery_version == gallery);
    }
    return n;
}

static weir_status check_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char *const ions[] = {"x", "y"}, *const pipelines[] = {"p", "q"};
    (void)context;
    for (int64_t i = 0; i < 4 * (N_PAIRS + 1) * (N_PAIRS + 1); i++) {
        int64_t model = i / 4 / (N_PAIRS + 1) - 1, gallery = i / 4 % (N_PAIRS + 1) - 1;
        struct weir_decision_total *totals;
        size_t n, n_made = 0;
        MUST(weir_decision_totals(txn, ions[i & 1], pipelines[i >> 1 & 1], model, gallery,
                                  &fixture.arena, &totals, &n, err));
        for (size_t k = 0; k < n; k++) {
            check_total(&totals[k]);
            n_made += (size_t)totals[k].n_made;
            REQUIRE(k == 0 || totals[k].last_ms <= totals[k - 1].last_ms);
        }
        REQUIRE(n_made == count_of(ions[i & 1], pipelines[i >> 1 & 1], model, gallery));
    }
    return WEIR_OK;
}

START_TEST(totals_are_those_of_all_that_came_also_when_some_have_gone)
{
    int64_t n_gone = (int64_t)(seed % N_DECISIONS);
    fixture_write(&fixture, store_in, NULL);
    fixture_read(&fixture, check_in, NULL);
    fixture_write(&fixture, delete_in, &n_gone);
    fixture_read(&fixture, check_in, NULL);
}

END_TEST

static int newest_first(const void *a, const void *b)
{
    const struct weir_decision *x = *(const struct weir_decision *const *)a;
    const struct weir_decision *y = *(const struct weir_decision *const *)b;
    if (x->time_ms != y->time_ms) {
        return x->time_ms > y->time_ms ? -1 : 1;
    }
    return -strcmp(x->id, y->id);
}

/* Page by page all of one pipeline and model version, whatever the gallery. */
static weir_status page_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct weir_decision *expected[N_DECISIONS];
    size_t n_expected = 0, n_seen = 0, n_totals, limit = *(size_t *)context;
    struct weir_decision_total *totals;
    char *cursor = NULL;
    for (size_t i = 0; i < N_DECISIONS; i++) {
        const struct weir_decision *one = &known[i].decision;
        if (strcmp(one->ion, "x") == 0 && strcmp(one->pipeline, "p") == 0 &&
            one->model_version == 1 && !known[i].is_gone) {
            expected[n_expected++] = one;
        }
    }
    qsort(expected, n_expected, sizeof expected[0], newest_first); /* NOLINT: pointers are sorted */
    MUST(weir_decision_totals(txn, "x", "p", 1, -1, &fixture.arena, &totals, &n_totals, err));
    do {
        struct weir_decision *items;
        size_t n;
        MUST(weir_decisions_of_totals(txn, totals, n_totals, cursor, limit, &fixture.arena, &items,
                                      &n, &cursor, err));
        REQUIRE(n == limit || cursor == NULL);
        for (size_t i = 0; i < n; i++, n_seen++) {
            REQUIRE(n_seen < n_expected);
            ck_assert_str_eq(items[i].id, expected[n_seen]->id);
        }
    } while (cursor != NULL);
    REQUIRE(n_seen == n_expected);
    return WEIR_OK;
}

START_TEST(pages_have_each_decision_once_the_newest_first)
{
    static const size_t limits[] = {1, 7, 1000};
    int64_t n_gone = 100;
    fixture_write(&fixture, store_in, NULL);
    fixture_write(&fixture, delete_in, &n_gone);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(limits); i++) {
        size_t limit = limits[i];
        fixture_read(&fixture, page_in, &limit);
    }
}

END_TEST

static weir_status refuse_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char *const wrong[] = {"", "x", "12", "~", "x~y"};
    struct weir_decision *items;
    size_t n;
    char *next;
    (void)context;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        ck_assert_int_eq(weir_decisions_of_totals(txn, NULL, 0, wrong[i], 10, &fixture.arena,
                                                  &items, &n, &next, err),
                         WEIR_ERR_INVALID);
    }
    return WEIR_OK;
}

START_TEST(what_is_no_cursor_is_refused)
{
    fixture_read(&fixture, refuse_in, NULL);
}

END_TEST

/* A frame that was only tried and is then decided: the trial is counted, and is not there any more. */
static weir_status try_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_decision tried = {.id = "t",
                                  .ion = "x",
                                  .pipeline = "p",
                                  .camera = "door",
                                  .frame = 1,
                                  .time_ms = 5,
                                  .verdict = "grant",
                                  .is_sandbox = true};
    struct weir_decision done = tried;
    struct weir_decision_total *totals;
    size_t n;
    (void)context;
    done.id = "d";
    done.is_sandbox = false;
    MUST(weir_decisions_store(txn, &tried, 1, NULL, 0, &n, err));
    MUST(weir_decisions_store(txn, &done, 1, NULL, 0, &n, err));
    MUST(weir_decisions_store(txn, &done, 1, NULL, 0, &n, err)); /* again: no effect */
    MUST(weir_decision_totals(txn, "x", "p", -1, -1, &fixture.arena, &totals, &n, err));
    REQUIRE(n == 2);
    for (size_t i = 0; i < n; i++) {
        REQUIRE(totals[i].n_made == 1);
        REQUIRE(totals[i].n_kept == !totals[i].is_sandbox);
    }
    return WEIR_OK;
}

START_TEST(a_trial_that_was_replaced_was_made_and_is_not_kept)
{
    fixture_write(&fixture, try_in, NULL);
}

END_TEST

WEIR_TEST_MAIN_WITH("decision total", set_up, tear_down,
                    totals_are_those_of_all_that_came_also_when_some_have_gone,
                    pages_have_each_decision_once_the_newest_first, what_is_no_cursor_is_refused,
                    a_trial_that_was_replaced_was_made_and_is_not_kept)
