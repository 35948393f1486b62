/* People are followed: one track each, at any frame rate, in any order, mirrored, with misses; and never more than is promised. */
#include "vision/tracker.h"

#include "base/macros.h"
#include "base/test_alloc.h"
#include "base/test_main.h"
#include "vision/walkers_fixture.h"

#include <inttypes.h>
#include <stdio.h>

#define SEED 460

static struct walk walk; /* Large. */

/* The id of the track that each walker's sighting was given, 0 for none; by frame and walker. */
struct ids {
    uint64_t of[WALK_FRAMES_MAX][WALKERS_MAX];
};

static struct ids ids, other_ids;

static struct weir_tracker *make_tracker(const struct weir_tracker_options *options, size_t dim)
{
    struct weir_tracker *tracker = NULL;
    struct weir_error err = {0};
    ck_assert_msg(weir_tracker_create(options, dim, &tracker, &err) == WEIR_OK, "%s", err.message);
    return tracker;
}

/* Follow the walk, with the sightings of each frame in an order of `rng` (NULL: as they stand), and times `times` as long. */
static void follow(const struct weir_tracker_options *options, struct weir_rng *rng, int64_t times,
                   struct ids *out)
{
    struct weir_tracker *tracker = make_tracker(options, WALK_DIM);
    memset(out, 0, sizeof *out);
    for (size_t f = 0; f < walk.n_frames; f++) {
        const struct walk_frame *frame = &walk.frames[f];
        uint32_t order[WALKERS_MAX];
        struct weir_sighting sightings[WALKERS_MAX];
        struct weir_track *tracks[WALKERS_MAX];
        for (uint32_t i = 0; i < frame->n; i++) {
            order[i] = i;
        }
        if (rng != NULL) {
            weir_rng_shuffle_u32(rng, order, frame->n);
        }
        for (size_t i = 0; i < frame->n; i++) {
            sightings[i] = frame->sightings[order[i]];
        }
        weir_tracker_step(tracker, 1000000 + times * frame->time_ms, sightings, frame->n, tracks);
        for (size_t i = 0; i < frame->n; i++) {
            out->of[f][frame->who[order[i]]] = tracks[i] == NULL ? 0 : tracks[i]->id;
        }
        while (weir_tracker_ended(tracker) != NULL) {
        }
    }
    weir_tracker_destroy(tracker);
}

/* What scripts do: boxes that overlap by more than 0.3, the best pair first; a track that is not seen for 10 frames is gone. */
static void follow_by_overlap(struct ids *out)
{
    struct {
        struct weir_box box;
        size_t seen;
        bool is_taken;
    } tracks[2000];

    size_t n_tracks = 0;
    memset(out, 0, sizeof *out);
    for (size_t f = 0; f < walk.n_frames; f++) {
        const struct walk_frame *frame = &walk.frames[f];
        for (size_t t = 0; t < n_tracks; t++) {
            tracks[t].is_taken = false;
        }
        for (size_t i = 0; i < frame->n; i++) {
            const struct weir_box *b = &frame->sightings[i].detection.box;
            size_t best = n_tracks;
            float best_overlap = 0.3F;
            for (size_t t = 0; t < n_tracks; t++) {
                const struct weir_box *a = &tracks[t].box;
                float w = fminf(a->x + a->w, b->x + b->w) - fmaxf(a->x, b->x);
                float h = fminf(a->y + a->h, b->y + b->h) - fmaxf(a->y, b->y);
                float both = fmaxf(w, 0) * fmaxf(h, 0);
                float overlap = both / (a->w * a->h + b->w * b->h - both);
                if (f - tracks[t].seen <= 10 && !tracks[t].is_taken && overlap > best_overlap) {
                    best = t;
                    best_overlap = overlap;
                }
            }
            n_tracks += best == n_tracks;
            ck_assert_uint_le(n_tracks, WEIR_ARRAY_LEN(tracks));
            tracks[best].box = *b;
            tracks[best].seen = f;
            tracks[best].is_taken = true;
            out->of[f][frame->who[i]] = best + 1;
        }
    }
}

