/* What is in a zone, and what is said of it: as counted again from all that was seen. */
#include "vision/zone.h"

#include "base/macros.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SEED 462

static struct weir_zone zone_of(const float *points, uint32_t n_points)
{
    struct weir_zone zone = {.n_points = n_points};
    memcpy(zone.points, points, 2 * n_points * sizeof *points);
    return zone;
}

/* Inside by the angle that the polygon turns round the point: another rule, the same for polygons that do not cross themselves. */
static bool turns_round(const struct weir_zone *zone, double x, double y)
{
    double turned = 0;
    for (uint32_t i = 0; i < zone->n_points; i++) {
        const float *a = &zone->points[2 * (size_t)i];
        const float *b = &zone->points[2 * (size_t)((i + 1) % zone->n_points)];
        double ax = (double)a[0] - x, ay = (double)a[1] - y;
        double bx = (double)b[0] - x, by = (double)b[1] - y;
        turned += atan2(ax * by - ay * bx, ax * bx + ay * by);
    }
    return fabs(turned) > 3;
}

START_TEST(a_point_is_in_what_turns_round_it)
{
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, 1);
    int n_in = 0;
    for (int k = 0; k < WEIR_TEST_TIMES(400, 40); k++) {
        struct weir_zone zone = {.n_points = 3 + (uint32_t)weir_rng_below(&rng, 30)};
        for (uint32_t i = 0; i < zone.n_points; i++) { /* A star: it does not cross itself. */
            double angle = 6.2831853 * i / zone.n_points;
            double radius = 0.05 + 0.4 * weir_rng_f64(&rng);
            zone.points[2 * (size_t)i] = (float)(0.5 + radius * cos(angle));
            zone.points[2 * (size_t)i + 1] = (float)(0.5 + radius * sin(angle));
        }
        ck_assert(weir_zone_check(&zone, NULL) == WEIR_OK);
        struct weir_box bounds = weir_zone_bounds(&zone);
        for (int i = 0; i < 100; i++) {
            float x = weir_rng_f32(&rng), y = weir_rng_f32(&rng);
            bool is_in = weir_zone_has(&zone, x, y);
            ck_assert_msg(is_in == turns_round(&zone, (double)x, (double)y),
                          "seed %d, case %d: (%g, %g)", SEED, k, (double)x, (double)y);
            ck_assert(!is_in || (x >= bounds.x && y >= bounds.y && x <= bounds.x + bounds.w &&
                                 y <= bounds.y + bounds.h));
            n_in += is_in;
        }
    }
    ck_assert_int_gt(n_in, 100);
}

END_TEST

START_TEST(zones_that_share_edges_leave_no_gap_and_share_no_point)
{
    const float left[] = {0, 0, 0.5F, 0, 0.25F, 1, 0, 1};
    const float right[] = {0.5F, 0, 1, 0, 1, 1, 0.25F, 1};
    const struct weir_zone zones[] = {zone_of(left, 4), zone_of(right, 4)};
    const struct weir_zone all = {0};
    for (int i = 0; i <= 64; i++) {
        for (int j = 0; j <= 64; j++) {
            float x = (float)i / 64, y = (float)j / 64;
            int n = weir_zone_has(&zones[0], x, y) + weir_zone_has(&zones[1], x, y);
            ck_assert_int_eq(n, weir_zone_has(&all, x, y));
            ck_assert_int_eq(n, i < 64 && j < 64);
        }
    }
}

END_TEST

