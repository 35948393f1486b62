/* Folders that the operator shares with tasks: weir agent --share DIR[:rw]. */
#include "agent/node/agent_private.h"

#include "base/file.h"

#include <limits.h>
#include <string.h>

/* One of the list, `len` bytes. */
static weir_status add_share(const char *text, size_t len, json_t *list, struct weir_error *err)
{
    char path[PATH_MAX], resolved[PATH_MAX];
    bool is_writable = len > 3 && strncmp(text + len - 3, ":rw", 3) == 0;
    (void)snprintf(path, sizeof path, "%.*s", (int)(is_writable ? len - 3 : len), text);
    if (path[0] != '/' || realpath(path, resolved) == NULL || !weir_path_is_dir(resolved) ||
        strcmp(resolved, "/") == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--share %.300s: expected DIR or DIR:rw, an absolute path of a "
                              "folder that is there",
                              path);
    }
    json_array_append_new(
        list, json_pack("{s:s, s:s}", "path", resolved, "access", is_writable ? "write" : "read"));
    return WEIR_OK;
}

weir_status shares_parse(const char *text, json_t **out, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *list = json_array();
    for (const char *at = text; at != NULL && *at != '\0';) {
        size_t len = strcspn(at, "\n");
        WEIR_TRY(len > 0 ? add_share(at, len, list, err) : WEIR_OK);
        at += len;
        at += *at == '\n';
    }
    if (json_array_size(list) > SHARES_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "--share: at most %d folders", SHARES_MAX);
    }
    *out = json_incref(list);
    return WEIR_OK;
}

void shares_add_library(json_t *shares, const char *path)
{
    static const char *const common[] = {"/usr", "/lib", "/lib64", "/opt", "/nix", "/gnu"};
    char dir[PATH_MAX];
    const json_t *share;
    size_t k;
    (void)snprintf(dir, sizeof dir, "%s", path);
    if (!weir_path_is_dir(path)) {
        *strrchr(dir, '/') = '\0';
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(common); i++) {
        if (sandbox_is_below(path, common[i])) {
            return;
        }
    }
    json_array_foreach(shares, k, share)
    {
        if (sandbox_is_below(dir, json_string_value(json_object_get(share, "path")))) {
            return;
        }
    }
    json_array_insert_new(shares, 0, json_pack("{s:s, s:s}", "path", dir, "access", "read"));
}

weir_status weir_agent_shares_check(const char *shares, struct weir_error *err)
{
    json_t *list;
    WEIR_TRY(shares_parse(shares, &list, err));
    json_decref(list);
    return WEIR_OK;
}
