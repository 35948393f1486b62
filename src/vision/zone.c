#include "vision/zone.h"

#include "base/macros.h"
#include "vision/frame_clock.h"
#include "vision/range.h"

#include <math.h>
#include <string.h>

#define AREA_MIN  1e-5      /* Share of the picture: a smaller zone is a mistake. */
#define MS_MAX    604800000 /* A week. */
#define N_MEMBERS (2 * WEIR_TRACKS_MAX)

const struct weir_occupancy_options weir_occupancy_usual = {
    .enter_ms = 300,
    .leave_ms = 1000,
    .over = WEIR_OCCUPANCY_NONE,
    .under = WEIR_OCCUPANCY_NONE,
    .settle_ms = 1000,
};

/* ---- the polygon ---- */

/* Twice the area between the x axis and the edges, with a sign by the direction: 0 also for a figure of eight. */
static double signed_area(const struct weir_zone *zone)
{
    double sum = 0;
    for (uint32_t i = 0; i < zone->n_points; i++) {
        const float *a = &zone->points[2 * (size_t)i];
        const float *b = &zone->points[2 * (size_t)((i + 1) % zone->n_points)];
        sum += (double)a[0] * (double)b[1] - (double)b[0] * (double)a[1];
    }
    return sum;
}

weir_status weir_zone_check(const struct weir_zone *zone, struct weir_error *err)
{
    if (zone->n_points == 0) {
        return WEIR_OK;
    }
    if (zone->n_points < 3 || zone->n_points > WEIR_ZONE_POINTS) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "a zone of %u points: give 3 to %d, or none for the whole picture",
                              zone->n_points, WEIR_ZONE_POINTS);
    }
    for (uint32_t i = 0; i < zone->n_points; i++) {
        float x = zone->points[2 * (size_t)i], y = zone->points[2 * (size_t)i + 1];
        if (!(x >= 0 && x <= 1 && y >= 0 && y <= 1)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "point %u of the zone is (%g, %g): give shares of the picture's "
                                  "width and height, 0 to 1",
                                  i + 1, (double)x, (double)y);
        }
    }
    if (fabs(signed_area(zone)) / 2 < AREA_MIN) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "the zone has no area: its points lie on a line, or its halves "
                              "cancel out (give them in order around it)");
    }
    return WEIR_OK;
}

/* How often do edges cross the line from the point to the left: an odd number from inside. An edge owns its upper end, not its lower. */
bool weir_zone_has(const struct weir_zone *zone, float x, float y)
{
    if (zone->n_points == 0) {
        return x >= 0 && x < 1 && y >= 0 && y < 1;
    }
    bool is_in = false;
    for (uint32_t i = 0; i < zone->n_points; i++) {
        const float *a = &zone->points[2 * (size_t)i];
        const float *b = &zone->points[2 * (size_t)((i + 1) % zone->n_points)];
        const float *top = a[1] <= b[1] ? a : b, *low = top == a ? b : a;
        if (top[1] <= y && y < low[1]) {
            double share = ((double)y - (double)top[1]) / ((double)low[1] - (double)top[1]);
            double at = (double)top[0] + share * ((double)low[0] - (double)top[0]);
            is_in ^= at <= (double)x;
        }
    }
    return is_in;
}

void weir_zone_point(const struct weir_detection *detection, bool is_by_foot, int width, int height,
                     float out[2])
{
    const struct weir_box *box = &detection->box;
    float y = is_by_foot ? box->y + box->h : box->y + box->h / 2;
    out[0] = (box->x + box->w / 2) / (float)width;
    /* What stands on the picture's lower edge is in it. */
    out[1] = WEIR_MIN(y / (float)height, nextafterf(1, 0));
}

struct weir_box weir_zone_bounds(const struct weir_zone *zone)
{
    if (zone->n_points == 0) {
        return (struct weir_box){0, 0, 1, 1};
    }
    float from[2] = {zone->points[0], zone->points[1]}, to[2] = {from[0], from[1]};
    for (size_t i = 0; i < 2 * (size_t)zone->n_points; i++) {
        from[i % 2] = WEIR_MIN(from[i % 2], zone->points[i]);
        to[i % 2] = WEIR_MAX(to[i % 2], zone->points[i]);
    }
    return (struct weir_box){from[0], from[1], to[0] - from[0], to[1] - from[1]};
}

