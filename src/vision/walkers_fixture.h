/** For tests: people walk through a camera's picture, and what a detector sees of them. The truth is the generator's. */
#ifndef WEIR_VISION_WALKERS_FIXTURE_H
#define WEIR_VISION_WALKERS_FIXTURE_H

#include "base/rng.h"
#include "vision/tracker.h"

#include <math.h>
#include <string.h>

#define WALKERS_MAX        11
#define WALK_FRAMES_MAX    520
#define WALK_DIM           16
#define WALK_WIDTH         1920
#define WALK_WIDTHS_MEDIAN 0.37 /* Of a face, in 100 ms. */
#define WALK_WIDTHS_P90    0.9

/** What a detector and a recogniser make of a scene. */
struct walk_manner {
    double fps;
    double missed, low;  /**< Shares of sightings that are not there, and that have a low score. */
    double jitter;       /**< Of the box, in widths. */
    bool has_embeddings; /**< Of those with a good score. */
};

struct walker {
    double x, y, width, vx, growth; /**< At first; px, px/s; a second's factor of the width. */
    double from_s, to_s, gait;
    float face[WALK_DIM];
};

struct walk_frame {
    int64_t time_ms;
    size_t n;
    int who[WALKERS_MAX];
    struct weir_sighting sightings[WALKERS_MAX];
    float embeddings[WALKERS_MAX][WALK_DIM];
};

struct walk {
    size_t n_walkers, n_frames;
    struct walker walkers[WALKERS_MAX];
    struct walk_frame frames[WALK_FRAMES_MAX];
};

static inline double walk_between(struct weir_rng *rng, double low, double high)
{
    return low + (high - low) * weir_rng_f64(rng);
}

/** A unit vector near `of`, or anywhere (NULL). */
static inline void walk_face(struct weir_rng *rng, const float *of, float *out)
{
    double square = 0;
    for (int i = 0; i < WALK_DIM; i++) {
        out[i] = (float)weir_rng_normal(rng) * (of == NULL ? 1 : 0.15F) + (of == NULL ? 0 : of[i]);
        square += (double)out[i] * (double)out[i];
    }
    for (int i = 0; i < WALK_DIM; i++) {
        out[i] /= (float)sqrt(square);
    }
}

/** Widths in 100 ms as people at an entrance walk, at most as one in ten does. */
static inline double walk_speed(struct weir_rng *rng)
{
    double spread = log(WALK_WIDTHS_P90 / WALK_WIDTHS_MEDIAN) / 1.2816;
    return fmin(WALK_WIDTHS_MEDIAN * exp(spread * weir_rng_normal(rng)), WALK_WIDTHS_P90);
}

static inline struct weir_box walk_box(const struct walker *walker, double s)
{
    double width = walker->width * pow(walker->growth, s);
    double sway = 0.05 * width * sin(12 * s + walker->gait);
    double x = walker->x + walker->vx * s, y = walker->y + sway;
    return (struct weir_box){(float)(x - width / 2), (float)(y - width * 0.6), (float)width,
                             (float)(width * 1.2)};
}

static inline void walk_see(struct weir_rng *rng, const struct walk_manner *manner,
                            const struct walker *walker, struct weir_box box,
                            struct walk_frame *frame, int who)
{
    size_t at = frame->n++;
    double jitter = manner->jitter * (double)box.w;
    box.x += (float)(jitter * weir_rng_normal(rng));
    box.y += (float)(jitter * weir_rng_normal(rng));
    float scale = (float)exp(manner->jitter * weir_rng_normal(rng));
    box.w *= scale;
    box.h *= scale;
    bool is_low = weir_rng_f64(rng) < manner->low;
    float score = (float)(is_low ? walk_between(rng, 0.15, 0.49) : walk_between(rng, 0.6, 0.99));
    walk_face(rng, walker->face, frame->embeddings[at]);
    frame->who[at] = who;
    frame->sightings[at] = (struct weir_sighting){
        .detection = {.box = box, .score = score},
        .embedding = manner->has_embeddings && !is_low ? frame->embeddings[at] : NULL,
    };
}

