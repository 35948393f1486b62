/* Past use over random histories. The oracle keeps every span in which something was had, and integrates
 * all of them anew; it knows nothing of sums that are rolled on. */
#include "job/past_use.h"

#include "base/rng.h"
#include "base/test_main.h"
#include "job/usage.h"
#include "store/identity.h"
#include "store/stmt.h"
#include "store/store_fixture.h"
#include "store/table.h"

#include <math.h>
#include <string.h>

#define N_SEEDS    8
#define N_ROLLS    60
#define N_PROJECTS 3
#define SPANS_MAX  (N_ROLLS * (N_PROJECTS + 1))
#define BEGIN_MS   (INT64_C(20000) * WEIR_USAGE_DAY_MS)
#define HOUR_MS    INT64_C(3600000)

static struct store_fixture fixture;
static struct weir_error error;
static const char *const projects[N_PROJECTS] = {"blue", "green", "red"};

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    for (int i = 0; i < N_PROJECTS; i++) {
        MUST(weir_txn_insert(txn, &weir_project_resource,
                             &(struct weir_project){.name = (char *)projects[i]}, err));
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

/* One time step: what the account counts in it, and what there is then. */
struct stretch {
    int64_t now_ms;
    double devices[N_PROJECTS], cpus[N_PROJECTS]; /* milli × ms */
    double memory[N_PROJECTS];                    /* bytes */
    struct weir_past_now now;
};

static weir_status stretch_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct stretch *stretch = context;
    struct weir_past_level levels[N_PROJECTS];
    static const char sql[] =
        "INSERT INTO usage_totals VALUES (:project, '', 0, :given, 0, 0, 0, 0, :cpus)"
        " ON CONFLICT (project, model) DO UPDATE SET given = given + excluded.given,"
        " cpu_given = cpu_given + excluded.cpu_given";
    for (int i = 0; i < N_PROJECTS; i++) {
        MUST(weir_txn_exec(txn, sql,
                           WEIR_BINDS(WEIR_BIND_TEXT("project", projects[i]),
                                      WEIR_BIND_F64("given", stretch->devices[i]),
                                      WEIR_BIND_F64("cpus", stretch->cpus[i])),
                           NULL, err));
        levels[i] = (struct weir_past_level){projects[i], stretch->memory[i]};
    }
    stretch->now.levels = levels;
    stretch->now.n_levels = N_PROJECTS;
    return weir_past_use_roll(txn, &stretch->now, stretch->now_ms, err);
}

struct answer {
    struct weir_past_rule rule;
    struct weir_past_use *list;
    size_t n;
};

static weir_status read_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct answer *answer = context;
    return weir_past_use_read(txn, &fixture.arena, &answer->rule, &answer->list, &answer->n, err);
}

static struct answer read_parts(void)
{
    struct answer answer;
    fixture_read(&fixture, read_in, &answer);
    return answer;
}

static weir_status set_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)err;
    const weir_status status = weir_past_rule_set(txn, context, 5, &error);
    return status == WEIR_ERR_INVALID ? WEIR_OK : status;
}

static void set_rule(int64_t half_life_ms, double weight)
{
    struct weir_past_rule rule = {half_life_ms, weight};
    fixture_write(&fixture, set_in, &rule);
}

/* ---- the oracle ------------------------------------------------------------------------------ */

struct span {
    int64_t from_ms, until_ms;
    double devices, cpus, memory; /* had all the time */
    int project;                  /* N_PROJECTS: what there was */
};

struct history {
    struct span spans[SPANS_MAX];
    size_t n;
};

/* The integral of the weight that a time has at the end: ∫ 2^(-(end - t) / half_life) dt. */
static double weight_of(const struct span *span, int64_t end_ms, int64_t half_life_ms)
{
    double rate = log(2) / (double)half_life_ms;
    return (exp(-(double)(end_ms - span->until_ms) * rate) -
            exp(-(double)(end_ms - span->from_ms) * rate)) /
           rate;
}

static struct weir_past_use integral_of(const struct history *history, int project, int64_t end_ms,
                                        int64_t half_life_ms)
{
    struct weir_past_use sum = {0};
    for (size_t i = 0; i < history->n; i++) {
        const struct span *span = &history->spans[i];
        if (span->project == project) {
            double weight = weight_of(span, end_ms, half_life_ms);
            sum.devices += span->devices * weight;
            sum.cpus += span->cpus * weight;
            sum.memory += span->memory * weight;
        }
    }
    return sum;
}

