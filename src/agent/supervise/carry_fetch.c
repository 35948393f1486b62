/* Before a task starts: its folder of checkpoints becomes what the server has. */
#include "agent/supervise/carry.h"
#include "agent/supervise/carry_lock.h"
#include "agent/supervise/carry_look.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define WAIT_MS 50
#define TRIES   5 /* while another node changes it */

struct fetch {
    struct carry *carry;
    struct weir_client *client;
    int64_t deadline_ms;
    bool (*is_stopped)(void *context);
    void *context;
    struct weir_arena *arena;
};

static weir_status wait_for_lock(const struct fetch *f, int *out_fd, struct weir_error *err)
{
    const char *folder = f->carry->folder;
    for (;;) {
        int fd = carry_lock(folder, CARRY_LOCK, LOCK_EX | LOCK_NB);
        if (fd >= 0) {
            *out_fd = fd;
            return WEIR_OK;
        }
        if (errno != EWOULDBLOCK) {
            return weir_error_set_errno(err, errno, "cannot lock %s", folder);
        }
        if (f->is_stopped(f->context)) {
            return weir_error_set(err, WEIR_ERR_CANCELLED, "stopped");
        }
        if (weir_mono_ms() >= f->deadline_ms) {
            return weir_error_set(
                err, WEIR_ERR_TIMEOUT,
                "the job's folder of checkpoints is still being brought to the server "
                "by another task of it on this node");
        }
        (void)poll(NULL, 0, WAIT_MS);
    }
}

static weir_status list(const struct fetch *f, json_t **out, struct weir_error *err)
{
    const char *path = weir_client_path(f->arena, "/api/v1/jobs/{}/checkpoint", &f->carry->job, 1);
    return weir_client_call_retry(f->client, "GET", path, NULL,
                                  WEIR_MAX(f->deadline_ms - weir_mono_ms(), (int64_t)1), out, err);
}

static weir_status fetch_file(const struct fetch *f, const char *path, struct weir_error *err)
{
    struct weir_backoff backoff = {.base_ms = 200, .max_ms = 10000};
    const char *values[] = {f->carry->job, path};
    const char *url = weir_client_path(f->arena, "/api/v1/jobs/{}/checkpoint/files/{}", values, 2);
    char *file = weir_arena_printf(f->arena, "%s/%s", f->carry->folder, path);
    if (path[0] == '/' || weir_path_has_parent(path)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the server names a file outside: %.200s",
                              path);
    }
    WEIR_TRY(weir_dir_make(
        weir_arena_printf(f->arena, "%.*s", (int)(strrchr(file, '/') - file), file), 0700, err));
    for (;;) {
        weir_status status = weir_client_get_file(f->client, url, file, err);
        if (status == WEIR_OK || !weir_client_can_retry(status) || f->is_stopped(f->context) ||
            weir_mono_ms() >= f->deadline_ms) {
            return status;
        }
        (void)poll(NULL, 0, (int)weir_backoff_next_ms(&backoff));
    }
}

/* NOT_FOUND: a file went while the others were fetched. */
static weir_status fetch_all(const struct fetch *f, const json_t *listed, struct weir_error *err)
{
    size_t i;
    const json_t *item;
    WEIR_TRY(weir_dir_remove(f->carry->folder, err));
    WEIR_TRY(weir_dir_make(f->carry->folder, 0700, err));
    json_array_foreach(json_object_get(listed, "files"), i, item)
    {
        const char *path = json_string_value(json_object_get(item, "path"));
        if (path != NULL) {
            WEIR_TRY(fetch_file(f, path, err));
        }
    }
    return WEIR_OK;
}

static const char *version_of(const json_t *listed)
{
    const char *version = json_string_value(json_object_get(listed, "version"));
    return version != NULL ? version : "";
}

static weir_status record(const struct fetch *f, const char *version, struct weir_error *err)
{
    struct carry_record record = {0};
    int fd = open(f->carry->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "cannot open %s", f->carry->folder);
    }
    weir_status status = carry_look(fd, false, f->arena, &record.view, err);
    close(fd);
    WEIR_TRY(status);
    (void)snprintf(record.version, sizeof record.version, "%s", version);
    return carry_record_write(f->carry->folder, &record, err);
}

/* Nobody uses it. What this node could not bring is newer, as long as nobody else brought anything. */
static weir_status renew(const struct fetch *f, struct weir_error *err)
{
    struct carry_record known;
    carry_record_read(f->carry->folder, f->arena, &known);
    for (int i = 0; i < TRIES; i++) {
        WEIR_AUTO(weir_json_auto_free) json_t *before = NULL, *after = NULL;
        WEIR_TRY(list(f, &before, err));
        if (strcmp(version_of(before), known.version) == 0 && weir_path_is_dir(f->carry->folder)) {
            return WEIR_OK;
        }
        weir_status status = fetch_all(f, before, err);
        if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND) {
            return status;
        }
        WEIR_TRY(list(f, &after, err));
        if (status != WEIR_ERR_NOT_FOUND && strcmp(version_of(before), version_of(after)) == 0) {
            weir_log(
                WEIR_LOG_INFO, "checkpoint_fetched",
                WEIR_KV_INT("files", (int64_t)json_array_size(json_object_get(before, "files"))));
            return record(f, version_of(before), err);
        }
    }
    return weir_error_set(
        err, WEIR_ERR_CONFLICT,
        "the job's checkpoint changed with the server each time that it was fetched");
}

weir_status carry_fetch(struct carry *carry, struct weir_client *client, int64_t deadline_ms,
                        bool (*is_stopped)(void *context), void *context, struct weir_arena *arena,
                        struct weir_error *err)
{
    const struct fetch f = {carry, client, deadline_ms, is_stopped, context, arena};
    const char *slash = strrchr(carry->folder, '/');
    int lock_fd = -1;
    WEIR_TRY(weir_dir_make(
        weir_arena_printf(arena, "%.*s", (int)(slash - carry->folder), carry->folder), 0700, err));
    WEIR_TRY(wait_for_lock(&f, &lock_fd, err));
    weir_status status = WEIR_OK;
    int used_fd = carry_lock(carry->folder, CARRY_USED, LOCK_SH);
    if (used_fd < 0) {
        status = weir_error_set_errno(err, errno, "cannot lock %s", carry->folder);
    } else if (carry_lock_is_alone(used_fd)) {
        status = renew(&f, err);
        carry_lock_share(used_fd);
    }
    close(lock_fd);
    carry->used_fd = used_fd;
    return status;
}
