#include "base/buf.h"
#include "data/dataset_private.h"
#include "data/scenes_private.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t weir_dataset_n_samples(const struct weir_dataset *dataset)
{
    return dataset->n_samples;
}

size_t weir_dataset_n_classes(const struct weir_dataset *dataset)
{
    return dataset->classes.n;
}

const char *weir_dataset_class_name(const struct weir_dataset *dataset, size_t i_class)
{
    return i_class < dataset->classes.n ? dataset->classes.names[i_class] : NULL;
}

int32_t weir_dataset_label(const struct weir_dataset *dataset, size_t i_sample)
{
    return i_sample < dataset->n_samples ? dataset->labels[i_sample] : -1;
}

static const char *last_component(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

const char *weir_dataset_sample_name(const struct weir_dataset *dataset, size_t i_sample,
                                     char out[WEIR_SAMPLE_NAME_BYTES])
{
    if (i_sample >= dataset->n_samples) {
        out[0] = '\0';
    } else if (dataset->kind == WEIR_DATASET_MIRRORED) {
        size_t n = dataset->base->n_samples;
        (void)weir_dataset_sample_name(dataset->base, i_sample % n, out);
        size_t len = strlen(out);
        (void)snprintf(out + len, WEIR_SAMPLE_NAME_BYTES - len, "%s",
                       i_sample < n ? "" : WEIR_DATASET_MIRRORED_SUFFIX);
    } else if (dataset->kind == WEIR_DATASET_VIEW) {
        (void)weir_dataset_sample_name(dataset->base, i_sample, out);
    } else if (dataset->kind == WEIR_DATASET_SCENES) {
        (void)snprintf(out, WEIR_SAMPLE_NAME_BYTES, "scene %zu", i_sample);
    } else if (dataset->kind == WEIR_DATASET_IDX) {
        (void)snprintf(out, WEIR_SAMPLE_NAME_BYTES, "%s[%zu]",
                       last_component(dataset->files.names[0]), i_sample);
    } else {
        (void)snprintf(out, WEIR_SAMPLE_NAME_BYTES, "%s", dataset->files.names[i_sample]);
    }
    return out;
}

/** Path of a file of the dataset: root and name joined. @return LIMIT if too long. */
static weir_status path_of(const struct weir_dataset *dataset, size_t i_file, char *out,
                           size_t size, struct weir_error *err)
{
    const char *name = dataset->files.names[i_file];
    int len = dataset->root == NULL ? snprintf(out, size, "%s", name)
                                    : snprintf(out, size, "%s/%s", dataset->root, name);
    if (len < 0 || (size_t)len >= size) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%s: the path is too long", name);
    }
    return WEIR_OK;
}

static struct weir_image view_of(const struct weir_image *image)
{
    struct weir_image view = *image;
    view.is_view = true;
    return view;
}

/** Give `image` to the cache if there is room and nobody was faster; it becomes a view then. */
static void offer_to_cache(struct weir_dataset *dataset, size_t i_sample, struct weir_image *image)
{
    size_t bytes = (size_t)image->width * (size_t)image->height * (size_t)image->channels;
    bytes += sizeof *image;
    if (atomic_fetch_add(&dataset->cache_used, bytes) + bytes > dataset->cache_bytes) {
        atomic_fetch_sub(&dataset->cache_used, bytes);
        return;
    }
    struct weir_image *kept = malloc(sizeof *kept), *expected = NULL;
    if (kept != NULL) {
        *kept = *image;
        if (atomic_compare_exchange_strong(&dataset->cache[i_sample], &expected, kept)) {
            image->is_view = true;
            return;
        }
        free(kept);
    }
    atomic_fetch_sub(&dataset->cache_used, bytes);
}

/** A sample of a view. */
static weir_status read_shown(const struct weir_dataset *dataset, size_t i_sample,
                              struct weir_image *out, struct weir_error *err)
{
    struct weir_image image;
    WEIR_TRY(weir_dataset_read(dataset->base, i_sample, &image, err));
    weir_status status = dataset->show(dataset->show_context, i_sample, &image, err);
    if (status != WEIR_OK) {
        weir_image_fini(&image);
        return status;
    }
    *out = image;
    return WEIR_OK;
}

/** A sample of a mirrored view. */
static weir_status read_mirrored(const struct weir_dataset *dataset, size_t i_sample,
                                 struct weir_image *out, struct weir_error *err)
{
    size_t n = dataset->base->n_samples;
    if (i_sample < n) {
        return weir_dataset_read(dataset->base, i_sample, out, err);
    }
    struct weir_image image, mirrored;
    WEIR_TRY(weir_dataset_read(dataset->base, i_sample - n, &image, err));
    weir_status status = weir_image_mirror(&image, &mirrored, err);
    weir_image_fini(&image);
    WEIR_TRY(status);
    *out = mirrored;
    return WEIR_OK;
}