/** Are most of the face's pixels behind a walker that is nearer, or behind the pole? */
static inline bool walk_is_hidden(const struct walk *walk, size_t i, const struct weir_box *box,
                                  double s, double pole)
{
    double centre = (double)(box->x + box->w / 2);
    if (fabs(centre - pole) < 25) {
        return true;
    }
    for (size_t k = 0; k < walk->n_walkers; k++) {
        const struct walker *other = &walk->walkers[k];
        if (k == i || s < other->from_s || s > other->to_s) {
            continue;
        }
        struct weir_box front = walk_box(other, s - other->from_s);
        double off = fabs((double)(front.x + front.w / 2) - centre);
        double up = fabs((double)(front.y - box->y));
        if (front.w > box->w && off < 0.6 * (double)front.w && up < (double)front.h) {
            return true;
        }
    }
    return false;
}

/** What is seen of walkers that are there, until end_s. pole: where none are seen; NAN: no pole and nobody hides another. */
static inline void walk_film(struct weir_rng *rng, const struct walk_manner *manner, double pole,
                             double end_s, struct walk *walk)
{
    walk->n_frames = 0;
    for (double s = 0; s < end_s && walk->n_frames < WALK_FRAMES_MAX; s += 1 / manner->fps) {
        struct walk_frame *frame = &walk->frames[walk->n_frames++];
        frame->time_ms = (int64_t)llround(1000 * s);
        frame->n = 0;
        for (size_t i = 0; i < walk->n_walkers; i++) {
            const struct walker *walker = &walk->walkers[i];
            struct weir_box box = walk_box(walker, s - walker->from_s);
            bool is_there = s >= walker->from_s && s <= walker->to_s;
            bool is_missed = weir_rng_f64(rng) < manner->missed;
            if (is_there && !is_missed &&
                (isnan(pole) || !walk_is_hidden(walk, i, &box, s, pole))) {
                walk_see(rng, manner, walker, box, frame, (int)i);
            }
        }
    }
}

/** An entrance for 20 s: 11 people cross it or come nearer, up to four or so at once, and hide one another. */
static inline void walk_make_entrance(struct weir_rng *rng, const struct walk_manner *manner,
                                      struct walk *walk)
{
    walk->n_walkers = WALKERS_MAX;
    for (size_t i = 0; i < walk->n_walkers; i++) {
        bool is_near = weir_rng_below(rng, 4) == 0; /* It comes nearer. */
        bool is_left = weir_rng_below(rng, 2) == 0;
        double width = is_near ? 30 : walk_between(rng, 50, 170);
        double time_s = walk_between(rng, 3.5, 6);
        double from_s = 14.0 * (double)i / WALKERS_MAX + walk_between(rng, 0, 1);
        double across = (WALK_WIDTH - width) / time_s * (is_left ? 1 : -1);
        walk->walkers[i] = (struct walker){
            .x = is_near ? walk_between(rng, 500, 1400)
                         : (is_left ? width / 2 : WALK_WIDTH - width / 2),
            .y = walk_between(rng, 350, 550),
            .width = width,
            .vx = is_near ? walk_between(rng, -40, 40) : across,
            .growth = is_near ? pow(6, 1 / time_s) : 1,
            .from_s = from_s,
            .to_s = from_s + time_s,
            .gait = walk_between(rng, 0, 6.28),
        };
        walk_face(rng, NULL, walk->walkers[i].face);
    }
    walk_film(rng, manner, 960, 21, walk);
}

/** People who do not come near one another: each has a line of its own. */
static inline void walk_make_lines(struct weir_rng *rng, const struct walk_manner *manner,
                                   struct walk *walk)
{
    walk->n_walkers = 6;
    for (size_t i = 0; i < walk->n_walkers; i++) {
        double width = walk_between(rng, 30, 170);
        double speed = walk_speed(rng) * width * 10;
        walk->walkers[i] = (struct walker){
            .x = WALK_WIDTH / 2.0,
            .y = 2000 * (double)i,
            .width = width,
            .vx = weir_rng_below(rng, 2) == 0 ? speed : -speed,
            .growth = walk_between(rng, 0.9, 1.2),
            .to_s = 20,
            .gait = walk_between(rng, 0, 6.28),
        };
        walk->walkers[i].from_s = walk_between(rng, 0, 1);
        walk->walkers[i].to_s = walk->walkers[i].from_s + walk_between(rng, 3, 6);
        walk_face(rng, NULL, walk->walkers[i].face);
    }
    walk_film(rng, manner, NAN, 7, walk);
}

#endif
