/* The sample of disagreements, against one that sorts everything; confusions against a plain table. */
#include "batch/disagree.h"

#include "base/macros.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define N_CLASSES 5

static const char *const classes[N_CLASSES] = {"bolt", "gear", "nut", "ring", "screw"};

struct made {
    struct disagree_sample sample;
    char file[32];
};

static struct made make(struct weir_rng *rng, int i)
{
    struct made made = {0};
    uint32_t label = weir_rng_below(rng, N_CLASSES);
    bool is_right = weir_rng_below(rng, 3) > 0, is_live_right = weir_rng_below(rng, 3) > 0;
    made.sample = (struct disagree_sample){
        .sha256 = "00",
        .label = classes[label],
        .answer = classes[is_right ? label : weir_rng_below(rng, N_CLASSES)],
        .live_answer = classes[is_live_right ? label : weir_rng_below(rng, N_CLASSES)],
        .score = weir_rng_below(rng, 20) / 20.0, /* many are equal */
        .live_score = weir_rng_below(rng, 20) / 20.0};
    (void)snprintf(made.file, sizeof made.file, "%s/%06d", classes[label], i);
    return made;
}

/* In its own words: which is right, and how sure was who is wrong. */
static enum disagree_kind kind_of(const struct disagree_sample *one)
{
    bool is_right = one->answer == one->label, is_live_right = one->live_answer == one->label;
    if (one->answer == one->live_answer) {
        return DISAGREE_NONE;
    }
    return is_live_right ? DISAGREE_LIVE_RIGHT
           : is_right    ? DISAGREE_CANDIDATE_RIGHT
                         : DISAGREE_BOTH_WRONG;
}

static double sureness(const struct disagree_sample *one)
{
    switch (kind_of(one)) {
    case DISAGREE_LIVE_RIGHT:
        return one->score;
    case DISAGREE_CANDIDATE_RIGHT:
        return one->live_score;
    default:
        return fmax(one->score, one->live_score);
    }
}

static int by_sureness(const void *a, const void *b)
{
    const struct made *x = a, *y = b;
    double p = sureness(&x->sample), q = sureness(&y->sample);
    return p != q ? (p > q ? -1 : 1)
                  : strcmp(strchr(x->file, '/'), strchr(y->file, '/')); /* numbers, in order */
}

static void check_sample(struct disagree *disagree, struct made *made, size_t n, size_t max)
{
    struct disagree_sample rows[DISAGREE_KEPT_MAX];
    size_t n_rows = disagree_choose(disagree, rows), at = 0, n_differ = 0;
    qsort(made, n, sizeof *made, by_sureness);
    for (int kind = 0; kind < DISAGREE_N_KINDS; kind++) {
        size_t n_kind = 0, n_shown = 0;
        for (size_t i = 0; i < n; i++) {
            n_kind += kind_of(&made[i].sample) == (enum disagree_kind)kind;
        }
        n_differ += n_kind;
        ck_assert_int_eq(disagree_count(disagree, kind), (int64_t)n_kind);
        for (size_t i = 0;
             i < n && at < n_rows && disagree_kind_of(&rows[at]) == (enum disagree_kind)kind; i++) {
            if (kind_of(&made[i].sample) == (enum disagree_kind)kind) {
                ck_assert_str_eq(rows[at++].file, made[i].file);
                n_shown++;
            }
        }
        ck_assert_uint_ge(n_shown, WEIR_MIN(n_kind, max / DISAGREE_N_KINDS)); /* its share */
    }
    ck_assert_uint_eq(at, n_rows);
    ck_assert_uint_eq(n_rows, WEIR_MIN(n_differ, max));
}

