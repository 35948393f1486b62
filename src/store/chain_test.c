/* The audit's chains: what they say of rows that were altered, taken out or put in, and after a cut. */
#include "store/chain.h"

#include "store/store_fixture.h"
#include "store/table.h"

#include <string.h>

static struct store_fixture fixture;

static weir_status append(struct weir_txn *txn, const char *topic, const char *kind, int64_t i,
                          struct weir_error *err)
{
    struct weir_event event = {.time_ms = 1000 * i,
                               .topic = (char *)topic,
                               .kind = (char *)kind,
                               .subject = "user/ann",
                               .actor = "admin",
                               .message = "Änne was made, by admin.",
                               .data = "{\"address\":\"::1\"}"};
    if (i == 2) { /* what is absent differs from what is empty */
        event.subject = NULL;
        event.actor = "";
    }
    return weir_event_append(txn, &event, NULL, err);
}

/* Events 1 to 12: acts are 1, 4, 7, 10, accesses 2, 5, 8, 11, others 3, 6, 9, 12. */
static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    for (int64_t i = 0; i < 12; i++) {
        MUST(append(txn, i % 3 == 2 ? "jobs" : "audit",
                    i % 3 == 0   ? "user_created"
                    : i % 3 == 1 ? "token_used"
                                 : "job_running",
                    i, err));
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

struct asking {
    enum weir_trail trail;
    const struct weir_chain_pin *pin;
    struct weir_chain_report report;
};

static weir_status verify_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct asking *asking = context;
    return weir_chain_verify(txn, asking->trail, asking->pin, &asking->report, err);
}

static struct weir_chain_report verify(enum weir_trail trail, const struct weir_chain_pin *pin)
{
    struct asking asking = {.trail = trail, .pin = pin};
    fixture_read(&fixture, verify_in, &asking);
    return asking.report;
}

static weir_status exec_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_exec(txn, context, WEIR_NO_BINDS, NULL, err);
}

static void exec(const char *sql)
{
    fixture_write(&fixture, exec_in, (void *)sql);
}

struct trail_case {
    const char *topic, *kind;
    enum weir_trail trail;
};

static weir_status trail_in_sql(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct trail_case *one = context;
    int64_t trail;
    MUST(weir_txn_query_int(
        txn, "SELECT " WEIR_TRAIL_SQL " FROM (SELECT :topic AS topic, :kind AS kind)",
        WEIR_BINDS(WEIR_BIND_TEXT("topic", one->topic), WEIR_BIND_TEXT("kind", one->kind)), -1,
        &trail, err));
    ck_assert_msg(trail == (int64_t)one->trail, "%s %s: %lld in SQL", one->topic, one->kind,
                  (long long)trail);
    return WEIR_OK;
}

START_TEST(the_trail_of_an_event_is_the_same_in_c_and_in_sql)
{
    static const struct trail_case cases[] = {
        {"audit", "token_used", WEIR_TRAIL_ACCESSES},
        {"audit", "login_link_made", WEIR_TRAIL_ACCESSES},
        {"audit", "session_begun", WEIR_TRAIL_ACCESSES},
        {"audit", "session_ended", WEIR_TRAIL_ACCESSES},
        {"audit", "login_refused", WEIR_TRAIL_ACCESSES},
        {"audit", "access_refused", WEIR_TRAIL_ACCESSES},
        {"audit", "people_shown", WEIR_TRAIL_ACCESSES},
        {"audit", "user_created", WEIR_TRAIL_ACTS},
        {"audit", "ions_review", WEIR_TRAIL_ACTS},
        {"audit", "token_use", WEIR_TRAIL_ACTS},
        {"audit", "", WEIR_TRAIL_ACTS},
        {"jobs", "token_used", WEIR_TRAIL_NONE},
        {"jobs", "job_running", WEIR_TRAIL_NONE},
        {"", "", WEIR_TRAIL_NONE},
    };
    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        ck_assert_msg(weir_trail_of(cases[i].topic, cases[i].kind) == cases[i].trail, "%s %s",
                      cases[i].topic, cases[i].kind);
        fixture_read(&fixture, trail_in_sql, (void *)&cases[i]);
    }
}

END_TEST

#define SOME_HASH "0febf2be3118e6bc20ffc1d558f969b02eaf894308c11b2d3dd2872a0a81b2a8"

