/** Results on the server, with the job. */
#include "batch/results.h"

#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#define SENT_FILE       "shard.sent" /* in the task's own folder */
#define RETRY_MS        300000
#define BACKOFF_BASE_MS 250
#define BACKOFF_MAX_MS  10000

/* {"files": [{"name": …}]} */
static weir_status list(struct batch_results *results, struct results_names *out,
                        struct weir_error *err)
{
    struct weir_arena arena;
    json_t *answer, *file;
    size_t i;
    weir_arena_init(&arena, 0);
    const char *path = weir_client_path(&arena, "/api/v1/jobs/{}/results",
                                        (const char *[]){results->spec->job}, 1);
    weir_status status =
        weir_client_call_retry(results->client, "GET", path, NULL, RETRY_MS, &answer, err);
    weir_arena_fini(&arena);
    WEIR_TRY(status);
    json_array_foreach(json_object_get(answer, "files"), i, file)
    {
        const char *name = json_string_value(json_object_get(file, "name"));
        if (name != NULL) {
            results_names_add(out, name);
        }
    }
    json_decref(answer);
    return WEIR_OK;
}

static const char *file_path(const struct batch_results *results, const char *name,
                             struct weir_arena *arena)
{
    return weir_client_path(arena, "/api/v1/jobs/{}/results/{}",
                            (const char *[]){results->spec->job, name}, 2);
}

/** One request, for as long as another may succeed. */
struct asking {
    struct weir_backoff backoff;
    int64_t until_ms;
};

/* Waits; false: it has been tried for long enough, or cannot be mended. */
static bool may_ask_again(struct asking *asking, weir_status status)
{
    if (!weir_client_can_retry(status) || weir_mono_ms() > asking->until_ms) {
        return false;
    }
    int64_t wait_ms = weir_backoff_next_ms(&asking->backoff);
    struct timespec wait = {.tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, &wait) == EINTR) {
    }
    return true;
}

static struct asking asking_begin(void)
{
    return (struct asking){.backoff = {.base_ms = BACKOFF_BASE_MS, .max_ms = BACKOFF_MAX_MS},
                           .until_ms = weir_mono_ms() + RETRY_MS};
}

static weir_status read_one(struct batch_results *results, const char *name, struct weir_buf *out,
                            struct weir_error *err)
{
    struct weir_arena arena;
    struct asking asking = asking_begin();
    weir_status status;
    weir_arena_init(&arena, 0);
    const char *path = file_path(results, name, &arena);
    do {
        weir_buf_reset(out);
        status = weir_client_get_bytes(results->client, path, out, NULL, err);
    } while (status != WEIR_OK && may_ask_again(&asking, status));
    weir_arena_fini(&arena);
    return status;
}

static weir_status write_one(struct batch_results *results, const char *name, const void *bytes,
                             size_t len, struct weir_error *err)
{
    struct weir_arena arena;
    struct asking asking = asking_begin();
    WEIR_TRY(weir_file_write(SENT_FILE, bytes, len, 0600, err));
    weir_arena_init(&arena, 0);
    const char *path = file_path(results, name, &arena);
    weir_status status;
    do {
        status = weir_client_send_file(results->client, "PUT", path, "application/octet-stream",
                                       SENT_FILE, NULL, err);
    } while (status != WEIR_OK && may_ask_again(&asking, status));
    weir_arena_fini(&arena);
    (void)unlink(SENT_FILE);
    return status;
}

const struct results_ops results_server = {.list = list, .read = read_one, .write = write_one};
