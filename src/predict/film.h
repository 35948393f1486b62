/**
 * Film: a few frames of a passage, with what was seen of it in each, for people to look at later. Pure but for memory.
 *
 *     film_init(&film);
 *     if (film_wants(&film, worth)) { … cut the picture … }
 *     film_add(&film, &frame, worth);    // each frame of the passage, wanted or not
 *     film_fini(&film);
 *
 * Kept are every stride-th frame from the first on, at most FILM_FRAMES - 1 of them, and the *best*: that of the greatest
 * worth, the first of equals. The stride is 1, and doubles when there is no more room; the frames between then go. So a picture
 * is cut for few frames of a long passage: after the first FILM_FRAMES - 1, for at most half as many each time it has become twice
 * as long.
 */
#ifndef WEIR_PREDICT_FILM_H
#define WEIR_PREDICT_FILM_H

#include "data/image.h"
#include "vision/detection.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILM_FRAMES 12

/** What was seen in a frame. */
struct film_frame {
    int64_t time_ms;
    double score;       /**< The nearest person's; NaN: it was not compared. */
    const char *person; /**< Whom the frame names; NULL: nobody. Borrowed. */
    const char *why;    /**< Why it was not compared; a literal or NULL. */
    bool is_counted;    /**< It is one of those that the decision rests on. */
    struct weir_box box;
    struct weir_image picture; /**< Zeroed: none. */
    size_t jpeg_bytes; /**< The picture's, encoded and kept; 0: none, or it is the decision's. */
    int64_t number;    /**< Within the passage, from 0 on; film_add sets it. */
};

struct film {
    struct film_frame frames[FILM_FRAMES]; /**< In the order of time. */
    size_t n, i_best;                      /**< i_best < n, unless n is 0. */
    int64_t n_seen, stride;
    double worth; /**< The best's. */
};

void film_init(struct film *film);
void film_fini(
    struct film *film); /**< Frees the pictures; what else is told of the frames stays. */

/** Would the next frame be kept? */
bool film_wants(const struct film *film, double worth);

/** The next frame. Takes its picture over, in any case. @param worth  At least 0; below: it is no picture to show, and cannot
 *  be the best but of such. */
void film_add(struct film *film, const struct film_frame *frame, double worth);

/** The best frame; NULL: there is none yet. */
struct film_frame *film_best(struct film *film);

/** Bytes in memory of its pictures. */
size_t film_bytes(const struct film *film);

#endif