START_TEST(what_was_noted_of_an_end_is_read)
{
    static const char *const wrong[] = {"",
                                        "17",
                                        "17:",
                                        ":" SOME_HASH,
                                        "0:" SOME_HASH,
                                        "-1:" SOME_HASH,
                                        "17:" SOME_HASH "0",
                                        "17 " SOME_HASH,
                                        "17:0FEBF2BE3118E6BC20FFC1D558F969B02EAF894308C11B2D3DD28"
                                        "72A0A81B2A8"};
    struct weir_chain_pin pin = {0};
    struct weir_error err;
    ck_assert_int_eq(weir_chain_pin_parse("--acts", "17:" SOME_HASH, &pin, &err), WEIR_OK);
    ck_assert_int_eq(pin.number, 17);
    ck_assert_str_eq(pin.hash, SOME_HASH);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        ck_assert_int_eq(weir_chain_pin_parse("--acts", wrong[i], &pin, &err), WEIR_ERR_INVALID);
        ck_assert_int_eq(strncmp(err.message, "--acts: ", 8), 0);
    }
    ck_assert_int_eq(pin.number, 17);
}

END_TEST

START_TEST(a_file_of_a_newer_weir_is_refused)
{
    struct weir_chain_report reports[WEIR_N_TRAILS];
    struct weir_error err;
    exec("INSERT INTO schema_migrations SELECT 100000, name, sha256, applied_ms FROM "
         "schema_migrations"
         " LIMIT 1");
    ck_assert_int_eq(weir_chain_verify_file(fixture.path, NULL, reports, &err),
                     WEIR_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "newer Weir"));
}

END_TEST

static weir_status two_rows(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_event *events = context;
    MUST(weir_txn_get(txn, &weir_event_resource, "1", &fixture.arena, &events[0], err));
    MUST(weir_txn_get(txn, &weir_event_resource, "4", &fixture.arena, &events[1], err));
    return WEIR_OK;
}

/* The sums come from Python's hashlib, over texts written by hand as the header says. */
START_TEST(hashes_are_those_of_the_canonical_text)
{
    struct weir_event events[2];
    fixture_read(&fixture, two_rows, events);
    ck_assert_int_eq(events[0].chain, 1);
    ck_assert_int_eq(events[1].chain, 2);
    ck_assert_str_eq(events[0].hash,
                     "2232c3eef6f7c10e969f362e92a54bf2999841b4b92b3ded2a091906c07acaee");
    ck_assert_str_eq(events[1].hash,
                     "0febf2be3118e6bc20ffc1d558f969b02eaf894308c11b2d3dd2872a0a81b2a8");
}

END_TEST

START_TEST(each_trail_has_its_own_chain_and_other_events_are_in_none)
{
    struct weir_chain_report acts = verify(WEIR_TRAIL_ACTS, NULL);
    struct weir_chain_report accesses = verify(WEIR_TRAIL_ACCESSES, NULL);
    ck_assert(acts.is_whole && accesses.is_whole);
    ck_assert_int_eq(acts.n_rows, 4);
    ck_assert_int_eq(acts.number, 4);
    ck_assert_int_eq(accesses.n_rows, 4);
    ck_assert_str_ne(acts.hash, accesses.hash);
}

END_TEST

static const struct {
    const char *sql, *finding;
    int64_t seq;
} tampered[] = {
    {"UPDATE events SET actor = 'bob' WHERE seq = 4", "altered", 4},
    {"UPDATE events SET subject = '' WHERE seq = 7", "altered", 7},
    {"UPDATE events SET message = message || '.' WHERE seq = 10", "altered", 10},
    {"UPDATE events SET time_ms = time_ms + 1 WHERE seq = 1", "altered", 1},
    {"UPDATE events SET data = NULL WHERE seq = 4", "altered", 4},
    {"UPDATE events SET hash = NULL WHERE seq = 4", "altered", 4},
    {"DELETE FROM events WHERE seq = 4", "missing", 2},
    {"DELETE FROM events WHERE seq = 1", "missing", 1},
    {"DELETE FROM events WHERE seq = 10", "missing", 8},
    {"DELETE FROM events WHERE seq > 1", "missing", 2},
    {"DELETE FROM events", "missing", 1},
    {"UPDATE events SET topic = 'jobs' WHERE seq = 4", "missing", 2},
    {"UPDATE events SET kind = 'token_used' WHERE seq = 4", "missing", 2},
    {"UPDATE events SET topic = 'audit', kind = 'k' WHERE seq = 6", "inserted", 6},
    {"INSERT INTO events (seq, time_ms, topic, kind, message, chain, hash) SELECT 13, time_ms,"
     " topic, kind, message, 5, hash FROM events WHERE seq = 10",
     "altered", 13},
    {"INSERT INTO events (seq, time_ms, topic, kind, message, chain, hash) SELECT 6000, time_ms,"
     " topic, kind, message, chain, hash FROM events WHERE seq = 10",
     "inserted", 6000},
    {"UPDATE events SET seq = 20 - seq WHERE seq IN (7, 10)", "missing", 5},
    {"UPDATE audit_chains SET number = 3 WHERE trail = 1", "altered", 10},
    {"UPDATE audit_chains SET hash = cut_hash WHERE trail = 1", "altered", 10},
};