START_TEST(a_zone_that_is_none_is_refused)
{
    struct weir_error err = {0};
    const float line[] = {0.1F, 0.1F, 0.5F, 0.5F, 0.9F, 0.9F};
    const float outside[] = {0.1F, 0.1F, 1.5F, 0.5F, 0.1F, 0.9F};
    const float nowhere[] = {0.1F, 0.1F, NAN, 0.5F, 0.1F, 0.9F};
    const float good[] = {0.1F, 0.1F, 0.9F, 0.5F, 0.1F, 0.9F};
    struct weir_zone zone = zone_of(good, 3);
    ck_assert(weir_zone_check(&zone, &err) == WEIR_OK);
    zone.n_points = 2;
    ck_assert(weir_zone_check(&zone, &err) == WEIR_ERR_INVALID);
    zone.n_points = WEIR_ZONE_POINTS + 1;
    ck_assert(weir_zone_check(&zone, &err) == WEIR_ERR_INVALID);
    zone = zone_of(line, 3);
    ck_assert(weir_zone_check(&zone, &err) == WEIR_ERR_INVALID);
    zone = zone_of(nowhere, 3);
    ck_assert(weir_zone_check(&zone, &err) == WEIR_ERR_INVALID);
    zone = zone_of(outside, 3);
    ck_assert(weir_zone_check(&zone, &err) == WEIR_ERR_INVALID);
    ck_assert_str_eq(err.message, "point 2 of the zone is (1.5, 0.5): give shares of the picture's "
                                  "width and height, 0 to 1");
    struct weir_occupancy_options options = weir_occupancy_usual;
    struct weir_occupancy *occupancy = NULL;
    options.over = 1;
    options.under = 2;
    ck_assert(weir_occupancy_create(&options, &occupancy, &err) == WEIR_ERR_INVALID);
    options.under = WEIR_OCCUPANCY_NONE;
    options.leave_ms = -1;
    ck_assert(weir_occupancy_create(&options, &occupancy, &err) == WEIR_ERR_INVALID);
    ck_assert_str_eq(err.message, "leave_ms of a zone is -1: give 0 to 6.048e+08");
    weir_occupancy_destroy(NULL);
}

END_TEST

/* ---- all that was seen, counted again ---- */

#define N_TRACKS 6
#define N_STEPS  80

/* Of each frame: its time, and which tracks had their point in the zone. */
struct history {
    int64_t times[N_STEPS];
    bool is_in[N_STEPS][N_TRACKS];
};

struct verdict {
    bool is_inside, was_long;
    int64_t since_ms;
};

/* A track's state after step `last`: all of its history is gone through. */
static struct verdict judge(const struct weir_occupancy_options *options,
                            const struct history *history, int last, int track)
{
    struct verdict verdict = {0};
    int from = -1, seen = -1; /* Steps: its point came in; it was in last. */
    for (int i = 0; i <= last; i++) {
        int64_t now_ms = history->times[i];
        if (history->is_in[i][track]) {
            from = from < 0 ? i : from;
            seen = i;
        } else if (from >= 0 &&
                   (!verdict.is_inside || now_ms - history->times[seen] >= options->leave_ms)) {
            from = -1;
            verdict = (struct verdict){0};
        }
        if (from >= 0 && now_ms - history->times[from] >= options->enter_ms) {
            verdict.is_inside = true;
            verdict.since_ms = history->times[from];
            verdict.was_long |=
                options->long_ms > 0 && now_ms - verdict.since_ms >= options->long_ms;
        }
    }
    return verdict;
}

static enum weir_occupancy_what limit_of(const struct weir_occupancy_options *options, int n)
{
    if (options->over >= 0 && n > options->over) {
        return WEIR_OCCUPANCY_OVER;
    }
    return options->under >= 0 && n < options->under ? WEIR_OCCUPANCY_UNDER : WEIR_OCCUPANCY_WITHIN;
}

/* Which limit is said after step `last`, from how many were in at each step. */
static enum weir_occupancy_what judge_limit(const struct weir_occupancy_options *options,
                                            const struct history *history, const int *counts,
                                            int last)
{
    enum weir_occupancy_what said = WEIR_OCCUPANCY_WITHIN;
    for (int i = 0; i <= last; i++) {
        int from = i;
        while (from > 0 && limit_of(options, counts[from - 1]) == limit_of(options, counts[i])) {
            from--;
        }
        if (history->times[i] - history->times[from] >= options->settle_ms) {
            said = limit_of(options, counts[i]);
        }
    }
    return said;
}

/* Make the frame of a step: tracks wander over the middle of the picture, where the zone ends; some are not there. */
static size_t make_tracks(struct weir_rng *rng, struct history *history, int step,
                          struct weir_track *tracks, struct weir_track **out)
{
    size_t n = 0;
    for (int i = 0; i < N_TRACKS; i++) {
        tracks[i].last.box.x += (float)weir_rng_normal(rng) * 6;
        float centre = tracks[i].last.box.x + 10;
        bool is_there = weir_rng_below(rng, 8) > 0;
        history->is_in[step][i] =
            is_there && centre < 50 && centre >= 0 && tracks[i].last.class_id != 2;
        if (is_there) {
            out[n++] = &tracks[i];
        }
    }
    return n;
}

