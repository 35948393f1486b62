/* Datasets on a node that does not see their folders: each version is fetched once, by the server's list of its files, and
 * kept beside the others, AGENT/state/datasets/LIST, for the tasks to come. */
#include "agent/code/prepare_datasets.h"

#include "agent/code/kept.h"
#include "agent/supervise/carry_lock.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define LIST_MAX_BYTES ((size_t)513 << 20)
#define WAIT_MS        50
#define UNUSED_S       ((int64_t)7 * 86400)
#define PATH_BYTES     4096

static bool is_name(const char *text)
{
    return text[0] != '\0' && text[0] != '.' && strchr(text, '/') == NULL;
}

/* What an earlier try has fetched is there whole. */
static weir_status fetch_file(struct prepare *prepare, struct weir_client *client, const char *dir,
                              const json_t *entry, struct weir_error *err)
{
    const char *class_name = json_string_value(json_object_get(entry, "class"));
    const char *name = json_string_value(json_object_get(entry, "file"));
    const char *sha256 = json_string_value(json_object_get(entry, "sha256"));
    char folder[PATH_BYTES], file[PATH_BYTES];
    struct weir_backoff backoff = {.base_ms = 200, .max_ms = 10000};
    bool has_class = class_name != NULL && class_name[0] != '\0';
    if (name == NULL || !is_name(name) || (has_class && !is_name(class_name)) || sha256 == NULL ||
        snprintf(folder, sizeof folder, "%s%s%s", dir, has_class ? "/" : "",
                 has_class ? class_name : "") >= (int)sizeof folder ||
        snprintf(file, sizeof file, "%s/%s", folder, name) >= (int)sizeof file) {
        return weir_error_set(err, WEIR_ERR_CORRUPT,
                              "the list of the dataset's files cannot be read");
    }
    if (weir_path_exists(file)) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_dir_make(folder, 0700, err));
    for (;;) {
        weir_status status = weir_client_blob_cache(client, sha256, file, err);
        if (status == WEIR_OK || !weir_client_can_retry(status) || prepare_is_stopped(prepare) ||
            weir_mono_ms() >= prepare->deadline_ms) {
            return status;
        }
        (void)poll(NULL, 0, (int)weir_backoff_next_ms(&backoff));
    }
}

static weir_status fetch_files(struct prepare *prepare, struct weir_client *client,
                               const char *part, const json_t *list, struct weir_error *err)
{
    size_t i;
    const json_t *entry;
    WEIR_TRY(weir_dir_make(part, 0700, err));
    json_array_foreach(json_object_get(list, "files"), i, entry)
    {
        WEIR_TRY(fetch_file(prepare, client, part, entry, err));
        if (prepare_is_stopped(prepare)) {
            return weir_error_set(err, WEIR_ERR_CANCELLED, "stopped");
        }
    }
    weir_log(WEIR_LOG_INFO, "dataset_fetched", WEIR_KV_STR("into", part),
             WEIR_KV_INT("files", (int64_t)json_array_size(json_object_get(list, "files"))));
    return WEIR_OK;
}

/* The lock is held. The folder has its name when it is whole. */
static weir_status fetch(struct prepare *prepare, const char *list, const char *folder,
                         struct weir_error *err)
{
    struct weir_client *client;
    WEIR_AUTO(weir_json_auto_free) json_t *object = NULL;
    char *part = weir_arena_printf(prepare->arena, "%s.part", folder);
    char *file = weir_arena_printf(prepare->arena, "%s.list", folder);
    WEIR_TRY(prepare_client(prepare, &client, err));
    WEIR_TRY(weir_client_blob_cache(client, list, file, err));
    weir_status status = weir_json_load(file, LIST_MAX_BYTES, &object, err);
    (void)unlink(file);
    WEIR_TRY(status);
    WEIR_TRY(fetch_files(prepare, client, part, object, err));
    return rename(part, folder) == 0 ? WEIR_OK
                                     : weir_error_set_errno(err, errno, "cannot store %s", folder);
}

static weir_status wait_for_lock(struct prepare *prepare, const char *folder, int *out_fd,
                                 struct weir_error *err)
{
    int fd;
    while ((fd = carry_lock(folder, CARRY_LOCK, LOCK_EX | LOCK_NB)) < 0) {
        if (errno != EWOULDBLOCK) {
            return weir_error_set_errno(err, errno, "cannot lock %s", folder);
        }
        if (prepare_is_stopped(prepare) || weir_mono_ms() >= prepare->deadline_ms) {
            return weir_error_set(err, WEIR_ERR_TIMEOUT, "another task is still fetching it");
        }
        (void)poll(NULL, 0, WAIT_MS);
    }
    *out_fd = fd;
    return WEIR_OK;
}

weir_status prepare_dataset(struct prepare *prepare, const char *list, const char *datasets,
                            const char *folder, struct weir_error *err)
{
    WEIR_AUTO(weir_fd_auto_close) int lock_fd = -1;
    WEIR_TRY(weir_dir_make(datasets, 0700, err));
    kept_sweep(datasets, UNUSED_S);
    WEIR_TRY(wait_for_lock(prepare, folder, &lock_fd, err));
    WEIR_TRY(kept_use(folder, err));
    return weir_path_is_dir(folder) ? WEIR_OK : fetch(prepare, list, folder, err);
}
