#include "predict/gallery.h"

#include "base/log.h"
#include "data/image.h"
#include "nn/net_embed.h"
#include "nn/net_file.h"
#include "predict/embedding_store.h"
#include "predict/intake.h"
#include "predict/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH 8

/** A photo that is to be a template. */
struct photo {
    const char *person, *file, *digest; /**< Borrowed from the manifest. */
    int32_t i_person;
};

struct builder {
    const struct gallery_request *request;
    struct weir_net *net; /**< For BATCH pictures. */
    struct weir_input input;
    size_t dim, n_pixels;
    struct embedding_store store;
    /* Templates so far; all sized for every photo. */
    struct photo *photos;
    float *vectors;
    size_t n;
    /* Photos whose tensors lie in the net's input. */
    struct photo waiting[BATCH];
    float *waiting_vectors; /**< BATCH x dim. */
    size_t n_waiting;
    struct gallery *gallery;
};

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

/* The manifest's photos, by person and file; person indices are given in that order. */
static weir_status read_manifest(struct builder *builder, struct photo **out, size_t *out_n,
                                 struct weir_error *err)
{
    const json_t *files = json_object_get(builder->request->manifest, "files"), *item;
    size_t n = json_array_size(files), i;
    if (!json_is_array(files) || n > GALLERY_MAX_PHOTOS) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "gallery manifest: $.files: expected an array of at most %d photos",
                              GALLERY_MAX_PHOTOS);
    }
    struct photo *photos = weir_xalloc((n + 1) * sizeof *photos);
    size_t n_usable = 0;
    json_array_foreach(files, i, item)
    {
        struct photo photo = {.person = json_string_value(json_object_get(item, "class")),
                              .file = json_string_value(json_object_get(item, "file")),
                              .digest = json_string_value(json_object_get(item, "sha256"))};
        if (is_path_part(photo.person) && is_path_part(photo.file) && is_digest(photo.digest)) {
            photos[n_usable++] = photo;
            continue;
        }
        weir_log(WEIR_LOG_WARN, "gallery_photo_skipped", WEIR_KV_INT("entry", (int64_t)i),
                 WEIR_KV_STR("reason", "no person, no file name or no digest in the manifest"));
        builder->gallery->n_damaged++;
    }
    n = n_usable;
    qsort(photos, n, sizeof *photos, by_person);
    *out = photos;
    *out_n = n;
    return WEIR_OK;
}

static void name_persons(struct gallery *gallery, struct photo *photos, size_t n)
{
    gallery->persons = weir_xalloc((n + 1) * sizeof *gallery->persons);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(photos[i].person, photos[i - 1].person) != 0) {
            gallery->persons[gallery->n_persons++] = weir_xstrdup(photos[i].person);
        }
        photos[i].i_person = (int32_t)gallery->n_persons - 1;
    }
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
static weir_status get_photo(const struct builder *builder, const struct photo *photo,
                             struct weir_image *out, struct weir_error *err)
{
    char path[4400];
    const struct gallery_request *request = builder->request;
    weir_status status = WEIR_ERR_NOT_FOUND;
    if (request->photo_dir != NULL) {
        (void)snprintf(path, sizeof path, "%s/%s/%s", request->photo_dir, photo->person,
                       photo->file);
        status = decode_if_same(path, photo, out, err);
    }
    bool is_elsewhere = status == WEIR_ERR_NOT_FOUND || status == WEIR_ERR_DENIED ||
                        status == WEIR_ERR_IO || status == WEIR_ERR_INVALID;
    if (!is_elsewhere || request->fetch == NULL) {
        return status;
    }
    (void)snprintf(path, sizeof path, "%s/photo-%s", request->cache_dir, photo->digest);
    WEIR_TRY(request->fetch(request->context, photo->digest, path, err));
    status = decode_if_same(path, photo, out, err);
    (void)unlink(path);
    return status;
}

static void add_template(struct builder *builder, const struct photo *photo, const float *vector)
{
    double norm = match_cosine(vector, vector, builder->dim);
    if (!(fabs(norm - 1) < 0.01)) {
        weir_log(WEIR_LOG_WARN, "gallery_photo_skipped", WEIR_KV_STR("person", photo->person),
                 WEIR_KV_STR("file", photo->file),
                 WEIR_KV_STR("reason", "its embedding is no unit vector"));
        builder->gallery->n_damaged++;
        return;
    }
    memcpy(builder->vectors + builder->n * builder->dim, vector, builder->dim * sizeof(float));
    builder->photos[builder->n++] = *photo;
}

static weir_status embed_waiting(struct builder *builder, struct weir_error *err)
{
    if (builder->n_waiting == 0) {
        return WEIR_OK;
    }
    const struct weir_shape shape = {builder->input.c, builder->input.h, builder->input.w};
    weir_status status = weir_net_embed(builder->net, &shape, (int32_t)builder->n_waiting,
                                        builder->dim, builder->waiting_vectors);
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "embedding the gallery: %s", weir_status_text(status));
    }
    for (size_t i = 0; i < builder->n_waiting; i++) {
        add_template(builder, &builder->waiting[i], builder->waiting_vectors + i * builder->dim);
    }
    builder->gallery->n_embedded += builder->n_waiting;
    builder->n_waiting = 0;
    return WEIR_OK;
}

