#include "client/client_private.h"

#include "base/file.h"
#include "base/model_format.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define QUIET_TIMEOUT_MS 60000

static weir_status server_has_blob(struct weir_client *client, const char *path, bool *out,
                                   struct weir_error *err)
{
    struct weir_http_call call = {.method = "HEAD", .timeout_ms = client->timeout_ms};
    struct weir_http_reply reply;
    WEIR_TRY(client_http(client, &call, path, &reply, err));
    *out = reply.http_status == 200;
    weir_http_reply_fini(&reply);
    return WEIR_OK;
}

static weir_status put(struct weir_client *client, const char *file, const char *query,
                       char *out_sha256, struct weir_error *err)
{
    char digest[WEIR_SHA256_TEXT_BYTES];
    uint64_t n_bytes;
    WEIR_TRY(weir_file_sha256(file, digest, &n_bytes, err));
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    char *path = weir_arena_printf(&arena, "/api/v1/blobs/%s", digest);
    bool is_there = false;
    weir_status status = server_has_blob(client, path, &is_there, err);
    if (status == WEIR_OK && !is_there) {
        path = weir_arena_printf(&arena, "%s%s", path, query);
        status =
            weir_client_send_file(client, "PUT", path, "application/octet-stream", file, NULL, err);
    }
    weir_arena_fini(&arena);
    if (status == WEIR_OK) {
        memcpy(out_sha256, digest, sizeof digest);
    }
    return status;
}

weir_status weir_client_blob_put(struct weir_client *client, const char *file, char *out_sha256,
                                 struct weir_error *err)
{
    return put(client, file, "", out_sha256, err);
}

static weir_status check_model(const char *file, struct weir_error *err)
{
    char head[WEIR_MODEL_SNIFF_BYTES];
    struct stat facts;
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 && fstat(fd, &facts) == 0 ? read(fd, head, sizeof head) : -1;
    int reason = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    return n < 0 ? weir_error_set_errno(err, reason, "cannot read %s", file)
                 : weir_model_format_check(head, (size_t)n, (uint64_t)facts.st_size, file, err);
}

weir_status weir_client_model_put(struct weir_client *client, const char *file, char *out_sha256,
                                  struct weir_error *err)
{
    WEIR_TRY(check_model(file, err));
    return put(client, file, "?as=model", out_sha256, err);
}

static weir_status download(struct weir_client *client, const char *path, int fd, bool is_durable,
                            struct weir_error *err)
{
    struct weir_http_call call = {
        .method = "GET", .quiet_timeout_ms = QUIET_TIMEOUT_MS, .out_fd = fd};
    struct weir_http_reply reply;
    WEIR_TRY(client_http(client, &call, path, &reply, err));
    weir_status status = WEIR_OK;
    if (reply.http_status != 200) {
        status = client_error(&reply, "GET", path, err);
    } else if (is_durable && fsync(fd) != 0) {
        status = weir_error_set_errno(err, errno, "storing what was fetched");
    }
    weir_http_reply_fini(&reply);
    return status;
}

static weir_status verify(const char *path, const char *sha256, struct weir_error *err)
{
    char digest[WEIR_SHA256_TEXT_BYTES];
    uint64_t n_bytes;
    WEIR_TRY(weir_file_sha256(path, digest, &n_bytes, err));
    if (strcmp(digest, sha256) != 0) {
        return weir_error_set(err, WEIR_ERR_CORRUPT,
                              "blob %s arrived with digest %s: damaged on the way or in the store",
                              sha256, digest);
    }
    return WEIR_OK;
}

/* Into a file beside it, which is renamed if it is what it must be; sha256: NULL: whatever it is. */
static weir_status fetch(struct weir_client *client, const char *path, const char *sha256,
                         const char *file, bool is_durable, struct weir_error *err)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    char *temporary = weir_arena_printf(&arena, "%s.XXXXXX", file);
    weir_status status = WEIR_OK;
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) {
        status = weir_error_set_errno(err, errno, "cannot write %s", file);
    } else {
        status = download(client, path, fd, is_durable, err);
        close(fd);
        if (status == WEIR_OK && sha256 != NULL) {
            status = verify(temporary, sha256, err);
        }
        if (status == WEIR_OK && rename(temporary, file) != 0) {
            status = weir_error_set_errno(err, errno, "cannot write %s", file);
        }
        if (status != WEIR_OK) {
            (void)unlink(temporary);
        }
    }
    weir_arena_fini(&arena);
    return status;
}

weir_status weir_client_get_file(struct weir_client *client, const char *path, const char *file,
                                 struct weir_error *err)
{
    return fetch(client, path, NULL, file, true, err);
}

static weir_status get_blob(struct weir_client *client, const char *sha256, const char *file,
                            bool is_durable, struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    return fetch(client, weir_client_path(&arena, "/api/v1/blobs/{}", &sha256, 1), sha256, file,
                 is_durable, err);
}

weir_status weir_client_blob_get(struct weir_client *client, const char *sha256, const char *file,
                                 struct weir_error *err)
{
    return get_blob(client, sha256, file, true, err);
}

weir_status weir_client_blob_cache(struct weir_client *client, const char *sha256, const char *file,
                                   struct weir_error *err)
{
    return get_blob(client, sha256, file, false, err);
}