START_TEST(what_was_altered_taken_out_or_put_in_is_found)
{
    exec(tampered[_i].sql);
    struct weir_chain_report report = verify(WEIR_TRAIL_ACTS, NULL);
    ck_assert_msg(!report.is_whole, "%s", tampered[_i].sql);
    ck_assert_msg(strcmp(report.finding, tampered[_i].finding) == 0, "%s: %s: %s", tampered[_i].sql,
                  report.finding, report.message);
    ck_assert_msg(report.bad_seq == tampered[_i].seq, "%s: %lld: %s", tampered[_i].sql,
                  (long long)report.bad_seq, report.message);
}

END_TEST

static weir_status cut_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    int64_t seq = *(const int64_t *)context;
    MUST(weir_chain_cut(txn, WEIR_TRAIL_ACTS, seq, err));
    return weir_txn_exec(txn,
                         "DELETE FROM events WHERE topic = 'audit' AND kind <> 'token_used' AND"
                         " seq <= :seq",
                         WEIR_BINDS(WEIR_BIND_INT("seq", seq)), NULL, err);
}

START_TEST(a_cut_leaves_its_range_and_the_rest_verifies)
{
    int64_t cuts[] = {1, 3, 8, 30};
    static const int64_t n_cut[] = {1, 1, 3, 4};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(cuts); i++) {
        fixture_write(&fixture, cut_in, &cuts[i]);
        struct weir_chain_report report = verify(WEIR_TRAIL_ACTS, NULL);
        ck_assert_msg(report.is_whole, "%s", report.message);
        ck_assert_int_eq(report.n_cut, n_cut[i]);
        ck_assert_int_eq(report.n_rows, 4 - n_cut[i]);
        ck_assert_int_eq(report.cut_first_seq, 1);
        ck_assert_int_eq(report.cut_last_seq, 3 * n_cut[i] - 2);
        ck_assert_int_eq(report.cut_last_ms, 3000 * (n_cut[i] - 1));
        ck_assert_int_eq(report.number, 4);
    }
    exec("UPDATE audit_chains SET cut_number = 3 WHERE trail = 1");
    ck_assert(!verify(WEIR_TRAIL_ACTS, NULL).is_whole);
}

END_TEST

/* Rows 1, 4 of the acts are cut. */
static const struct {
    const char *sql;
    int64_t seq;
} tampered_cut[] = {
    {"INSERT INTO events (seq, time_ms, topic, kind, message, chain, hash) SELECT 1, time_ms, "
     "topic,"
     " kind, message, 1, hash FROM events WHERE seq = 7",
     1},
    {"INSERT INTO events (seq, time_ms, topic, kind, message, chain, hash) SELECT 4, time_ms, "
     "topic,"
     " kind, message, 2, hash FROM events WHERE seq = 7",
     4},
    {"UPDATE events SET topic = 'audit', kind = 'k', chain = 9 WHERE seq = 3", 3},
    {"UPDATE events SET kind = 'user_created' WHERE seq = 2", 2},
};

START_TEST(a_row_put_in_where_retention_has_cut_is_found)
{
    int64_t cut = 4;
    fixture_write(&fixture, cut_in, &cut);
    exec(tampered_cut[_i].sql);
    struct weir_chain_report report = verify(WEIR_TRAIL_ACTS, NULL);
    ck_assert_msg(!report.is_whole, "%s", tampered_cut[_i].sql);
    ck_assert_str_eq(report.finding, "inserted");
    ck_assert_int_eq(report.bad_seq, tampered_cut[_i].seq);
}

END_TEST

START_TEST(a_row_deleted_beside_the_cut_is_missing)
{
    int64_t cut = 4;
    fixture_write(&fixture, cut_in, &cut);
    exec("DELETE FROM events WHERE seq = 7");
    struct weir_chain_report report = verify(WEIR_TRAIL_ACTS, NULL);
    ck_assert_str_eq(report.finding, "missing");
    ck_assert_int_eq(report.bad_number, 3);
}

END_TEST

