/* Visitors against a plain list of who passed when, on random people; and all that makes them forget. */
#include "predict/visitors.h"

#include "base/file.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIM       64
#define THRESHOLD 0.6
#define HOUR_MS   ((int64_t)3600 * 1000)
#define DAY_MS    (24 * HOUR_MS)
#define BEGIN_MS  ((int64_t)1790000000000)

static char folder[64], path[128];
static struct weir_rng rng;
static uint64_t seed;

static void set_up(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/visitors-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/file", folder);
    const char *given = getenv("SEED");
    seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)getpid();
    printf("SEED=%llu\n", (unsigned long long)seed);
    weir_rng_init(&rng, seed, 0);
}

static void tear_down(void)
{
    (void)unlink(path);
    (void)rmdir(folder);
}

static void normalise(float *out)
{
    double squares = 0;
    for (size_t d = 0; d < DIM; d++) {
        squares += (double)out[d] * (double)out[d];
    }
    for (size_t d = 0; d < DIM; d++) {
        out[d] = (float)(out[d] / sqrt(squares));
    }
}

/* A face: its own for each number, the same again. */
static void face(uint64_t person, float out[DIM])
{
    struct weir_rng own;
    weir_rng_init(&own, seed, person + 1);
    for (size_t d = 0; d < DIM; d++) {
        out[d] = (float)weir_rng_normal(&own);
    }
    normalise(out);
}

/* A look at it: alike by 0.9 or so. */
static void see_face(uint64_t person, float out[DIM])
{
    face(person, out);
    for (size_t d = 0; d < DIM; d++) {
        out[d] += (float)(0.05 * weir_rng_normal(&rng));
    }
    normalise(out);
}

static struct visitor pass_by(struct visitors *visitors, uint64_t person, const char *embedder,
                              int64_t time_ms)
{
    float embedding[DIM];
    struct visitor told;
    see_face(person, embedding);
    const struct visitor_look look = {embedding, DIM, embedder, time_ms, time_ms + 2000};
    visitors_see(visitors, &look, &told);
    return told;
}

/* A gallery of these people; the caller has the reference. */
static struct gallery *gallery_of(const char *blob, size_t n, const uint64_t *people)
{
    struct gallery *gallery = malloc(sizeof *gallery);
    float *vectors = malloc((n + 1) * DIM * sizeof *vectors);
    int32_t *persons = malloc((n + 1) * sizeof *persons);
    ck_assert(gallery != NULL && vectors != NULL && persons != NULL);
    *gallery = (struct gallery){.blob = strdup(blob), .n_persons = n};
    gallery->persons = malloc((n + 1) * sizeof *gallery->persons);
    for (size_t i = 0; i < n; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "p%llu", (unsigned long long)people[i]);
        gallery->persons[i] = strdup(name);
        see_face(people[i], vectors + i * DIM);
        persons[i] = (int32_t)i;
    }
    gallery->templates = (struct templates){vectors, persons, n, DIM};
    gallery->calibration.threshold = THRESHOLD;
    atomic_init(&gallery->n_refs, 1);
    return gallery;
}

static bool has_file(void)
{
    struct stat about;
    return stat(path, &about) == 0;
}

START_TEST(who_comes_again_is_the_same_and_passages_close_together_are_one_coming)
{
    enum { PEOPLE = 40, PASSAGES = 600 };

    static struct {
        struct visitor told;
        int64_t last_ms;
    } plain[PEOPLE];

    struct gallery *gallery = gallery_of("a", 0, NULL);
    struct visitors *visitors = visitors_open(path);
    int64_t time_ms = BEGIN_MS;
    for (size_t i = 0; i < PASSAGES; i++) {
        uint64_t person = weir_rng_below(&rng, PEOPLE);
        time_ms += (int64_t)weir_rng_below(&rng, HOUR_MS / 20);
        visitors_fit(visitors, true, gallery, time_ms);
        struct visitor told = pass_by(visitors, person, "m", time_ms);
        if (plain[person].told.times == 0) {
            for (size_t k = 0; k < PEOPLE; k++) {
                ck_assert_str_ne(told.id, plain[k].told.id);
            }
            plain[person].told = (struct visitor){.times = 1, .first_ms = time_ms};
            memcpy(plain[person].told.id, told.id, sizeof told.id);
        } else if (time_ms - plain[person].last_ms >= VISITORS_PAUSE_MS) {
            plain[person].told.times++;
        }
        plain[person].last_ms = time_ms + 2000;
        ck_assert_str_eq(told.id, plain[person].told.id);
        ck_assert_int_eq(told.times, plain[person].told.times);
        ck_assert_int_eq(told.first_ms, plain[person].told.first_ms);
        if (i % 100 == 99) { /* The next process knows them. */
            visitors_close(visitors);
            visitors = visitors_open(path);
        }
    }
    visitors_close(visitors);
    gallery_unref(gallery);
}

END_TEST