static void check(const struct history *history, int64_t end_ms, int64_t half_life_ms,
                  int64_t longest_ms)
{
    struct answer answer = read_parts();
    struct weir_past_use all = integral_of(history, N_PROJECTS, end_ms, half_life_ms);
    /* What is had between two rolls counts as had at the second. */
    double slack = 0.25 * log(2) * (double)longest_ms / (double)half_life_ms + 1e-9;
    ck_assert_uint_eq(answer.n, N_PROJECTS);
    for (int i = 0; i < N_PROJECTS; i++) {
        struct weir_past_use own = integral_of(history, i, end_ms, half_life_ms);
        ck_assert_str_eq(answer.list[i].project, projects[i]);
        ck_assert_double_eq_tol(answer.list[i].devices, own.devices / all.devices, slack);
        ck_assert_double_eq_tol(answer.list[i].cpus, own.cpus / all.cpus, slack);
        ck_assert_double_eq_tol(answer.list[i].memory, own.memory / all.memory, slack);
    }
}

/* In each stretch every project has a part of what there is then, or nothing. */
static void take_stretch(struct weir_rng *rng, struct stretch *stretch, int64_t span_ms,
                         struct history *history)
{
    double devices = 1000 * (double)(1 + weir_rng_below(rng, 16)), cpus = 4 * devices;
    const struct span all = {stretch->now_ms, stretch->now_ms + span_ms, devices, cpus, 4 * cpus,
                             N_PROJECTS};
    stretch->now = (struct weir_past_now){devices, cpus, 4 * cpus, NULL, 0};
    history->spans[history->n++] = all;
    for (int i = 0; i < N_PROJECTS; i++) {
        /* Each has its turn: what is forgotten of it differs. */
        size_t turn = history->n / (15 * (N_PROJECTS + 1)) % N_PROJECTS;
        bool has_any = turn == (size_t)i || weir_rng_below(rng, 4) == 0;
        double part = has_any ? weir_rng_f64(rng) / N_PROJECTS : 0;
        stretch->devices[i] = devices * part * (double)span_ms;
        stretch->cpus[i] = cpus * part * (double)span_ms;
        stretch->memory[i] = 4 * cpus * part;
        history->spans[history->n++] = (struct span){all.from_ms, all.until_ms,    devices * part,
                                                     cpus * part, 4 * cpus * part, i};
    }
    stretch->now_ms += span_ms;
}

START_TEST(parts_are_the_integral_of_what_was_had)
{
    static struct history history;
    struct weir_rng rng;
    struct stretch stretch = {.now_ms = BEGIN_MS};
    int64_t half_life_ms = 60000 * (_i + 1), longest_ms = 1;
    printf("seed %d\n", _i + 1);
    weir_rng_init(&rng, (uint64_t)_i + 1, 0);
    history.n = 0;
    set_rule(half_life_ms, 1);
    fixture_write(&fixture, stretch_in, &stretch);
    for (int i = 0; i < N_ROLLS; i++) {
        int64_t span_ms = 1000 + (int64_t)weir_rng_below(&rng, 9000);
        take_stretch(&rng, &stretch, span_ms, &history);
        fixture_write(&fixture, stretch_in, &stretch);
        longest_ms = WEIR_MAX(longest_ms, span_ms);
    }
    check(&history, stretch.now_ms, half_life_ms, longest_ms);
}

END_TEST

/* ---- what is special ------------------------------------------------------------------------- */

static const struct weir_past_now eight = {8000, 8000, 8000, NULL, 0};

static void roll(struct stretch *stretch, int64_t after_ms, double blue_devices)
{
    stretch->now = eight;
    stretch->devices[0] = blue_devices * 1000 * (double)WEIR_MAX(after_ms, (int64_t)0);
    stretch->now_ms += after_ms;
    fixture_write(&fixture, stretch_in, stretch);
}

START_TEST(what_was_before_the_first_roll_is_left_out)
{
    struct stretch stretch = {.now_ms = BEGIN_MS, .devices = {1e15}, .now = eight};
    fixture_write(&fixture, stretch_in, &stretch);
    ck_assert_double_eq(read_parts().list[0].devices, 0);
    roll(&stretch, 30000, 4);
    ck_assert_double_eq_tol(read_parts().list[0].devices, 0.5, 1e-9);
}

END_TEST

START_TEST(after_a_half_life_of_nothing_half_is_left)
{
    struct stretch stretch = {.now_ms = BEGIN_MS};
    set_rule(HOUR_MS, 0);
    roll(&stretch, 0, 0);
    for (int i = 0; i < 480; i++) { /* long enough that what is older does not matter */
        roll(&stretch, 60000, 8);
    }
    ck_assert_double_eq_tol(read_parts().list[0].devices, 1, 0.01);
    for (int i = 0; i < 60; i++) {
        roll(&stretch, 60000, 0);
    }
    ck_assert_double_eq_tol(read_parts().list[0].devices, 0.5, 0.01);
}

END_TEST

