#include "serve/replica/replica_private.h"

#include "base/log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define EXTRA_MAX_BYTES ((size_t)64 << 20)

/* ---- models that were given ------------------------------------------------------------------ */

static weir_status load_with(struct serve_replica *replica, const struct serve_given *given,
                             struct weir_arena *arena, struct weir_error *err)
{
    struct signature_extras extras = {0};
    struct version_wanted wanted = {.model = given->model,
                                    .number = given->number,
                                    .path = given->path,
                                    .extras = &extras,
                                    .rules = replica->options->rules};
    WEIR_TRY(signature_extra_read(given->labels, EXTRA_MAX_BYTES, arena, &extras.labels,
                                  &extras.labels_len, err));
    WEIR_TRY(signature_extra_read(given->preprocess, EXTRA_MAX_BYTES, arena, &extras.preprocess,
                                  &extras.preprocess_len, err));
    WEIR_TRY(signature_extra_read(given->inputs, EXTRA_MAX_BYTES, arena, &extras.inputs,
                                  &extras.inputs_len, err));
    WEIR_TRY(signature_extra_read(given->golden, EXTRA_MAX_BYTES, arena, &wanted.golden,
                                  &wanted.golden_len, err));
    return versions_load(replica->versions, &wanted, err);
}

static weir_status load_given(struct serve_replica *replica, const struct serve_given *given,
                              struct weir_error *err)
{
    struct weir_arena arena;
    struct weir_error own;
    err = err != NULL ? err : &own;
    weir_arena_init(&arena, 0);
    weir_status status = load_with(replica, given, &arena, err);
    weir_arena_fini(&arena);
    if (status != WEIR_OK) {
        versions_fail(replica->versions, given->model, given->number, err->message);
        return weir_error_prefix(err, "%s: ", given->model);
    }
    return WEIR_OK;
}

static weir_status no_such_model(const char *model, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no model %.100s here", model);
}

/* Triton's load: of every version with this name. */
static weir_status on_load(void *context, const char *model, struct weir_error *err)
{
    struct serve_replica *replica = context;
    bool is_found = false;
    for (size_t i = 0; i < replica->options->n_given; i++) {
        if (strcmp(replica->options->given[i].model, model) == 0) {
            is_found = true;
            WEIR_TRY(load_given(replica, &replica->options->given[i], err));
        }
    }
    return is_found ? WEIR_OK : no_such_model(model, err);
}

static weir_status on_unload(void *context, const char *model, struct weir_error *err)
{
    struct serve_replica *replica = context;
    bool is_found = false;
    for (size_t i = 0; i < replica->options->n_given; i++) {
        const struct serve_given *given = &replica->options->given[i];
        if (strcmp(given->model, model) == 0) {
            is_found = true;
            (void)versions_unload(replica->versions, model, given->number);
        }
    }
    return is_found ? WEIR_OK : no_such_model(model, err);
}

/* ---- start and stop -------------------------------------------------------------------------- */

static weir_status start_front(struct serve_replica *replica, struct weir_error *err)
{
    const struct serve_options *options = replica->options;
    replica->ops = (struct protocol_host){.context = replica, .load = on_load, .unload = on_unload};
    const struct front_config config = {
        .listen = options->spec != NULL ? options->spec->listen : options->listen,
        .secret = options->spec != NULL ? options->spec->secret : NULL,
        .versions = replica->versions,
        .ops = options->spec == NULL ? &replica->ops : NULL,
        .timeout_ms = options->timeout_ms,
        .body_max_bytes = options->body_max_bytes};
    return front_start(&config, &replica->front, err);
}

static weir_status start_host(struct serve_replica *replica, struct weir_error *err)
{
    const struct serve_spec *spec = replica->options->spec;
    const struct weir_host_config config = {.spec = &spec->host,
                                            .names = {spec->deployment},
                                            .n_names = 1,
                                            .hosted = &serve_deployed,
                                            .context = replica};
    WEIR_TRY(weir_host_create(&config, &replica->host, err));
    return weir_host_start(replica->host, err);
}

/* The server hears first that nothing is to be sent here any more. */
static void on_broken(void *context, const char *reason)
{
    struct serve_replica *replica = context;
    weir_host_notify(replica->host);
    if (replica->options->on_broken != NULL) {
        replica->options->on_broken(replica->options->context, reason);
    }
}

static weir_status start(struct serve_replica *replica, struct weir_error *err)
{
    const struct serve_options *options = replica->options;
    const struct versions_config config = {.memory_max_bytes = options->memory_max_bytes,
                                           .executor = options->executor,
                                           .on_broken = on_broken,
                                           .context = replica};
    WEIR_TRY(versions_create(&config, &replica->versions, err));
    for (size_t i = 0; i < options->n_given; i++) {
        WEIR_TRY(load_given(replica, &options->given[i], err));
    }
    WEIR_TRY(start_front(replica, err));
    return options->spec != NULL ? start_host(replica, err) : WEIR_OK;
}

weir_status serve_replica_start(const struct serve_options *options, struct serve_replica **out,
                                struct weir_error *err)
{
    struct serve_replica *replica = weir_xalloc(sizeof *replica);
    *replica = (struct serve_replica){.options = options};
    weir_status status = start(replica, err);
    if (status != WEIR_OK) {
        serve_replica_stop(replica, 0);
        return status;
    }
    weir_log(WEIR_LOG_INFO, "serve_started",
             WEIR_KV_STR("deployment", options->spec != NULL ? options->spec->deployment : ""),
             WEIR_KV_INT("port", serve_replica_port(replica)));
    *out = replica;
    return WEIR_OK;
}

int serve_replica_port(const struct serve_replica *replica)
{
    return front_port(replica->front);
}

void serve_replica_stop(struct serve_replica *replica, int64_t deadline_ms)
{
    if (replica == NULL) {
        return;
    }
    weir_host_notify(replica->host);
    weir_host_end(replica->host); /* Before what it looks at. */
    front_stop(replica->front, deadline_ms);
    versions_destroy(replica->versions);
    weir_host_destroy(replica->host); /* After those whose GPU may break until here: on_broken. */
    free(replica);
}
