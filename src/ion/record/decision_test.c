#include "ion/decision.h"

#include "base/rng.h"
#include "ion/ion.h"
#include "ion/replica.h"
#include "store/identity.h"
#include "store/store_fixture.h"
#include "store/table.h"

#include <inttypes.h>
#include <math.h>
#include <time.h>

static struct store_fixture fixture;

static void set_up(void)
{
    fixture_make(&fixture, NULL);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

#define N_DECISIONS 500

static struct weir_decision decisions[N_DECISIONS];
static const char *const verdicts[] = {"grant", "deny", "unknown", "error"};

static void make_decisions(void)
{
    uint64_t seed = 3;
    printf("seed %" PRIu64 "\n", seed);
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 0);
    for (size_t i = 0; i < N_DECISIONS; i++) {
        decisions[i] = (struct weir_decision){.id = weir_arena_printf(&fixture.arena, "d%zu", i),
                                              .ion = i % 10 == 0 ? "other" : "x",
                                              .pipeline = "p",
                                              .camera = "door",
                                              .frame = (int64_t)i,
                                              .time_ms = 1000 + (int64_t)i * 10,
                                              .verdict = (char *)verdicts[weir_rng_below(&rng, 4)],
                                              .score = i % 7 == 0 ? NAN : weir_rng_f64(&rng),
                                              .latency_us = (int64_t)weir_rng_below(&rng, 10000),
                                              .durable_us = (int64_t)weir_rng_below(&rng, 10000)};
    }
}

