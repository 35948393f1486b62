/* Which times move when the wall clock is set: of each column that is a time somebody has decided it. */
#include "store/set_clock.h"

#include "store/event.h"
#include "store/store_fixture.h"

#include <string.h>

static struct store_fixture fixture;

/* They say when something was, or were chosen by people by the calendar; or are spans, or the bounds of one. */
static const char *const stay[] = {
    "created_ms",
    "updated_ms",
    "changed_ms",
    "finished_ms",
    "done_ms",
    "ended_ms",
    "deleted_ms",
    "resolved_ms",
    "acknowledged_ms",
    "over_ms",
    "left_ms",
    "stopped_ms",
    "answered_ms",
    "decided_ms",
    "first_ms",
    "hour_ms",
    "start_ms",
    "last_sent_ms",
    "cut_first_ms",
    "cut_last_ms",
    "from_ms",
    "to_ms",
    "applied_ms",
    /* chosen by people, or schedules */
    "until_ms",
    "closed_from_ms",
    "closed_until_ms",
    "silenced_ms",
    /* by the clock of somebody else, who is asked again */
    "starts_ms",
    "ends_ms",
    "allocations.asked_ms",
    "allocations.started_ms",
    "tokens.expires_ms",
    "next_fire_ms",
    "next_ms",
    "used_ms",
    /* spans and bounds */
    "hold_ms",
    "group_ms",
    "escalate_ms",
    "action_interval_ms",
    "idle_after_ms",
    "keep_pictures_ms",
    "after_ms",
    "overflow_after_ms",
    "idle_ms",
    "time_max_ms",
    "time_limit_ms",
    "min_run_ms",
    "fence_ms",
    "save_within_ms",
    "span_ms",
    "min_ms",
    "max_ms",
    "project_retention.keep_ms",
    "backlog_ms",
    /* what was at a time */
    "decision_totals.last_ms",
    "camera_minutes.last_ms",
    "pipeline_detectors.since_ms",
    "door_orders.sent_ms",
    "door_orders.valid_until_ms",
    "door_orders.answered_ms",
    "time_ms",
    /* counted with in another way (set_clock.c) */
    "sweeps.pauses_ms",
};

static bool is_named(const char *list, const char *column)
{
    size_t len = strlen(column);
    for (const char *at = list; at != NULL && *at != '\0'; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (strncmp(at, column, len) == 0 && (at[len] == ' ' || at[len] == '\0')) {
            return true;
        }
    }
    return false;
}

static bool moves(const char *table, const char *column)
{
    size_t n;
    const struct weir_counted_times *rows = weir_counted_times(&n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(rows[i].table, table) == 0 && is_named(rows[i].columns, column)) {
            return true;
        }
    }
    return false;
}

static bool stays(const char *table, const char *column)
{
    char full[128];
    (void)snprintf(full, sizeof full, "%s.%s", table, column);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(stay); i++) {
        if (strcmp(stay[i], column) == 0 || strcmp(stay[i], full) == 0) {
            return true;
        }
    }
    return false;
}

static weir_status look_at_columns(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char sql[] = "SELECT m.name || ' ' || c.name FROM sqlite_master m,"
                              " pragma_table_info(m.name) c WHERE m.type = 'table'"
                              " AND (c.name LIKE '%\\_ms' ESCAPE '\\')";
    char **names;
    size_t n;
    (void)context;
    MUST(weir_txn_query_texts(txn, sql, WEIR_NO_BINDS, &fixture.arena, &names, &n, err));
    ck_assert_uint_gt(n, 100);
    for (size_t i = 0; i < n; i++) {
        char *column = strchr(names[i], ' ');
        *column++ = '\0';
        ck_assert_msg(
            moves(names[i], column) || stays(names[i], column),
            "when the wall clock is set, does %s.%s move? Say it in src/store/set_clock.c, or here",
            names[i], column);
    }
    return WEIR_OK;
}

START_TEST(of_each_time_somebody_has_said_whether_it_moves)
{
    fixture_read(&fixture, look_at_columns, NULL);
}

END_TEST

static weir_status set_clock(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_set_clock(txn, *(const int64_t *)context, err);
}