/* ---- what is in it ---- */

/* A track that is in, or was, or is about to be. */
struct member {
    uint64_t track;
    int32_t class_id;
    bool is_in;        /* It counts. */
    bool is_seen;      /* In this frame its point is in the zone. */
    bool was_long;     /* That has been said. */
    int64_t since_ms;  /* In: since when. Else: when its point came in. */
    int64_t inside_ms; /* When its point was in last. */
};

struct weir_occupancy {
    struct weir_occupancy_options options;
    /* By id: those now, and those that are about to leave. */
    struct member members[N_MEMBERS];
    size_t n_members;
    struct weir_frame_clock clock;
    int32_t n_inside;               /* Members that count. */
    enum weir_occupancy_what limit; /* Said last: OVER, UNDER or WITHIN. */
    enum weir_occupancy_what next;  /* What would be said now, since next_ms. */
    int64_t next_ms;
    /* All may enter and be too long at once; and a limit. */
    struct weir_occupancy_event events[2 * N_MEMBERS + 1];
    size_t n_events;
};

static weir_status check_options(const struct weir_occupancy_options *options,
                                 struct weir_error *err)
{
    const struct range ranges[] = {
        {"the number of classes", options->n_classes, 0, WEIR_ZONE_CLASSES},
        {"enter_ms", (double)options->enter_ms, 0, MS_MAX},
        {"leave_ms", (double)options->leave_ms, 0, MS_MAX},
        {"settle_ms", (double)options->settle_ms, 0, MS_MAX},
        {"long_ms", (double)options->long_ms, 0, MS_MAX},
        {"over", options->over, WEIR_OCCUPANCY_NONE, WEIR_TRACKS_MAX},
        {"under", options->under, WEIR_OCCUPANCY_NONE, WEIR_TRACKS_MAX},
    };
    WEIR_TRY(ranges_check("a zone", ranges, WEIR_ARRAY_LEN(ranges), err));
    if (options->over >= 0 && options->under > options->over) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "a zone with more than %d and fewer than %d: no number is neither",
                              (int)options->over, (int)options->under);
    }
    return weir_zone_check(&options->zone, err);
}

weir_status weir_occupancy_create(const struct weir_occupancy_options *options,
                                  struct weir_occupancy **out, struct weir_error *err)
{
    WEIR_TRY(check_options(options, err));
    struct weir_occupancy *occupancy = calloc(1, sizeof *occupancy);
    if (occupancy == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for what is in a zone");
    }
    occupancy->options = *options;
    occupancy->limit = occupancy->next = WEIR_OCCUPANCY_WITHIN;
    *out = occupancy;
    return WEIR_OK;
}

void weir_occupancy_destroy(struct weir_occupancy *occupancy)
{
    free(occupancy);
}

static void say(struct weir_occupancy *occupancy, enum weir_occupancy_what what,
                const struct member *member)
{
    struct weir_occupancy_event *event = &occupancy->events[occupancy->n_events++];
    *event = (struct weir_occupancy_event){.what = what, .class_id = WEIR_OCCUPANCY_ALL};
    event->n_inside = occupancy->n_inside;
    if (member != NULL) {
        event->track = member->track;
        event->class_id = member->class_id;
        int64_t until = what == WEIR_OCCUPANCY_LEFT ? member->inside_ms : occupancy->clock.now_ms;
        event->inside_ms = until - member->since_ms;
    }
}

static bool does_count(const struct weir_occupancy_options *options, int32_t class_id)
{
    for (uint32_t i = 0; i < options->n_classes; i++) {
        if (options->classes[i] == class_id) {
            return true;
        }
    }
    return options->n_classes == 0;
}

static bool is_inside(const struct weir_occupancy_options *options, int width, int height,
                      const struct weir_detection *detection)
{
    float point[2];
    weir_zone_point(detection, options->is_by_foot, width, height, point);
    return weir_zone_has(&options->zone, point[0], point[1]);
}

