/**
 * Ignored files: what lies in a directory source's folder and will never be a frame, because of its name
 * or its place. A person who put it there would wait for decisions for ever.
 *
 * Ignored are, of <path>/<camera>/<number>.<anything>: files beside the cameras' folders; files whose name
 * is no number, or is longer than CAMERA_FILE_BYTES - 1; files in folders below a camera's; and all
 * files of a folder whose name is no camera's. Names that begin with a dot are nobody's: a file can be
 * written under one and renamed. A file counts once it is IGNORED_SETTLE_MS old.
 *
 * Of several replicas each counts in its own cameras' folders, and the first of them everything else.
 */
#ifndef WEIR_PREDICT_IGNORED_H
#define WEIR_PREDICT_IGNORED_H

#include "predict/intake.h"

#include <stdbool.h>
#include <stddef.h>

#define IGNORED_SETTLE_MS   2000
#define IGNORED_ENTRIES_MAX 100000 /**< Of a look; behind them nothing is counted. */
#define IGNORED_TEXT_BYTES  400

/** Of one place: a camera's folder, or everything beside them. */
struct ignored_place {
    const char *camera; /**< NULL: beside the cameras' folders. Valid in the call. */
    size_t n;
    const char *why; /**< What is wrong with the first, and how it should be: a sentence. */
};

struct ignored_look {
    const char *path; /**< The source's folder. */
    int64_t now_ms;   /**< Wall clock. */
    bool (*is_ours)(void *context, const char *camera);
    /** Called for each place where something is ignored. NULL: nobody hears it. */
    void (*found)(void *context, const struct ignored_place *place);
    void *context;
    bool is_first; /**< Everything that is in no camera's folder counts, too. */
};

/**
 * Count. Blocking: reads folders.
 * @param why  Out: that of the first place; "" if nothing is ignored.
 */
size_t ignored_count(const struct ignored_look *look, char why[IGNORED_TEXT_BYTES]);

#endif
