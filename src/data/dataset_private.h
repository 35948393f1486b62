/** The dataset's inside, shared by its three files: internal to data. */
#ifndef WEIR_DATA_DATASET_PRIVATE_H
#define WEIR_DATA_DATASET_PRIVATE_H

#include "data/dataset.h"

#include <stdatomic.h>

/** Owned strings. */
struct name_list {
    char **names;
    size_t n, cap;
};

struct weir_dataset {
    enum weir_dataset_kind kind;
    char *root;                /**< Folder kind; "" otherwise. */
    struct weir_dataset *base; /**< Mirrored, or view: what it shows. Borrowed. NULL otherwise. */
    weir_dataset_show_fn show; /**< A view has it. */
    const void *show_context;
    struct scenes *scenes; /**< What scenes are made from; owned. NULL: it has none. */
    size_t n_samples;
    int32_t *labels;
    struct name_list files; /**< Folder: relative to root; list: as given; IDX: two paths. */
    struct name_list classes;
    uint8_t *idx_pixels; /**< IDX: n_samples × height × width. */
    int idx_width, idx_height;
    size_t cache_bytes;
    atomic_size_t cache_used;
    _Atomic(struct weir_image *) *cache; /**< Per sample; NULL without a cache. Set once. */
    _Atomic(atomic_uchar *) told;        /**< One bit per sample; NULL: nothing told yet. */
};

/** What the names of mirrored classes and samples end with. */
#define WEIR_DATASET_MIRRORED_SUFFIX " (mirrored)"

/**
 * Is this the first time that this sample is to be told of as damaged, by any loader of the
 * dataset? A mirrored sample is the one that it shows. Any thread; without memory always true.
 */
bool dataset_tell_once(struct weir_dataset *dataset, uint64_t i_sample);

/** Files behind the samples: fewer where each is several samples; sample i is of file i mod this. */
uint64_t dataset_n_files(const struct weir_dataset *dataset);

/** Dataset with nothing in it; weir_dataset_close frees it in any state. NULL: no memory. */
struct weir_dataset *dataset_make(enum weir_dataset_kind kind);

/** Append a copy. @return NOMEM. */
weir_status name_list_add(struct name_list *list, const char *name);

weir_status dataset_nomem(struct weir_error *err);

/** Make room for labels and, with cache_bytes, the cache: n_samples is known now. */
weir_status dataset_seal(struct weir_dataset *dataset, size_t cache_bytes, struct weir_error *err);

/** Fill an IDX dataset from its two files. */
weir_status idx_load(struct weir_dataset *dataset, const char *images_path, const char *labels_path,
                     struct weir_error *err);

#endif