struct score {
    int n_tracks, n_switches, n_shared; /* Shared: tracks of more than one walker. */
};

static struct score count(const struct ids *of_walk)
{
    static int owner[4000];
    struct score score = {0};
    uint64_t last_id = 0;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(owner); i++) {
        owner[i] = -1;
    }
    for (int w = 0; w < WALKERS_MAX; w++) {
        uint64_t before = 0;
        for (size_t f = 0; f < walk.n_frames; f++) {
            uint64_t id = of_walk->of[f][w];
            if (id == 0) {
                continue;
            }
            ck_assert_uint_lt(id, WEIR_ARRAY_LEN(owner));
            score.n_shared += owner[id] >= 0 && owner[id] != w;
            score.n_tracks += owner[id] < 0;
            owner[id] = w;
            last_id = WEIR_MAX(last_id, id);
            score.n_switches += before != 0 && before != id;
            before = id;
        }
    }
    return score;
}

START_TEST(people_who_do_not_cross_have_one_track_each)
{
    const double rates[] = {5, 10, 25};
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, 1);
    for (size_t r = 0; r < WEIR_ARRAY_LEN(rates); r++) {
        for (int k = 0; k < WEIR_TEST_TIMES(60, 6); k++) {
            struct walk_manner manner = {rates[r], 0.1, 0.15, 0.04, k % 2 == 1};
            walk_make_lines(&rng, &manner, &walk);
            follow(&weir_tracker_usual, NULL, 1, &ids);
            struct score score = count(&ids);
            ck_assert_msg(score.n_tracks == (int)walk.n_walkers && score.n_switches == 0,
                          "seed %d, %g frames/s, walk %d: %d tracks of %zu people, %d switches",
                          SEED, rates[r], k, score.n_tracks, walk.n_walkers, score.n_switches);
        }
    }
}

END_TEST

/* Of n entrances of 11 passages, the mean. */
struct table_row {
    double n_tracks, n_switches, n_shared;
};

static void add(struct table_row *row, struct score score, int n)
{
    row->n_tracks += (double)score.n_tracks / n;
    row->n_switches += (double)score.n_switches / n;
    row->n_shared += (double)score.n_shared / n;
}

START_TEST(passages_of_an_entrance_are_followed)
{
    const int n = WEIR_TEST_TIMES(20, 4);
    const double rates[] = {5, 10, 25};
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, 2);
    for (size_t r = 0; r < WEIR_ARRAY_LEN(rates); r++) {
        struct table_row overlap = {0}, place = {0}, likeness = {0};
        for (int k = 0; k < 2 * n; k++) {
            struct walk_manner manner = {rates[r], 0.03, 0.1, 0.04, k % 2 == 1};
            walk_make_entrance(&rng, &manner, &walk);
            follow(&weir_tracker_usual, NULL, 1, &ids);
            add(manner.has_embeddings ? &likeness : &place, count(&ids), n);
            if (!manner.has_embeddings) {
                follow_by_overlap(&ids);
                add(&overlap, count(&ids), n);
            }
        }
        printf("seed %d, %g frames/s, 11 passages, tracks/switches/shared: overlap %.1f/%.1f, "
               "distance %.1f/%.1f/%.1f, with embeddings %.1f/%.1f/%.1f\n",
               SEED, rates[r], overlap.n_tracks, overlap.n_switches, place.n_tracks,
               place.n_switches, place.n_shared, likeness.n_tracks, likeness.n_switches,
               likeness.n_shared);
        ck_assert(place.n_tracks > 9.5 && place.n_tracks < 12);
        ck_assert(place.n_switches < 2 && place.n_shared < 2);
        ck_assert(likeness.n_tracks > 10.5 && likeness.n_tracks < 12.5);
        ck_assert(likeness.n_switches < 1.5 && likeness.n_shared < 0.8);
        ck_assert_double_gt(overlap.n_switches, 4 * place.n_switches);
    }
}

