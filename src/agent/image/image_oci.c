#include "agent/image/image_oci.h"

#include "base/fd.h"
#include "base/file.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define JSON_MAX_BYTES ((size_t)4 << 20)
#define INDEX_DEPTH    3
#define FD_PATH_BYTES  40

struct image {
    int layout_fd, root_fd;
    struct image_bounds *bounds;
    struct weir_arena *arena;
    struct weir_error *err;
};

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

static weir_status invalid(struct image *image, const char *what)
{
    return weir_error_set(image->err, WEIR_ERR_CORRUPT, "not a whole OCI image: %s", what);
}

/* The machine's processor by its name in images. */
static const char *architecture(void)
{
    static const char *const names[][2] = {{"x86_64", "amd64"}, {"aarch64", "arm64"}};
    static struct utsname name;
    (void)uname(&name);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(names); i++) {
        if (strcmp(name.machine, names[i][0]) == 0) {
            return names[i][1];
        }
    }
    return name.machine;
}

/* ---- blobs of the layout ----------------------------------------------------------------------- */

static const char *path_of_fd(int fd, char out[FD_PATH_BYTES])
{
    (void)snprintf(out, FD_PATH_BYTES, "/proc/self/fd/%d", fd);
    return out;
}

/* A blob that has its digest; links in the layout lead nowhere else. */
static weir_status open_blob(struct image *image, const char *digest, int *out_fd)
{
    static const char prefix[] = "sha256:";
    char path[FD_PATH_BYTES], actual[WEIR_SHA256_TEXT_BYTES];
    const char *hex = digest + sizeof prefix - 1;
    if (strncmp(digest, prefix, sizeof prefix - 1) != 0 || strlen(hex) != 64 ||
        strspn(hex, "0123456789abcdef") != 64) {
        return weir_error_set(image->err, WEIR_ERR_UNSUPPORTED,
                              "the image names a blob \"%.80s\": expected sha256:…", digest);
    }
    int fd =
        image_open_below(image->layout_fd, weir_arena_printf(image->arena, "blobs/sha256/%s", hex),
                         O_RDONLY | O_NONBLOCK); /* a FIFO in its place is seen below */
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        if (fd >= 0) {
            close(fd);
        }
        return weir_error_set(image->err, WEIR_ERR_CORRUPT,
                              "not a whole OCI image: its blob %s is not there", digest);
    }
    weir_status status = weir_file_sha256(path_of_fd(fd, path), actual, NULL, image->err);
    if (status == WEIR_OK && strcmp(actual, hex) != 0) {
        status = weir_error_set(image->err, WEIR_ERR_CORRUPT,
                                "the image is damaged: its blob %s has other bytes", digest);
    }
    if (status != WEIR_OK) {
        close(fd);
        return status;
    }
    *out_fd = fd;
    return WEIR_OK;
}

static weir_status load_fd(struct image *image, int fd, json_t **out)
{
    char path[FD_PATH_BYTES];
    weir_status status = weir_json_load(path_of_fd(fd, path), JSON_MAX_BYTES, out, image->err);
    close(fd);
    return status;
}

static weir_status load_blob(struct image *image, const char *digest, json_t **out)
{
    int fd = -1;
    WEIR_TRY(open_blob(image, digest, &fd));
    return load_fd(image, fd, out);
}

/* ---- index, manifest, configuration ---------------------------------------------------------- */

static bool is_for_here(const json_t *descriptor)
{
    const json_t *platform = json_object_get(descriptor, "platform");
    return platform == NULL || (strcmp(text_of(platform, "architecture"), architecture()) == 0 &&
                                strcmp(text_of(platform, "os"), "linux") == 0);
}

/* The manifest of an index, which may name another index. Takes `index`. */
static weir_status find_manifest(struct image *image, json_t *index, char **out_digest,
                                 json_t **out)
{
    for (int depth = 0; depth < INDEX_DEPTH; depth++) {
        size_t i;
        json_t *item, *document = NULL;
        const json_t *found = NULL;
        json_array_foreach(json_object_get(index, "manifests"), i, item)
        {
            found = found == NULL && is_for_here(item) ? item : found;
        }
        char *digest = weir_arena_strdup(image->arena, text_of(found, "digest"));
        json_decref(index);
        if (found == NULL) {
            return weir_error_set(image->err, WEIR_ERR_UNSUPPORTED, "the image is not for linux/%s",
                                  architecture());
        }
        WEIR_TRY(load_blob(image, digest, &document));
        if (!json_is_array(json_object_get(document, "manifests"))) {
            *out_digest = digest;
            *out = document;
            return WEIR_OK;
        }
        index = document;
    }
    json_decref(index);
    return invalid(image, "its index names an index that names an index");
}

static weir_status unpack_layer(struct image *image, const json_t *layer)
{
    int fd = -1;
    const char *type = text_of(layer, "mediaType"), *digest = text_of(layer, "digest");
    if (strstr(type, "zstd") != NULL || strstr(type, "encrypted") != NULL) {
        return weir_error_set(image->err, WEIR_ERR_UNSUPPORTED,
                              "a layer of the image is %.100s: make it with layers of tar or gzip",
                              type);
    }
    WEIR_TRY(open_blob(image, digest, &fd));
    weir_status status = image_layer_unpack(fd, image->root_fd, image->bounds, image->err);
    close(fd);
    return status == WEIR_OK ? WEIR_OK : weir_error_prefix(image->err, "layer %.20s…: ", digest);
}