static int compare_ints(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Against a sorted array of the decisions of "x" from the first-th on. */
static void check_sums(struct weir_txn *txn, struct weir_decision_window window, size_t first,
                       struct weir_error *err)
{
    int64_t latencies[N_DECISIONS], durables[N_DECISIONS], n_verdict[4] = {0};
    size_t n_in = 0;
    for (size_t i = first; i < N_DECISIONS; i++) {
        if (decisions[i].ion[0] == 'x') {
            latencies[n_in] = decisions[i].latency_us;
            durables[n_in++] = decisions[i].durable_us;
            for (size_t k = 0; k < 4; k++) {
                n_verdict[k] += decisions[i].verdict == verdicts[k];
            }
        }
    }
    qsort(latencies, n_in, sizeof(latencies[0]), compare_ints);
    qsort(durables, n_in, sizeof(durables[0]), compare_ints);
    struct weir_decision_summary sum;
    MUST(weir_decisions_summary(txn, &window, &fixture.arena, &sum, err));
    ck_assert_int_eq(sum.n, (int64_t)n_in);
    ck_assert_int_eq(sum.n_grant, n_verdict[0]);
    ck_assert_int_eq(sum.n_deny, n_verdict[1]);
    ck_assert_int_eq(sum.n_unknown, n_verdict[2]);
    ck_assert_int_eq(sum.n_error, n_verdict[3]);
    ck_assert_int_eq(sum.last_seq, n_in > 0 ? N_DECISIONS : 0);
    if (n_in == 0) {
        ck_assert_int_eq(sum.latency_p50_us, -1);
        return;
    }
    ck_assert_int_eq(sum.latency_p50_us, latencies[(size_t)ceil(0.50 * (double)n_in) - 1]);
    ck_assert_int_eq(sum.latency_p90_us, latencies[(size_t)ceil(0.90 * (double)n_in) - 1]);
    ck_assert_int_eq(sum.latency_p99_us, latencies[(size_t)ceil(0.99 * (double)n_in) - 1]);
    ck_assert_int_eq(sum.latency_max_us, latencies[n_in - 1]);
    ck_assert_int_eq(sum.durable_p99_us, durables[(size_t)ceil(0.99 * (double)n_in) - 1]);
}

/* The first decision of "x" is the second of all, at 1010 ms. */
static void check_covered(struct weir_txn *txn, struct weir_error *err)
{
    static const struct {
        int64_t since_ms, from_ms;
    } cases[] = {{500, 1010}, {1010, 1010}, {1011, 1011}, {3333, 3333}, {999999, 0}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        struct weir_decision_window window = {"x", .since_ms = cases[i].since_ms};
        struct weir_decision_summary sum;
        MUST(weir_decisions_summary(txn, &window, &fixture.arena, &sum, err));
        ck_assert_int_eq(sum.from_ms, cases[i].from_ms);
    }
}

/* Every decision of "x" in the window is in the bucket whose time it has. */
static void check_buckets(struct weir_txn *txn, struct weir_error *err)
{
    enum { N = 7 };
    struct weir_decision_window window = {"x", 0, 1234, 3456, N};
    struct weir_decision_summary sum;
    int64_t expected[N] = {0}, n_all = 0;
    MUST(weir_decisions_summary(txn, &window, &fixture.arena, &sum, err));
    for (size_t i = 0; i < N_DECISIONS; i++) {
        const struct weir_decision *one = &decisions[i];
        for (size_t k = N; k-- > 0 && one->ion[0] == 'x' && one->time_ms < window.until_ms;) {
            if (one->time_ms >= sum.buckets[k].from_ms) {
                expected[k]++;
                break;
            }
        }
    }
    ck_assert_int_eq(sum.buckets[0].from_ms, window.since_ms);
    for (size_t k = 0; k < N; k++) {
        const struct weir_decision_bucket *bucket = &sum.buckets[k];
        int64_t n = bucket->n_grant + bucket->n_deny + bucket->n_unknown + bucket->n_error;
        ck_assert_int_eq(n, expected[k]);
        ck_assert_int_gt(n, 0);
        n_all += n;
    }
    ck_assert_int_eq(n_all, sum.n);
}

static weir_status store_and_sum(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    size_t n_stored;
    MUST(weir_decisions_store(txn, decisions, 300, NULL, 0, &n_stored, err));
    ck_assert_uint_eq(n_stored, 300);
    /* The same again, with more: only what is new is stored; the identifier does not matter. */
    decisions[5].id = "another";
    MUST(weir_decisions_store(txn, decisions, N_DECISIONS, NULL, 0, &n_stored, err));
    ck_assert_uint_eq(n_stored, N_DECISIONS - 300);
    int64_t n;
    MUST(weir_txn_count(txn, &weir_decision_resource, NULL, &n, err));
    ck_assert_int_eq(n, N_DECISIONS);
    struct weir_decision out;
    MUST(weir_txn_get(txn, &weir_decision_resource, "d7", &fixture.arena, &out, err));
    ck_assert(isnan(out.score));
    ck_assert_int_eq(out.seq, 8);

    for (size_t first = 0; first <= N_DECISIONS; first += 125) {
        check_sums(txn, (struct weir_decision_window){"x", .after_seq = (int64_t)first}, first,
                   err);
        check_sums(txn, (struct weir_decision_window){"x", .since_ms = 1000 + (int64_t)first * 10},
                   first, err);
    }
    check_covered(txn, err);
    check_buckets(txn, err);
    return WEIR_OK;
}

START_TEST(a_frame_is_decided_once_and_sums_equal_a_sorted_array)
{
    make_decisions();
    fixture_write(&fixture, store_and_sum, NULL);
}

END_TEST

#define N_KEYS 60

/* Frames of two sources in one ION: numbered ones, and keyed ones of which some have numbers that numbered
 * ones or each other have, too. All come several times, in any order. */
static weir_status store_keyed(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static char *const cameras[] = {"door", "gate"};
    struct weir_rng rng;
    size_t n_stored, n_all = 0;
    bool is_there[2 * N_KEYS] = {false};
    int64_t n;
    weir_rng_init(&rng, *(uint64_t *)context, 0);
    for (int i = 0; i < 600; i++) {
        int which = (int)weir_rng_below(&rng, 2 * N_KEYS), of = which % N_KEYS;
        bool is_keyed = which >= N_KEYS;
        struct weir_decision decision = {
            .id = weir_arena_printf(&fixture.arena, "k%d", i),
            .ion = "x",
            .pipeline = "p",
            .camera = cameras[is_keyed ? (int)weir_rng_below(&rng, 2) : of % 2],
            .frame = is_keyed ? (of % 3 == 0 ? -7 : of % 20) : of,
            .key = is_keyed ? weir_arena_printf(&fixture.arena, "topic/%d", of) : NULL,
            .verdict = "grant",
            .is_sandbox = weir_rng_below(&rng, 3) == 0};
        MUST(weir_decisions_store(txn, &decision, 1, NULL, 0, &n_stored, err));
        ck_assert(is_there[which] || n_stored == 1);
        n_all += !is_there[which];
        is_there[which] = true;
    }
    MUST(weir_txn_count(txn, &weir_decision_resource, NULL, &n, err));
    ck_assert(n == (int64_t)n_all); /* one row for each frame, also where a trial was replaced */
    MUST(weir_txn_query_int(txn, "SELECT count(DISTINCT key) FROM decisions WHERE key IS NOT NULL",
                            WEIR_NO_BINDS, 0, &n, err));
    int64_t n_keys = 0;
    for (int i = N_KEYS; i < 2 * N_KEYS; i++) {
        n_keys += is_there[i];
    }
    ck_assert(n == n_keys);
    MUST(weir_txn_query_int(txn,
                            "SELECT count(*) FROM decisions WHERE key IS NULL AND (frame < 0 OR "
                            "camera <> CASE WHEN frame % 2 = 0 THEN 'door' ELSE 'gate' END)",
                            WEIR_NO_BINDS, 0, &n, err));
    ck_assert(n == 0);
    return WEIR_OK;
}

START_TEST(a_keyed_frame_is_decided_once_whatever_its_number_is)
{
    uint64_t seed = (uint64_t)time(NULL);
    printf("seed %" PRIu64 "\n", seed);
    fixture_write(&fixture, store_keyed, &seed);
}

END_TEST

static weir_status reports(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    const struct weir_health_report report = {.id = "h",
                                              .ion = "x",
                                              .pipeline = "p",
                                              .signal = "score",
                                              .statistic = "ks",
                                              .value = 0.3,
                                              .p_value = 1e-9,
                                              .drifted = true,
                                              .n_samples = 50,
                                              .detail = "{\"bins\":[1,2]}",
                                              .time_ms = 9};
    MUST(weir_health_report_store(txn, &report, err));
    MUST(weir_health_report_store(txn, &report, err));
    struct weir_health_report out;
    MUST(weir_txn_get(txn, &weir_health_report_resource, "h", &fixture.arena, &out, err));
    ck_assert_int_eq(out.seq, 1);
    ck_assert(out.drifted);
    ck_assert_double_eq(out.p_value, 1e-9);
    ck_assert_str_eq(out.detail, "{\"bins\":[1,2]}");
    int64_t n;
    MUST(weir_txn_count(txn, &weir_health_report_resource, NULL, &n, err));
    ck_assert_int_eq(n, 1);
    return WEIR_OK;
}

START_TEST(a_health_report_is_stored_once)
{
    fixture_write(&fixture, reports, NULL);
}

END_TEST

static weir_status report_of(struct weir_txn *txn, const char *replica, const char *signal,
                             bool drifted, bool *out_is_elsewhere, struct weir_error *err)
{
    static int n;
    struct weir_health_report report = {.id = weir_arena_printf(&fixture.arena, "r%d", n++),
                                        .ion = "x",
                                        .pipeline = "p",
                                        .replica = (char *)replica,
                                        .signal = (char *)signal,
                                        .statistic = "ks",
                                        .drifted = drifted,
                                        .n_samples = 50,
                                        .time_ms = 9};
    WEIR_TRY(weir_health_report_store(txn, &report, err));
    return weir_health_drifts_elsewhere(txn, &report, out_is_elsewhere, err);
}

static weir_status reports_of_two(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char *const replicas[] = {"j-0", "j-1"};
    bool is_elsewhere;
    (void)context;
    const struct weir_ion ion = {
        .name = "x", .project = "p", .state = "ACTIVE", .mode = "production", .document = "{}"};
    MUST(weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "p"}, err));
    MUST(weir_txn_insert(txn, &weir_ion_resource, &ion, err));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(replicas); i++) {
        const struct weir_ion_replica row = {.id = (char *)replicas[i],
                                             .ion = "x",
                                             .pipeline = "p",
                                             .replica = (char *)replicas[i],
                                             .state = "STARTING"};
        MUST(weir_txn_insert(txn, &weir_ion_replica_resource, &row, err));
    }
    MUST(report_of(txn, "j-0", "score", true, &is_elsewhere, err));
    ck_assert(!is_elsewhere); /* its own counts for nothing */
    MUST(report_of(txn, "j-1", "score", false, &is_elsewhere, err));
    ck_assert(is_elsewhere);
    MUST(report_of(txn, "j-1", "brightness", false, &is_elsewhere, err));
    ck_assert(!is_elsewhere);
    MUST(report_of(txn, NULL, "score", false, &is_elsewhere, err));
    ck_assert(is_elsewhere);
    MUST(report_of(txn, "j-0", "score", false, &is_elsewhere, err));
    MUST(report_of(txn, "j-1", "score", false, &is_elsewhere, err));
    ck_assert(!is_elsewhere); /* the last one counts */
    MUST(report_of(txn, "k-0", "score", true, &is_elsewhere, err));
    MUST(report_of(txn, "j-1", "score", false, &is_elsewhere, err));
    ck_assert(!is_elsewhere); /* that replica is gone */
    return WEIR_OK;
}

START_TEST(a_signal_that_drifts_at_another_replica_is_known)
{
    fixture_write(&fixture, reports_of_two, NULL);
}

END_TEST

WEIR_TEST_MAIN_WITH("decision", set_up, tear_down,
                    a_frame_is_decided_once_and_sums_equal_a_sorted_array,
                    a_keyed_frame_is_decided_once_whatever_its_number_is,
                    a_health_report_is_stored_once,
                    a_signal_that_drifts_at_another_replica_is_known)
