#include "vision/tracker.h"

#include "base/macros.h"
#include "vision/assign.h"
#include "vision/frame_clock.h"
#include "vision/range.h"

#include <math.h>
#include <string.h>

#define N_SLOTS        (2 * WEIR_TRACKS_MAX) /* As many again for tracks that ended and were not taken. */
#define DIM_MAX        16384
#define N_KNOWN        3     /* A track with so many sightings moves as is known. */
#define GATE_MIN_STEPS 0.25F /* Intervals that a frame counts which follows at once. */
#define GATE_GROWTH    0.5F  /* A known track's gate grows by this with each interval. */
#define GATE_MAX       4.0F  /* Widths, however long a track was not seen. */
#define GATE_KNOWN_MAX 2.0F
#define FAR            0.8F /* What a sighting costs that is as far as it may be; to stay alone costs 1. */
#define EXPECT_STEPS   10.0F /* Intervals for which a track is expected to move on. */
#define MOTION_STEPS   2.0F  /* Intervals in which a new motion is believed by 63 %. */
#define MEAN_KEPT      0.9F  /* The part of the mean of embeddings that an interval leaves. */
#define MS_IN_S        1000.0F

const struct weir_tracker_options weir_tracker_usual = {
    .gone_ms = 2000,
    .interval_ms = 100,
    .gate = 1.6F,
    .gate_known = 0.8F,
    .size_ratio = 1.8F,
    .low_score = 0.5F,
    .min_likeness = 0.3F,
};

enum slot_state { SLOT_FREE, SLOT_LIVE, SLOT_ENDED };

struct slot {
    struct weir_track track; /* First: a track is its slot. */
    enum slot_state state;
    int64_t seen_ms;   /* By the tracker's own clock. */
    int64_t blind_ms;  /* What does not count since then, up to the last frame. */
    uint64_t place_of; /* The track that was expected where it began; 0: none. */
    bool is_apart;     /* A frame has shown both, or many have shown this one. */
    uint32_t n_mean;   /* Embeddings in the mean. */
    bool is_followed;  /* It has its sighting of this frame. */
    bool is_doubted;   /* The last sighting in its place looked like another: `doubt`. */
    float *mean, *doubt;
};

struct weir_tracker {
    struct weir_tracker_options options;
    size_t dim;
    float *embeddings; /* mean and doubt of all slots */
    struct slot slots[N_SLOTS];
    struct weir_track *live[WEIR_TRACKS_MAX]; /* By id. */
    size_t n_live;
    struct slot *ended[N_SLOTS]; /* Oldest first. */
    size_t n_ended;
    struct slot *taken; /* Was given out as ended. */
    uint64_t last_id;
    struct weir_frame_clock clock;
    int64_t frame_ms; /* When the last frame was, by the clock. */
    float costs[WEIR_TRACKS_MAX * WEIR_TRACKS_MAX];
};

/* A sighting of the frame that is being followed. */
struct seen {
    const struct weir_sighting *sighting;
    size_t index;
    bool has_embedding, is_low, is_done;
};

struct frame {
    struct seen seen[WEIR_TRACKS_MAX];
    size_t n;
    int64_t time_ms;
    struct weir_track **out;
};

/* Rounds of a frame, in their order. */
static const struct round {
    bool is_low;   /* For sightings with a low score. */
    bool is_doubt; /* For those that lie where a track is expected, and look like another. */
} rounds[] = {{false, false}, {true, false}, {false, true}};

static struct slot *slot_of(struct weir_track *track)
{
    return WEIR_CONTAINER_OF(track, struct slot, track);
}

/* ---- options and memory ---- */

static weir_status check_options(const struct weir_tracker_options *options, struct weir_error *err)
{
    const struct range ranges[] = {
        {"gone_ms", (double)options->gone_ms, 1, 3600000},
        {"interval_ms", (double)options->interval_ms, 1, 60000},
        {"gate", options->gate, 0.01, 100},
        {"gate_known", options->gate_known, 0.01, 100},
        {"size_ratio", options->size_ratio, 1.01, 100},
        {"low_score", options->low_score, 0, 1},
        {"min_likeness", options->min_likeness, -1, 0.999},
    };
    return ranges_check("the tracker", ranges, WEIR_ARRAY_LEN(ranges), err);
}

