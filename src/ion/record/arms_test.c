/* Sums of what came of requests, against the rows that they are of; and transactions that fail at the
 * end, as those of a server that is killed do. */
#include "ion/arms.h"

#include "base/rng.h"
#include "ion/ion_fixture.h"
#include "ion/kpi.h"
#include "ion/outcome.h"
#include "stats/ab.h"
#include "store/identity.h"
#include "store/store_fixture.h"
#include "store/table.h"
#include "track/track.h"

#include <inttypes.h>
#include <math.h>

#define DAY_MS ((int64_t)24 * 3600 * 1000)

static struct store_fixture fixture;
static int64_t now_ms;
static struct weir_ion_traffic traffic;

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    WEIR_TRY(weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "default"},
                             err));
    for (int version = 1; version <= 3; version++) {
        struct weir_model_version row = {.id = weir_arena_printf(&fixture.arena, "t-v%d", version),
                                         .model = (char *)"x.t",
                                         .blob = (char *)"b10b"};
        WEIR_TRY(weir_model_register(txn, &row, "default", 1, &fixture.arena, &row, NULL, err));
    }
    return weir_txn_exec(
        txn,
        "INSERT INTO deployments (name, project, model, mirror, replicas_min, replicas_max,"
        " batch_max, delay_max_us, queue_max, cpu_millis, memory_bytes, gpus, idle_after_ms, "
        "hold_ms,"
        " secret, state, state_ms, revision, n_wanted, n_started, n_failures, next_start_ms,"
        " more_ms, less_ms, created_ms, updated_ms) VALUES ('d', 'default', 'x.t', 0, 1, 1, 1, 0,"
        " 1, 1, 0, 0, 0, 0, 's', 'SERVING', 1, 1, 1, 0, 0, 0, 0, 0, 1, 1)",
        WEIR_NO_BINDS, NULL, err);
}

static void set_up(void)
{
    fixture_make(&fixture, populate);
    now_ms = 100 * DAY_MS;
    traffic = (struct weir_ion_traffic){.figures = {.server_ms = 1}};
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

/* ---- the ION ---------------------------------------------------------------------------------- */

static weir_status step(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_ion_event event = *(const struct weir_ion_event *)context;
    struct weir_ion_state state;
    struct weir_ion_actions actions = {0};
    if (weir_ion_load(txn, "x", &fixture.arena, &state, NULL) != WEIR_OK) {
        weir_ion_state_new("x", &fixture.arena, &state);
        state.ion.project = (char *)"default";
    }
    if (event.type == WEIR_ION_EVENT_TICK) {
        for (size_t i = 0; i < state.n_candidates; i++) {
            if (weir_ion_watching(&state, &state.candidates[i]) != NULL) {
                traffic.candidate = state.candidates[i].id;
                MUST(weir_ion_arms_read(txn, &state, &state.candidates[i], &fixture.arena,
                                        &traffic.arms, err));
                event.traffic = &traffic;
                event.n_traffic = 1;
            }
        }
    }
    MUST(weir_ion_step(&state, &event, now_ms, &fixture.arena, &actions, err));
    require_replays(&actions, &fixture.arena);
    MUST(weir_ion_save(txn, &state, &actions, now_ms, err));
    return WEIR_OK;
}

static void must(struct weir_ion_event event)
{
    now_ms += 1000;
    fixture_write(&fixture, step, &event);
}

static void tick(void)
{
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_TICK});
}

static void apply(const char *policy)
{
    char *text;
    char *yaml = weir_arena_printf(
        &fixture.arena,
        "{name: x, pipelines: [{name: t, type: training, dataset: faces, model: m}],"
        " links: [{from: t, to: {deployment: d}, policy: %s}]}",
        policy);
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_APPLIED, .actor = "ann"};
    event.doc = doc_from_yaml(&fixture.arena, yaml, &text);
    event.document = text;
    must(event);
}

/** Version 1 serves, and 2 answers half of the requests. */
static void begin(const char *policy)
{
    apply(policy);
    must(model(&fixture.arena, "t", 1));
    must(model(&fixture.arena, "t", 2));
    traffic.live_ppm = 500000;
    tick();
}

struct found {
    struct weir_policy_arms arms;
    char *state, *rule; /**< Of version 2; the newest decision's. */
    int64_t n_arms;
};