static size_t place_of(const struct weir_occupancy *occupancy, uint64_t track)
{
    size_t low = 0, high = occupancy->n_members;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (occupancy->members[middle].track < track) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The point of a track is in the zone. */
static void see(struct weir_occupancy *occupancy, const struct weir_track *track)
{
    size_t at = place_of(occupancy, track->id);
    struct member *member = &occupancy->members[at];
    if (at == occupancy->n_members || member->track != track->id) {
        if (occupancy->n_members == N_MEMBERS) {
            return;
        }
        memmove(member + 1, member, (occupancy->n_members - at) * sizeof *member);
        occupancy->n_members++;
        *member = (struct member){.track = track->id, .since_ms = occupancy->clock.now_ms};
    }
    member->class_id = track->last.class_id;
    member->is_seen = true;
    member->inside_ms = occupancy->clock.now_ms;
}

/* One member after a frame. @return Whether it stays one. */
static bool go_on(struct weir_occupancy *occupancy, struct member *member)
{
    const struct weir_occupancy_options *options = &occupancy->options;
    int64_t now_ms = occupancy->clock.now_ms;
    if (!member->is_seen && (!member->is_in || now_ms - member->inside_ms >= options->leave_ms)) {
        if (member->is_in) {
            occupancy->n_inside--;
            say(occupancy, WEIR_OCCUPANCY_LEFT, member);
        }
        return false;
    }
    if (!member->is_in && now_ms - member->since_ms >= options->enter_ms) {
        member->is_in = true;
        occupancy->n_inside++;
        say(occupancy, WEIR_OCCUPANCY_ENTERED, member);
    }
    if (member->is_in && !member->was_long && options->long_ms > 0 &&
        now_ms - member->since_ms >= options->long_ms) {
        member->was_long = true;
        say(occupancy, WEIR_OCCUPANCY_LONG, member);
    }
    member->is_seen = false;
    return true;
}

static void look_at_limits(struct weir_occupancy *occupancy)
{
    const struct weir_occupancy_options *options = &occupancy->options;
    int32_t n = occupancy->n_inside;
    bool is_over = options->over >= 0 && n > options->over;
    bool is_under = options->under >= 0 && n < options->under;
    enum weir_occupancy_what next = is_over    ? WEIR_OCCUPANCY_OVER
                                    : is_under ? WEIR_OCCUPANCY_UNDER
                                               : WEIR_OCCUPANCY_WITHIN;
    if (next != occupancy->next) {
        occupancy->next = next;
        occupancy->next_ms = occupancy->clock.now_ms;
    }
    if (next != occupancy->limit &&
        occupancy->clock.now_ms - occupancy->next_ms >= options->settle_ms) {
        occupancy->limit = next;
        say(occupancy, next, NULL);
    }
}

size_t weir_occupancy_step(struct weir_occupancy *occupancy, int64_t time_ms, int width, int height,
                           struct weir_track *const *tracks, size_t n,
                           const struct weir_occupancy_event **out)
{
    (void)weir_frame_clock_step(&occupancy->clock, time_ms);
    occupancy->n_events = 0;
    for (size_t i = 0; i < WEIR_MIN(n, WEIR_TRACKS_MAX); i++) {
        if (does_count(&occupancy->options, tracks[i]->last.class_id) &&
            is_inside(&occupancy->options, width, height, &tracks[i]->last)) {
            see(occupancy, tracks[i]);
        }
    }
    size_t n_left = 0;
    for (size_t i = 0; i < occupancy->n_members; i++) {
        if (go_on(occupancy, &occupancy->members[i])) {
            occupancy->members[n_left++] = occupancy->members[i];
        }
    }
    occupancy->n_members = n_left;
    look_at_limits(occupancy);
    *out = occupancy->events;
    return occupancy->n_events;
}

int32_t weir_occupancy_count(const struct weir_occupancy *occupancy, int32_t class_id)
{
    int32_t n = 0;
    for (size_t i = 0; i < occupancy->n_members; i++) {
        const struct member *member = &occupancy->members[i];
        n += member->is_in && (class_id == WEIR_OCCUPANCY_ALL || member->class_id == class_id);
    }
    return n;
}

bool weir_occupancy_is_settled(const struct weir_occupancy *occupancy)
{
    return occupancy->n_members == 0 && occupancy->next == occupancy->limit;
}

int64_t weir_occupancy_inside_ms(const struct weir_occupancy *occupancy, uint64_t track)
{
    size_t at = place_of(occupancy, track);
    bool is_in = at < occupancy->n_members && occupancy->members[at].track == track &&
                 occupancy->members[at].is_in;
    return is_in ? occupancy->clock.now_ms - occupancy->members[at].since_ms : -1;
}