END_TEST

/* Tracks are the same but for their numbers. */
static void assert_same(const struct ids *a, const struct ids *b, bool by_number)
{
    static uint64_t name[4000];
    memset(name, 0, sizeof name);
    for (size_t f = 0; f < walk.n_frames; f++) {
        for (int w = 0; w < WALKERS_MAX; w++) {
            uint64_t id = a->of[f][w], other = b->of[f][w];
            name[id] = name[id] == 0 || id == 0 ? other : name[id];
            ck_assert_msg(name[id] == other && (!by_number || id == other),
                          "seed %d, frame %zu, walker %d: track %llu, and %llu", SEED, f, w,
                          (unsigned long long)name[id], (unsigned long long)other);
        }
    }
}

START_TEST(the_order_of_sightings_does_not_matter)
{
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, 3);
    for (int k = 0; k < WEIR_TEST_TIMES(10, 2); k++) {
        struct walk_manner manner = {10, 0.1, 0.2, 0.05, k % 2 == 1};
        walk_make_entrance(&rng, &manner, &walk);
        follow(&weir_tracker_usual, NULL, 1, &ids);
        follow(&weir_tracker_usual, &rng, 1, &other_ids);
        assert_same(&ids, &other_ids, true);
    }
}

END_TEST

START_TEST(a_mirrored_picture_has_the_same_tracks)
{
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, 4);
    for (int k = 0; k < WEIR_TEST_TIMES(10, 2); k++) {
        struct walk_manner manner = {10, 0.1, 0.2, 0.05, k % 2 == 1};
        walk_make_entrance(&rng, &manner, &walk);
        follow(&weir_tracker_usual, NULL, 1, &ids);
        for (size_t f = 0; f < walk.n_frames; f++) {
            for (size_t i = 0; i < walk.frames[f].n; i++) {
                struct weir_box *box = &walk.frames[f].sightings[i].detection.box;
                box->x = WALK_WIDTH - box->x - box->w;
            }
        }
        follow(&weir_tracker_usual, NULL, 1, &other_ids);
        assert_same(&ids, &other_ids, false);
    }
}

END_TEST

START_TEST(slower_time_has_the_same_tracks)
{
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, 5);
    for (int k = 0; k < WEIR_TEST_TIMES(10, 2); k++) {
        struct walk_manner manner = {10, 0.1, 0.2, 0.05, k % 2 == 1};
        struct weir_tracker_options slow = weir_tracker_usual;
        slow.gone_ms *= 4; /* A power of 2: numbers are exactly the same. */
        slow.interval_ms *= 4;
        walk_make_entrance(&rng, &manner, &walk);
        follow(&weir_tracker_usual, NULL, 1, &ids);
        follow(&slow, NULL, 4, &other_ids);
        assert_same(&ids, &other_ids, true);
    }
}

END_TEST

static const float ada[2] = {1, 0}, bob[2] = {0, 1};

static struct weir_sighting sighting_at(float x, float score, const float *embedding)
{
    return (struct weir_sighting){.detection = {.box = {x, 100, 50, 60}, .score = score},
                                  .embedding = embedding};
}

static uint64_t step_one(struct weir_tracker *tracker, int64_t time_ms,
                         struct weir_sighting sighting)
{
    struct weir_track *track = NULL;
    weir_tracker_step(tracker, time_ms, &sighting, 1, &track);
    return track == NULL ? 0 : track->id;
}

