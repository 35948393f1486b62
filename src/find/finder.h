/**
 * Finder: a detector in use. It finds what lies where in a picture.
 *
 * The model is run by an executor (serve/executor.h); what its input has to be and what its outputs mean is vision/detector.h's.
 * Reference-counted. Finding is for one thread at a time; what is told of it is immutable.
 */
#ifndef WEIR_FIND_FINDER_H
#define WEIR_FIND_FINDER_H

#include "endpoint/stage.h"
#include "endpoint/stage/detect.h"
#include "serve/model_file.h"
#include "vision/detector.h"
#include "vision/view.h"

struct finder;

/** What is to be found, and how: what the stage "detect" says. Texts are the stage's. */
struct finder_wish {
    const char *model; /**< As it is written. */
    struct weir_detector_options detector;
    const json_t *classes; /**< Names that count; NULL: all. */
};

/** What these options say. */
struct finder_wish finder_wish_from(const struct weir_stage_detect *detect);

/** That of a chain's detect. @return false: it has none. */
bool finder_wish_of(const struct weir_stage_chain *chain, struct finder_wish *out);

/**
 * Load a detector, and look at an empty picture with it.
 * @param name  Of version 0: a file that is no version of a model.
 * @param wish  Borrowed until the call returns.
 * @return As model_file_load and weir_detector_create; INVALID for a class that the model does not have. The sentence names the
 *         version.
 */
weir_status finder_load(const char *path, const struct model_name *name,
                        const struct finder_wish *wish, struct finder **out,
                        struct weir_error *err) WEIR_MUST_CHECK;

struct finder *finder_ref(struct finder *finder);
void finder_unref(struct finder *finder); /**< NULL is accepted. */

/** Is it this version? */
bool finder_is(const struct finder *finder, const struct model_name *name);

/** Which version it is; the finder's. */
const struct model_name *finder_name(const struct finder *finder);

/** What a class is called: the model's label of it, or its number; the finder's. */
const char *finder_class(const struct finder *finder, int32_t class_id);

/** @param out  Best first; the finder's, until the next call. */
weir_status finder_find(struct finder *finder, const struct weir_view *view,
                        const struct weir_detection **out, size_t *out_n,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** What its outputs were taken for, and why: a sentence. */
const char *finder_why(const struct finder *finder);

/** Has its GPU failed? */
bool finder_is_broken(const struct finder *finder);

#endif
