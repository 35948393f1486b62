#include "cli/job/job_image.h"
#include "cli/core/progress.h"

#include "base/file.h"

#include <sys/stat.h>

weir_status job_image_find(struct cli_call *call, const char *given, const char **out,
                           struct weir_error *err)
{
    char sha256[WEIR_SHA256_TEXT_BYTES];
    struct stat info;
    if (stat(given, &info) != 0 || !S_ISREG(info.st_mode)) {
        *out = given;
        return WEIR_OK;
    }
    WEIR_TRY(cli_connect(call, err));
    cli_progress_file(call, given);
    WEIR_TRY(weir_client_blob_put(call->client, given, sha256, err));
    *out = weir_arena_printf(call->arena, "sha256:%s", sha256);
    return WEIR_OK;
}
