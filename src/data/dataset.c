#include "data/dataset.h"

#include "base/grow.h"
#include "base/path.h"
#include "data/dataset_private.h"
#include "data/scenes_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

weir_status dataset_nomem(struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the dataset");
}

weir_status name_list_add(struct name_list *list, const char *name)
{
    WEIR_TRY(weir_grow(&list->names, sizeof *list->names, list->n, &list->cap));
    char *copy = strdup(name);
    if (copy == NULL) {
        return WEIR_ERR_NOMEM;
    }
    list->names[list->n++] = copy;
    return WEIR_OK;
}

static void name_list_fini(struct name_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->names[i]);
    }
    free(list->names);
    *list = (struct name_list){0};
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct weir_dataset *dataset_make(enum weir_dataset_kind kind)
{
    struct weir_dataset *dataset = calloc(1, sizeof *dataset);
    if (dataset != NULL) {
        dataset->kind = kind;
        atomic_init(&dataset->cache_used, 0);
    }
    return dataset;
}

weir_status dataset_seal(struct weir_dataset *dataset, size_t cache_bytes, struct weir_error *err)
{
    size_t n = dataset->n_samples;
    dataset->labels = malloc(n * sizeof *dataset->labels);
    if (dataset->labels == NULL) {
        return dataset_nomem(err);
    }
    if (cache_bytes > 0) {
        dataset->cache = calloc(n, sizeof *dataset->cache);
        if (dataset->cache == NULL) {
            return dataset_nomem(err);
        }
        dataset->cache_bytes = cache_bytes;
    }
    return WEIR_OK;
}

void weir_dataset_close(struct weir_dataset *dataset)
{
    if (dataset == NULL) {
        return;
    }
    for (size_t i = 0; dataset->cache != NULL && i < dataset->n_samples; i++) {
        struct weir_image *cached = atomic_load(&dataset->cache[i]);
        weir_image_fini(cached);
        free(cached);
    }
    free(dataset->cache);
    free(atomic_load(&dataset->told));
    free(dataset->idx_pixels);
    free(dataset->labels);
    name_list_fini(&dataset->files);
    name_list_fini(&dataset->classes);
    free(dataset->root);
    if (dataset->scenes != NULL) {
        weir_dataset_close(dataset->scenes->faces);
        weir_dataset_close(dataset->scenes->backgrounds);
        free(dataset->scenes);
    }
    free(dataset);
}

uint64_t dataset_n_files(const struct weir_dataset *dataset)
{
    return dataset->base != NULL ? dataset_n_files(dataset->base) : dataset->n_samples;
}

bool dataset_tell_once(struct weir_dataset *dataset, uint64_t i_sample)
{
    if (dataset->base != NULL) {
        return dataset_tell_once(dataset->base, i_sample % dataset->base->n_samples);
    }
    atomic_uchar *told = atomic_load(&dataset->told);
    if (told == NULL) {
        atomic_uchar *made = calloc(dataset->n_samples / 8 + 1, sizeof *made);
        if (made == NULL) {
            return true;
        }
        if (atomic_compare_exchange_strong(&dataset->told, &told, made)) {
            told = made;
        } else {
            free(made); /* another thread was first: told is its now */
        }
    }
    unsigned char bit = (unsigned char)(1u << i_sample % 8);
    return (atomic_fetch_or(&told[i_sample / 8], bit) & bit) == 0;
}

/** A picture by its name, or else by its first bytes. */
static bool is_picture(const char *path, const char *name)
{
    static const char *const endings[] = {".pgm", ".ppm", ".pnm", ".png", ".jpg", ".jpeg"};
    const char *ending = strrchr(name, '.');
    for (size_t i = 0; ending != NULL && i < WEIR_ARRAY_LEN(endings); i++) {
        if (strcasecmp(ending, endings[i]) == 0) {
            return true;
        }
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return false;
    }
    uint8_t head[16];
    ssize_t n = read(fd, head, sizeof head);
    (void)close(fd);
    return n > 0 && weir_image_sniff(head, (size_t)n) != WEIR_IMAGE_FORMAT_UNKNOWN;
}