START_TEST(two_good_frames_of_another_split_a_track_and_one_does_not)
{
    struct weir_tracker *tracker = make_tracker(&weir_tracker_usual, 2);
    for (int i = 0; i < 5; i++) {
        ck_assert_uint_eq(step_one(tracker, 100 * i, sighting_at(100, 0.9F, ada)), 1);
    }
    ck_assert_uint_eq(step_one(tracker, 500, sighting_at(100, 0.9F, bob)), 0);
    ck_assert_uint_eq(step_one(tracker, 600, sighting_at(100, 0.9F, ada)), 1);
    ck_assert_uint_eq(step_one(tracker, 700, sighting_at(100, 0.9F, bob)), 0);
    ck_assert_uint_eq(step_one(tracker, 800, sighting_at(100, 0.9F, bob)), 2);
    ck_assert_uint_eq(step_one(tracker, 900, sighting_at(100, 0.9F, bob)), 2);
    ck_assert_uint_eq(step_one(tracker, 1000, sighting_at(100, 0.9F, ada)), 1); /* It is back. */
    ck_assert_uint_eq(step_one(tracker, 1100, sighting_at(100, 0.2F, NULL)), 1);
    struct weir_error err = {0};
    ck_assert(weir_tracker_change_model(tracker, 0, &err) == WEIR_OK);
    ck_assert_uint_eq(step_one(tracker, 1200, sighting_at(100, 0.9F, bob)), 1); /* Not compared. */
    weir_tracker_destroy(tracker);
}

END_TEST

START_TEST(a_low_score_goes_on_with_a_track_and_begins_none)
{
    struct weir_tracker *tracker = make_tracker(&weir_tracker_usual, 0);
    ck_assert_uint_eq(step_one(tracker, 0, sighting_at(100, 0.4F, NULL)), 0);
    ck_assert_uint_eq(step_one(tracker, 100, sighting_at(100, 0.6F, NULL)), 1);
    ck_assert_uint_eq(step_one(tracker, 200, sighting_at(110, 0.1F, NULL)), 1);
    struct weir_sighting other_class = sighting_at(110, 0.9F, NULL);
    other_class.detection.class_id = 3;
    ck_assert_uint_eq(step_one(tracker, 300, other_class), 2);
    struct weir_sighting wide = sighting_at(90, 0.9F, NULL);
    wide.detection.box.w *= 2;
    wide.detection.box.h *= 2;
    ck_assert_uint_eq(step_one(tracker, 400, wide), 3);
    weir_tracker_destroy(tracker);
}

END_TEST

/* A plain count beside it: of each step up to twice gone_ms, at most half of gone_ms. Waits in between change nothing. */
START_TEST(what_was_not_looked_at_is_no_sign_that_somebody_left)
{
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, 7);
    for (int k = 0; k < 2000; k++) {
        struct weir_tracker_options options = weir_tracker_usual;
        options.gone_ms = 2 + 2 * (int64_t)weir_rng_below(&rng, 500);
        options.gate = options.gate_known = 100; /* All that is seen is this one. */
        struct weir_tracker *tracker = make_tracker(&options, 0);
        int64_t time_ms = 0, counted_ms = 0;
        uint64_t id = step_one(tracker, 0, sighting_at(100, 0.9F, NULL));
        for (int i = 0; i < 20; i++) {
            int64_t step_ms = (int64_t)weir_rng_below(&rng, (uint64_t)(5 * options.gone_ms / 2));
            bool is_seen = weir_rng_below(&rng, 3) == 0;
            bool counts_whole = step_ms > 2 * options.gone_ms;
            counted_ms += counts_whole ? step_ms : WEIR_MIN(step_ms, options.gone_ms / 2);
            weir_tracker_wait(tracker, time_ms + step_ms / 3);
            weir_tracker_wait(tracker, time_ms + step_ms / 2);
            time_ms += step_ms;
            if (!is_seen) {
                weir_tracker_step(tracker, time_ms, NULL, 0, NULL);
                continue;
            }
            uint64_t now = step_one(tracker, time_ms, sighting_at(100, 0.9F, NULL));
            ck_assert_msg((now == id) == (counted_ms <= options.gone_ms),
                          "seed %d, run %d, step %d: %" PRId64 " of %" PRId64 " ms count", SEED, k,
                          i, counted_ms, options.gone_ms);
            id = now;
            counted_ms = 0;
        }
        weir_tracker_destroy(tracker);
    }
}

