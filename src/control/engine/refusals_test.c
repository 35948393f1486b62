/* Versions that refuse or fail requests, told while they do; with figures and a clock that the test makes up. */
#include "control/engine/refusals.h"

#include "base/test_main.h"
#include "base/test_seed.h"

#include <string.h>

static struct weir_arena arena;
static struct refusals refusals;
#define VERSIONS_MAX 4

static struct weir_ion_figures counted[VERSIONS_MAX + 1]; /* by version */
static int64_t mono_ms;

static bool figures_of(void *context, const char *deployment, int64_t version, int64_t live,
                       int64_t mirror, int64_t slow_us, struct weir_arena *texts,
                       struct weir_ion_figures *out)
{
    (void)context;
    (void)mirror;
    (void)slow_us;
    (void)texts;
    *out = counted[version];
    out->live_requests = live > 0 ? counted[live].n_requests : 0;
    out->live_unaccepted = live > 0 ? counted[live].n_unaccepted : 0;
    out->live_made = live > 0 ? counted[live].made : 0;
    return strcmp(deployment, "d") == 0;
}

static void set_up(void)
{
    weir_arena_init(&arena, 0);
    memset(counted, 0, sizeof counted);
    refusals = (struct refusals){0};
    mono_ms = 1000000;
}

static void tear_down(void)
{
    refusals_fini(&refusals);
    weir_arena_fini(&arena);
}

/* What is told now of a deployment whose version 1 has this share, and version 2 the rest. */
static const char *look(int64_t ppm)
{
    struct weir_deploy_version versions[] = {{.row = {.version = 1, .live_ppm = ppm}},
                                             {.row = {.version = 2, .live_ppm = 1000000 - ppm}}};
    struct weir_deploy_state state = {
        .deployment = {.name = "d"}, .versions = versions, .n_versions = 2};
    const struct weir_watch_seen seen = {.deployments = &state, .n_deployments = 1};
    const struct control_figures figures = {.fn = figures_of};
    struct weir_watch_findings findings = {0};
    refusals_look(&refusals, &figures, &seen, mono_ms, &arena, &findings);
    mono_ms += 2000;
    ck_assert_uint_le(findings.n, 1);
    return findings.n > 0 ? findings.items[0].message : "";
}

START_TEST(a_version_that_refuses_what_the_other_takes_is_told_while_it_does)
{
    counted[1] = (struct weir_ion_figures){.n_requests = 5000, .n_unaccepted = 5000};
    ck_assert_str_eq(look(900000), ""); /* of before */
    counted[1].n_requests += 90;
    counted[2] = (struct weir_ion_figures){.n_requests = 10, .n_unaccepted = 7};
    ck_assert_ptr_nonnull(strstr(look(900000), "Version 2 of deployment d refuses (4xx) requests "
                                               "that the other version takes"));
    ck_assert_ptr_nonnull(strstr(look(900000), "Version 2"));
    ck_assert_str_eq(look(1000000), ""); /* it has no share any more */
    mono_ms += 2 * REFUSALS_WINDOW_MS;
    (void)look(900000);
    mono_ms += 2 * REFUSALS_WINDOW_MS;
    (void)look(900000);
    ck_assert_str_eq(look(900000), ""); /* it was long ago */
}

END_TEST

START_TEST(mistakes_of_callers_and_few_requests_tell_nothing)
{
    (void)look(500000);
    counted[1] = counted[2] =
        (struct weir_ion_figures){.n_requests = 500, .n_unaccepted = 450, .n_failed = 20};
    ck_assert_str_eq(look(500000), "");
    refusals_fini(&refusals);
    counted[1] = (struct weir_ion_figures){0};
    (void)look(1000000);
    counted[1] = (struct weir_ion_figures){.n_requests = 19, .n_failed = 19};
    ck_assert_str_eq(look(1000000), "");
}

END_TEST

START_TEST(a_version_alone_is_told_if_it_refuses_or_fails_most)
{
    (void)look(1000000);
    counted[1] = (struct weir_ion_figures){.n_requests = 100, .n_unaccepted = 55};
    ck_assert_str_eq(look(1000000), "");
    counted[1].n_unaccepted = 70;
    ck_assert_ptr_nonnull(strstr(look(1000000), "refuses (4xx) most of its requests"));
    counted[1] = (struct weir_ion_figures){.n_requests = 100, .n_failed = 25};
    ck_assert_ptr_nonnull(strstr(look(1000000), "fails (5xx, or no answer)"));
}

END_TEST

START_TEST(requests_of_before_it_was_the_other_one_do_not_count)
{
    counted[2] = (struct weir_ion_figures){.n_requests = 5000};
    (void)look(1000000);
    counted[1] = (struct weir_ion_figures){.n_requests = 100, .n_unaccepted = 30};
    ck_assert_str_eq(look(500000), ""); /* mistakes of callers: version 2 was not asked since */
}

END_TEST

