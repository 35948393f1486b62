/**
 * Photo set: photos of people as a manifest lists them, and their embeddings by one net.
 *
 * A manifest is {"files": [{"class", "file", "sha256"} …]}; a class is a person. A photo is taken
 * from the folder if it has the stated digest there, else fetched; one that is damaged or not to be
 * had is logged and left out. Embeddings are looked up by the photo's digest in a file of them
 * (embedding_store.h) first, so that a photo is embedded once per model.
 *
 * An embedder is a net and that file; it fills one set after the other. One thread.
 */
#ifndef WEIR_PREDICT_PHOTO_SET_H
#define WEIR_PREDICT_PHOTO_SET_H

#include "base/json.h"
#include "data/image.h"
#include "predict/embedding_store.h"
#include "predict/matcher.h"
#include "predict/model.h"

#include <stdatomic.h>

#define PHOTO_SET_MAX 1000000

/** Where photos are to be found. */
struct photo_source {
    const char *what; /**< "gallery" or "impostors", for messages. */
    const json_t *manifest;
    int64_t version;       /**< Of the dataset. */
    const char *blob;      /**< Of the manifest. */
    const char *photo_dir; /**< May be NULL or unreadable. */
};

struct photo_set {
    char **persons; /**< n_persons names, in strcmp order. */
    size_t n_persons;
    const char **digests; /**< n: of the photos that have a vector; borrowed from the manifest. */
    int32_t *owners;      /**< n: index into persons. */
    float *vectors;       /**< n × dim, of length 1. */
    size_t n;
    size_t n_damaged;  /**< Photos left out. */
    size_t n_embedded; /**< Not found in the file of embeddings. */
    size_t n_whole;    /**< Those among them in which no face was found: they were taken whole. */
    size_t n_known;    /**< People left out because they are in `others`. */
};

/** What all photos of a deployment have in common. */
struct embedder_config {
    const char *model_path;
    struct model_name model;
    const char *detector_path; /**< NULL: photos are taken whole. Else the largest face of each. */
    struct model_name detector;
    const struct weir_stage_chain *chain; /**< How faces are found and cut: its detect and align. */
    const char *store_path; /**< File of embeddings of this model; made and replaced here. */
    const char *cache_dir;  /**< Where fetched photos are put while they are needed. */
    /** Get a blob into a file; NULL: there is no other source. */
    weir_status (*fetch)(void *context, const char *sha256, const char *path,
                         struct weir_error *err);
    void *context;
    const atomic_bool *is_stopping; /**< May be NULL. */
};

struct embedder;

/** Load the model and the file of embeddings. `config` is borrowed until embedder_close. */
weir_status embedder_open(const struct embedder_config *config, struct embedder **out,
                          struct weir_error *err) WEIR_MUST_CHECK;
void embedder_close(struct embedder *embedder);

size_t embedder_dim(const struct embedder *embedder);

/**
 * Embed the photos of a source, but those of people who are in `others` (may be NULL).
 * @param[out] out  photo_set_fini when done; digests point into the source's manifest.
 * @return INVALID for a manifest that is none; CANCELLED; UNAVAILABLE if a photo has to be fetched
 *         and cannot be for now; NOMEM.
 */
weir_status embedder_add(struct embedder *embedder, const struct photo_source *source,
                         const struct photo_set *others, struct photo_set *out,
                         struct weir_error *err) WEIR_MUST_CHECK;

/** Replace the file by the embeddings of these two sets, if it is not theirs already. */
weir_status embedder_save(const struct embedder *embedder, const struct photo_set *a,
                          const struct photo_set *b, struct weir_error *err) WEIR_MUST_CHECK;

struct templates photo_set_templates(const struct photo_set *set, size_t dim);

void photo_set_fini(struct photo_set *set);

#endif