static weir_status find(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct found *found = context;
    struct weir_ion_state state;
    char **rules;
    size_t n;
    MUST(weir_ion_load(txn, "x", &fixture.arena, &state, err));
    const struct weir_ion_candidate *candidate = require_candidate(&state, 2);
    found->state = candidate->state;
    MUST(weir_ion_arms_read(txn, &state, candidate, &fixture.arena, &found->arms, err));
    MUST(weir_txn_query_texts(txn, "SELECT rule FROM policy_decisions ORDER BY id DESC LIMIT 1",
                              WEIR_NO_BINDS, &fixture.arena, &rules, &n, err));
    found->rule = n > 0 ? rules[0] : NULL;
    MUST(weir_txn_query_int(txn, "SELECT count(*) FROM ion_arms", WEIR_NO_BINDS, 0, &found->n_arms,
                            err));
    return WEIR_OK;
}

static struct found look(void)
{
    struct found found = {0};
    fixture_read(&fixture, find, &found);
    return found;
}

/* ---- what is told ------------------------------------------------------------------------------ */

struct told {
    struct weir_outcome outcome;
    bool fails; /**< The transaction does, at its very end. */
    weir_status status;
};

static weir_status tell(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct told *told = context;
    struct weir_outcome outcome = told->outcome;
    told->status = weir_outcome_store(txn, &outcome, &fixture.arena, err);
    return told->fails ? weir_error_set(err, WEIR_ERR_PEER, "killed") : told->status;
}

static weir_status of_request(int64_t request, int64_t version, const char *name, double value,
                              int64_t answered_ms, bool fails)
{
    struct told told = {
        .outcome = {.request = weir_arena_printf(&fixture.arena, "r%" PRId64, request),
                    .deployment = (char *)"d",
                    .version = version,
                    .name = (char *)name,
                    .value = value,
                    .answered_ms = answered_ms,
                    .time_ms = now_ms},
        .fails = fails};
    weir_status status = weir_store_write(fixture.store, tell, &told, &fixture.err);
    ck_assert_int_eq(status, fails ? WEIR_ERR_PEER : told.status);
    return told.status;
}

static void succeed(int64_t request, int64_t version, bool is_success)
{
    ck_assert_int_eq(of_request(request, version, WEIR_OUTCOME_SUCCESS, is_success, now_ms, false),
                     WEIR_OK);
}

static weir_status tell_kpi(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_kpi kpi = *(const struct weir_kpi *)context;
    return weir_kpi_add(txn, &kpi, now_ms, &fixture.arena, err);
}

static weir_status of_kpi(int64_t version, const char *name, double value, int64_t time_ms)
{
    struct weir_kpi kpi = {.ion = (char *)"x",
                           .name = (char *)name,
                           .value = value,
                           .model = version > 0 ? (char *)"x.t" : NULL,
                           .model_version = version,
                           .time_ms = time_ms};
    return weir_store_write(fixture.store, tell_kpi, &kpi, &fixture.err);
}

#define AB       "{kind: ab, min_samples: 10, timeout_s: 1000}"
#define AB_MONEY "{kind: ab, metric: money, min_samples: 10, timeout_s: 1000}"

START_TEST(only_what_was_answered_since_it_began_counts)
{
    apply(AB);
    must(model(&fixture.arena, "t", 1));
    must(model(&fixture.arena, "t", 2));
    ck_assert_str_eq(look().state, "AB");
    succeed(1, 1, true);
    ck_assert_int_eq(look().n_arms, 0);
    int64_t before_ms = now_ms;
    traffic.live_ppm = 500000;
    tick();
    ck_assert_int_eq(look().n_arms, 2);
    succeed(2, 1, true);
    succeed(3, 1, false);
    succeed(4, 2, true);
    succeed(5, 3, true); /* of another version */
    ck_assert_int_eq(of_request(6, 1, WEIR_OUTCOME_SUCCESS, 1, before_ms, false), WEIR_OK);
    ck_assert_int_eq(of_request(7, 1, "money", 1, now_ms, false), WEIR_OK);
    struct weir_policy_arms arms = look().arms;
    ck_assert_int_eq(arms.live_version, 1);
    ck_assert_int_eq(arms.live_n, 2);
    ck_assert_double_eq(arms.live_mean, 0.5);
    ck_assert_int_eq(arms.n, 1);
    ck_assert_double_eq(arms.mean, 1);
    succeed(3, 1, true); /* told again */
    succeed(3, 1, true);
    ck_assert_int_eq(look().arms.live_n, 2);
    ck_assert_double_eq(look().arms.live_mean, 1);
}