START_TEST(of_too_many_those_seen_longest_ago_go_and_none_stays_longer_than_a_week)
{
    struct gallery *gallery = gallery_of("a", 0, NULL);
    struct visitors *visitors = visitors_open(path);
    struct visitor first[VISITORS_MAX + 10];
    for (size_t i = 0; i < VISITORS_MAX + 10; i++) {
        visitors_fit(visitors, true, gallery, BEGIN_MS + (int64_t)i * 1000);
        first[i] = pass_by(visitors, i, "m", BEGIN_MS + (int64_t)i * 1000);
    }
    int64_t later_ms = BEGIN_MS + HOUR_MS;
    visitors_fit(visitors, true, gallery, later_ms);
    for (size_t i = VISITORS_MAX + 9; i > 10; i--) {
        ck_assert_int_eq(pass_by(visitors, i, "m", later_ms).times, 2);
    }
    ck_assert_str_ne(pass_by(visitors, 9, "m", later_ms).id, first[9].id);
    visitors_fit(visitors, true, gallery, later_ms + VISITORS_KEPT_MS - HOUR_MS);
    ck_assert_str_eq(pass_by(visitors, 20, "m", later_ms).id, first[20].id);
    visitors_fit(visitors, true, gallery, later_ms + VISITORS_KEPT_MS + HOUR_MS);
    ck_assert(!has_file());
    ck_assert_str_ne(pass_by(visitors, 20, "m", later_ms).id, first[20].id);
    visitors_close(visitors);
    gallery_unref(gallery);
}

END_TEST

START_TEST(who_is_enrolled_is_forgotten_and_when_somebody_is_taken_out_all_are)
{
    static const uint64_t ada[] = {500}, both[] = {500, 7}, other[] = {7, 8};
    struct gallery *before = gallery_of("a", 1, ada), *enrolled = gallery_of("b", 2, both);
    struct gallery *lost = gallery_of("c", 2, other);
    struct visitors *visitors = visitors_open(path);
    visitors_fit(visitors, true, before, BEGIN_MS);
    struct visitor seven = pass_by(visitors, 7, "m", BEGIN_MS);
    struct visitor nine = pass_by(visitors, 9, "m", BEGIN_MS);
    visitors_fit(visitors, true, enrolled, BEGIN_MS + HOUR_MS);
    ck_assert_str_ne(pass_by(visitors, 7, "m", BEGIN_MS + HOUR_MS).id, seven.id);
    ck_assert_str_eq(pass_by(visitors, 9, "m", BEGIN_MS + HOUR_MS).id, nine.id);
    visitors_fit(visitors, true, lost, BEGIN_MS + 2 * HOUR_MS);
    ck_assert(!has_file());
    ck_assert_str_ne(pass_by(visitors, 9, "m", BEGIN_MS + 2 * HOUR_MS).id, nine.id);
    visitors_close(visitors);
    /* It has changed while nobody looked: who is missing is not known any more. */
    ck_assert(has_file());
    visitors = visitors_open(path);
    visitors_fit(visitors, true, enrolled, BEGIN_MS + 3 * HOUR_MS);
    ck_assert(!has_file());
    visitors_close(visitors);
    gallery_unref(before);
    gallery_unref(enrolled);
    gallery_unref(lost);
}

END_TEST

START_TEST(another_model_a_switch_and_a_damaged_file_make_it_forget)
{
    struct gallery *gallery = gallery_of("a", 0, NULL);
    struct visitors *visitors = visitors_open(path);
    visitors_fit(visitors, false, gallery, BEGIN_MS);
    ck_assert_int_eq(pass_by(visitors, 1, "m", BEGIN_MS).times, 0);
    visitors_fit(visitors, true, gallery, BEGIN_MS);
    struct visitor one = pass_by(visitors, 1, "m", BEGIN_MS);
    ck_assert_int_eq(one.times, 1);
    ck_assert_str_ne(pass_by(visitors, 1, "another", BEGIN_MS).id, one.id);
    visitors_fit(visitors, true, gallery, BEGIN_MS + VISITORS_SAVE_MS);
    struct stat about;
    ck_assert_int_eq(stat(path, &about), 0);
    ck_assert_int_eq(about.st_mode & 0777, 0600);
    visitors_fit(visitors, false, gallery, BEGIN_MS + HOUR_MS);
    ck_assert(!has_file());
    visitors_fit(visitors, true, gallery, BEGIN_MS + HOUR_MS);
    (void)pass_by(visitors, 1, "m", BEGIN_MS + HOUR_MS);
    visitors_close(visitors);
    /* A byte of it is changed, or its end is missing: it is whole, or nothing is known. */
    ck_assert_int_eq(stat(path, &about), 0);
    struct weir_error err;
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    struct visitor last = {0};
    for (int i = 0; i < 200; i++) {
        char *bytes;
        size_t len;
        visitors = visitors_open(path);
        visitors_fit(visitors, true, gallery, BEGIN_MS + HOUR_MS);
        struct visitor told = pass_by(visitors, 1, "m", BEGIN_MS + HOUR_MS);
        ck_assert_str_ne(told.id, last.id);
        last = told;
        visitors_close(visitors);
        ck_assert_int_eq(weir_file_read(path, 1 << 20, &arena, &bytes, &len, &err), WEIR_OK);
        bytes[weir_rng_below(&rng, len)] ^= (char)(1 + weir_rng_below(&rng, 255));
        len -= i % 4 == 0 ? weir_rng_below(&rng, len) : 0;
        ck_assert_int_eq(weir_file_write(path, bytes, len, 0600, &err), WEIR_OK);
    }
    weir_arena_fini(&arena);
    gallery_unref(gallery);
}

END_TEST

WEIR_TEST_MAIN_WITH("visitors", set_up, tear_down,
                    who_comes_again_is_the_same_and_passages_close_together_are_one_coming,
                    of_too_many_those_seen_longest_ago_go_and_none_stays_longer_than_a_week,
                    who_is_enrolled_is_forgotten_and_when_somebody_is_taken_out_all_are,
                    another_model_a_switch_and_a_damaged_file_make_it_forget)