static weir_status insert(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_txn_exec(txn,
                         "INSERT INTO outbox (seq, key, kind, payload, state, attempts, due_ms, "
                         "created_ms, done_ms) VALUES"
                         " (1, 'a', 'k', '{}', 'pending', 0, 5000, 10, 0), (2, 'b', 'k', '{}', "
                         "'pending', 0, 0, 10, 0),"
                         " (3, 'c', 'k', '{}', 'done', 0, 5000, 10, 20),"
                         " (4, 'd', 'k', '{}', 'pending', 0, 9223372036854775807, 10, 0)",
                         WEIR_NO_BINDS, NULL, err);
}

static weir_status look(struct weir_txn *txn, void *context, struct weir_error *err)
{
    char ***out = context;
    size_t n;
    return weir_txn_query_texts(txn, "SELECT due_ms || '/' || created_ms FROM outbox ORDER BY seq",
                                WEIR_NO_BINDS, &fixture.arena, out, &n, err);
}

START_TEST(what_counts_moves_and_what_is_over_or_not_yet_or_never_stays)
{
    static const char *const want[] = {"1400/10", "0/10", "5000/10", "9223372036854775807/10"};
    int64_t by_ms = -3600;
    char **times;
    fixture_write(&fixture, insert, NULL);
    fixture_write(&fixture, set_clock, &by_ms);
    fixture_read(&fixture, look, &times);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(want); i++) {
        ck_assert_str_eq(times[i], want[i]);
    }
}

END_TEST

static weir_status look_at_asked(struct weir_txn *txn, void *context, struct weir_error *err)
{
    char ***out = context;
    size_t n;
    return weir_txn_query_texts(txn, "SELECT evaluation FROM ion_candidates ORDER BY id",
                                WEIR_NO_BINDS, &fixture.arena, out, &n, err);
}

START_TEST(a_time_within_a_text_moves_alone)
{
    int64_t by_ms = -3600;
    char **texts;
    fixture_alter(
        &fixture,
        "INSERT INTO ion_candidates (id, ion, link, model, model_version, version, blob,"
        " served_seq, served_ms, created_ms, updated_ms, evaluation) VALUES"
        " ('a', 'i', 'l', 'm', 'v1', 1, '', 0, 0, 1, 1, '{\"asked_ms\": 5000, \"n\": 1}'),"
        " ('b', 'i', 'l', 'm', 'v2', 2, '', 0, 0, 1, 1, '{\"asked_ms\": 0}'),"
        " ('c', 'i', 'l', 'm', 'v3', 3, '', 0, 0, 1, 1, NULL)");
    fixture_write(&fixture, set_clock, &by_ms);
    fixture_read(&fixture, look_at_asked, &texts);
    ck_assert_msg(strstr(texts[0], "1400") != NULL && strstr(texts[0], "\"n\"") != NULL, "%s",
                  texts[0]);
    ck_assert_str_eq(texts[1], "{\"asked_ms\": 0}");
    ck_assert_ptr_null(texts[2]);
}

END_TEST

static weir_status keep(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_clock_keep(txn, *(const int64_t *)context, 1, err);
}

static weir_status kept(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_clock_kept(txn, context, err);
}

static weir_status other_boot(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_setting_put(txn, "clock", "{\"boot\": \"other\", \"offset_ms\": 9}", 1, err);
}

START_TEST(the_offset_is_kept_until_the_machine_starts_again)
{
    int64_t offset_ms = 1770000000123, found_ms = -1;
    fixture_read(&fixture, kept, &found_ms);
    ck_assert_int_eq(found_ms, 0);
    fixture_write(&fixture, keep, &offset_ms);
    fixture_read(&fixture, kept, &found_ms);
    ck_assert_int_eq(found_ms, offset_ms);
    fixture_write(&fixture, other_boot, NULL);
    fixture_read(&fixture, kept, &found_ms);
    ck_assert_int_eq(found_ms, 0);
}

END_TEST

static void set_up(void)
{
    fixture_make(&fixture, NULL);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

WEIR_TEST_MAIN_WITH("set_clock", set_up, tear_down, of_each_time_somebody_has_said_whether_it_moves,
                    what_counts_moves_and_what_is_over_or_not_yet_or_never_stays,
                    a_time_within_a_text_moves_alone,
                    the_offset_is_kept_until_the_machine_starts_again)