START_TEST(mistakes_of_before_another_version_answered_are_not_compared)
{
    (void)look(1000000);
    counted[1] = (struct weir_ion_figures){.n_requests = 1000, .n_unaccepted = 450};
    ck_assert_str_eq(look(1000000), "");
    counted[1] = (struct weir_ion_figures){.n_requests = 1100, .n_unaccepted = 450};
    ck_assert_str_eq(look(500000), "");
    counted[1].n_requests += 100; /* now that both answer, nobody makes mistakes */
    counted[2] = (struct weir_ion_figures){.n_requests = 100};
    ck_assert_str_eq(look(500000), "");
}

END_TEST

/* ---- a law: what is told is what a plain list of all requests says ----------------------------- */

#define N_WORLDS WEIR_TEST_TIMES(300, 30)
#define N_LOOKS  60

enum answer { TAKEN, REFUSED, FAILED, N_ANSWERS };

/** n requests of a version were answered so, just before a time. */
struct answered {
    int64_t version, at_ms, n;
    enum answer answer;
};

static struct world {
    struct weir_rng rng;
    struct answered list[N_LOOKS * VERSIONS_MAX * N_ANSWERS];
    size_t n_list;
    int64_t n_versions, n_made;
    int64_t ppm[VERSIONS_MAX + 1];
    double chances[VERSIONS_MAX + 1][N_ANSWERS]; /* of each answer, in turn */

    /* What is compared, by the look before: its other version, both numbers of counters; and since when. */
    struct compared {
        int64_t other, made, live_made, since_ms;
    } compared[VERSIONS_MAX + 1];

    int64_t seen_ms[VERSIONS_MAX + 1]; /* since when it is looked at; 0: it is not */
    int64_t anew_ms[VERSIONS_MAX + 1]; /* when its counters began at 0 */
    int64_t turns_ms[2];               /* of the windows, the last and the one before */
} world;

static bool chance(uint64_t one_of)
{
    return weir_rng_below(&world.rng, one_of) == 0;
}

static void share_out(void)
{
    int64_t left = WEIR_SHARES_PPM;
    for (int64_t v = 1; v <= world.n_versions; v++) {
        bool is_last = v == world.n_versions;
        world.ppm[v] = is_last     ? left
                       : chance(3) ? 0
                                   : (int64_t)weir_rng_below(&world.rng, (uint64_t)left + 1);
        left -= world.ppm[v];
    }
}

static void begin_anew(int64_t version)
{
    counted[version] = (struct weir_ion_figures){.made = ++world.n_made};
    world.anew_ms[version] = mono_ms;
}

static void answer(int64_t version, enum answer how, int64_t n)
{
    world.list[world.n_list++] = (struct answered){version, mono_ms - 1, n, how};
    counted[version].n_requests += n;
    counted[version].n_unaccepted += how == REFUSED ? n : 0;
    counted[version].n_failed += how == FAILED ? n : 0;
}

/* What happens until the next look: shares, replicas that begin again, callers and their mistakes. */
static void go_on(void)
{
    static const int64_t steps_ms[] = {2000, 2000, 2000, 9000, 31000};

    if (chance(8)) {
        share_out();
    }
    for (int64_t v = 1; v <= world.n_versions; v++) {
        if (chance(world.ppm[v] > 0 ? 25 : 3)) {
            begin_anew(v);
        }
        if (chance(10)) {
            world.chances[v][REFUSED] = chance(2) ? 0 : weir_rng_f64(&world.rng);
            world.chances[v][FAILED] = chance(2) ? 0 : 0.3 * weir_rng_f64(&world.rng);
        }
    }
    mono_ms += steps_ms[weir_rng_below(&world.rng, WEIR_ARRAY_LEN(steps_ms))];
    for (int64_t v = 1; v <= world.n_versions; v++) {
        int64_t n = world.ppm[v] > 0 || chance(9) ? (int64_t)weir_rng_below(&world.rng, 40) : 0;
        int64_t n_refused = (int64_t)(world.chances[v][REFUSED] * (double)n);
        int64_t n_failed = (int64_t)(world.chances[v][FAILED] * (double)(n - n_refused));
        answer(v, REFUSED, n_refused);
        answer(v, FAILED, n_failed);
        answer(v, TAKEN, n - n_refused - n_failed);
    }
}

static int64_t n_of(int64_t version, enum answer how, int64_t since_ms)
{
    int64_t n = 0;
    for (size_t i = 0; i < world.n_list; i++) {
        const struct answered *one = &world.list[i];
        bool is_it = one->version == version && (how == N_ANSWERS || one->answer == how);
        n += is_it && one->at_ms >= since_ms ? one->n : 0;
    }
    return n;
}

static int64_t most_of_others(int64_t version)
{
    int64_t other = 0;
    for (int64_t v = world.n_versions; v >= 1; v--) {
        bool is_more = other == 0 || world.ppm[v] >= world.ppm[other];
        other = v != version && world.ppm[v] > 0 && is_more ? v : other;
    }
    return other;
}

