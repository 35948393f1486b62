#include "predict/photo_set.h"

#include "base/log.h"
#include "data/image.h"
#include "find/finder.h"
#include "find/photo.h"
#include "predict/intake.h"
#include "predict/stage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH 8

/** A photo that is to be embedded. */
struct photo {
    const char *person, *file, *digest; /**< Borrowed from the manifest. */
    int32_t i_person;
};

struct embedder {
    const struct embedder_config *config;
    struct model *model;   /**< Its own, beside the one in service. */
    struct finder *finder; /**< Likewise; NULL: none is asked for. */
    size_t dim;
    struct embedding_store store;
    /* Photos that lie in the model's input. */
    struct photo waiting[BATCH];
    size_t n_waiting;
};

/** One set in the making. */
struct adding {
    struct embedder *embedder;
    const struct photo_source *source;
    struct photo_set *set;
};

static void skip(const struct adding *adding, const struct photo *photo, const char *reason)
{
    weir_log(WEIR_LOG_WARN, "photo_skipped", WEIR_KV_STR("of", adding->source->what),
             WEIR_KV_STR("person", photo->person), WEIR_KV_STR("file", photo->file),
             WEIR_KV_STR("reason", reason));
    adding->set->n_damaged++;
}

/* ---- manifest -------------------------------------------------------------------------------- */

static bool is_path_part(const char *text)
{
    return text != NULL && text[0] != '\0' && text[0] != '.' && strchr(text, '/') == NULL;
}

static bool is_digest(const char *text)
{
    return text != NULL && strlen(text) == EMBEDDING_DIGEST_LEN &&
           strspn(text, "0123456789abcdef") == EMBEDDING_DIGEST_LEN;
}

static int by_person(const void *a, const void *b)
{
    const struct photo *x = a, *y = b;
    int order = strcmp(x->person, y->person);
    return order != 0 ? order : strcmp(x->file, y->file);
}

/* The manifest's photos, by person and file. */
static weir_status read_manifest(const struct adding *adding, struct photo **out, size_t *out_n,
                                 struct weir_error *err)
{
    const json_t *files = json_object_get(adding->source->manifest, "files"), *item;
    size_t n = json_array_size(files), n_usable = 0, i;
    if (!json_is_array(files) || n > PHOTO_SET_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: manifest: $.files: expected an array of at most %d photos",
                              adding->source->what, PHOTO_SET_MAX);
    }
    struct photo *photos = weir_xalloc((n + 1) * sizeof *photos);
    json_array_foreach(files, i, item)
    {
        struct photo photo = {.person = json_string_value(json_object_get(item, "class")),
                              .file = json_string_value(json_object_get(item, "file")),
                              .digest = json_string_value(json_object_get(item, "sha256"))};
        if (is_path_part(photo.person) && is_path_part(photo.file) && is_digest(photo.digest)) {
            photos[n_usable++] = photo;
            continue;
        }
        weir_log(WEIR_LOG_WARN, "photo_skipped", WEIR_KV_STR("of", adding->source->what),
                 WEIR_KV_INT("entry", (int64_t)i),
                 WEIR_KV_STR("reason", "no person, no file name or no digest in the manifest"));
        adding->set->n_damaged++;
    }
    qsort(photos, n_usable, sizeof *photos, by_person);
    *out = photos;
    *out_n = n_usable;
    return WEIR_OK;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool has_person(const struct photo_set *set, const char *person)
{
    return set != NULL && set->n_persons > 0 &&
           bsearch(&person, set->persons, set->n_persons, sizeof *set->persons, by_text) != NULL;
}

/* Number the people; photos of those who are in `others` are left out. Returns how many stay. */
static size_t name_persons(struct photo_set *set, const struct photo_set *others,
                           struct photo *photos, size_t n)
{
    size_t n_kept = 0;
    const char *last = NULL;
    bool is_known = false;
    set->persons = weir_xalloc((n + 1) * sizeof *set->persons);
    for (size_t i = 0; i < n; i++) {
        if (last == NULL || strcmp(photos[i].person, last) != 0) {
            last = photos[i].person;
            is_known = has_person(others, last);
            set->n_known += is_known;
            if (!is_known) {
                set->persons[set->n_persons++] = weir_xstrdup(last);
            }
        }
        if (!is_known) {
            photos[n_kept] = photos[i];
            photos[n_kept++].i_person = (int32_t)set->n_persons - 1;
        }
    }
    return n_kept;
}

/* ---- photos ---------------------------------------------------------------------------------- */

static weir_status decode_if_same(const char *path, const struct photo *photo,
                                  struct weir_image *out, struct weir_error *err)
{
    struct weir_arena arena;
    char *data, digest[WEIR_SHA256_TEXT_BYTES];
    size_t len;
    weir_arena_init(&arena, FRAME_MAX_BYTES + ((size_t)1 << 20));
    weir_status status = weir_file_read(path, FRAME_MAX_BYTES, &arena, &data, &len, err);
    if (status == WEIR_OK) {
        weir_sha256(data, len, digest);
        status = strcmp(digest, photo->digest) == 0
                     ? weir_image_decode(data, len, out, err)
                     : weir_error_set(err, WEIR_ERR_NOT_FOUND, "%s is another picture now", path);
    }
    weir_arena_fini(&arena);
    return status;
}