weir_status weir_tracker_change_model(struct weir_tracker *tracker, size_t dim,
                                      struct weir_error *err)
{
    float *embeddings = NULL;
    if (dim > DIM_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "embeddings of %zu numbers: a tracker takes at most %d", dim,
                              DIM_MAX);
    }
    if (dim > 0) {
        embeddings = calloc(2 * N_SLOTS * dim, sizeof *embeddings);
        if (embeddings == NULL) {
            return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the embeddings of tracks");
        }
    }
    free(tracker->embeddings);
    tracker->embeddings = embeddings;
    tracker->dim = dim;
    for (size_t i = 0; i < N_SLOTS; i++) {
        struct slot *slot = &tracker->slots[i];
        slot->n_mean = 0;
        slot->is_doubted = false;
        slot->mean = dim == 0 ? NULL : embeddings + 2 * i * dim;
        slot->doubt = dim == 0 ? NULL : slot->mean + dim;
    }
    return WEIR_OK;
}

weir_status weir_tracker_create(const struct weir_tracker_options *options, size_t dim,
                                struct weir_tracker **out, struct weir_error *err)
{
    WEIR_TRY(check_options(options, err));
    struct weir_tracker *tracker = calloc(1, sizeof *tracker);
    if (tracker == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a tracker");
    }
    tracker->options = *options;
    weir_status status = weir_tracker_change_model(tracker, dim, err);
    if (status != WEIR_OK) {
        weir_tracker_destroy(tracker);
        return status;
    }
    *out = tracker;
    return WEIR_OK;
}

void weir_tracker_destroy(struct weir_tracker *tracker)
{
    if (tracker != NULL) {
        free(tracker->embeddings);
        free(tracker);
    }
}

/* ---- tracks begin and end ---- */

static void end_track(struct weir_tracker *tracker, size_t i_live)
{
    struct slot *slot = slot_of(tracker->live[i_live]);
    tracker->n_live--;
    for (size_t i = i_live; i < tracker->n_live; i++) {
        tracker->live[i] = tracker->live[i + 1];
    }
    slot->state = SLOT_ENDED;
    tracker->ended[tracker->n_ended++] = slot;
}

static void release_taken(struct weir_tracker *tracker)
{
    if (tracker->taken != NULL) {
        tracker->taken->state = SLOT_FREE;
        tracker->taken = NULL;
    }
}

/* Make room for one more: of a table that is full, that which was not seen for longest ends. @return false: all are seen now. */
static bool make_room(struct weir_tracker *tracker)
{
    if (tracker->n_live < WEIR_TRACKS_MAX) {
        return true;
    }
    size_t oldest = 0;
    for (size_t i = 1; i < tracker->n_live; i++) {
        if (slot_of(tracker->live[i])->seen_ms < slot_of(tracker->live[oldest])->seen_ms) {
            oldest = i;
        }
    }
    if (slot_of(tracker->live[oldest])->seen_ms >= tracker->clock.now_ms) {
        return false;
    }
    end_track(tracker, oldest);
    return true;
}

static struct slot *free_slot(struct weir_tracker *tracker)
{
    for (size_t i = 0; i < N_SLOTS; i++) {
        if (tracker->slots[i].state == SLOT_FREE) {
            return &tracker->slots[i];
        }
    }
    return NULL;
}

int64_t weir_tracker_blind_ms(int64_t passed_ms, int64_t gone_ms)
{
    return passed_ms <= 2 * gone_ms ? WEIR_MAX(0, passed_ms - gone_ms / 2) : 0;
}

/* Time goes on; what was not seen for too long ends. */
static void advance(struct weir_tracker *tracker, int64_t time_ms, bool is_frame)
{
    release_taken(tracker);
    (void)weir_frame_clock_step(&tracker->clock, time_ms);
    int64_t gone_ms = tracker->options.gone_ms;
    int64_t blind_ms = weir_tracker_blind_ms(tracker->clock.now_ms - tracker->frame_ms, gone_ms);
    size_t i = 0;
    while (i < tracker->n_live) {
        struct slot *slot = slot_of(tracker->live[i]);
        int64_t unseen_ms = tracker->clock.now_ms - slot->seen_ms - slot->blind_ms - blind_ms;
        slot->blind_ms += is_frame ? blind_ms : 0;
        if (unseen_ms > gone_ms) {
            end_track(tracker, i);
        } else {
            i++;
        }
    }
    tracker->frame_ms = is_frame ? tracker->clock.now_ms : tracker->frame_ms;
}

/* ---- how a sighting fits a track ---- */

