/**
 * Gallery: the people a replica knows, as embeddings of their photos by one model.
 *
 * A gallery is made from a manifest ({"files":[{"class","file","sha256"}…]}; a class is a person)
 * by a net of its own, beside the one in service. A photo is taken from the folder if it has the
 * stated digest there, else fetched; one that is damaged or not to be had is logged and left out.
 * Embeddings are kept in a file by the photo's digest, so that a photo is embedded once per model:
 * enrolling one person embeds that person, and a restarted replica embeds nothing.
 *
 * Immutable and reference-counted once made.
 */
#ifndef WEIR_PREDICT_GALLERY_H
#define WEIR_PREDICT_GALLERY_H

#include "base/file.h"
#include "base/json.h"
#include "predict/calibrate.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GALLERY_MAX_PHOTOS 1000000

struct gallery {
    atomic_int n_refs;
    int64_t version;
    char *blob;
    char **persons; /**< n_persons names; match.person is an index. */
    size_t n_persons;
    struct templates templates;
    struct calibration calibration;
    double rate;                  /**< False accepts that the threshold is for. */
    size_t n_damaged, n_embedded; /**< Left out; not found in the file of embeddings. */
};

struct gallery_request {
    const json_t *manifest;
    int64_t version;
    const char *blob;      /**< Of the manifest. */
    const char *photo_dir; /**< May be NULL or unreadable. */
    const char *model_path;
    const char *store_path; /**< File of embeddings of this model; made and replaced here. */
    const char *cache_dir;  /**< Where fetched photos are put while they are needed. */
    double false_accept_rate;
    /** Get a blob into a file; NULL: there is no other source. */
    weir_status (*fetch)(void *context, const char *sha256, const char *path,
                         struct weir_error *err);
    void *context;
    const atomic_bool *is_stopping; /**< May be NULL. */
};

/**
 * Make a gallery; takes as long as embedding the new photos does.
 * @return INVALID for a manifest that is none; CANCELLED; UNAVAILABLE if a photo has to be fetched
 *         and cannot be for now; NOMEM. No photo at all is an empty gallery: everybody is unknown.
 */
weir_status gallery_build(const struct gallery_request *request, struct gallery **out,
                          struct weir_error *err) WEIR_MUST_CHECK;

struct gallery *gallery_ref(struct gallery *gallery);
void gallery_unref(struct gallery *gallery);

#endif
