/**
 * Dataset: labelled pictures, numbered 0 .. n_samples-1. Immutable once open; every function may
 * run on many threads at once.
 *
 * - Folder per class: `root/<class>/<file>`. Classes are sub-folders in bytewise order (an empty
 * one counts); samples are their picture files, class by class, in bytewise order of the name.
 * Names that start with "." are ignored, so are folders below a class and files that are no
 * pictures by name (.pgm .ppm .pnm .png .jpg .jpeg) nor by their first bytes.
 * - IDX (MNIST's format), raw or gzip: unsigned bytes, images N×H×W and labels N. The images are
 *   held in memory; class names are "0", "1", ….
 * - Mirrored: another dataset twice, the second time as mirror images of further classes.
 * - View: another dataset, with pictures that a function of the caller's changes.
 * - List: (path, label) pairs of the caller, in the caller's order, for protocols with fixed
 * splits.
 *
 * A file that cannot be read is found when it is read (weir_dataset_read names it) or by
 * weir_dataset_verify; opening a dataset only lists names.
 */
#ifndef WEIR_DATA_DATASET_H
#define WEIR_DATA_DATASET_H

#include "base/file.h"
#include "data/image.h"

struct weir_dataset;

enum weir_dataset_kind {
    WEIR_DATASET_AUTO, /**< IDX if the folder holds such files for the split, else folder per class.
                        */
    WEIR_DATASET_FOLDER,
    WEIR_DATASET_IDX,
    WEIR_DATASET_LIST,
    WEIR_DATASET_MIRRORED,
    WEIR_DATASET_VIEW,
    WEIR_DATASET_SCENES, /**< scenes.h */
};

struct weir_dataset_options {
    enum weir_dataset_kind kind;
    const char *split;  /**< IDX in a folder: "train" (default) or "test" (t10k-…). */
    size_t cache_bytes; /**< Keep decoded pictures in memory up to this many bytes; 0 keeps none.
                             First come, first kept; never evicted. IDX is in memory anyway. */
};

/** Limits; more is WEIR_ERR_LIMIT. */
#define WEIR_DATASET_MAX_SAMPLES   (1u << 28)
#define WEIR_DATASET_MAX_CLASSES   (1u << 20)
#define WEIR_DATASET_MAX_IDX_BYTES ((size_t)8 << 30)

/**
 * Open a folder per class or an IDX split.
 * @param[out] out  Close with weir_dataset_close. Written only on success.
 * @return NOT_FOUND, DENIED, IO; INVALID if the folder has no class or no picture; CORRUPT for a
 *         damaged IDX file; LIMIT; NOMEM.
 */
weir_status weir_dataset_open(const char *path, const struct weir_dataset_options *options,
                              struct weir_dataset **out, struct weir_error *err) WEIR_MUST_CHECK;

/** Open an IDX pair by its two paths (either may be gzip, whatever its name). */
weir_status weir_dataset_open_idx(const char *images_path, const char *labels_path,
                                  struct weir_dataset **out,
                                  struct weir_error *err) WEIR_MUST_CHECK;

struct weir_dataset_item {
    const char *path; /**< Copied. */
    int32_t label;    /**< 0 .. n_classes-1 */
};

/**
 * A dataset of the caller's list. Class names are copied.
 * @return INVALID if a label is out of range or the list is empty; NOMEM.
 */
weir_status weir_dataset_open_list(const struct weir_dataset_item *items, size_t n_items,
                                   const char *const *class_names, size_t n_classes,
                                   size_t cache_bytes, struct weir_dataset **out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/**
 * A view that shows every sample of `base` twice: sample i as it is, and as sample n_samples + i
 * mirrored left-right, of class n_classes + label. For faces: the mirror image of a person is
 * another person, so a net that learns to tell faces apart gets twice the people.
 * @param base  Borrowed until the view is closed; its cache serves both.
 * @return LIMIT, NOMEM.
 */
weir_status weir_dataset_open_mirrored(struct weir_dataset *base, struct weir_dataset **out,
                                       struct weir_error *err) WEIR_MUST_CHECK;

/** Changes the picture of a sample, or leaves it as it is. Any threads at once. On an error the picture is as it was. */
typedef weir_status (*weir_dataset_show_fn)(const void *context, size_t i_sample,
                                            struct weir_image *in_out, struct weir_error *err);

/**
 * A view of every sample of `base` as `show` makes it: labels, names and digest are the base's, the pictures are made again at each
 * read.
 * @param base, context  Borrowed until the view is closed.
 * @return NOMEM.
 */
weir_status weir_dataset_open_view(struct weir_dataset *base, weir_dataset_show_fn show,
                                   const void *context, struct weir_dataset **out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** NULL is accepted. No loader or view may still use the dataset. */
void weir_dataset_close(struct weir_dataset *dataset);

size_t weir_dataset_n_samples(const struct weir_dataset *dataset);
size_t weir_dataset_n_classes(const struct weir_dataset *dataset);

/** Borrowed; NULL if out of range. */
const char *weir_dataset_class_name(const struct weir_dataset *dataset, size_t i_class);

/** Label of a sample; −1 if out of range. */
int32_t weir_dataset_label(const struct weir_dataset *dataset, size_t i_sample);

/** Room for any name that weir_dataset_sample_name writes. */
#define WEIR_SAMPLE_NAME_BYTES 1024

/** How people call the sample: "s7/3.pgm" under the root, the path of a list, "images.gz[17]" of
 *  IDX. Cut if longer. Returns `out`. */
const char *weir_dataset_sample_name(const struct weir_dataset *dataset, size_t i_sample,
                                     char out[WEIR_SAMPLE_NAME_BYTES]);

/**
 * The decoded picture of a sample: a view if it is in memory (good until the dataset is closed),
 * else a new picture. Free with weir_image_fini in both cases.
 * @return As weir_image_load, naming the file; INVALID if out of range.
 */
weir_status weir_dataset_read(struct weir_dataset *dataset, size_t i_sample, struct weir_image *out,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** Told of each damaged sample by weir_dataset_verify; `err` says what is wrong and names the file.
 */
typedef void (*weir_dataset_damage_fn)(void *context, size_t i_sample,
                                       const struct weir_error *err);

/** Decode every picture once, on the calling thread. Returns OK also when some are damaged. */
weir_status weir_dataset_verify(struct weir_dataset *dataset, weir_dataset_damage_fn on_damage,
                                void *context, size_t *out_n_damaged,
                                struct weir_error *err) WEIR_MUST_CHECK;

/**
 * What identifies the content: SHA-256 over one line "<sha256 of the file>  <name>\n" per file, in
 * bytewise order of the names (as `sha256sum` prints them); names are relative to the root, for IDX
 * and lists the last path component (equal ones stay in the list's order). For a folder this is
 * `find * -type f | LC_ALL=C sort | xargs sha256sum | sha256sum` if it holds only pictures.
 * A view has its base's, scenes have their faces'. Cost: reads every byte of the dataset.
 */
weir_status weir_dataset_digest(const struct weir_dataset *dataset,
                                char out[WEIR_SHA256_TEXT_BYTES],
                                struct weir_error *err) WEIR_MUST_CHECK;

#endif