static void assert_event(const struct weir_occupancy_event *event, const struct verdict *before,
                         const struct verdict *now, int64_t now_ms, int64_t seen_ms)
{
    switch (event->what) {
    case WEIR_OCCUPANCY_ENTERED:
        ck_assert(now->is_inside);
        break;
    case WEIR_OCCUPANCY_LEFT:
        ck_assert(before->is_inside && event->inside_ms == seen_ms - before->since_ms);
        break;
    default:
        ck_assert(event->what == WEIR_OCCUPANCY_LONG && now->was_long);
        ck_assert(event->inside_ms == now_ms - now->since_ms);
    }
}

struct expected {
    int n_events, n_classes[3], n;
};

/* What must be said of the tracks after a step, and how many are in. */
static struct expected expect(const struct weir_occupancy_options *options,
                              const struct history *history, int step,
                              const struct weir_track *tracks)
{
    struct expected expected = {0};
    for (int i = 0; i < N_TRACKS; i++) {
        struct verdict before =
            step == 0 ? (struct verdict){0} : judge(options, history, step - 1, i);
        struct verdict now = judge(options, history, step, i);
        bool is_same = before.is_inside && now.is_inside && before.since_ms == now.since_ms;
        expected.n_events += before.is_inside && !is_same;
        expected.n_events += now.is_inside && !is_same;
        expected.n_events += now.was_long && !(is_same && before.was_long);
        expected.n += now.is_inside;
        expected.n_classes[tracks[i].last.class_id] += now.is_inside;
    }
    return expected;
}

static void run_one(struct weir_rng *rng, int n_case)
{
    static const float left_half[] = {0, 0, 0.5F, 0, 0.5F, 1, 0, 1};
    struct weir_occupancy_options options = {
        .zone = zone_of(left_half, 4),
        .n_classes = 2,
        .classes = {0, 1},
        .enter_ms = 100 * (int64_t)weir_rng_below(rng, 5),
        .leave_ms = 100 * (int64_t)weir_rng_below(rng, 10),
        .over = (int32_t)weir_rng_below(rng, 4),
        .under = (int32_t)weir_rng_below(rng, 2),
        .settle_ms = 100 * (int64_t)weir_rng_below(rng, 8),
        .long_ms = 500 * (int64_t)weir_rng_below(rng, 4),
    };
    options.under = WEIR_MIN(options.under, options.over);
    struct weir_occupancy *occupancy = NULL;
    struct weir_error err = {0};
    ck_assert_msg(weir_occupancy_create(&options, &occupancy, &err) == WEIR_OK, "%s", err.message);
    struct weir_track tracks[N_TRACKS] = {0};
    for (int i = 0; i < N_TRACKS; i++) {
        tracks[i].id = 10 + (uint64_t)i;
        tracks[i].last = (struct weir_detection){.box = {40, 40, 20, 20}, .class_id = i % 3};
    }
    struct history history;
    int counts[N_STEPS];
    int64_t now_ms = 7;
    enum weir_occupancy_what said = WEIR_OCCUPANCY_WITHIN;
    for (int step = 0; step < N_STEPS; step++) {
        struct weir_track *there[N_TRACKS];
        now_ms += (int64_t)weir_rng_below(rng, 200);
        history.times[step] = now_ms;
        size_t n = make_tracks(rng, &history, step, tracks, there);
        const struct weir_occupancy_event *events;
        size_t n_events = weir_occupancy_step(occupancy, now_ms, 100, 100, there, n, &events);
        struct expected expected = expect(&options, &history, step, tracks);
        counts[step] = expected.n;
        enum weir_occupancy_what limit = judge_limit(&options, &history, counts, step);
        expected.n_events += limit != said;
        ck_assert_msg((int)n_events == expected.n_events &&
                          weir_occupancy_count(occupancy, WEIR_OCCUPANCY_ALL) == expected.n,
                      "seed %d, case %d, step %d: %zu events, %d in; expected %d, %d", SEED, n_case,
                      step, n_events, weir_occupancy_count(occupancy, WEIR_OCCUPANCY_ALL),
                      expected.n_events, expected.n);
        ck_assert(limit == said ||
                  (events[n_events - 1].what == limit && events[n_events - 1].track == 0 &&
                   events[n_events - 1].n_inside == expected.n));
        n_events -= limit != said;
        said = limit;
        for (size_t i = 0; i < n_events; i++) {
            int of = (int)events[i].track - 10;
            int seen = step;
            while (seen > 0 && !history.is_in[seen][of]) {
                seen--;
            }
            struct verdict before =
                step == 0 ? (struct verdict){0} : judge(&options, &history, step - 1, of);
            struct verdict now = judge(&options, &history, step, of);
            assert_event(&events[i], &before, &now, now_ms, history.times[seen]);
            ck_assert_int_eq(events[i].class_id, tracks[of].last.class_id);
        }
        for (int i = 0; i < N_TRACKS; i++) {
            struct verdict now = judge(&options, &history, step, i);
            ck_assert_int_eq(weir_occupancy_inside_ms(occupancy, tracks[i].id),
                             now.is_inside ? now_ms - now.since_ms : -1);
        }
        for (int c = 0; c < 3; c++) {
            ck_assert_int_eq(weir_occupancy_count(occupancy, c), expected.n_classes[c]);
        }
    }
    weir_occupancy_destroy(occupancy);
}