static weir_status join(const char *folder, const char *name, char *out, size_t size,
                        struct weir_error *err)
{
    int len = snprintf(out, size, "%s/%s", folder, name);
    if (len < 0 || (size_t)len >= size) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%s: the path is too long", folder);
    }
    return WEIR_OK;
}

/** Names in a folder that are not hidden (base/path.h) and are of this kind (S_IFDIR, S_IFREG; links are
 *  followed), in bytewise order. */
static weir_status list_folder(const char *path, mode_t kind, struct name_list *out,
                               struct weir_error *err)
{
    DIR *dir = opendir(path);
    if (dir == NULL) {
        return weir_error_set_errno(err, errno, "%s", path);
    }
    weir_status status = WEIR_OK;
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(dir);
        if (entry == NULL) {
            status = errno == 0 ? WEIR_OK : weir_error_set_errno(err, errno, "%s", path);
            break;
        }
        struct stat info;
        if (weir_name_is_hidden(entry->d_name) ||
            fstatat(dirfd(dir), entry->d_name, &info, 0) != 0 || (info.st_mode & S_IFMT) != kind) {
            continue;
        }
        if (out->n >= WEIR_DATASET_MAX_SAMPLES) {
            status = weir_error_set(err, WEIR_ERR_LIMIT, "%s: more than %u names", path,
                                    WEIR_DATASET_MAX_SAMPLES);
            break;
        }
        if (name_list_add(out, entry->d_name) != WEIR_OK) {
            status = dataset_nomem(err);
            break;
        }
    }
    (void)closedir(dir);
    if (status == WEIR_OK && out->n > 1) {
        qsort(out->names, out->n, sizeof *out->names, compare_names);
    }
    return status;
}

/** Add the pictures of one class; *out_n says how many. */
static weir_status scan_class(struct weir_dataset *dataset, const char *name, size_t *out_n,
                              struct weir_error *err)
{
    char folder[PATH_MAX], path[PATH_MAX], relative[PATH_MAX];
    struct name_list found = {0};
    weir_status status;
    *out_n = 0;
    WEIR_TRY(join(dataset->root, name, folder, sizeof folder, err));
    WEIR_TRY_GOTO(list_folder(folder, S_IFREG, &found, err), status, free_names);
    for (size_t i = 0; i < found.n; i++) {
        WEIR_TRY_GOTO(join(folder, found.names[i], path, sizeof path, err), status, free_names);
        if (!is_picture(path, found.names[i])) {
            continue;
        }
        WEIR_TRY_GOTO(join(name, found.names[i], relative, sizeof relative, err), status,
                      free_names);
        if (name_list_add(&dataset->files, relative) != WEIR_OK) {
            status = dataset_nomem(err);
            goto free_names;
        }
        ++*out_n;
    }
free_names:
    name_list_fini(&found);
    return status;
}

static weir_status scan_root(struct weir_dataset *dataset, size_t *n_per_class,
                             struct weir_error *err)
{
    for (size_t i = 0; i < dataset->classes.n; i++) {
        WEIR_TRY(scan_class(dataset, dataset->classes.names[i], &n_per_class[i], err));
        if (dataset->files.n > WEIR_DATASET_MAX_SAMPLES) {
            return weir_error_set(err, WEIR_ERR_LIMIT, "%s: more than %u pictures", dataset->root,
                                  WEIR_DATASET_MAX_SAMPLES);
        }
    }
    if (dataset->files.n == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: no pictures; expected one sub-folder per class with PGM, PPM, "
                              "PNG or JPEG files",
                              dataset->root);
    }
    return WEIR_OK;
}

static weir_status fill_folder(struct weir_dataset *dataset, const char *path, size_t cache_bytes,
                               struct weir_error *err)
{
    dataset->root = strdup(path);
    if (dataset->root == NULL) {
        return dataset_nomem(err);
    }
    WEIR_TRY(list_folder(path, S_IFDIR, &dataset->classes, err));
    if (dataset->classes.n > WEIR_DATASET_MAX_CLASSES) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%s: more than %u classes", path,
                              WEIR_DATASET_MAX_CLASSES);
    }
    WEIR_AUTO(weir_auto_free)
    size_t *n_per_class = calloc(dataset->classes.n + 1, sizeof *n_per_class);
    if (n_per_class == NULL) {
        return dataset_nomem(err);
    }
    WEIR_TRY(scan_root(dataset, n_per_class, err));
    dataset->n_samples = dataset->files.n;
    WEIR_TRY(dataset_seal(dataset, cache_bytes, err));
    for (size_t c = 0, i = 0; c < dataset->classes.n; c++) {
        for (size_t k = 0; k < n_per_class[c]; k++) {
            dataset->labels[i++] = (int32_t)c;
        }
    }
    return WEIR_OK;
}

