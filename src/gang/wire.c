#include "gang/wire.h"

#include "base/rng.h"

#include <poll.h>
#include <stdlib.h>

#define WAIT_S          20
#define CALL_TIMEOUT_MS 40000
#define PUT_PATIENCE_MS 60000
#define PAUSE_MS        500

weir_status wire_find(const char *token_file, struct wire_place *out, struct weir_error *err)
{
    const struct wire_place place = {.server = getenv("WEIR_SERVER"),
                                     .ca_file = getenv("WEIR_CA_FILE"),
                                     .job = getenv("WEIR_JOB"),
                                     .token_file = token_file};
    if (place.server == NULL || place.job == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "this is no task of a job: WEIR_SERVER and WEIR_JOB are not set");
    }
    *out = place;
    return WEIR_OK;
}

weir_status wire_open(const struct wire_place *place, struct weir_client **out,
                      struct weir_error *err)
{
    const struct weir_client_config config = {.server = place->server,
                                              .ca_file = place->ca_file,
                                              .token_file = place->token_file,
                                              .timeout_ms = CALL_TIMEOUT_MS};
    return weir_client_open(&config, out, err);
}

weir_status wire_put(struct weir_client *client, const struct wire_place *place, const char *key,
                     const char *value, struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const char *values[] = {place->job, key};
    WEIR_AUTO(weir_json_auto_free) json_t *body = json_pack("{s:s?}", "value", value);
    return weir_client_call_retry(client, "PUT",
                                  weir_client_path(&arena, "/api/v1/jobs/{}/board/{}", values, 2),
                                  body, PUT_PATIENCE_MS, NULL, err);
}

weir_status wire_wait(struct weir_client *client, const struct wire_place *place,
                      const char *prefix, int64_t *revision, json_t **out, struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    WEIR_AUTO(weir_json_auto_free) json_t *answer = NULL;
    weir_arena_init(&arena, 0);
    char *board = weir_client_path(&arena, "/api/v1/jobs/{}/board", &place->job, 1);
    char *path = weir_arena_printf(&arena, "%s?prefix=%s&after=%lld&wait_s=%d", board, prefix,
                                   (long long)*revision, WAIT_S);
    WEIR_TRY(weir_client_call(client, "GET", path, NULL, &answer, err));
    *revision = json_integer_value(json_object_get(answer, "revision"));
    *out = json_incref(json_object_get(answer, "values"));
    return WEIR_OK;
}

weir_status wire_run(const struct wire_place *place, int rank, const char *command,
                     struct weir_arena *arena, int *out_status, struct weir_error *err)
{
    struct weir_client *client;
    uint64_t id;
    weir_random_bytes(&id, sizeof id);
    char *run = weir_arena_printf(arena, "run.%d.%016llx", rank, (unsigned long long)id);
    char *done = weir_arena_printf(arena, "done.%d.%016llx", rank, (unsigned long long)id);
    WEIR_TRY(wire_open(place, &client, err));
    int64_t revision = -1;
    weir_status status = wire_put(client, place, run, command, err);
    const char *said = NULL;
    while (status == WEIR_OK && said == NULL) {
        json_t *values = NULL;
        status = wire_wait(client, place, done, &revision, &values, err);
        if (status != WEIR_OK && weir_client_can_retry(status)) {
            (void)poll(NULL, 0, PAUSE_MS); /* the server is away: the command runs on */
            status = WEIR_OK;
        }
        said = weir_arena_strdup(arena, json_string_value(json_object_get(values, done)));
        json_decref(values);
    }
    if (status == WEIR_OK) {
        *out_status = (int)strtol(said, NULL, 10);
        status = wire_put(client, place, done, NULL, err);
    }
    weir_client_close(client);
    return status;
}
