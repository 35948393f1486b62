/* What a comparison keeps, which one a review finds, and what goes with whom. */
#include "track/comparison.h"

#include "base/test_main.h"
#include "store/identity.h"
#include "store/stmt.h"
#include "store/store_fixture.h"
#include "store/table.h"
#include "track/run.h"

#include <string.h>

static struct store_fixture fixture;

static weir_status add_run(struct weir_txn *txn, const char *id, const char *project,
                           struct weir_error *err)
{
    int64_t number;
    const struct weir_run run = {.id = (char *)id,
                                 .name = (char *)id,
                                 .project = (char *)project,
                                 .kind = "measure",
                                 .status = "FINISHED"};
    return weir_run_insert(txn, &run, &number, err);
}

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    static const char *const projects[] = {"default", "other"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(projects); i++) {
        MUST(weir_txn_insert(txn, &weir_project_resource,
                             &(struct weir_project){.name = (char *)projects[i]}, err));
    }
    MUST(add_run(txn, "a", "default", err));
    MUST(add_run(txn, "b", "default", err));
    return add_run(txn, "c", "other", err);
}

static void set_up(void)
{
    fixture_make(&fixture, populate);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

static struct weir_disagreement row_of(const char *kind, const char *label, const char *answer,
                                       const char *live_answer)
{
    return (struct weir_disagreement){.kind = (char *)kind,
                                      .file = "x/1.png",
                                      .sha256 = "00",
                                      .label = (char *)label,
                                      .answer = (char *)answer,
                                      .score = 0.5,
                                      .live_answer = (char *)live_answer,
                                      .live_score = 0.25};
}

static struct weir_comparison comparison_of(const char *run, int64_t version, int64_t live_version,
                                            int64_t time_ms)
{
    return (struct weir_comparison){.run = (char *)run,
                                    .model = "parts",
                                    .version = version,
                                    .live_model = "parts",
                                    .live_version = live_version,
                                    .dataset = "held-out",
                                    .dataset_version = 1,
                                    .n_samples = 9,
                                    .confusions = "[]",
                                    .time_ms = time_ms};
}

static void put(struct weir_txn *txn, const char *run, int64_t version, int64_t live_version,
                int64_t time_ms, struct weir_error *err)
{
    struct weir_disagreement rows[] = {row_of("live-right", "nut", "bolt", "nut"),
                                       row_of("candidate-right", "nut", "nut", "bolt"),
                                       row_of("both-wrong", "gear", "bolt", "nut")};
    struct weir_comparison comparison = comparison_of(run, version, live_version, time_ms);
    ck_assert_msg(weir_comparison_put(txn, &comparison, rows, WEIR_ARRAY_LEN(rows), &fixture.arena,
                                      err) == WEIR_OK,
                  "%s", err->message);
}

static size_t count(struct weir_txn *txn, const char *run, const char *kind, struct weir_error *err)
{
    struct weir_disagreement *rows;
    size_t n;
    ck_assert_msg(weir_disagreements_list(txn, run, kind, 100, NULL, &fixture.arena, &rows, &n,
                                          NULL, err) == WEIR_OK,
                  "%s", err->message);
    return n;
}

static weir_status in_pages(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_disagreement *rows;
    size_t n, n_all = 0;
    char *next = NULL;
    put(txn, "a", 4, 3, 1, err);
    put(txn, "a", 4, 3, 2, err); /* told again: no more */
    do {
        MUST(weir_disagreements_list(txn, "a", NULL, 2, next, &fixture.arena, &rows, &n, &next,
                                     err));
        for (size_t i = 0; i < n; i++) {
            ck_assert_int_eq(rows[i].place, (int64_t)n_all++);
        }
    } while (next != NULL);
    ck_assert_uint_eq(n_all, 3);
    ck_assert_uint_eq(count(txn, "a", "both-wrong", err), 1);
    ck_assert_int_eq(
        weir_disagreements_list(txn, "a", "best", 2, NULL, &fixture.arena, &rows, &n, NULL, err),
        WEIR_ERR_INVALID);
    return WEIR_OK;
}

START_TEST(disagreements_come_in_pages_and_by_kind)
{
    fixture_write(&fixture, in_pages, NULL);
}

END_TEST

static weir_status finding(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_comparison found;
    put(txn, "a", 4, 3, 1, err);
    put(txn, "b", 4, 2, 2, err);
    MUST(weir_comparison_find(txn, "parts", 4, NULL, 0, &fixture.arena, &found, err));
    ck_assert_str_eq(found.run, "b"); /* the newest */
    MUST(weir_comparison_find(txn, "parts", 4, "parts", 3, &fixture.arena, &found, err));
    ck_assert_str_eq(found.run, "a"); /* the one with what serves */
    ck_assert_int_eq(found.n_kept, 3);
    MUST(weir_comparison_find(txn, "parts", 4, "parts", 1, &fixture.arena, &found, err));
    ck_assert_str_eq(found.run, "b");
    ck_assert_int_eq(weir_comparison_find(txn, "parts", 5, "parts", 3, &fixture.arena, &found, err),
                     WEIR_ERR_NOT_FOUND);
    return WEIR_OK;
}

START_TEST(a_review_finds_the_comparison_with_what_serves_or_else_the_newest)
{
    fixture_write(&fixture, finding, NULL);
}

END_TEST

static weir_status refusing(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_disagreement wrong[] = {row_of("live-right", "nut", "nut", "bolt"),
                                        row_of("both-wrong", "nut", "bolt", "bolt")};
    struct weir_comparison comparison = comparison_of("a", 4, 3, 1);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        ck_assert_int_eq(weir_comparison_put(txn, &comparison, &wrong[i], 1, &fixture.arena, err),
                         WEIR_ERR_INVALID);
    }
    comparison.run = "nobody";
    ck_assert_int_eq(weir_comparison_put(txn, &comparison, wrong, 0, &fixture.arena, err),
                     WEIR_ERR_NOT_FOUND);
    return WEIR_OK;
}

START_TEST(a_kind_that_the_answers_do_not_have_is_refused)
{
    fixture_write(&fixture, refusing, NULL);
}

END_TEST

static weir_status going_with_its_run(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    put(txn, "a", 4, 3, 1, err);
    put(txn, "c", 4, 3, 1, err);
    ck_assert_uint_gt(count(txn, "a", NULL, err), 0);
    MUST(weir_txn_exec(txn, "DELETE FROM runs WHERE id = :id",
                       WEIR_BINDS(WEIR_BIND_TEXT("id", "a")), NULL, err));
    ck_assert_uint_eq(count(txn, "a", NULL, err), 0);
    return WEIR_OK;
}

START_TEST(disagreements_go_with_their_run)
{
    fixture_write(&fixture, going_with_its_run, NULL);
}

END_TEST

WEIR_TEST_MAIN_WITH("comparison", set_up, tear_down, disagreements_come_in_pages_and_by_kind,
                    a_review_finds_the_comparison_with_what_serves_or_else_the_newest,
                    a_kind_that_the_answers_do_not_have_is_refused, disagreements_go_with_their_run)
