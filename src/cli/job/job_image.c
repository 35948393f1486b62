#include "cli/job/job_image.h"
#include "cli/core/progress.h"

#include "base/file.h"

#include <sys/stat.h>

/* Is it called as an archive is, in a folder? */
static bool is_archive(const char *name)
{
    static const char *const endings[] = {".tar", ".tar.gz", ".tgz"};
    size_t len = strlen(name);
    bool is_any = false;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(endings); i++) {
        size_t n = strlen(endings[i]);
        is_any = is_any || (len > n && strcmp(name + len - n, endings[i]) == 0);
    }
    return is_any && strchr(name, '/') != NULL;
}

weir_status job_image_find(struct cli_call *call, const char *given, const char **out,
                           struct weir_error *err)
{
    char sha256[WEIR_SHA256_TEXT_BYTES];
    struct stat info;
    if (stat(given, &info) != 0 || !S_ISREG(info.st_mode)) {
        *out = given;
        return is_archive(given) ? weir_error_set(err, WEIR_ERR_NOT_FOUND,
                                                  "--image %.200s: there is no such file", given)
                                 : WEIR_OK;
    }
    WEIR_TRY(cli_connect(call, err));
    cli_progress_file(call, given);
    WEIR_TRY(weir_client_blob_put(call->client, given, sha256, err));
    *out = weir_arena_printf(call->arena, "sha256:%s", sha256);
    return WEIR_OK;
}