END_TEST

START_TEST(frames_in_which_a_track_looked_otherwise_are_no_one_else)
{
    struct weir_tracker *tracker = make_tracker(&weir_tracker_usual, 2);
    struct weir_track *const *live;
    for (int i = 0; i < 5; i++) {
        ck_assert_uint_eq(step_one(tracker, 100 * i, sighting_at(100, 0.9F, ada)), 1);
    }
    ck_assert_uint_eq(step_one(tracker, 500, sighting_at(100, 0.9F, bob)), 0);
    ck_assert_uint_eq(step_one(tracker, 600, sighting_at(100, 0.9F, bob)), 2);
    ck_assert_uint_eq(weir_tracker_tracks(tracker, &live), 2);
    ck_assert(!live[0]->is_doubtful && !live[1]->is_doubtful); /* Who knows who is behind whom? */
    ck_assert_uint_eq(step_one(tracker, 700, sighting_at(100, 0.9F, ada)), 1);
    ck_assert(weir_tracker_tracks(tracker, &live) == 2 && live[1]->is_doubtful);
    ck_assert(!live[0]->is_doubtful);
    struct weir_sighting both[] = {sighting_at(100, 0.9F, ada), sighting_at(130, 0.9F, bob)};
    struct weir_track *tracks[2];
    weir_tracker_step(tracker, 800, both, 2, tracks);
    ck_assert(tracks[0]->id == 1 && tracks[1]->id == 2 && !tracks[1]->is_doubtful);
    ck_assert_uint_eq(step_one(tracker, 900, sighting_at(100, 0.9F, ada)), 1);
    ck_assert(weir_tracker_tracks(tracker, &live) == 2 && !live[1]->is_doubtful);
    weir_tracker_destroy(tracker);
}

END_TEST

/* One is seen in another's place, now the one and now the other, never both. Beside it a plain count: the first sighting is not yet a
 * track's. */
START_TEST(who_is_seen_often_enough_behind_another_is_somebody)
{
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, 8);
    for (int k = 0; k < 500; k++) {
        struct weir_tracker *tracker = make_tracker(&weir_tracker_usual, 2);
        int64_t time_ms = 0;
        uint64_t n_behind = 0;
        for (int i = 0; i < 5; i++, time_ms += 100) {
            (void)step_one(tracker, time_ms, sighting_at(100, 0.9F, ada));
        }
        for (int round = 0; round < 3; round++, time_ms += 100) {
            const struct weir_track *behind = NULL;
            struct weir_track *const *live;
            uint64_t n = 2 + weir_rng_below(&rng, 4);
            for (uint64_t i = 0; i < n; i++, time_ms += 100) {
                uint64_t id = step_one(tracker, time_ms, sighting_at(100, 0.9F, bob));
                n_behind += id == 2;
            }
            ck_assert_uint_eq(step_one(tracker, time_ms, sighting_at(100, 0.9F, ada)), 1);
            size_t n_live = weir_tracker_tracks(tracker, &live);
            behind = n_live == 2 ? live[1] : NULL;
            ck_assert_msg(behind != NULL && behind->n_sightings == n_behind &&
                              behind->is_doubtful == (n_behind <= WEIR_TRACK_DOUBTFUL_MAX),
                          "seed %d, run %d, round %d: %zu tracks, %" PRIu64 " sightings", SEED, k,
                          round, n_live, n_behind);
        }
        weir_tracker_destroy(tracker);
    }
}

END_TEST

