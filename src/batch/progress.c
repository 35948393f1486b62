#include "batch/progress.h"

#include "batch/manifest.h"

#include "base/clock.h"
#include "base/log.h"

#define TELL_EVERY_MS 1000

void batch_progress_start(struct batch_progress *progress, struct batch_results *results,
                          const struct batch_shards *shards)
{
    *progress =
        (struct batch_progress){.results = results, .shards = shards, .start_ms = weir_mono_ms()};
    progress->last_ms = progress->start_ms;
}

/* Files of the shards that are there. */
static int64_t files_there(const struct batch_progress *progress, int64_t n_shards_there)
{
    int64_t n_files = n_shards_there * progress->shards->shard_size;
    return WEIR_MIN(n_files, progress->shards->n_files);
}

static json_t *metric(const char *key, int64_t step, double value)
{
    return json_pack("{s:s,s:I,s:f}", "key", key, "step", (json_int_t)step, "value", value);
}

static weir_status report(const struct batch_progress *progress, int64_t n_shards, double speed,
                          struct weir_error *err)
{
    const struct batch_spec *spec = progress->results->spec;
    if (spec->run == NULL || progress->results->client == NULL) {
        return WEIR_OK;
    }
    WEIR_AUTO(weir_json_auto_free)
    json_t *body = json_pack("{s:[o,o,o]}", "metrics", metric("shards", n_shards, (double)n_shards),
                             metric("files", n_shards, (double)files_there(progress, n_shards)),
                             metric("files_per_second", n_shards, speed));
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const char *path =
        weir_client_path(&arena, "/api/v1/runs/{}/metrics", (const char *[]){spec->run}, 1);
    return weir_client_call(progress->results->client, "POST", path, body, NULL, err);
}

void batch_progress_tell(struct batch_progress *progress)
{
    struct weir_error err = {0};
    int64_t now_ms = weir_mono_ms();
    double seconds = (double)(now_ms - progress->start_ms) / 1000;
    double speed = seconds > 0 ? (double)progress->n_files / seconds : 0;
    progress->last_ms = now_ms;
    weir_status status = batch_results_look(progress->results, &err);
    int64_t n_shards = batch_shards_there(progress->results, progress->shards);
    weir_log(WEIR_LOG_INFO, "batch_progress", WEIR_KV_INT("shards", n_shards),
             WEIR_KV_INT("of", batch_shards_count(progress->shards)),
             WEIR_KV_INT("own_files", progress->n_files),
             WEIR_KV_INT("own_errors", progress->n_errors), WEIR_KV_F64("files_per_s", speed));
    if (status == WEIR_OK && !progress->is_refused) {
        status = report(progress, n_shards, speed, &err);
        progress->is_refused = status != WEIR_OK && !weir_client_can_retry(status);
    }
    if (status != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "progress_not_told", WEIR_KV_STR("reason", err.message));
    }
}

void batch_progress_add(struct batch_progress *progress, int64_t n_files, int64_t n_errors)
{
    progress->n_files += n_files;
    progress->n_errors += n_errors;
    if (weir_mono_ms() - progress->last_ms >= TELL_EVERY_MS) {
        batch_progress_tell(progress);
    }
}