START_TEST(what_is_said_is_what_all_that_was_seen_says)
{
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, 2);
    for (int k = 0; k < WEIR_TEST_TIMES(60, 6); k++) {
        run_one(&rng, k);
    }
}

END_TEST

START_TEST(a_foot_on_the_lower_edge_is_in_the_picture)
{
    const float lower_half[] = {0, 0.5F, 1, 0.5F, 1, 1, 0, 1};
    struct weir_occupancy_options options = weir_occupancy_usual;
    struct weir_occupancy *occupancy = NULL;
    struct weir_error err = {0};
    options.zone = zone_of(lower_half, 4);
    options.is_by_foot = true;
    options.enter_ms = 0;
    ck_assert(weir_occupancy_create(&options, &occupancy, &err) == WEIR_OK);
    struct weir_track stands = {.id = 1, .last = {.box = {40, 20, 20, 80}}};
    struct weir_track behind = {.id = 2, .last = {.box = {40, 20, 20, 25}}};
    struct weir_track nowhere = {.id = 3, .last = {.box = {NAN, 20, 20, INFINITY}}};
    struct weir_track *const tracks[] = {&stands, &behind, &nowhere};
    const struct weir_occupancy_event *events;
    ck_assert_uint_eq(weir_occupancy_step(occupancy, 0, 100, 100, tracks, 3, &events), 1);
    ck_assert(events[0].what == WEIR_OCCUPANCY_ENTERED && events[0].track == 1);
    ck_assert_uint_eq(weir_occupancy_step(occupancy, INT64_MIN, 100, 100, NULL, 0, &events), 0);
    ck_assert_uint_eq(weir_occupancy_step(occupancy, INT64_MAX, 100, 100, NULL, 0, &events), 1);
    ck_assert(events[0].what == WEIR_OCCUPANCY_LEFT && events[0].n_inside == 0);
    weir_occupancy_destroy(occupancy);
}

END_TEST

START_TEST(members_are_bounded)
{
    struct weir_occupancy_options options = weir_occupancy_usual;
    struct weir_occupancy *occupancy = NULL;
    struct weir_error err = {0};
    options.enter_ms = 0;
    ck_assert(weir_occupancy_create(&options, &occupancy, &err) == WEIR_OK);
    static struct weir_track tracks[WEIR_TRACKS_MAX];
    struct weir_track *there[WEIR_TRACKS_MAX];
    const struct weir_occupancy_event *events;
    for (int f = 0; f < 4; f++) { /* Other tracks in each frame. */
        for (size_t i = 0; i < WEIR_TRACKS_MAX; i++) {
            tracks[i] = (struct weir_track){.id = 1 + i + 1000 * (uint64_t)f,
                                            .last = {.box = {10, 10, 10, 10}}};
            there[WEIR_TRACKS_MAX - 1 - i] = &tracks[i];
        }
        size_t n = weir_occupancy_step(occupancy, f, 100, 100, there, WEIR_TRACKS_MAX, &events);
        ck_assert_uint_eq(n, f < 2 ? WEIR_TRACKS_MAX : 0);
    }
    ck_assert_int_eq(weir_occupancy_count(occupancy, 0), 2 * WEIR_TRACKS_MAX);
    ck_assert_uint_eq(weir_occupancy_step(occupancy, 9999, 100, 100, NULL, 0, &events),
                      2 * (size_t)WEIR_TRACKS_MAX);
    weir_occupancy_destroy(occupancy);
}

END_TEST

WEIR_TEST_MAIN("zone", a_point_is_in_what_turns_round_it,
               zones_that_share_edges_leave_no_gap_and_share_no_point,
               a_zone_that_is_none_is_refused, what_is_said_is_what_all_that_was_seen_says,
               a_foot_on_the_lower_edge_is_in_the_picture, members_are_bounded)