/* From the folder, else from the blob store. */
static weir_status get_photo(const struct adding *adding, const struct photo *photo,
                             struct weir_image *out, struct weir_error *err)
{
    char path[4400];
    const struct embedder_config *config = adding->embedder->config;
    weir_status status = WEIR_ERR_NOT_FOUND;
    if (adding->source->photo_dir != NULL) {
        (void)snprintf(path, sizeof path, "%s/%s/%s", adding->source->photo_dir, photo->person,
                       photo->file);
        status = decode_if_same(path, photo, out, err);
    }
    bool is_elsewhere = status == WEIR_ERR_NOT_FOUND || status == WEIR_ERR_DENIED ||
                        status == WEIR_ERR_IO || status == WEIR_ERR_INVALID;
    if (!is_elsewhere || config->fetch == NULL) {
        return status;
    }
    (void)snprintf(path, sizeof path, "%s/photo-%s", config->cache_dir, photo->digest);
    WEIR_TRY(config->fetch(config->context, photo->digest, path, err));
    status = decode_if_same(path, photo, out, err);
    (void)unlink(path);
    return status;
}

static void add_vector(const struct adding *adding, const struct photo *photo, const float *vector)
{
    struct photo_set *set = adding->set;
    size_t dim = adding->embedder->dim;
    double norm = match_cosine(vector, vector, dim);
    if (!(fabs(norm - 1) < 0.01)) {
        skip(adding, photo, "its embedding is no unit vector");
        return;
    }
    memmove(set->vectors + set->n * dim, vector, dim * sizeof(float));
    set->digests[set->n] = photo->digest;
    set->owners[set->n++] = photo->i_person;
}

static weir_status embed_waiting(const struct adding *adding, struct weir_error *err)
{
    struct embedder *embedder = adding->embedder;
    if (embedder->n_waiting == 0) {
        return WEIR_OK;
    }
    const float *vectors;
    /* The whole batch, also at the end: a vector does not depend on how many photos came with it. */
    weir_status status = model_run(embedder->model, embedder->model->batch, &vectors, err);
    if (status != WEIR_OK) {
        return weir_error_prefix(err, "embedding the %s: ", adding->source->what);
    }
    for (size_t i = 0; i < embedder->n_waiting; i++) {
        add_vector(adding, &embedder->waiting[i], vectors + i * embedder->dim);
    }
    adding->set->n_embedded += embedder->n_waiting;
    embedder->n_waiting = 0;
    return WEIR_OK;
}

static bool is_worth_another_try(weir_status status)
{
    return status == WEIR_ERR_UNAVAILABLE || status == WEIR_ERR_TIMEOUT ||
           status == WEIR_ERR_PEER || status == WEIR_ERR_CANCELLED || status == WEIR_ERR_NOSPACE ||
           status == WEIR_ERR_NOMEM;
}

