/**
 * Gallery: the people a replica knows, as embeddings of their photos by one model, and the
 * threshold that goes with them.
 *
 * A gallery is made from photos (photo_set.h) by a net of its own, beside the one in service.
 * Enrolling one person embeds that person, and a restarted replica embeds nothing. If there are
 * photos of impostors too, they are embedded the same way, kept in the same file, and set the
 * threshold (calibrate.h); an impostor who is also enrolled is left out of them.
 *
 * Immutable and reference-counted once made.
 */
#ifndef WEIR_PREDICT_GALLERY_H
#define WEIR_PREDICT_GALLERY_H

#include "predict/calibrate.h"
#include "predict/decide.h"
#include "predict/photo_set.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gallery {
    atomic_int n_refs;
    int64_t version, impostors_version;
    char *blob, *impostors_blob; /**< Impostors: NULL without. */
    char **persons;              /**< n_persons names; match.person is an index. */
    size_t n_persons;
    struct templates templates;
    struct calibration calibration;
    struct calibration_rates rates; /**< That the thresholds are for. */
    size_t n_damaged, n_embedded;   /**< Photos left out; not found in the file of embeddings. */
    size_t n_whole;                 /**< Embedded whole: no face was found in them. */
    size_t n_known_impostors;       /**< Impostors left out because they are enrolled. */
};

struct gallery_request {
    struct photo_source people;
    struct photo_source impostors; /**< manifest NULL: there are none. */
    struct embedder_config embedder;
    struct calibration_rates rates;
};

/**
 * Make a gallery; takes as long as embedding the new photos does.
 * @return INVALID for a manifest that is none, and for impostors of whom no photo can be used;
 *         CANCELLED; UNAVAILABLE if a photo has to be fetched and cannot be for now; NOMEM.
 *         No photo of people at all is an empty gallery: everybody is unknown.
 */
weir_status gallery_build(const struct gallery_request *request, struct gallery **out,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** From which scores on its people count as recognised. */
struct thresholds gallery_thresholds(const struct gallery *gallery);

struct gallery *gallery_ref(struct gallery *gallery);
void gallery_unref(struct gallery *gallery);

#endif