/* Whoever writes the whole chain anew is found by the hash that was noted elsewhere. */
START_TEST(a_chain_that_was_written_anew_differs_from_the_noted_hash)
{
    struct weir_chain_report report = verify(WEIR_TRAIL_ACTS, NULL);
    struct weir_chain_pin pin = {.number = report.number, .hash = report.hash};
    exec("DELETE FROM events");
    exec("UPDATE audit_chains SET number = 0, hash = cut_hash");
    fixture_write(&fixture, populate, NULL);
    exec("UPDATE events SET seq = seq - 12");
    ck_assert(!verify(WEIR_TRAIL_ACTS, &pin).is_whole); /* the numbers are in the text */
    exec("DELETE FROM events");
    exec("UPDATE audit_chains SET number = 0, hash = cut_hash");
    fixture_write(&fixture, populate, NULL);
    ck_assert(verify(WEIR_TRAIL_ACTS, NULL).is_whole);
    ck_assert_str_eq(verify(WEIR_TRAIL_ACTS, &pin).finding, "not the noted one");
    pin.number = 5;
    ck_assert_str_eq(verify(WEIR_TRAIL_ACTS, &pin).finding, "missing");
}

END_TEST

static weir_status fail_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    MUST(append(txn, "audit", "user_created", 20, err));
    return weir_error_set(err, WEIR_ERR_CONFLICT, "no");
}

START_TEST(what_is_undone_leaves_no_gap)
{
    ck_assert_int_eq(weir_store_write(fixture.store, fail_in, NULL, &fixture.err),
                     WEIR_ERR_CONFLICT);
    fixture_write(&fixture, populate, NULL);
    struct weir_chain_report report = verify(WEIR_TRAIL_ACTS, NULL);
    ck_assert_msg(report.is_whole, "%s", report.message);
    ck_assert_int_eq(report.number, 8);
}

END_TEST

START_TEST(a_database_file_is_verified_beside_its_server)
{
    struct weir_chain_report reports[WEIR_N_TRAILS];
    struct weir_error err;
    ck_assert_msg(weir_chain_verify_file(fixture.path, NULL, reports, &err) == WEIR_OK, "%s",
                  err.message);
    ck_assert(reports[WEIR_TRAIL_ACTS].is_whole && reports[WEIR_TRAIL_ACCESSES].is_whole);
    exec("UPDATE events SET actor = 'bob' WHERE seq = 5");
    ck_assert_int_eq(weir_chain_verify_file(fixture.path, NULL, reports, &err), WEIR_OK);
    ck_assert(reports[WEIR_TRAIL_ACTS].is_whole);
    ck_assert_int_eq(reports[WEIR_TRAIL_ACCESSES].bad_seq, 5);
    ck_assert_int_eq(weir_chain_verify_file("/nowhere/weir.db", NULL, reports, &err),
                     WEIR_ERR_NOT_FOUND);
}

END_TEST

/* Events of before are in no chain, and each chain says where it begins. */
START_TEST(events_of_before_the_chain_are_told_and_not_verified)
{
    exec("UPDATE events SET chain = 0, hash = NULL");
    exec("UPDATE audit_chains SET begins_after = 12, number = 0, hash = cut_hash");
    fixture_write(&fixture, populate, NULL);
    struct weir_chain_report report = verify(WEIR_TRAIL_ACTS, NULL);
    ck_assert_msg(report.is_whole, "%s", report.message);
    ck_assert_int_eq(report.n_before, 4);
    ck_assert_int_eq(report.n_rows, 4);
    int64_t cut = 16; /* all of before, and two of the chain */
    fixture_write(&fixture, cut_in, &cut);
    report = verify(WEIR_TRAIL_ACTS, NULL);
    ck_assert_msg(report.is_whole, "%s", report.message);
    ck_assert_int_eq(report.n_before, 0);
    ck_assert_int_eq(report.n_cut, 2);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("chain");
    TCase *tcase = tcase_create("chain");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, hashes_are_those_of_the_canonical_text);
    tcase_add_test(tcase, each_trail_has_its_own_chain_and_other_events_are_in_none);
    tcase_add_loop_test(tcase, what_was_altered_taken_out_or_put_in_is_found, 0,
                        (int)WEIR_ARRAY_LEN(tampered));
    tcase_add_test(tcase, a_cut_leaves_its_range_and_the_rest_verifies);
    tcase_add_loop_test(tcase, a_row_put_in_where_retention_has_cut_is_found, 0,
                        (int)WEIR_ARRAY_LEN(tampered_cut));
    tcase_add_test(tcase, a_row_deleted_beside_the_cut_is_missing);
    tcase_add_test(tcase, the_trail_of_an_event_is_the_same_in_c_and_in_sql);
    tcase_add_test(tcase, what_was_noted_of_an_end_is_read);
    tcase_add_test(tcase, a_file_of_a_newer_weir_is_refused);
    tcase_add_test(tcase, a_chain_that_was_written_anew_differs_from_the_noted_hash);
    tcase_add_test(tcase, what_is_undone_leaves_no_gap);
    tcase_add_test(tcase, a_database_file_is_verified_beside_its_server);
    tcase_add_test(tcase, events_of_before_the_chain_are_told_and_not_verified);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
