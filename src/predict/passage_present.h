/**
 * Present: people who are in a camera's picture now and have been decided, kept in a file so that the next process knows it.
 *
 * A person is present until gone_ms after the last sight. One thread.
 */
#ifndef WEIR_PREDICT_PASSAGE_PRESENT_H
#define WEIR_PREDICT_PASSAGE_PRESENT_H

#include "predict/outbox.h"

#define PRESENT_MAX     1024 /**< With more, the person seen longest ago is forgotten. */
#define PRESENT_SAVE_MS 1000

struct present;

/** Read the file: persons present at its time, if the outbox has their decisions. @param path  NULL: there is none. */
struct present *present_open(const char *path, struct outbox *outbox);
void present_close(struct present *present); /**< NULL is accepted. */

struct present_frame {
    int64_t time_ms, gone_ms;
    /** The time since the camera's last frame, as far as it does not count (vision/tracker.h). */
    int64_t blind_ms;
};

/** A camera has a frame: persons who are gone are forgotten; those that the file named were seen now. */
void present_begin(struct present *present, const char *camera, const struct present_frame *frame);

/** @return Whether the person is present, seen again now. */
bool present_see(struct present *present, const char *camera, const char *person, int64_t time_ms);

/** The person is about to be decided, by that key: the file says so when this returns, if it can be written. */
void present_add(struct present *present, const char *camera, const char *person, const char *key,
                 int64_t time_ms);

/** Write the file, if it is older than PRESENT_SAVE_MS and somebody is there, or was. */
void present_save(struct present *present, int64_t time_ms);

#endif
