/**
 * Visitors: unknown people of the last days, so that it is known when one comes again.
 *
 *     visitors_fit(visitors, true, gallery, time_ms)      // each frame: what is to be forgotten goes
 *     visitors_see(visitors, &passage, &out)               // an unknown person's passage is over
 *
 * What is kept of a visitor is an embedding, which is data of a person: off unless the stage "track" says `visitors: true`. It is
 * kept in this process, and in a file of its state folder (mode 0600), until the first of these:
 *   - VISITORS_KEPT_MS after the last passage; a replica that is stopped, or gets no frames, forgets when it gets one, or starts;
 *   - VISITORS_MAX others have come since;
 *   - the gallery knows the person: an enrolment makes a new gallery;
 *   - somebody is taken out of the gallery: any visitor may be that person, so that all go. So they do when the gallery has changed
 *     while the replica was away, and when another model makes the embeddings;
 *   - the stage says no more that visitors are kept, or is gone, or the replica's folder is deleted: the file goes.
 * Nothing of it leaves the replica but the identifier, and how often and since when.
 *
 * Two passages are one visitor's if their faces are alike from the gallery's threshold on: this errs as often as the gallery
 * does. Passages less than VISITORS_PAUSE_MS apart are one coming. One thread.
 */
#ifndef WEIR_PREDICT_VISITORS_H
#define WEIR_PREDICT_VISITORS_H

#include "base/uuid.h"
#include "predict/gallery.h"

#define VISITORS_MAX      256
#define VISITORS_KEPT_MS  ((int64_t)7 * 24 * 3600 * 1000)
#define VISITORS_PAUSE_MS ((int64_t)10 * 60 * 1000)
#define VISITORS_SAVE_MS  10000 /**< The file is at most so old. Killed, a process loses that. */

struct visitors;

struct visitor {
    char id[WEIR_UUID_BYTES]; /**< "": it is not known whether anybody came before. */
    int64_t times;            /**< This one, too. */
    int64_t first_ms;
};

/** What an unknown person's passage gives. */
struct visitor_look {
    const float *embedding; /**< Unit vector of its best frame; NULL: there is none. */
    size_t dim;
    const char *embedder; /**< The sum of the model that made it. */
    int64_t first_ms, last_ms;
};

/** @param path  Of the file; NULL: nothing is kept over the process's end. A file that is damaged is deleted. */
struct visitors *visitors_open(const char *path);

/** The file is written. NULL is accepted. */
void visitors_close(struct visitors *visitors);

/** Forget whom these make it forget. @param gallery  Kept a reference of; NULL: there is none, and nobody is kept.
 *  Cost: nothing, but after a change of the gallery a match for each visitor, and the file once in VISITORS_SAVE_MS. */
void visitors_fit(struct visitors *visitors, bool is_on, struct gallery *gallery, int64_t time_ms);

/** Somebody unknown has passed: the visitor that it is like, else a new one. Not before visitors_fit. @param[out] out  Always set. */
void visitors_see(struct visitors *visitors, const struct visitor_look *look, struct visitor *out);

#endif