static float dot(const float *a, const float *b, size_t n)
{
    float sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

static float cosine(const float *a, const float *b, size_t n)
{
    return dot(a, b, n) / sqrtf(dot(a, a, n) * dot(b, b, n));
}

static float centre_x(const struct weir_detection *detection)
{
    return detection->box.x + detection->box.w / 2;
}

static float centre_y(const struct weir_detection *detection)
{
    return detection->box.y + detection->box.h / 2;
}

/* Intervals since a track was seen. */
static float steps_since(const struct weir_tracker *tracker, const struct slot *slot)
{
    return (float)(tracker->clock.now_ms - slot->seen_ms) / (float)tracker->options.interval_ms;
}

/* How far a sighting is from where the track is expected now. */
static void off_expected(const struct weir_tracker *tracker, const struct slot *slot,
                         const struct weir_detection *detection, float *out_x, float *out_y)
{
    float steps = WEIR_MIN(steps_since(tracker, slot), EXPECT_STEPS);
    float s = steps * (float)tracker->options.interval_ms / MS_IN_S;
    *out_x = centre_x(detection) - centre_x(&slot->track.last) - slot->track.vx * s;
    *out_y = centre_y(detection) - centre_y(&slot->track.last) - slot->track.vy * s;
}

/* Widths that a track may be off its expected place. */
static float gate_of(const struct weir_tracker *tracker, const struct slot *slot)
{
    const struct weir_tracker_options *options = &tracker->options;
    float steps = WEIR_MAX(steps_since(tracker, slot), GATE_MIN_STEPS);
    if (slot->track.n_sightings < N_KNOWN) {
        return WEIR_MIN(options->gate * steps, WEIR_MAX(options->gate, GATE_MAX));
    }
    float gate = options->gate_known * (1 + GATE_GROWTH * (steps - 1));
    return WEIR_MIN(gate, WEIR_MAX(options->gate_known, GATE_KNOWN_MAX));
}

/* How unlike the expected place and size a sighting is, 0 to 0.8; 1: it cannot be this one. It is not measured by the track's own gate:
 * a track that was not seen for a while has a wide one, and would draw sightings away from those that are there. */
static float distance_of(const struct weir_tracker *tracker, const struct slot *slot,
                         const struct weir_detection *detection)
{
    const struct weir_tracker_options *options = &tracker->options;
    const struct weir_box *a = &slot->track.last.box;
    const struct weir_box *b = &detection->box;
    float growth = logf((a->w * a->h) / (b->w * b->h)) / 2 / logf(options->size_ratio);
    float x, y;
    off_expected(tracker, slot, detection, &x, &y);
    float widths = hypotf(x, y) / ((a->w + b->w) / 2);
    if (slot->track.last.class_id != detection->class_id || !(fabsf(growth) < 1) ||
        !(widths < gate_of(tracker, slot))) {
        return 1;
    }
    float place = widths / options->gate_known;
    return FAR * (1 - expf(-(place * place + 2 * growth * growth)));
}

/* What it costs to take a sighting for the track; 1 or more: not in this round. */
static float cost_of(const struct weir_tracker *tracker, const struct round *round,
                     const struct slot *slot, const struct seen *seen)
{
    float distance = distance_of(tracker, slot, &seen->sighting->detection);
    if (distance >= 1) {
        return 1;
    }
    if (slot->n_mean == 0 || !seen->has_embedding) {
        return round->is_doubt ? 1 : distance;
    }
    float min = tracker->options.min_likeness;
    float likeness = cosine(slot->mean, seen->sighting->embedding, tracker->dim);
    bool is_alike = likeness >= min;
    if (is_alike == round->is_doubt) {
        return 1;
    }
    return round->is_doubt ? distance : (distance + (1 - likeness) / (1 - min)) / 2;
}

/* ---- a sighting is taken for a track ---- */

static void learn_embedding(struct weir_tracker *tracker, struct slot *slot, const float *embedding,
                            float steps)
{
    float gain = WEIR_MAX(1 - powf(MEAN_KEPT, steps), 1 / (float)(slot->n_mean + 1));
    for (size_t i = 0; i < tracker->dim; i++) {
        float before = slot->n_mean == 0 ? 0 : slot->mean[i];
        slot->mean[i] = before + gain * (embedding[i] - before);
    }
    slot->n_mean++;
}

static void learn_motion(const struct weir_tracker *tracker, struct slot *slot,
                         const struct weir_detection *detection, float steps)
{
    if (steps <= 0) {
        return;
    }
    float x, y;
    off_expected(tracker, slot, detection, &x, &y);
    float s = WEIR_MAX(steps, GATE_MIN_STEPS) * (float)tracker->options.interval_ms / MS_IN_S;
    float gain = WEIR_MAX(1 / (float)slot->track.n_sightings, 1 - expf(-steps / MOTION_STEPS));
    slot->track.vx += gain * x / s;
    slot->track.vy += gain * y / s;
}

static void take_sighting(struct weir_tracker *tracker, struct frame *frame, struct slot *slot,
                          struct seen *seen)
{
    float steps = steps_since(tracker, slot);
    learn_motion(tracker, slot, &seen->sighting->detection, steps);
    if (seen->has_embedding) {
        learn_embedding(tracker, slot, seen->sighting->embedding, steps);
    }
    slot->is_followed = true;
    slot->is_doubted = false;
    slot->seen_ms = tracker->clock.now_ms;
    slot->blind_ms = 0;
    slot->track.last = seen->sighting->detection;
    slot->track.last_ms = frame->time_ms;
    slot->track.n_sightings++;
    seen->is_done = true;
    frame->out[seen->index] = &slot->track;
}

/* @param place_of  The track that was expected there; 0: none. */
static void begin_track(struct weir_tracker *tracker, struct frame *frame, struct seen *seen,
                        uint64_t place_of)
{
    seen->is_done = true;
    struct slot *slot = free_slot(tracker);
    if (slot == NULL || !make_room(tracker)) {
        return;
    }
    slot->state = SLOT_LIVE;
    slot->n_mean = 0;
    slot->is_doubted = false;
    slot->is_followed = true;
    slot->is_apart = false;
    slot->place_of = place_of;
    slot->seen_ms = tracker->clock.now_ms;
    slot->blind_ms = 0;
    slot->track = (struct weir_track){.id = ++tracker->last_id,
                                      .first_ms = frame->time_ms,
                                      .last_ms = frame->time_ms,
                                      .n_sightings = 1,
                                      .last = seen->sighting->detection};
    if (seen->has_embedding) {
        learn_embedding(tracker, slot, seen->sighting->embedding, 0);
    }
    tracker->live[tracker->n_live++] = &slot->track;
    frame->out[seen->index] = &slot->track;
}

/* A sighting in the place of a track looks like another. Is it the second that looks so? */
static void doubt(struct weir_tracker *tracker, struct frame *frame, struct slot *slot,
                  struct seen *seen)
{
    const float *embedding = seen->sighting->embedding;
    if (slot->is_doubted &&
        cosine(slot->doubt, embedding, tracker->dim) >= tracker->options.min_likeness) {
        slot->is_doubted = false;
        begin_track(tracker, frame, seen, slot->track.id);
        return;
    }
    slot->is_doubted = true;
    memcpy(slot->doubt, embedding, tracker->dim * sizeof *embedding);
    seen->is_done = true;
}

/* ---- a frame ---- */

static bool is_usable(const struct weir_detection *detection)
{
    const struct weir_box *box = &detection->box;
    return isfinite(box->x) && isfinite(box->y) && isfinite(box->w) && isfinite(box->h) &&
           box->w > 0 && box->h > 0 && isfinite(detection->score);
}

/* The order of sightings that does not depend on where they stand: best first. */
static bool is_before(const struct weir_detection *a, const struct weir_detection *b)
{
    const float of_a[] = {-a->score, a->box.x, a->box.y, a->box.w, a->box.h, (float)a->class_id};
    const float of_b[] = {-b->score, b->box.x, b->box.y, b->box.w, b->box.h, (float)b->class_id};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(of_a); i++) {
        if (of_a[i] != of_b[i]) {
            return of_a[i] < of_b[i];
        }
    }
    return false;
}