/** Find "<prefix>-images-idx3-ubyte" or with ".gz" in a folder. */
static bool find_idx(const char *folder, const char *prefix, const char *what, char out[PATH_MAX])
{
    static const char *const endings[] = {"", ".gz"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(endings); i++) {
        int len = snprintf(out, PATH_MAX, "%s/%s-%s-ubyte%s", folder, prefix, what, endings[i]);
        if (len > 0 && len < PATH_MAX && access(out, F_OK) == 0) {
            return true;
        }
    }
    return false;
}

weir_status weir_dataset_open(const char *path, const struct weir_dataset_options *options,
                              struct weir_dataset **out, struct weir_error *err)
{
    const char *split = options->split == NULL ? "train" : options->split;
    char images[PATH_MAX], labels[PATH_MAX];
    struct stat info;
    if (stat(path, &info) != 0) {
        return weir_error_set_errno(err, errno, "%s", path);
    }
    if (!S_ISDIR(info.st_mode)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: not a folder", path);
    }
    if (options->kind > WEIR_DATASET_IDX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: a folder is no %s", path,
                              options->kind == WEIR_DATASET_LIST ? "list of files" : "view");
    }
    const char *prefix = strcmp(split, "test") == 0 ? "t10k" : split;
    bool has_images = find_idx(path, prefix, "images-idx3", images);
    bool has_labels = find_idx(path, prefix, "labels-idx1", labels);
    if (options->kind == WEIR_DATASET_IDX ||
        (options->kind == WEIR_DATASET_AUTO && (has_images || has_labels))) {
        if (!has_images || !has_labels) {
            return weir_error_set(err, WEIR_ERR_NOT_FOUND, "%s: no %s-%s-ubyte or .gz in it", path,
                                  prefix, has_images ? "labels-idx1" : "images-idx3");
        }
        return weir_dataset_open_idx(images, labels, out, err);
    }
    struct weir_dataset *dataset = dataset_make(WEIR_DATASET_FOLDER);
    weir_status status = dataset == NULL ? dataset_nomem(err)
                                         : fill_folder(dataset, path, options->cache_bytes, err);
    if (status != WEIR_OK) {
        weir_dataset_close(dataset);
        return status;
    }
    *out = dataset;
    return WEIR_OK;
}

weir_status weir_dataset_open_idx(const char *images_path, const char *labels_path,
                                  struct weir_dataset **out, struct weir_error *err)
{
    struct weir_dataset *dataset = dataset_make(WEIR_DATASET_IDX);
    weir_status status =
        dataset == NULL ? dataset_nomem(err) : idx_load(dataset, images_path, labels_path, err);
    if (status != WEIR_OK) {
        weir_dataset_close(dataset);
        return status;
    }
    *out = dataset;
    return WEIR_OK;
}

static weir_status fill_list(struct weir_dataset *dataset, const struct weir_dataset_item *items,
                             size_t n_items, const char *const *class_names, size_t n_classes,
                             size_t cache_bytes, struct weir_error *err)
{
    dataset->n_samples = n_items;
    WEIR_TRY(dataset_seal(dataset, cache_bytes, err));
    for (size_t i = 0; i < n_classes; i++) {
        if (name_list_add(&dataset->classes, class_names[i]) != WEIR_OK) {
            return dataset_nomem(err);
        }
    }
    for (size_t i = 0; i < n_items; i++) {
        if (items[i].label < 0 || (size_t)items[i].label >= n_classes) {
            return weir_error_set(err, WEIR_ERR_INVALID, "%s: label %d, there are %zu classes",
                                  items[i].path, items[i].label, n_classes);
        }
        dataset->labels[i] = items[i].label;
        if (name_list_add(&dataset->files, items[i].path) != WEIR_OK) {
            return dataset_nomem(err);
        }
    }
    return WEIR_OK;
}

