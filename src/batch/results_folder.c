/** Results in a folder of the user's, which every task's machine sees. */
#include "batch/results.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>

#define PATH_BYTES 4300

static weir_status path_of(const struct batch_results *results, const char *name,
                           char out[PATH_BYTES], struct weir_error *err)
{
    int n = snprintf(out, PATH_BYTES, "%s/%s", results->spec->output, name);
    return n > 0 && n < PATH_BYTES
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_LIMIT, "$.output: the path is too long");
}

static weir_status list(struct batch_results *results, struct results_names *out,
                        struct weir_error *err)
{
    const char *folder = results->spec->output;
    WEIR_TRY(weir_dir_make(folder, 0755, err));
    DIR *stream = opendir(folder);
    if (stream == NULL) {
        return weir_error_set_errno(err, errno, "cannot list %s", folder);
    }
    for (struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        results_names_add(out, entry->d_name);
    }
    (void)closedir(stream);
    return WEIR_OK;
}

static weir_status read_one(struct batch_results *results, const char *name, struct weir_buf *out,
                            struct weir_error *err)
{
    char path[PATH_BYTES];
    struct weir_arena arena;
    char *text;
    size_t len;
    WEIR_TRY(path_of(results, name, path, err));
    weir_arena_init(&arena, 0);
    weir_status status = weir_file_read(path, RESULTS_FILE_MAX_BYTES, &arena, &text, &len, err);
    if (status == WEIR_OK && weir_buf_append(out, text, len) != WEIR_OK) {
        status = weir_error_set(err, out->status, "%s is too large", path);
    }
    weir_arena_fini(&arena);
    return status;
}

static weir_status write_one(struct batch_results *results, const char *name, const void *bytes,
                             size_t len, struct weir_error *err)
{
    char path[PATH_BYTES];
    WEIR_TRY(path_of(results, name, path, err));
    return weir_file_write_atomic(path, bytes, len, 0644, err);
}

const struct results_ops results_folder = {.list = list, .read = read_one, .write = write_one};