static void put_in_order(const struct weir_tracker *tracker, struct frame *frame,
                         const struct weir_sighting *sightings, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct weir_detection *detection = &sightings[i].detection;
        if (!is_usable(detection)) {
            continue;
        }
        size_t at = frame->n;
        while (at > 0 && is_before(detection, &frame->seen[at - 1].sighting->detection)) {
            at--;
        }
        if (at == WEIR_TRACKS_MAX) {
            continue;
        }
        frame->n = WEIR_MIN(frame->n + 1, WEIR_TRACKS_MAX);
        memmove(&frame->seen[at + 1], &frame->seen[at],
                (frame->n - at - 1) * sizeof frame->seen[0]);
        const float *embedding = tracker->dim > 0 ? sightings[i].embedding : NULL;
        float square = embedding == NULL ? 0 : dot(embedding, embedding, tracker->dim);
        frame->seen[at] = (struct seen){
            .sighting = &sightings[i],
            .index = i,
            .has_embedding = square > 0 && isfinite(square),
            .is_low = detection->score < tracker->options.low_score,
        };
    }
}

static void run_round(struct weir_tracker *tracker, struct frame *frame, const struct round *round)
{
    struct slot *rows[WEIR_TRACKS_MAX];
    struct seen *cols[WEIR_TRACKS_MAX];
    int32_t col_of[WEIR_TRACKS_MAX];
    size_t n_rows = 0, n_cols = 0;
    for (size_t i = 0; i < frame->n; i++) {
        if (!frame->seen[i].is_done && frame->seen[i].is_low == round->is_low) {
            cols[n_cols++] = &frame->seen[i];
        }
    }
    for (size_t i = 0; i < tracker->n_live && n_cols > 0; i++) {
        struct slot *slot = slot_of(tracker->live[i]);
        if (slot->is_followed) {
            continue;
        }
        rows[n_rows] = slot;
        float *costs = &tracker->costs[n_rows++ * n_cols];
        for (size_t j = 0; j < n_cols; j++) {
            costs[j] = cost_of(tracker, round, slot, cols[j]);
        }
    }
    assign_least(tracker->costs, n_rows, n_cols, col_of);
    for (size_t i = 0; i < n_rows; i++) {
        if (col_of[i] >= 0 && round->is_doubt) {
            doubt(tracker, frame, rows[i], cols[col_of[i]]);
        } else if (col_of[i] >= 0) {
            take_sighting(tracker, frame, rows[i], cols[col_of[i]]);
        }
    }
}