weir_status weir_dataset_open_list(const struct weir_dataset_item *items, size_t n_items,
                                   const char *const *class_names, size_t n_classes,
                                   size_t cache_bytes, struct weir_dataset **out,
                                   struct weir_error *err)
{
    if (n_items == 0 || n_items > WEIR_DATASET_MAX_SAMPLES ||
        n_classes > WEIR_DATASET_MAX_CLASSES) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "a dataset of %zu files in %zu classes: expected 1 to %u files",
                              n_items, n_classes, WEIR_DATASET_MAX_SAMPLES);
    }
    struct weir_dataset *dataset = dataset_make(WEIR_DATASET_LIST);
    weir_status status = dataset == NULL ? dataset_nomem(err)
                                         : fill_list(dataset, items, n_items, class_names,
                                                     n_classes, cache_bytes, err);
    if (status != WEIR_OK) {
        weir_dataset_close(dataset);
        return status;
    }
    *out = dataset;
    return WEIR_OK;
}

static weir_status fill_mirrored(struct weir_dataset *dataset, struct weir_dataset *base,
                                 struct weir_error *err)
{
    size_t n = base->n_samples, n_classes = base->classes.n;
    dataset->base = base;
    dataset->n_samples = 2 * n;
    WEIR_TRY(dataset_seal(dataset, 0, err));
    for (size_t i = 0; i < n; i++) {
        dataset->labels[i] = base->labels[i];
        dataset->labels[n + i] = base->labels[i] + (int32_t)n_classes;
    }
    for (size_t i = 0; i < 2 * n_classes; i++) {
        char name[NAME_MAX + sizeof WEIR_DATASET_MIRRORED_SUFFIX];
        (void)snprintf(name, sizeof name, "%s%s", base->classes.names[i % n_classes],
                       i < n_classes ? "" : WEIR_DATASET_MIRRORED_SUFFIX);
        if (name_list_add(&dataset->classes, name) != WEIR_OK) {
            return dataset_nomem(err);
        }
    }
    return WEIR_OK;
}

weir_status weir_dataset_open_mirrored(struct weir_dataset *base, struct weir_dataset **out,
                                       struct weir_error *err)
{
    if (base->n_samples > WEIR_DATASET_MAX_SAMPLES / 2 ||
        base->classes.n > WEIR_DATASET_MAX_CLASSES / 2) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "%zu pictures of %zu classes cannot be doubled by mirroring",
                              base->n_samples, base->classes.n);
    }
    struct weir_dataset *dataset = dataset_make(WEIR_DATASET_MIRRORED);
    weir_status status = dataset == NULL ? dataset_nomem(err) : fill_mirrored(dataset, base, err);
    if (status != WEIR_OK) {
        weir_dataset_close(dataset);
        return status;
    }
    *out = dataset;
    return WEIR_OK;
}

static weir_status fill_view(struct weir_dataset *dataset, struct weir_dataset *base,
                             struct weir_error *err)
{
    dataset->base = base;
    dataset->n_samples = base->n_samples;
    WEIR_TRY(dataset_seal(dataset, 0, err));
    memcpy(dataset->labels, base->labels, base->n_samples * sizeof *base->labels);
    for (size_t i = 0; i < base->classes.n; i++) {
        if (name_list_add(&dataset->classes, base->classes.names[i]) != WEIR_OK) {
            return dataset_nomem(err);
        }
    }
    return WEIR_OK;
}

weir_status weir_dataset_open_view(struct weir_dataset *base, weir_dataset_show_fn show,
                                   const void *context, struct weir_dataset **out,
                                   struct weir_error *err)
{
    struct weir_dataset *dataset = dataset_make(WEIR_DATASET_VIEW);
    weir_status status = dataset == NULL ? dataset_nomem(err) : fill_view(dataset, base, err);
    if (status != WEIR_OK) {
        weir_dataset_close(dataset);
        return status;
    }
    dataset->show = show;
    dataset->show_context = context;
    *out = dataset;
    return WEIR_OK;
}