/* Whatever the clock does, a part is one of the whole, and the next rolls go on. */
START_TEST(a_clock_that_jumps_counts_nothing_twice)
{
    struct stretch stretch = {.now_ms = BEGIN_MS};
    roll(&stretch, 0, 0);
    roll(&stretch, 30000, 4);
    stretch.devices[0] = 0;
    roll(&stretch, -10 * HOUR_MS, 0);
    ck_assert_double_eq_tol(read_parts().list[0].devices, 0.5, 1e-9);
    roll(&stretch, 30000, 4);
    ck_assert_double_eq_tol(read_parts().list[0].devices, 0.5, 1e-3);
    roll(&stretch, 10 * 365 * 24 * HOUR_MS, 4000); /* as if meters had run all the time */
    ck_assert_double_le(read_parts().list[0].devices, 1);
    roll(&stretch, 30000, 0);
    ck_assert_double_le(read_parts().list[0].devices, 1);
    ck_assert_double_ge(read_parts().list[0].devices, 0);
}

END_TEST

START_TEST(a_rule_that_cannot_be_is_refused_and_the_first_one_counts_nothing)
{
    static const struct weir_past_rule bad[] = {
        {0, 1},        {59999, 1},      {WEIR_PAST_HALF_LIFE_MOST_MS + 1, 1},
        {HOUR_MS, -1}, {HOUR_MS, 1001}, {HOUR_MS, NAN}};
    ck_assert_int_eq(read_parts().rule.half_life_ms, WEIR_PAST_HALF_LIFE_MS);
    ck_assert_double_eq(read_parts().rule.weight, 0);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        error = (struct weir_error){0};
        set_rule(bad[i].half_life_ms, bad[i].weight);
        ck_assert_ptr_nonnull(strstr(error.message, ": expected"));
    }
    set_rule(HOUR_MS, 1.5);
    ck_assert_int_eq(read_parts().rule.half_life_ms, HOUR_MS);
    ck_assert_double_eq(read_parts().rule.weight, 1.5);
}

END_TEST

static weir_status forget_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_txn_exec(txn, "DELETE FROM usage_totals WHERE project = 'blue'", WEIR_NO_BINDS,
                         NULL, err);
}

static weir_status roll_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_past_use_roll(txn, &eight, *(int64_t *)context, err);
}

/* However a span is cut, and however long it is: a cluster that was away for years has not had years of use. */
START_TEST(a_span_adds_up_of_its_parts_and_has_an_end)
{
    struct weir_rng rng;
    weir_rng_init(&rng, (uint64_t)_i + 1, 0);
    int64_t half_life_ms = 60000 + (int64_t)weir_rng_below(&rng, 700000000);
    int64_t first_ms = (int64_t)weir_rng_below(&rng, 900000000);
    int64_t second_ms = (int64_t)weir_rng_below(&rng, 900000000);
    double parts =
        weir_past_span_ms(half_life_ms, first_ms) * weir_past_left(half_life_ms, second_ms) +
        weir_past_span_ms(half_life_ms, second_ms);
    ck_assert_double_eq_tol(weir_past_span_ms(half_life_ms, first_ms + second_ms), parts,
                            1e-9 * parts + 1e-3);
    ck_assert_double_le(weir_past_span_ms(half_life_ms, INT64_MAX / 2),
                        1.45 * (double)half_life_ms);
    ck_assert_double_eq(weir_past_span_ms(half_life_ms, -first_ms), 0);
}

END_TEST

START_TEST(a_project_without_an_account_is_forgotten)
{
    struct stretch stretch = {.now_ms = BEGIN_MS};
    int64_t later_ms = BEGIN_MS + 60000;
    roll(&stretch, 0, 0);
    roll(&stretch, 30000, 4);
    ck_assert_uint_eq(read_parts().n, N_PROJECTS);
    fixture_write(&fixture, forget_in, NULL);
    fixture_write(&fixture, roll_in, &later_ms);
    ck_assert_uint_eq(read_parts().n, N_PROJECTS - 1);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("past_use");
    TCase *tcase = tcase_create("past_use");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, parts_are_the_integral_of_what_was_had, 0, N_SEEDS);
    tcase_add_test(tcase, what_was_before_the_first_roll_is_left_out);
    tcase_add_test(tcase, after_a_half_life_of_nothing_half_is_left);
    tcase_add_test(tcase, a_clock_that_jumps_counts_nothing_twice);
    tcase_add_test(tcase, a_rule_that_cannot_be_is_refused_and_the_first_one_counts_nothing);
    tcase_add_loop_test(tcase, a_span_adds_up_of_its_parts_and_has_an_end, 0, 20);
    tcase_add_test(tcase, a_project_without_an_account_is_forgotten);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