static const struct slot *find_live(const struct weir_tracker *tracker, uint64_t id)
{
    for (size_t i = 0; i < tracker->n_live; i++) {
        if (tracker->live[i]->id == id) {
            return WEIR_CONTAINER_OF(tracker->live[i], struct slot, track);
        }
    }
    return NULL;
}

/* A frame that shows the expected track, and this one too, tells them apart. So do many sightings: somebody who walks behind another is
 * never seen beside them. */
static void tell_apart(const struct weir_tracker *tracker, struct slot *slot)
{
    const struct slot *expected = find_live(tracker, slot->place_of);
    bool is_back = expected != NULL && expected->is_followed;
    slot->is_apart = slot->is_apart || (is_back && slot->is_followed) ||
                     slot->track.n_sightings > WEIR_TRACK_DOUBTFUL_MAX;
    slot->track.is_doubtful = !slot->is_apart && (slot->track.is_doubtful || is_back);
}

void weir_tracker_step(struct weir_tracker *tracker, int64_t time_ms,
                       const struct weir_sighting *sightings, size_t n,
                       struct weir_track **out_tracks)
{
    struct frame frame = {.time_ms = time_ms, .out = out_tracks};
    for (size_t i = 0; i < n; i++) {
        out_tracks[i] = NULL;
    }
    advance(tracker, time_ms, true);
    put_in_order(tracker, &frame, sightings, n);
    for (size_t i = 0; i < tracker->n_live; i++) {
        slot_of(tracker->live[i])->is_followed = false;
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rounds); i++) {
        run_round(tracker, &frame, &rounds[i]);
    }
    for (size_t i = 0; i < frame.n; i++) {
        if (!frame.seen[i].is_done && !frame.seen[i].is_low) {
            begin_track(tracker, &frame, &frame.seen[i], 0);
        }
    }
    for (size_t i = 0; i < tracker->n_live; i++) {
        if (slot_of(tracker->live[i])->place_of != 0) {
            tell_apart(tracker, slot_of(tracker->live[i]));
        }
    }
}

void weir_tracker_wait(struct weir_tracker *tracker, int64_t time_ms)
{
    advance(tracker, time_ms, false);
}

void weir_tracker_end(struct weir_tracker *tracker)
{
    release_taken(tracker);
    while (tracker->n_live > 0) {
        end_track(tracker, 0);
    }
}

const struct weir_track *weir_tracker_ended(struct weir_tracker *tracker)
{
    release_taken(tracker);
    if (tracker->n_ended == 0) {
        return NULL;
    }
    tracker->taken = tracker->ended[0];
    tracker->n_ended--;
    for (size_t i = 0; i < tracker->n_ended; i++) {
        tracker->ended[i] = tracker->ended[i + 1];
    }
    return &tracker->taken->track;
}

size_t weir_tracker_tracks(struct weir_tracker *tracker, struct weir_track *const **out)
{
    release_taken(tracker);
    *out = tracker->live;
    return tracker->n_live;
}
