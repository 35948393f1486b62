#include "framework/pod.h"

#include "base/macros.h"
#include "base/volume.h"

#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 128 /* image on the nodes */
#define REFERENCE_MAX  255
#define LETTERS        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
#define BLOB           "sha256:"
#define BLOB_DIGITS    64
#define VOLUMES_BYTES  8192 /* the list, as text */

/* ---- images ---------------------------------------------------------------------------------- */

static bool is_blob(const char *image)
{
    const char *digits = image + sizeof BLOB - 1;
    return strncmp(image, BLOB, sizeof BLOB - 1) == 0 && strlen(digits) == BLOB_DIGITS &&
           strspn(digits, "0123456789abcdef") == BLOB_DIGITS;
}

static bool is_of_nodes(const char *image)
{
    size_t len = strlen(image);
    return len > 0 && len < NAME_MAX_BYTES && image[0] != '.' && strspn(image, LETTERS "+") == len;
}

bool weir_image_is_of_registry(const char *image)
{
    size_t len = strlen(image);
    return len > 0 && len <= REFERENCE_MAX && strncmp(image, BLOB, sizeof BLOB - 1) != 0 &&
           strpbrk(image, "/:") != NULL && strspn(image, LETTERS "/:@") == len &&
           strchr("./:@-_", image[0]) == NULL && strchr("./:@-_", image[len - 1]) == NULL &&
           strstr(image, "//") == NULL;
}

/* As the agent reads it, or as a kubelet does. */
static weir_status check_image(const json_t *given, struct weir_error *err)
{
    const char *image = json_string_value(given);
    if (given == NULL) {
        return WEIR_OK;
    }
    if (image == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.image: expected a string: put the value into quotes");
    }
    return is_blob(image) || is_of_nodes(image) || weir_image_is_of_registry(image)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "$.spec.image: \"%.80s\": expected \"sha256:\" and 64 digits of a "
                                "blob, the name of an image on the nodes (letters, digits, "
                                "\"._-+\"), or that of one in a registry (with \"/\" or \":\")",
                                image);
}

/* ---- volumes --------------------------------------------------------------------------------- */

static weir_status check_volumes(const json_t *list, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *seen = json_object();
    size_t i;
    const json_t *item;
    if (list != NULL &&
        (!json_is_array(list) || json_array_size(list) > FRAMEWORK_POD_VOLUMES_MAX)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.volumes: a list of at most %d is expected",
                              FRAMEWORK_POD_VOLUMES_MAX);
    }
    if (list != NULL && json_dumpb(list, NULL, 0, JSON_COMPACT) > VOLUMES_BYTES) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "$.spec.volumes: is longer than %d bytes",
                              VOLUMES_BYTES);
    }
    json_array_foreach(list, i, item)
    {
        struct weir_volume volume;
        const char *expected = weir_volume_read(item, &volume);
        if (expected != NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID, "$.spec.volumes[%zu]: %s", i, expected);
        }
        if (volume.host != NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.spec.volumes[%zu].host: a folder of the nodes is no job's to "
                                  "have: a claim or nfs is",
                                  i);
        }
        if (json_object_get(seen, volume.path) != NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.spec.volumes[%zu].path: %.200s is there twice", i,
                                  volume.path);
        }
        json_object_set_new(seen, volume.path, json_true());
    }
    return WEIR_OK;
}

weir_status weir_pod_check(const json_t *spec, struct weir_error *err)
{
    const json_t *image = json_object_get(spec, "image");
    const json_t *volumes = json_object_get(spec, "volumes");
    WEIR_TRY(check_image(image, err));
    WEIR_TRY(check_volumes(volumes, err));
    return json_array_size(volumes) == 0 || image == NULL ||
                   weir_image_is_of_registry(json_string_value(image))
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "$.spec.volumes: pods have volumes, and their image is one of a "
                                "registry (\"pytorch/pytorch:2.3.0\"), not a file that nodes "
                                "unpack: name such a one, or none");
}

/* ---- in one form ----------------------------------------------------------------------------- */

static int by_path(const void *left, const void *right)
{
    return strcmp(((const struct weir_volume *)left)->path,
                  ((const struct weir_volume *)right)->path);
}

static json_t *volumes_of(const json_t *list)
{
    struct weir_volume rows[FRAMEWORK_POD_VOLUMES_MAX];
    json_t *sorted = json_array();
    size_t n = 0, i;
    const json_t *item;
    json_array_foreach(list, i, item)
    {
        n += n < WEIR_ARRAY_LEN(rows) && weir_volume_read(item, &rows[n]) == NULL;
    }
    qsort(rows, n, sizeof *rows, by_path);
    for (size_t k = 0; k < n; k++) {
        json_t *one = json_pack("{s:s,s:s*,s:s*}", "path", rows[k].path, "claim", rows[k].claim,
                                "nfs", rows[k].nfs);
        if (rows[k].is_writable) {
            json_object_set_new(one, "writable", json_true());
        }
        json_array_append_new(sorted, one);
    }
    return sorted;
}

json_t *weir_pod_wanted(const json_t *spec)
{
    const char *image = json_string_value(json_object_get(spec, "image"));
    const json_t *volumes = json_object_get(spec, "volumes");
    json_t *wanted = json_object();
    if (image != NULL && weir_image_is_of_registry(image)) {
        json_object_set_new(wanted, "image", json_string(image));
    }
    if (json_array_size(volumes) > 0) {
        json_object_set_new(wanted, "volumes", volumes_of(volumes));
    }
    if (json_object_size(wanted) == 0) {
        json_decref(wanted);
        return NULL;
    }
    return wanted;
}