/** Read from a file, or composed. */
static weir_status make_picture(const struct weir_dataset *dataset, size_t i_sample,
                                struct weir_image *out, struct weir_error *err)
{
    char path[PATH_MAX];
    if (dataset->kind == WEIR_DATASET_SCENES) {
        return scene_paint(dataset->scenes, i_sample, out, err);
    }
    WEIR_TRY(path_of(dataset, i_sample, path, sizeof path, err));
    return weir_image_load(path, out, err);
}

weir_status weir_dataset_read(struct weir_dataset *dataset, size_t i_sample, struct weir_image *out,
                              struct weir_error *err)
{
    if (i_sample >= dataset->n_samples) {
        return weir_error_set(err, WEIR_ERR_INVALID, "sample %zu of a dataset of %zu", i_sample,
                              dataset->n_samples);
    }
    if (dataset->kind == WEIR_DATASET_MIRRORED) {
        return read_mirrored(dataset, i_sample, out, err);
    }
    if (dataset->kind == WEIR_DATASET_VIEW) {
        return read_shown(dataset, i_sample, out, err);
    }
    if (dataset->kind == WEIR_DATASET_IDX) {
        size_t bytes = (size_t)dataset->idx_width * (size_t)dataset->idx_height;
        *out = (struct weir_image){dataset->idx_width, dataset->idx_height, 1,
                                   dataset->idx_pixels + i_sample * bytes, true};
        return WEIR_OK;
    }
    if (dataset->cache != NULL) {
        const struct weir_image *cached = atomic_load(&dataset->cache[i_sample]);
        if (cached != NULL) {
            *out = view_of(cached);
            return WEIR_OK;
        }
    }
    struct weir_image image;
    WEIR_TRY(make_picture(dataset, i_sample, &image, err));
    if (dataset->cache != NULL) {
        offer_to_cache(dataset, i_sample, &image);
    }
    *out = image;
    return WEIR_OK;
}

weir_status weir_dataset_verify(struct weir_dataset *dataset, weir_dataset_damage_fn on_damage,
                                void *context, size_t *out_n_damaged, struct weir_error *err)
{
    size_t n_damaged = 0;
    for (size_t i = 0; i < dataset->n_samples; i++) {
        struct weir_image image;
        struct weir_error found;
        weir_status status = weir_dataset_read(dataset, i, &image, &found);
        if (status == WEIR_ERR_NOMEM) {
            return dataset_nomem(err);
        }
        if (status == WEIR_OK) {
            weir_image_fini(&image);
            continue;
        }
        n_damaged++;
        if (on_damage != NULL) {
            on_damage(context, i, &found);
        }
    }
    *out_n_damaged = n_damaged;
    return WEIR_OK;
}

/** A file and the name it has in the digest. */
struct entry {
    size_t i_file;
    const char *name;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x->i_file > y->i_file) - (x->i_file < y->i_file);
}

static weir_status write_lines(const struct weir_dataset *dataset, const struct entry *entries,
                               struct weir_buf *text, struct weir_error *err)
{
    for (size_t i = 0; i < dataset->files.n; i++) {
        char path[PATH_MAX], hash[WEIR_SHA256_TEXT_BYTES];
        uint64_t n_bytes;
        WEIR_TRY(path_of(dataset, entries[i].i_file, path, sizeof path, err));
        WEIR_TRY(weir_file_sha256(path, hash, &n_bytes, err));
        if (weir_buf_printf(text, "%s  %s\n", hash, entries[i].name) != WEIR_OK) {
            return weir_error_set(err, text->status, "the list of files is too long");
        }
    }
    return WEIR_OK;
}

weir_status weir_dataset_digest(const struct weir_dataset *dataset,
                                char out[WEIR_SHA256_TEXT_BYTES], struct weir_error *err)
{
    if (dataset->base != NULL) {
        return weir_dataset_digest(dataset->base, out, err);
    }
    if (dataset->kind == WEIR_DATASET_SCENES) {
        return weir_dataset_digest(dataset->scenes->faces, out, err);
    }
    size_t n = dataset->files.n;
    WEIR_AUTO(weir_auto_free) struct entry *entries = malloc(n * sizeof *entries);
    if (entries == NULL) {
        return dataset_nomem(err);
    }
    for (size_t i = 0; i < n; i++) {
        const char *name = dataset->files.names[i];
        entries[i].i_file = i;
        entries[i].name = dataset->kind == WEIR_DATASET_FOLDER ? name : last_component(name);
    }
    qsort(entries, n, sizeof *entries, compare_entries);
    WEIR_AUTO(weir_buf_fini) struct weir_buf text;
    weir_buf_init(&text, (size_t)4 << 30);
    WEIR_TRY(write_lines(dataset, entries, &text, err));
    weir_sha256(text.data, text.len, out);
    return WEIR_OK;
}