END_TEST

START_TEST(the_better_one_serves_and_the_sums_go)
{
    begin(AB);
    for (int64_t i = 0; i < 200 && strcmp(look().state, "AB") == 0; i++) {
        succeed(2 * i, 1, i % 3 == 0);
        succeed(2 * i + 1, 2, i % 10 != 0);
        tick();
    }
    struct found found = look();
    ck_assert_str_eq(found.state, WEIR_CANDIDATE_SERVING);
    ck_assert_ptr_nonnull(strstr(found.rule, "surely better at a confidence of 0.95"));
    ck_assert_int_eq(found.n_arms, 0);
}

END_TEST

START_TEST(of_errors_the_worse_one_goes_back)
{
    begin("{kind: ab, metric: error, min_samples: 10, timeout_s: 1000}");
    for (int64_t i = 0; i < 200 && strcmp(look().state, "AB") == 0; i++) {
        succeed(2 * i, 1, i % 10 != 0);
        succeed(2 * i + 1, 2, i % 3 == 0);
        tick();
    }
    struct found found = look();
    ck_assert_str_eq(found.state, WEIR_CANDIDATE_ROLLED_BACK);
    ck_assert_ptr_nonnull(strstr(found.rule, "surely worse"));
    ck_assert_ptr_nonnull(strstr(found.rule, "ab: error 0."));
}

END_TEST

START_TEST(a_kpi_that_names_a_version_is_a_sample_of_it)
{
    begin(AB_MONEY);
    ck_assert_int_eq(of_kpi(2, "money", 5, now_ms), WEIR_OK);
    ck_assert_int_eq(of_kpi(2, "money", 7, now_ms + 1), WEIR_OK);
    ck_assert_int_eq(of_kpi(1, "money", 4, now_ms), WEIR_OK);
    ck_assert_int_eq(of_kpi(0, "money", 100, now_ms), WEIR_OK); /* the ION's own */
    ck_assert_int_eq(of_kpi(1, "parcels", 100, now_ms), WEIR_OK);
    struct weir_policy_arms arms = look().arms;
    ck_assert_int_eq(arms.n, 2);
    ck_assert_double_eq(arms.mean, 6);
    ck_assert_double_eq(arms.m2, 2);
    ck_assert_int_eq(arms.live_n, 1);
    ck_assert_int_eq(of_kpi(2, "money", 9, now_ms + 1), WEIR_OK); /* told again */
    ck_assert_int_eq(look().arms.n, 2);
    ck_assert_double_eq(look().arms.mean, 7);
}

END_TEST

static weir_status latest(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_kpi_latest(txn, "x", "money", &fixture.arena, context, err);
}

START_TEST(a_kpi_of_a_version_is_not_the_newest_of_the_ion)
{
    struct weir_kpi kpi;
    begin(AB_MONEY);
    ck_assert_int_eq(of_kpi(0, "money", 100, now_ms), WEIR_OK);
    ck_assert_int_eq(of_kpi(2, "money", 5, now_ms + 1), WEIR_OK);
    fixture_read(&fixture, latest, &kpi);
    ck_assert_double_eq(kpi.value, 100);
}

END_TEST

static weir_status half_a_version(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_kpi kpi = {.ion = (char *)"x",
                           .name = (char *)"money",
                           .value = 1,
                           .model_version = 2,
                           .time_ms = now_ms};
    (void)context;
    return weir_kpi_add(txn, &kpi, now_ms, &fixture.arena, err);
}