START_TEST(tracks_end_when_time_has_passed_whatever_the_clock_says)
{
    struct weir_tracker *tracker = make_tracker(&weir_tracker_usual, 0);
    int user = 0;
    struct weir_sighting sighting = sighting_at(100, 0.9F, NULL);
    struct weir_track *track = NULL;
    weir_tracker_step(tracker, INT64_MAX - 5, &sighting, 1, &track);
    track->of_user = &user;
    weir_tracker_step(tracker, INT64_MIN, &sighting, 1, &track); /* Back: no time. */
    ck_assert_uint_eq(track->n_sightings, 2);
    weir_tracker_wait(tracker, INT64_MIN + 4000);
    ck_assert_ptr_null(weir_tracker_ended(tracker));
    weir_tracker_wait(tracker, INT64_MIN + 4001);
    const struct weir_track *ended = weir_tracker_ended(tracker);
    ck_assert_ptr_nonnull(ended);
    ck_assert(ended->id == 1 && ended->of_user == &user && ended->first_ms == INT64_MAX - 5 &&
              ended->last_ms == INT64_MIN && ended->n_sightings == 2);
    ck_assert_ptr_null(weir_tracker_ended(tracker));
    ck_assert_uint_eq(step_one(tracker, 0, sighting), 2);
    ck_assert_uint_eq(step_one(tracker, INT64_MAX, sighting), 3); /* Forward: all is gone. */
    weir_tracker_end(tracker);
    ck_assert_uint_eq(weir_tracker_ended(tracker)->id, 2);
    ck_assert_uint_eq(weir_tracker_ended(tracker)->id, 3);
    struct weir_track *const *live;
    ck_assert_uint_eq(weir_tracker_tracks(tracker, &live), 0);
    weir_tracker_destroy(tracker);
}

END_TEST

START_TEST(time_goes_on_from_where_a_clock_was_set_back_to)
{
    struct weir_tracker *tracker = make_tracker(&weir_tracker_usual, 0);
    struct weir_sighting sighting = sighting_at(100, 0.9F, NULL);
    ck_assert_uint_eq(step_one(tracker, 50000, sighting), 1);
    ck_assert_uint_eq(step_one(tracker, 10000, sighting), 1);
    ck_assert_uint_eq(step_one(tracker, 10100, sighting), 1);
    ck_assert_uint_eq(step_one(tracker, 14101, sighting), 2); /* Not only at 52,000. */
    weir_tracker_destroy(tracker);
}

END_TEST

START_TEST(what_is_followed_is_bounded_and_the_best_come_first)
{
    enum { N = 1000 };
    static struct weir_sighting sightings[N];
    static struct weir_track *tracks[N];
    struct weir_tracker *tracker = make_tracker(&weir_tracker_usual, 0);
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, 6);
    for (int f = 0; f < 4; f++) { /* Each frame at places far from the last. */
        for (int i = 0; i < N; i++) {
            sightings[i] =
                sighting_at((float)(1000 * i + 300000 * (f % 2)), weir_rng_f32(&rng), NULL);
        }
        weir_tracker_step(tracker, 100 * f, sightings, N, tracks);
        struct weir_track *const *live;
        ck_assert_uint_eq(weir_tracker_tracks(tracker, &live), WEIR_TRACKS_MAX);
        float worst_taken = 1, best_left = 0;
        for (int i = 0; i < N; i++) {
            float score = sightings[i].detection.score;
            worst_taken = tracks[i] != NULL ? fminf(worst_taken, score) : worst_taken;
            best_left = tracks[i] == NULL ? fmaxf(best_left, score) : best_left;
        }
        ck_assert(f > 0 || worst_taken >= best_left);
    }
    size_t n_ended = 0;
    while (weir_tracker_ended(tracker) != NULL) {
        n_ended++;
    }
    ck_assert_uint_eq(n_ended, WEIR_TRACKS_MAX); /* The others had no place to begin at. */
    weir_tracker_destroy(tracker);
}

END_TEST