/* The largest face of the photo, as the stages would cut it; in place of the photo. */
static weir_status cut_face(const struct adding *adding, struct weir_image *in_out,
                            struct weir_error *err)
{
    const struct embedder *embedder = adding->embedder;
    struct weir_detection largest = {0};
    const struct weir_stage_align *align =
        embedder->finder != NULL
            ? weir_stages_options(embedder->config->chain, &weir_stage_align_kind)
            : NULL;
    const struct weir_view view = weir_view_of(in_out);
    struct weir_image cut = {0};
    struct weir_face face;
    bool is_found = false;
    if (align == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(photo_find(embedder->finder, in_out, &largest, &is_found, err));
    adding->set->n_whole += !is_found;
    if (is_found) {
        WEIR_TRY(stage_align_cut(align, embedder->model, &view, &largest, &cut, &face, err));
        weir_image_fini(in_out);
        *in_out = cut;
    }
    return WEIR_OK;
}

/* Frees the photo. */
static weir_status put_photo(const struct adding *adding, const struct weir_image *image,
                             struct weir_error *err)
{
    struct embedder *embedder = adding->embedder;
    WEIR_AUTO(weir_image_fini)
    struct weir_image photo = *image;
    WEIR_TRY(cut_face(adding, &photo, err));
    return model_put(embedder->model, embedder->n_waiting, &photo, NULL, err);
}

static weir_status add_photo(const struct adding *adding, const struct photo *photo,
                             struct weir_error *err)
{
    struct weir_image image;
    struct embedder *embedder = adding->embedder;
    float *vector = adding->set->vectors + adding->set->n * embedder->dim;
    if (embedding_store_find(&embedder->store, photo->digest, vector)) {
        add_vector(adding, photo, vector);
        return WEIR_OK;
    }
    weir_status status = get_photo(adding, photo, &image, err);
    if (status == WEIR_OK) {
        status = put_photo(adding, &image, err);
    }
    if (status == WEIR_OK) {
        embedder->waiting[embedder->n_waiting++] = *photo;
        return embedder->n_waiting == embedder->model->batch ? embed_waiting(adding, err) : WEIR_OK;
    }
    if (is_worth_another_try(status)) {
        return status;
    }
    skip(adding, photo, err->message);
    return WEIR_OK;
}

static weir_status add_photos(const struct adding *adding, const struct photo *photos, size_t n,
                              struct weir_error *err)
{
    const atomic_bool *is_stopping = adding->embedder->config->is_stopping;
    for (size_t i = 0; i < n; i++) {
        if (is_stopping != NULL && atomic_load(is_stopping)) {
            return weir_error_set(err, WEIR_ERR_CANCELLED, "stopping");
        }
        WEIR_TRY(add_photo(adding, &photos[i], err));
    }
    return embed_waiting(adding, err);
}

weir_status embedder_add(struct embedder *embedder, const struct photo_source *source,
                         const struct photo_set *others, struct photo_set *out,
                         struct weir_error *err)
{
    struct photo_set set = {0};
    const struct adding adding = {embedder, source, &set};
    struct photo *photos = NULL;
    size_t n = 0;
    WEIR_TRY(read_manifest(&adding, &photos, &n, err));
    n = name_persons(&set, others, photos, n);
    set.digests = weir_xalloc((n + 1) * sizeof *set.digests);
    set.owners = weir_xalloc((n + 1) * sizeof *set.owners);
    set.vectors = malloc((n + BATCH) * embedder->dim * sizeof(float));
    embedder->n_waiting = 0; /* An earlier set may have ended before its last batch. */
    weir_status status = set.vectors != NULL ? add_photos(&adding, photos, n, err)
                                             : weir_error_set(err, WEIR_ERR_NOMEM,
                                                              "%s: out of memory", source->what);
    free(photos);
    if (status != WEIR_OK) {
        photo_set_fini(&set);
        return status;
    }
    *out = set;
    return WEIR_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

weir_status embedder_save(const struct embedder *embedder, const struct photo_set *a,
                          const struct photo_set *b, struct weir_error *err)
{
    size_t n = a->n + b->n, dim = embedder->dim;
    if (a->n_embedded + b->n_embedded == 0 && embedder->store.n == n) {
        return WEIR_OK;
    }
    const char **digests = weir_xalloc((n + 1) * sizeof *digests);
    float *vectors = malloc((n + 1) * dim * sizeof *vectors);
    weir_status status = WEIR_ERR_NOMEM;
    if (vectors != NULL) {
        for (size_t i = 0; i < n; i++) {
            const struct photo_set *set = i < a->n ? a : b;
            size_t k = i < a->n ? i : i - a->n;
            digests[i] = set->digests[k];
            memcpy(vectors + i * dim, set->vectors + k * dim, dim * sizeof *vectors);
        }
        status = embedding_store_save(embedder->config->store_path, dim, digests, vectors, n, err);
    } else {
        weir_error_set(err, status, "%s: out of memory", embedder->config->store_path);
    }
    free(vectors);
    free(digests);
    return status;
}

weir_status embedder_open(const struct embedder_config *config, struct embedder **out,
                          struct weir_error *err)
{
    struct model *model;
    struct finder *finder = NULL;
    struct finder_wish wish;
    WEIR_TRY(model_load(config->model_path, &config->model, BATCH, &model, err));
    if (config->detector_path != NULL && finder_wish_of(config->chain, &wish)) {
        weir_status status =
            finder_load(config->detector_path, &config->detector, &wish, &finder, err);
        if (status != WEIR_OK) {
            model_unref(model);
            return status;
        }
    }
    struct embedder *embedder = weir_xalloc(sizeof *embedder);
    *embedder =
        (struct embedder){.config = config, .model = model, .finder = finder, .dim = model->dim};
    embedding_store_load(&embedder->store, config->store_path, embedder->dim);
    *out = embedder;
    return WEIR_OK;
}

void embedder_close(struct embedder *embedder)
{
    if (embedder == NULL) {
        return;
    }
    embedding_store_fini(&embedder->store);
    finder_unref(embedder->finder);
    model_unref(embedder->model);
    free(embedder);
}

size_t embedder_dim(const struct embedder *embedder)
{
    return embedder->dim;
}

struct templates photo_set_templates(const struct photo_set *set, size_t dim)
{
    return (struct templates){set->vectors, set->owners, set->n, dim};
}

void photo_set_fini(struct photo_set *set)
{
    for (size_t i = 0; i < set->n_persons; i++) {
        free(set->persons[i]);
    }
    free(set->persons);
    free(set->digests);
    free(set->owners);
    free(set->vectors);
    *set = (struct photo_set){0};
}
