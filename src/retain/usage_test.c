#include "retain/retain_fixture.h"

#include <string.h>

static const struct weir_retain_usage *line(const struct weir_retain_report *report,
                                            const char *kind)
{
    for (size_t i = 0; i < report->n; i++) {
        if (strcmp(report->items[i].kind, kind) == 0) {
            return &report->items[i];
        }
    }
    ck_abort_msg("no line %s", kind);
    return NULL;
}

static struct weir_retain_report usage(void)
{
    struct weir_retain_report report;
    struct weir_error err = {0};
    ck_assert_msg(weir_retainer_usage(retainer, &fixture.arena, &report, &err) == WEIR_OK, "%s",
                  err.message);
    return report;
}

START_TEST(every_kind_has_a_line_also_when_there_is_nothing)
{
    struct weir_retain_report report = usage();
    for (int i = 0; i < weir_retain_n(); i++) {
        const struct weir_retain_usage *item = line(&report, weir_retain_rule(i)->name);
        ck_assert_int_eq(item->used_bytes, 0);
        ck_assert_int_eq(item->n, 0);
        ck_assert_str_eq(item->next, "nothing");
    }
    ck_assert_int_gt(line(&report, "database")->used_bytes, 4096);
    ck_assert_int_ge(report.total_bytes, line(&report, "database")->used_bytes);
    ck_assert_int_gt(report.disk_free_bytes, 0);
    ck_assert_int_ge(report.disk_bytes, report.disk_free_bytes);
}

END_TEST

START_TEST(it_says_how_much_there_is_and_what_goes_next)
{
    add_job("over", "train", "FAILED", NOON_MS);
    add_job("runs", "train", "RUNNING", 0);
    add_file(in_state("checkpoints/over/w"), 100000, NOON_MS);
    add_file(in_state("checkpoints/runs/w"), 100000, NOON_MS);
    now_ms = NOON_MS + DAY_MS;
    struct weir_retain_report report = usage();
    const struct weir_retain_usage *item = line(&report, "checkpoints");
    ck_assert_int_eq(item->n, 2);
    ck_assert_int_eq(item->n_needed, 1);
    ck_assert_int_ge(item->used_bytes, 200000);
    ck_assert_int_lt(item->used_bytes, 250000);
    ck_assert_int_eq(item->oldest_ms, NOON_MS);
    ck_assert_str_eq(item->limit, "7d,600MB");
    ck_assert_str_eq(item->next, "the oldest, on 2023-11-21 22:13 UTC"); /* NOON_MS and 7 days */
    now_ms = NOON_MS + 8 * DAY_MS;
    report = usage();
    ck_assert_str_eq(line(&report, "checkpoints")->next, "1 with the next round");
    sweep_round();
    retain("checkpoints", "1kB");
    report = usage();
    ck_assert_int_eq(line(&report, "checkpoints")->n, 1);
    ck_assert_ptr_nonnull(strstr(line(&report, "checkpoints")->next, "needed"));
    ck_assert_str_eq(line(&report, "checkpoints")->limit, "7d,1kB");
}

END_TEST

/* A limit that is lowered by much gives the pages back to the disk. */
START_TEST(the_database_shrinks_after_a_lowered_limit)
{
    sql("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)"
        " INSERT INTO events (seq, time_ms, topic, kind, message) SELECT i, %" PRId64
        ", 't', 'k', hex(zeroblob(200)) FROM n",
        NOON_MS);
    int64_t before = ask("SELECT page_count FROM pragma_page_count");
    retain("events", "0s");
    sweep_round();
    int64_t after = ask("SELECT page_count FROM pragma_page_count");
    ck_assert_int_eq(ask("SELECT count(*) FROM events"), 0);
    ck_assert_int_gt(before * 4096, 24 << 20);
    ck_assert_int_lt(after * 4096, 20 << 20);
}

END_TEST

WEIR_TEST_MAIN_WITH("usage", retain_set_up, retain_tear_down,
                    every_kind_has_a_line_also_when_there_is_nothing,
                    it_says_how_much_there_is_and_what_goes_next,
                    the_database_shrinks_after_a_lowered_limit)