START_TEST(boxes_that_are_no_boxes_are_not_followed)
{
    const float odd[] = {NAN, INFINITY, -INFINITY, -1, 0};
    const float nowhere[2] = {NAN, INFINITY};
    struct weir_tracker *tracker = make_tracker(&weir_tracker_usual, 2);
    ck_assert_uint_eq(step_one(tracker, 0, sighting_at(100, 0.9F, nowhere)), 1);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(odd); i++) {
        struct weir_sighting sighting = sighting_at(i < 3 ? odd[i] : 100, 0.9F, NULL);
        sighting.detection.box.w = odd[i];
        ck_assert_uint_eq(step_one(tracker, 0, sighting), 0);
        sighting = sighting_at(100, i < 3 ? odd[i] : 0, ada);
        ck_assert_uint_eq(step_one(tracker, 0, sighting), i < 3 ? 0 : 1);
    }
    struct weir_sighting huge = sighting_at(3e38F, 0.9F, ada);
    huge.detection.box.w = huge.detection.box.h = 3e38F;
    ck_assert_uint_eq(step_one(tracker, 50, huge), 2);
    ck_assert_uint_eq(step_one(tracker, 100, sighting_at(100, 0.9F, ada)), 1);
    weir_tracker_destroy(tracker);
}

END_TEST

START_TEST(options_out_of_their_range_are_named)
{
    struct weir_tracker *tracker = NULL;
    struct weir_error err = {0};
    struct weir_tracker_options options = weir_tracker_usual;
    options.gate_known = NAN;
    ck_assert_int_eq(weir_tracker_create(&options, 0, &tracker, &err), WEIR_ERR_INVALID);
    ck_assert_str_eq(err.message, "gate_known of the tracker is nan: give 0.01 to 100");
    ck_assert_int_eq(weir_tracker_create(&weir_tracker_usual, SIZE_MAX, &tracker, &err),
                     WEIR_ERR_INVALID);
    ck_assert_ptr_null(tracker);
    weir_tracker_destroy(NULL);
}

END_TEST

START_TEST(without_memory_there_is_no_tracker_and_no_other_model)
{
    bool was_hit = true;
    for (long n = 0; was_hit; n++) {
        struct weir_tracker *tracker = NULL;
        struct weir_error err = {0};
        test_alloc_fail(n);
        weir_status status = weir_tracker_create(&weir_tracker_usual, 2, &tracker, &err);
        was_hit = test_alloc_end();
        ck_assert_int_eq(status, was_hit ? WEIR_ERR_NOMEM : WEIR_OK);
        ck_assert(was_hit == (tracker == NULL));
        weir_tracker_destroy(tracker);
    }
    struct weir_tracker *tracker = make_tracker(&weir_tracker_usual, 2);
    struct weir_error err = {0};
    ck_assert_uint_eq(step_one(tracker, 0, sighting_at(100, 0.9F, ada)), 1);
    test_alloc_fail(0);
    weir_status status = weir_tracker_change_model(tracker, 3, &err);
    ck_assert(test_alloc_end());
    ck_assert_int_eq(status, WEIR_ERR_NOMEM);
    ck_assert_uint_eq(step_one(tracker, 100, sighting_at(100, 0.9F, bob)), 0); /* Still compared. */
    weir_tracker_destroy(tracker);
}

END_TEST

WEIR_TEST_MAIN("tracker", people_who_do_not_cross_have_one_track_each,
               passages_of_an_entrance_are_followed, the_order_of_sightings_does_not_matter,
               a_mirrored_picture_has_the_same_tracks, slower_time_has_the_same_tracks,
               two_good_frames_of_another_split_a_track_and_one_does_not,
               a_low_score_goes_on_with_a_track_and_begins_none,
               what_was_not_looked_at_is_no_sign_that_somebody_left,
               frames_in_which_a_track_looked_otherwise_are_no_one_else,
               who_is_seen_often_enough_behind_another_is_somebody,
               tracks_end_when_time_has_passed_whatever_the_clock_says,
               time_goes_on_from_where_a_clock_was_set_back_to,
               what_is_followed_is_bounded_and_the_best_come_first,
               boxes_that_are_no_boxes_are_not_followed, options_out_of_their_range_are_named,
               without_memory_there_is_no_tracker_and_no_other_model)