START_TEST(what_cannot_be_is_refused)
{
    begin(AB);
    ck_assert_int_eq(of_request(1, 1, WEIR_OUTCOME_SUCCESS, 1, now_ms - 8 * DAY_MS, false),
                     WEIR_ERR_CONFLICT);
    ck_assert_int_eq(of_request(1, 1, "No Name", 1, now_ms, false), WEIR_ERR_INVALID);
    ck_assert_int_eq(of_request(1, 1, "money", NAN, now_ms, false), WEIR_ERR_INVALID);
    struct told told = {.outcome = {.request = (char *)"r",
                                    .deployment = (char *)"e",
                                    .name = (char *)WEIR_OUTCOME_SUCCESS,
                                    .answered_ms = now_ms,
                                    .time_ms = now_ms}};
    ck_assert_int_eq(weir_store_write(fixture.store, tell, &told, &fixture.err),
                     WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(weir_store_write(fixture.store, half_a_version, NULL, &fixture.err),
                     WEIR_ERR_INVALID);
    ck_assert_int_eq(look().arms.live_n, 0);
}

END_TEST

/* ---- how it ends ------------------------------------------------------------------------------ */

START_TEST(nothing_is_said_before_there_are_enough_of_both)
{
    begin(AB);
    for (int64_t i = 0; i < 200; i++) {
        succeed(i, 2, true);
    }
    for (int64_t i = 200; i < 209; i++) {
        succeed(i, 1, false);
        tick();
        ck_assert_str_eq(look().state, "AB");
    }
    succeed(209, 1, false);
    tick();
    ck_assert_str_eq(look().state, WEIR_CANDIDATE_SERVING);
}

END_TEST

START_TEST(when_its_time_is_over_the_policy_says_who_stays)
{
    begin(_i == 0 ? AB : "{kind: ab, min_samples: 10, timeout_s: 1000, on_timeout: promote}");
    for (int64_t i = 0; i < 60; i++) {
        succeed(i, 1 + i % 2, i % 4 < 2);
    }
    now_ms += 990 * 1000;
    tick();
    ck_assert_str_eq(look().state, "AB");
    now_ms += 10 * 1000;
    tick();
    struct found found = look();
    ck_assert_str_eq(found.state, _i == 0 ? WEIR_CANDIDATE_ROLLED_BACK : WEIR_CANDIDATE_SERVING);
    ck_assert_ptr_nonnull(strstr(found.rule, "not decided within 1000 s"));
    ck_assert_ptr_nonnull(strstr(found.rule, "conversion 0.5 of 30, and 0.5 of 30 of version 1"));
}

END_TEST

START_TEST(what_fails_or_cannot_be_served_goes_back_at_once)
{
    begin(AB);
    if (_i == 0) {
        traffic.problem = "no such file";
    } else {
        traffic.figures.n_requests = 40;
        traffic.figures.n_failed = 20;
    }
    tick();
    ck_assert_str_eq(look().state, WEIR_CANDIDATE_ROLLED_BACK);
    ck_assert_ptr_nonnull(
        strstr(look().rule, _i == 0 ? "no such file" : "20 of 40 requests failed"));
}

END_TEST

static const struct {
    const char *policy, *words;
} wrong[] = {
    {"{kind: ab, share: 100}", "share"},
    {"{kind: ab, share: 0}", "share"},
    {"{kind: ab, metric: success}", "metric: expected conversion"},
    {"{kind: ab, metric: error, better: lower}", "better: of the metric error it is known"},
    {"{kind: ab, metric: money, better: bigger}", "better"},
    {"{kind: ab, confidence: 1}", "confidence"},
};

START_TEST(what_a_document_cannot_mean_is_refused)
{
    char *yaml = weir_arena_printf(&fixture.arena,
                                   "{name: x, pipelines: [{name: t, type: training, dataset: f,"
                                   " model: m}], links: [{from: t, to: {deployment: d},"
                                   " policy: %s}]}",
                                   wrong[_i].policy);
    json_t *json;
    struct weir_ion_doc doc;
    ck_assert_int_eq(weir_yaml_parse(yaml, strlen(yaml), "test", false, &json, &fixture.err),
                     WEIR_OK);
    ck_assert_int_eq(weir_ion_doc_parse(json, &fixture.arena, &doc, &fixture.err),
                     WEIR_ERR_INVALID);
    ck_assert_msg(strstr(fixture.err.message, wrong[_i].words) != NULL, "%s", fixture.err.message);
    json_decref(json);
}

END_TEST

/* ---- against the rows -------------------------------------------------------------------------- */

/** What the database makes of the rows itself. */
static weir_status recount(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char sql[] =
        "WITH x AS (SELECT version, value FROM outcomes WHERE name = 'money' AND answered_ms >="
        " (SELECT min(since_ms) FROM ion_arms) UNION ALL SELECT model_version, value FROM kpis"
        " WHERE name = 'money' AND model = 'x.t' AND time_ms >= (SELECT min(since_ms) FROM"
        " ion_arms)), m AS (SELECT version, count(*) AS n, avg(value) AS mean FROM x GROUP BY"
        " version) SELECT m.n, m.mean, (SELECT sum((value - m.mean) * (value - m.mean)) FROM x"
        " WHERE x.version = m.version) FROM m WHERE m.version = :version";
    struct weir_ab_arm *arms = context;
    for (int64_t version = 1; version <= 2; version++) {
        struct weir_stmt *stmt;
        bool has_row;
        MUST(weir_stmt_open(txn, sql, WEIR_BINDS(WEIR_BIND_INT("version", version)), &stmt, err));
        MUST(weir_stmt_step(stmt, &has_row, err));
        if (has_row) {
            arms[version - 1] = (struct weir_ab_arm){weir_stmt_int(stmt, 0), weir_stmt_f64(stmt, 1),
                                                     weir_stmt_f64(stmt, 2)};
        }
        weir_stmt_close(stmt);
    }
    return WEIR_OK;
}

static void require_same(const struct weir_ab_arm *arm, int64_t n, double mean, double m2)
{
    ck_assert_int_eq(arm->n, n);
    if (n > 0) {
        ck_assert_double_eq_tol(arm->mean, mean, 1e-6);
        ck_assert_double_eq_tol(arm->m2, m2, 1e-4);
    }
}

/** Told, told again, told too late, and by transactions that come to nothing. */
START_TEST(sums_are_what_the_rows_sum_up_to)
{
    uint64_t seed = 1 + (uint64_t)_i;
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 0);
    printf("seed %" PRIu64 "\n", seed);
    begin("{kind: ab, metric: money, min_samples: 100000, timeout_s: 31536000}");
    int64_t begun_ms = now_ms;
    for (int i = 0; i < 300; i++) {
        double value = 1000 + 10 * weir_rng_normal(&rng);
        int64_t request = (int64_t)weir_rng_below(&rng, 60), version = 1 + request % 2;
        /* What a request's identifier says is always the same. */
        int64_t answered_ms = begun_ms + (request - 10) * 100;
        if (weir_rng_below(&rng, 3) == 0) {
            ck_assert_int_eq(of_kpi(version, "money", value, answered_ms), WEIR_OK);
        } else {
            ck_assert_int_eq(of_request(request, version, "money", value, answered_ms,
                                        weir_rng_below(&rng, 4) == 0),
                             WEIR_OK);
        }
        if (weir_rng_below(&rng, 10) == 0) {
            tick();
        }
        struct weir_ab_arm rows[2] = {{0, 0, 0}, {0, 0, 0}};
        struct weir_policy_arms arms = look().arms;
        fixture_read(&fixture, recount, rows);
        require_same(&rows[0], arms.live_n, arms.live_mean, arms.live_m2);
        require_same(&rows[1], arms.n, arms.mean, arms.m2);
    }
}

END_TEST

int main(void)
{
    const struct weir_test_loop loops[] = {
        {only_what_was_answered_since_it_began_counts, 0},
        {the_better_one_serves_and_the_sums_go, 0},
        {of_errors_the_worse_one_goes_back, 0},
        {a_kpi_that_names_a_version_is_a_sample_of_it, 0},
        {a_kpi_of_a_version_is_not_the_newest_of_the_ion, 0},
        {what_cannot_be_is_refused, 0},
        {nothing_is_said_before_there_are_enough_of_both, 0},
        {when_its_time_is_over_the_policy_says_who_stays, 2},
        {what_fails_or_cannot_be_served_goes_back_at_once, 2},
        {what_a_document_cannot_mean_is_refused, (int)WEIR_ARRAY_LEN(wrong)},
        {sums_are_what_the_rows_sum_up_to, WEIR_TEST_TIMES(6, 2)},
    };
    Suite *suite = suite_create("arms");
    TCase *tcase = tcase_create("arms");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(loops); i++) {
        tcase_add_loop_test(tcase, loops[i].test, 0, WEIR_MAX(loops[i].n_loops, 1));
    }
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