static weir_status unpack_layers(struct image *image, const json_t *manifest)
{
    size_t i;
    json_t *layer;
    const json_t *layers = json_object_get(manifest, "layers");
    if (json_array_size(layers) == 0 || json_array_size(layers) > IMAGE_LAYERS_MAX) {
        return weir_error_set(image->err, WEIR_ERR_LIMIT, "the image has %zu layers, of 1 to %d",
                              json_array_size(layers), IMAGE_LAYERS_MAX);
    }
    json_array_foreach(layers, i, layer)
    {
        WEIR_TRY(unpack_layer(image, layer));
    }
    return WEIR_OK;
}

/* What a task needs of the configuration. */
static weir_status write_record(struct image *image, const json_t *manifest, const char *digest,
                                const char *dir)
{
    json_t *config WEIR_AUTO(weir_json_auto_free) = NULL;
    const json_t *descriptor = json_object_get(manifest, "config");
    WEIR_TRY(load_blob(image, text_of(descriptor, "digest"), &config));
    const char *built_for = text_of(config, "architecture");
    if (built_for[0] != '\0' && strcmp(built_for, architecture()) != 0) {
        return weir_error_set(image->err, WEIR_ERR_UNSUPPORTED,
                              "the image is for %.40s, and this node is %s", built_for,
                              architecture());
    }
    json_t *env = json_object_get(json_object_get(config, "config"), "Env");
    json_t *record = json_pack("{s:s, s:O?}", "digest", digest, "env", env);
    WEIR_AUTO(weir_auto_free) char *text = json_dumps(record, 0);
    json_decref(record);
    return weir_file_write_atomic(weir_arena_printf(image->arena, "%s/image.json", dir), text,
                                  strlen(text), 0600, image->err);
}

static weir_status unpack_layout(struct image *image, const char *dir)
{
    json_t *index = NULL, *manifest WEIR_AUTO(weir_json_auto_free) = NULL;
    char *digest = NULL;
    int fd = image_open_below(image->layout_fd, "index.json", O_RDONLY | O_NONBLOCK);
    if (fd < 0) {
        return invalid(image, "it has no index.json (`docker save` of old makes none: "
                              "`skopeo copy docker-archive:IN oci-archive:OUT` does)");
    }
    WEIR_TRY(load_fd(image, fd, &index));
    WEIR_TRY(find_manifest(image, index, &digest, &manifest));
    WEIR_TRY(unpack_layers(image, manifest));
    return write_record(image, manifest, digest, dir);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static weir_status open_dir(const char *path, bool is_made, int *out_fd, struct weir_error *err)
{
    if (is_made) {
        WEIR_TRY(weir_dir_make(path, 0755, err));
    }
    *out_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *out_fd >= 0 ? WEIR_OK : weir_error_set_errno(err, errno, "cannot open %s", path);
}

/* The archive's files in a folder; they count like the image's own. */
static weir_status unpack_archive(const char *archive, const char *layout,
                                  struct image_bounds *bounds, struct weir_error *err)
{
    WEIR_AUTO(weir_fd_auto_close) int archive_fd = open(archive, O_RDONLY | O_CLOEXEC);
    WEIR_AUTO(weir_fd_auto_close) int layout_fd = -1;
    if (archive_fd < 0) {
        return weir_error_set_errno(err, errno, "cannot read %s", archive);
    }
    WEIR_TRY(open_dir(layout, true, &layout_fd, err));
    return image_layer_unpack(archive_fd, layout_fd, bounds, err);
}

static weir_status unpack_from(struct image *image, const char *layout, const char *dir)
{
    const char *root = weir_arena_printf(image->arena, "%s/rootfs", dir);
    WEIR_TRY(open_dir(layout, false, &image->layout_fd, image->err));
    WEIR_TRY(open_dir(root, true, &image->root_fd, image->err));
    return unpack_layout(image, dir);
}

weir_status image_oci_unpack(const char *layout, const char *dir, struct image_bounds *bounds,
                             struct weir_arena *arena, struct weir_error *err)
{
    struct image image = {
        .layout_fd = -1, .root_fd = -1, .bounds = bounds, .arena = arena, .err = err};
    char *unpacked = weir_arena_printf(arena, "%s/layout", dir);
    bool is_archive = !weir_path_is_dir(layout);
    if (is_archive) {
        WEIR_TRY(unpack_archive(layout, unpacked, bounds, err));
    }
    weir_status status = unpack_from(&image, is_archive ? unpacked : layout, dir);
    if (image.layout_fd >= 0) {
        close(image.layout_fd);
    }
    if (image.root_fd >= 0) {
        close(image.root_fd);
    }
    WEIR_TRY(status);
    return is_archive ? weir_dir_remove(unpacked, err) : WEIR_OK;
}