static void check_confusions(const struct disagree *disagree, const struct made *made, size_t n)
{
    struct disagree_confusion found[DISAGREE_CONFUSIONS_MAX];
    size_t n_found = disagree_confusions(disagree, found);
    int64_t n_wrong = 0, n_counted = 0;
    for (size_t i = 0; i < n; i++) {
        n_wrong += (made[i].sample.answer != made[i].sample.label) +
                   (made[i].sample.live_answer != made[i].sample.label);
    }
    for (size_t k = 0; k < n_found; k++) {
        int64_t n_here = 0, n_live = 0;
        for (size_t i = 0; i < n; i++) {
            const struct disagree_sample *one = &made[i].sample;
            bool is_label = strcmp(one->label, found[k].label) == 0;
            n_here += is_label && strcmp(one->answer, found[k].answer) == 0;
            n_live += is_label && strcmp(one->live_answer, found[k].answer) == 0;
        }
        ck_assert_str_ne(found[k].label, found[k].answer);
        ck_assert_int_eq(found[k].n, n_here);
        ck_assert_int_eq(found[k].live_n, n_live);
        ck_assert(k == 0 || found[k - 1].n + found[k - 1].live_n >= n_here + n_live);
        n_counted += n_here + n_live;
    }
    ck_assert_int_eq(n_counted, n_wrong); /* 20 pairs: all fit */
}

START_TEST(the_surest_of_each_kind_stay)
{
    const uint64_t seed = (uint64_t)_i + 1;
    static const size_t sizes[] = {0, 1, 7, 90, 3000};
    size_t n = sizes[_i % WEIR_ARRAY_LEN(sizes)], max = _i % 2 == 0 ? DISAGREE_KEPT_MAX : 10;
    struct weir_rng rng;
    struct made *made = calloc(n + 1, sizeof *made);
    struct disagree *disagree = disagree_create(max);
    printf("seed %llu, %zu pictures, %zu kept\n", (unsigned long long)seed, n, max);
    weir_rng_init(&rng, seed, 0);
    for (size_t i = 0; i < n; i++) {
        made[i] = make(&rng, (int)i);
        struct disagree_sample given = made[i].sample;
        given.file = made[i].file;
        disagree_add(disagree, &given);
    }
    check_sample(disagree, made, n, max);
    check_confusions(disagree, made, n);
    disagree_destroy(disagree);
    free(made);
}

END_TEST

START_TEST(a_kind_that_is_rare_leaves_its_room_to_the_others)
{
    static const struct {
        size_t n[DISAGREE_N_KINDS], max, expected[DISAGREE_N_KINDS];
    } cases[] = {{{500, 500, 500}, 200, {67, 67, 66}}, {{500, 3, 500}, 200, {99, 3, 98}},
                 {{1, 0, 0}, 200, {1, 0, 0}},          {{0, 900, 2}, 10, {0, 8, 2}},
                 {{5, 5, 5}, 200, {5, 5, 5}},          {{0, 0, 0}, 200, {0, 0, 0}}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        size_t share[DISAGREE_N_KINDS];
        disagree_share(cases[i].n, cases[i].max, share);
        ck_assert_mem_eq(share, cases[i].expected, sizeof share);
    }
}

END_TEST

START_TEST(a_score_that_is_no_number_is_the_least_sure)
{
    struct disagree *disagree = disagree_create(1);
    struct disagree_sample rows[DISAGREE_KEPT_MAX];
    struct disagree_sample one = {"nut/1", "00", "nut", "gear", "nut", NAN, 0.9};
    disagree_add(disagree, &one);
    one.file = "nut/2";
    one.score = 0.1;
    disagree_add(disagree, &one);
    ck_assert_uint_eq(disagree_choose(disagree, rows), 1);
    ck_assert_str_eq(rows[0].file, "nut/2");
    ck_assert_str_eq(disagree_kind_name(disagree_kind_of(&rows[0])), "live-right");
    disagree_destroy(disagree);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("disagree", {the_surest_of_each_kind_stay, 10},
                     {a_kind_that_is_rare_leaves_its_room_to_the_others, 1},
                     {a_score_that_is_no_number_is_the_least_sure, 1})