/* Of one version, now; NULL: nothing. Notes since when what is compared. */
static const char *expected_of(int64_t version)
{
    struct compared *compared = &world.compared[version];
    int64_t other = most_of_others(version);
    const struct compared now = {other, counted[version].made, other > 0 ? counted[other].made : 0,
                                 mono_ms};
    bool is_same = world.seen_ms[version] > 0 && compared->other == now.other &&
                   compared->made == now.made && compared->live_made == now.live_made;
    *compared = is_same ? *compared : now;
    if (world.seen_ms[version] == 0) {
        world.seen_ms[version] = mono_ms;
    }
    int64_t window_ms = world.turns_ms[1];
    int64_t own_ms = WEIR_MAX(WEIR_MAX(world.seen_ms[version], world.anew_ms[version]), window_ms);
    int64_t pair_ms = WEIR_MAX(compared->since_ms, window_ms);
    const struct weir_ion_figures own = {.n_requests = n_of(version, N_ANSWERS, own_ms),
                                         .n_unaccepted = n_of(version, REFUSED, own_ms),
                                         .n_failed = n_of(version, FAILED, own_ms)};
    const struct weir_ion_figures pair = {.n_requests = n_of(version, N_ANSWERS, pair_ms),
                                          .n_unaccepted = n_of(version, REFUSED, pair_ms),
                                          .live_requests = n_of(other, N_ANSWERS, pair_ms),
                                          .live_unaccepted = n_of(other, REFUSED, pair_ms)};
    return refusals_judge(&own, &pair, world.ppm[version], &arena);
}

static void look_and_compare(uint64_t seed, int64_t *n_told)
{
    struct weir_deploy_version versions[VERSIONS_MAX] = {0};
    for (int64_t v = 1; v <= world.n_versions; v++) {
        versions[v - 1].row =
            (struct weir_deployment_version){.version = v, .live_ppm = world.ppm[v]};
    }
    struct weir_deploy_state state = {
        .deployment = {.name = "d"}, .versions = versions, .n_versions = (size_t)world.n_versions};
    const struct weir_watch_seen seen = {.deployments = &state, .n_deployments = 1};
    const struct control_figures figures = {.fn = figures_of};
    struct weir_watch_findings findings = {0};
    refusals_look(&refusals, &figures, &seen, mono_ms, &arena, &findings);
    size_t n = 0;
    for (int64_t v = 1; v <= world.n_versions; v++) {
        const char *what = world.ppm[v] > 0 ? expected_of(v) : NULL;
        const char *key = weir_arena_printf(&arena, "requests_fail:d:%lld", (long long)v);
        bool is_told = n < findings.n && strcmp(findings.items[n].key, key) == 0;
        world.seen_ms[v] = world.ppm[v] > 0 ? world.seen_ms[v] : 0;
        ck_assert_msg(is_told == (what != NULL) &&
                          (!is_told || strstr(findings.items[n].message, what) != NULL),
                      "seed %llu, version %lld: told \"%s\", the list says \"%s\"",
                      (unsigned long long)seed, (long long)v,
                      is_told ? findings.items[n].message : "", what != NULL ? what : "");
        n += is_told;
    }
    ck_assert_uint_eq(n, findings.n);
    *n_told += (int64_t)n;
    if (mono_ms - world.turns_ms[0] >= REFUSALS_WINDOW_MS) {
        world.turns_ms[1] = world.turns_ms[0];
        world.turns_ms[0] = mono_ms;
    }
}

START_TEST(what_is_told_is_what_a_list_of_all_requests_says)
{
    struct weir_rng rng;
    uint64_t seed = test_seed(&rng);
    int64_t n_told = 0;
    for (int i = 0; i < N_WORLDS; i++) {
        tear_down();
        set_up();
        memset(&world, 0, sizeof world);
        world.rng = rng;
        world.n_versions = 2 + (int64_t)weir_rng_below(&world.rng, VERSIONS_MAX - 1);
        for (int64_t v = 1; v <= world.n_versions; v++) {
            begin_anew(v);
        }
        share_out();
        for (int k = 0; k < N_LOOKS; k++) {
            go_on();
            look_and_compare(seed, &n_told);
        }
        rng = world.rng;
    }
    ck_assert_int_gt(n_told, N_WORLDS);
    ck_assert_int_lt(n_told, (int64_t)N_WORLDS * N_LOOKS);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("refusals");
    TCase *tcase = tcase_create("all");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_version_that_refuses_what_the_other_takes_is_told_while_it_does);
    tcase_add_test(tcase, mistakes_of_callers_and_few_requests_tell_nothing);
    tcase_add_test(tcase, a_version_alone_is_told_if_it_refuses_or_fails_most);
    tcase_add_test(tcase, requests_of_before_it_was_the_other_one_do_not_count);
    tcase_add_test(tcase, mistakes_of_before_another_version_answered_are_not_compared);
    tcase_add_test(tcase, what_is_told_is_what_a_list_of_all_requests_says);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
