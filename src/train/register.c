#include "train/register.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/uuid.h"
#include "client/client.h"
#include "train/worker.h"

#include <string.h>
#include <sys/stat.h>

#define BACKOFF_BASE_MS 250
#define BACKOFF_MAX_MS  10000

/** The identifier in the folder, made and made durable if there is none. */
static weir_status fix_id(const char *dir, struct weir_arena *arena, char out[WEIR_UUID_BYTES],
                          struct weir_error *err)
{
    if (dir == NULL) {
        weir_uuid_make(out);
        return WEIR_OK;
    }
    char *text = NULL;
    const char *path = weir_arena_printf(arena, "%s/version_id", dir);
    size_t len = 0;
    weir_status status = weir_file_read(path, WEIR_UUID_BYTES, arena, &text, &len, err);
    if (status == WEIR_OK) {
        if (!weir_uuid_is_valid(text)) {
            return weir_error_set(err, WEIR_ERR_CORRUPT, "%s: expected a UUID", path);
        }
        memcpy(out, text, WEIR_UUID_BYTES);
        return WEIR_OK;
    }
    if (status != WEIR_ERR_NOT_FOUND) {
        return status;
    }
    weir_uuid_make(out);
    return weir_file_write_atomic(path, out, strlen(out), 0644, err);
}

static json_t *parsed(const char *text)
{
    json_t *value = NULL;
    return text != NULL && weir_json_parse(text, strlen(text), "version", &value, NULL) == WEIR_OK
               ? value
               : json_object();
}

static json_t *version_json(const struct weir_train_config *config,
                            const struct train_version *version, const char *id, const char *blob)
{
    struct stat info = {0};
    (void)stat(version->file, &info);
    return json_pack(
        "{s:s,s:s?,s:s,s:I,s:s?,s:I,s:s,s:o,s:o,s:o}", "id", id, "run", config->report.run, "blob",
        blob, "bytes", (json_int_t)info.st_size, "dataset", config->report.dataset,
        "dataset_version", (json_int_t)config->report.dataset_version, "code_version",
        config->report.code_version != NULL ? config->report.code_version : "weir " WEIR_VERSION,
        "parameters", parsed(version->parameters), "metrics", parsed(version->metrics), "baseline",
        parsed(version->baseline));
}

static weir_status try_once(struct weir_client *client, const struct weir_train_config *config,
                            const struct train_version *version, const char *id,
                            struct weir_arena *arena, int64_t *out_number, struct weir_error *err)
{
    char blob[WEIR_SHA256_TEXT_BYTES];
    json_t *reply = NULL;
    const char *name = config->report.model_name;
    WEIR_TRY(weir_client_blob_put(client, version->file, blob, err));
    json_t *body = version_json(config, version, id, blob);
    weir_status status = weir_client_call(
        client, "POST", weir_client_path(arena, "/api/v1/models/{}/versions", &name, 1), body,
        &reply, err);
    json_decref(body);
    WEIR_TRY(status);
    *out_number = json_integer_value(json_object_get(reply, "version"));
    json_decref(reply);
    return WEIR_OK;
}

static weir_status try_until(struct weir_client *client, const struct weir_train_config *config,
                             const struct train_version *version, const char *id,
                             struct weir_arena *arena, int64_t *out_number, struct weir_error *err)
{
    struct weir_backoff backoff = {.base_ms = BACKOFF_BASE_MS, .max_ms = BACKOFF_MAX_MS};
    int64_t deadline_ms = weir_mono_ms() + (int64_t)(config->report.register_timeout_s * 1000);
    for (bool is_first = true;; is_first = false) {
        weir_status status = try_once(client, config, version, id, arena, out_number, err);
        if (status == WEIR_OK || !weir_client_can_retry(status)) {
            return status;
        }
        int64_t left_ms = deadline_ms - weir_mono_ms();
        if (left_ms <= 0) {
            return weir_error_prefix(err, "registering %s, after %g s of trying: ",
                                     config->report.model_name, config->report.register_timeout_s);
        }
        if (is_first) {
            weir_log(WEIR_LOG_WARN, "registration_waits",
                     WEIR_KV_STR("model", config->report.model_name),
                     WEIR_KV_STR("error", err != NULL ? err->message : ""));
        }
        if (train_pause(WEIR_MIN(weir_backoff_next_ms(&backoff), left_ms))) {
            return weir_error_set(err, WEIR_ERR_CANCELLED,
                                  "stopped before %s was registered; the model is %s",
                                  config->report.model_name, version->file);
        }
    }
}

weir_status train_register(const struct weir_train_config *config,
                           const struct train_version *version, int64_t *out_number,
                           struct weir_error *err)
{
    char id[WEIR_UUID_BYTES];
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    struct weir_client *client = NULL;
    weir_arena_init(&arena, 0);
    WEIR_TRY(fix_id(config->checkpoint.dir, &arena, id, err));
    WEIR_TRY(weir_client_open(&(struct weir_client_config){.server = config->report.server,
                                                           .token_file = config->report.token_file,
                                                           .ca_file = config->report.ca_file},
                              &client, err));
    weir_status status = try_until(client, config, version, id, &arena, out_number, err);
    weir_client_close(client);
    return status;
}