static weir_status add_photo(struct builder *builder, const struct photo *photo,
                             struct weir_error *err)
{
    struct weir_image image;
    float *vector = builder->vectors + builder->n * builder->dim;
    if (embedding_store_find(&builder->store, photo->digest, vector)) {
        add_template(builder, photo, vector);
        return WEIR_OK;
    }
    weir_status status = get_photo(builder, photo, &image, err);
    if (status == WEIR_OK) {
        float *tensor = weir_net_input(builder->net) + builder->n_waiting * builder->n_pixels;
        status = weir_image_to_tensor(&image, &builder->input, tensor, err);
        weir_image_fini(&image);
    }
    if (status == WEIR_OK) {
        builder->waiting[builder->n_waiting++] = *photo;
        return builder->n_waiting == BATCH ? embed_waiting(builder, err) : WEIR_OK;
    }
    if (status == WEIR_ERR_UNAVAILABLE || status == WEIR_ERR_TIMEOUT || status == WEIR_ERR_PEER ||
        status == WEIR_ERR_CANCELLED || status == WEIR_ERR_NOSPACE || status == WEIR_ERR_NOMEM) {
        return status; /* A later try may get it. */
    }
    weir_log(WEIR_LOG_WARN, "gallery_photo_skipped", WEIR_KV_STR("person", photo->person),
             WEIR_KV_STR("file", photo->file), WEIR_KV_STR("reason", err->message));
    builder->gallery->n_damaged++;
    return WEIR_OK;
}

static weir_status add_photos(struct builder *builder, const struct photo *photos, size_t n,
                              struct weir_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (builder->request->is_stopping != NULL && atomic_load(builder->request->is_stopping)) {
            return weir_error_set(err, WEIR_ERR_CANCELLED, "stopping");
        }
        WEIR_TRY(add_photo(builder, &photos[i], err));
    }
    return embed_waiting(builder, err);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static weir_status save_store(const struct builder *builder, struct weir_error *err)
{
    if (builder->gallery->n_embedded == 0 && builder->store.n == builder->n) {
        return WEIR_OK;
    }
    const char **digests = weir_xalloc((builder->n + 1) * sizeof *digests);
    for (size_t i = 0; i < builder->n; i++) {
        digests[i] = builder->photos[i].digest;
    }
    weir_status status = embedding_store_save(builder->request->store_path, builder->dim, digests,
                                              builder->vectors, builder->n, err);
    free(digests);
    return status;
}

static weir_status finish(struct builder *builder, struct weir_error *err)
{
    struct gallery *gallery = builder->gallery;
    int32_t *persons = weir_xalloc((builder->n + 1) * sizeof *persons);
    for (size_t i = 0; i < builder->n; i++) {
        persons[i] = builder->photos[i].i_person;
    }
    gallery->templates = (struct templates){builder->vectors, persons, builder->n, builder->dim};
    builder->vectors = NULL;
    return calibrate(&gallery->templates, builder->request->false_accept_rate,
                     &gallery->calibration, err);
}

static weir_status build(struct builder *builder, struct weir_error *err)
{
    struct photo *photos = NULL;
    size_t n = 0;
    WEIR_TRY(read_manifest(builder, &photos, &n, err));
    name_persons(builder->gallery, photos, n);
    builder->photos = weir_xalloc((n + 1) * sizeof *builder->photos);
    builder->vectors = malloc((n + BATCH) * builder->dim * sizeof(float));
    weir_status status = builder->vectors != NULL
                             ? add_photos(builder, photos, n, err)
                             : weir_error_set(err, WEIR_ERR_NOMEM, "gallery: out of memory");
    if (status == WEIR_OK) {
        status = save_store(builder, err);
    }
    if (status == WEIR_OK) {
        status = finish(builder, err);
    }
    free(builder->vectors);
    free(builder->photos);
    free(photos);
    return status;
}

static weir_status open_net(struct builder *builder, struct weir_error *err)
{
    struct weir_net_file *file;
    const struct weir_net_config config = {.batch = BATCH, .n_threads = 1};
    WEIR_TRY(weir_net_file_load(builder->request->model_path, &config, &builder->net, &file, err));
    struct weir_shape out = weir_graph_output_shape(weir_net_file_graph(file));
    builder->input = model_data_input(&weir_net_file_info(file)->input);
    builder->dim = (size_t)out.c * (size_t)out.h * (size_t)out.w;
    builder->n_pixels =
        (size_t)builder->input.c * (size_t)builder->input.h * (size_t)builder->input.w;
    builder->waiting_vectors = weir_xalloc(BATCH * builder->dim * sizeof(float));
    weir_net_file_close(file);
    return WEIR_OK;
}

weir_status gallery_build(const struct gallery_request *request, struct gallery **out,
                          struct weir_error *err)
{
    struct builder builder = {.request = request};
    WEIR_TRY(open_net(&builder, err));
    builder.gallery = weir_xalloc(sizeof *builder.gallery);
    *builder.gallery = (struct gallery){.version = request->version,
                                        .blob = weir_xstrdup(request->blob),
                                        .rate = request->false_accept_rate};
    atomic_init(&builder.gallery->n_refs, 1);
    embedding_store_load(&builder.store, request->store_path, builder.dim);
    weir_status status = build(&builder, err);
    embedding_store_fini(&builder.store);
    free(builder.waiting_vectors);
    weir_net_destroy(builder.net);
    if (status != WEIR_OK) {
        gallery_unref(builder.gallery);
        return status;
    }
    *out = builder.gallery;
    return WEIR_OK;
}

struct gallery *gallery_ref(struct gallery *gallery)
{
    atomic_fetch_add(&gallery->n_refs, 1);
    return gallery;
}

void gallery_unref(struct gallery *gallery)
{
    if (gallery == NULL || atomic_fetch_sub(&gallery->n_refs, 1) > 1) {
        return;
    }
    for (size_t i = 0; i < gallery->n_persons; i++) {
        free(gallery->persons[i]);
    }
    free(gallery->persons);
    free((void *)(uintptr_t)gallery->templates.vectors);
    free((void *)(uintptr_t)gallery->templates.persons);
    free(gallery->blob);
    free(gallery);
}
