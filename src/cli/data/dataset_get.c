/** weir dataset get: the files of a version, checked. */
#include "cli/data/dataset_get.h"

#include "cli/core/progress.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

#define MANIFEST_MAX_BYTES ((size_t)256 << 20)

/* "faces@v3", "faces@3" or "faces": the record of that version, or of the newest. A new reference. */
static weir_status find_version(struct cli_call *call, const char *word, char **out_name,
                                json_t **out, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *list = NULL;
    const char *at = strchr(word, '@');
    size_t len = at != NULL ? (size_t)(at - word) : strlen(word), i;
    const char *text = at == NULL ? "" : at[1] == 'v' ? at + 2 : at + 1;
    long long wanted = strtoll(text, NULL, 10);
    json_t *version;
    *out_name = weir_arena_memdup(call->arena, word, len);
    WEIR_TRY(cli_rest(call, "GET", cli_path1(call, "/api/v1/datasets/{}/versions", *out_name), NULL,
                      &list, err));
    json_array_foreach(json_object_get(list, "items"), i, version)
    {
        bool is_it =
            at == NULL ? i == 0 : json_integer_value(json_object_get(version, "version")) == wanted;
        if (is_it) {
            *out = json_incref(version);
            return WEIR_OK;
        }
    }
    return weir_error_set(
        err, WEIR_ERR_NOT_FOUND,
        at != NULL ? "dataset %s has no version \"%.20s\"; `weir get dataset-versions %s` "
                     "lists them"
                   : "dataset %s has no version%.0s: `weir dataset freeze %s` makes one",
        *out_name, at != NULL ? at + 1 : "", *out_name);
}

/* {"files": [{"class", "file", "sha256", "bytes"}]}; a new reference. */
static weir_status load_manifest(struct cli_call *call, const json_t *version, json_t **out,
                                 struct weir_error *err)
{
    const char *blob = json_string_value(json_object_get(version, "blob"));
    if (blob == NULL) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "this version has no list of its files");
    }
    WEIR_AUTO(weir_buf_fini) struct weir_buf text;
    weir_buf_init(&text, MANIFEST_MAX_BYTES);
    WEIR_TRY(weir_client_get_bytes(call->client, cli_path1(call, "/api/v1/blobs/{}", blob), &text,
                                   NULL, err));
    return weir_json_parse(text.data, text.len, "the list of files", out, err);
}

/* What the server names must stay below the folder. */
static bool is_plain(const char *part)
{
    return part != NULL && part[0] != '.' && strchr(part, '/') == NULL;
}

static weir_status fetch(struct cli_call *call, const char *dir, const json_t *file,
                         bool *out_is_new, struct weir_error *err)
{
    const char *class_name = json_string_value(json_object_get(file, "class"));
    const char *name = json_string_value(json_object_get(file, "file"));
    const char *sha256 = json_string_value(json_object_get(file, "sha256"));
    char found[WEIR_SHA256_TEXT_BYTES];
    uint64_t n_bytes;
    struct weir_error ignored;
    class_name = class_name != NULL ? class_name : "";
    if (!is_plain(name) || sha256 == NULL || (class_name[0] != '\0' && !is_plain(class_name))) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "the list names a file \"%.40s/%.40s\"",
                              class_name, name != NULL ? name : "");
    }
    const char *folder =
        class_name[0] != '\0' ? weir_arena_printf(call->arena, "%s/%s", dir, class_name) : dir;
    const char *path = weir_arena_printf(call->arena, "%s/%s", folder, name);
    *out_is_new =
        !(weir_path_exists(path) && weir_file_sha256(path, found, &n_bytes, &ignored) == WEIR_OK &&
          strcmp(found, sha256) == 0);
    if (!*out_is_new) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_dir_make(folder, 0755, err));
    weir_status status = weir_client_blob_get(call->client, sha256, path, err);
    return status == WEIR_ERR_NOT_FOUND
               ? weir_error_set(err, status,
                                "the server does not keep %s/%s itself: the dataset is a folder of "
                                "the server, as `weir describe dataset` shows",
                                class_name, name)
               : status;
}

weir_status dataset_get(struct cli_call *call, const char *word, const char *dir,
                        struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *version = NULL, *manifest = NULL;
    char *name = NULL;
    json_t *file;
    size_t i, n_new = 0;
    WEIR_TRY(find_version(call, word, &name, &version, err));
    WEIR_TRY(load_manifest(call, version, &manifest, err));
    const json_t *files = json_is_array(manifest) ? manifest : json_object_get(manifest, "files");
    struct cli_progress progress = {0};
    WEIR_TRY(weir_dir_make(dir, 0755, err));
    json_array_foreach(files, i, file)
    {
        bool is_new;
        WEIR_TRY(fetch(call, dir, file, &is_new, err));
        n_new += is_new;
        cli_progress_tell(call, &progress, "%zu of %zu files are here", i + 1,
                          json_array_size(files));
    }
    cli_progress_end(&progress);
    if (cli_is_json(call)) {
        cli_print_change(json_pack("{s:s,s:O,s:I,s:I}", "dataset", name, "version",
                                   json_object_get(version, "version"), "files", (json_int_t)i,
                                   "fetched", (json_int_t)n_new));
    } else {
        printf("dataset/%s version %s: %zu files in %s, %zu of them fetched\n", name,
               cli_text(call, version, "version"), i, dir, n_new);
    }
    return WEIR_OK;
}
