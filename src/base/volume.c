#include "base/volume.h"

#include "base/status.h"

#include <string.h>

#define PATH_MAX_BYTES   1024
#define SOURCE_MAX_BYTES 1024
#define CLAIM_MAX_BYTES  253

static const char form[] =
    "{\"path\": \"/data\", \"claim\": \"NAME\"} is expected, or \"nfs\": \"HOST:/DIR\", or "
    "\"host\": \"/DIR\", and \"writable\": true for one that is written to";

/* Is it `path`, or below? */
static bool is_at(const char *text, const char *path)
{
    size_t len = strlen(path);
    return strncmp(text, path, len) == 0 && (text[len] == '\0' || text[len] == '/');
}

/* From the root on, without a detour, and of characters that may stand in "PATH:rw". */
static bool is_path(const char *text)
{
    bool is_good = text[0] == '/' && strlen(text) < PATH_MAX_BYTES && strchr(text, ':') == NULL &&
                   strstr(text, "//") == NULL;
    for (const char *at = text; is_good && at != NULL; at = strchr(at + 1, '/')) {
        is_good = !is_at(at, "/.") && !is_at(at, "/..");
    }
    for (const char *c = text; is_good && *c != '\0'; c++) {
        is_good = (unsigned char)*c >= ' ' && *c != '\x7f';
    }
    return is_good;
}

static bool is_place(const char *path)
{
    static const char *const own[] = {
        "/proc", "/sys", "/dev", "/weir", "/weir-copy", "/var/lib/weir-agent", "/var/run/secrets"};
    bool is_free = path != NULL && is_path(path) && path[1] != '\0' && strcmp(path, "/tmp") != 0 &&
                   strcmp(path, "/tmp/") != 0;
    for (size_t i = 0; is_free && i < WEIR_ARRAY_LEN(own); i++) {
        is_free = !is_at(path, own[i]);
    }
    return is_free;
}

/* As Kubernetes names things. */
static bool is_claim(const char *text)
{
    size_t len = strlen(text);
    return len > 0 && len <= CLAIM_MAX_BYTES &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") == len;
}

static bool is_nfs(const char *text)
{
    const char *path = strstr(text, ":/");
    return path != NULL && path != text && strlen(text) < SOURCE_MAX_BYTES && is_path(path + 1);
}

const char *weir_volume_read(const json_t *document, struct weir_volume *out)
{
    const json_t *writable = json_object_get(document, "writable");
    struct weir_volume volume = {.path = json_string_value(json_object_get(document, "path")),
                                 .claim = json_string_value(json_object_get(document, "claim")),
                                 .nfs = json_string_value(json_object_get(document, "nfs")),
                                 .host = json_string_value(json_object_get(document, "host")),
                                 .is_writable = json_is_true(writable)};
    int n = (volume.claim != NULL) + (volume.nfs != NULL) + (volume.host != NULL);
    size_t n_members = (size_t)2 + (writable != NULL);
    if (n != 1 || volume.path == NULL || json_object_size(document) != n_members ||
        (writable != NULL && !json_is_boolean(writable)) ||
        (volume.claim != NULL && !is_claim(volume.claim)) ||
        (volume.nfs != NULL && !is_nfs(volume.nfs)) ||
        (volume.host != NULL && !is_path(volume.host))) {
        return form;
    }
    if (!is_place(volume.path)) {
        return "\"path\": a path from the root on is expected, without \":\", \"//\", \".\" and "
               "\"..\", that a pod has no use of its own for (/tmp itself, /proc, /sys, /dev, "
               "/weir)";
    }
    *out = volume;
    return NULL;
}
