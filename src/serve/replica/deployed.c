#include "serve/replica/replica_private.h"

#include "base/file.h"
#include "serve/replica/golden.h"
#include "serve/replica/wanted.h"

#include <string.h>

#define REPORT_MS 2000

static bool is_stopping(const struct serve_replica *replica)
{
    return atomic_load(weir_host_stopping(replica->host));
}

/* ---- applying -------------------------------------------------------------------------------- */

static weir_status get_golden(struct serve_replica *replica, const struct wanted_one *one,
                              struct weir_arena *arena, char **out, size_t *out_len,
                              struct weir_error *err)
{
    char path[WEIR_HOST_PATH_BYTES];
    if (one->golden[0] == '\0') {
        return WEIR_OK;
    }
    weir_host_cache_path(replica->host, "model", one->golden, path);
    WEIR_TRY(weir_host_get(replica->host, one->golden, path, err));
    return weir_file_read(path, GOLDEN_MAX_BYTES, arena, out, out_len, err);
}

static weir_status load_with(struct serve_replica *replica, const struct wanted *wanted,
                             const struct wanted_one *one, struct weir_arena *arena,
                             struct weir_error *err)
{
    char path[WEIR_HOST_PATH_BYTES], *golden = NULL;
    size_t golden_len = 0;
    weir_host_cache_path(replica->host, "model", one->blob, path);
    WEIR_TRY(weir_host_get(replica->host, one->blob, path, err));
    WEIR_TRY(get_golden(replica, one, arena, &golden, &golden_len, err));
    const struct version_wanted version = {.model = replica->options->spec->deployment,
                                           .number = one->number,
                                           .path = path,
                                           .blob = one->blob,
                                           .signature = one->signature,
                                           .golden = golden,
                                           .golden_len = golden_len,
                                           .rules = wanted->rules};
    return versions_load(replica->versions, &version, err);
}

static weir_status load_one(struct serve_replica *replica, const struct wanted *wanted,
                            const struct wanted_one *one, struct weir_error *err)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    weir_status status = load_with(replica, wanted, one, &arena, err);
    weir_arena_fini(&arena);
    return status;
}

static bool is_wanted(const struct wanted *wanted, int64_t number)
{
    for (size_t i = 0; i < wanted->n_versions; i++) {
        if (wanted->versions[i].number == number) {
            return true;
        }
    }
    return false;
}

static void unload_others(struct serve_replica *replica, const struct wanted *wanted)
{
    struct weir_arena arena;
    struct versions_view view;
    weir_arena_init(&arena, 0);
    versions_view(replica->versions, &arena, &view);
    versions_view_release(&view);
    for (size_t i = 0; i < view.n; i++) {
        if (!is_wanted(wanted, view.rows[i].number)) {
            (void)versions_unload(replica->versions, view.rows[i].model, view.rows[i].number);
        }
    }
    weir_arena_fini(&arena);
}

/* What runs goes on while the new ones are loaded; only where there is no room for both it ends
 * first. The first error that another try may mend is returned. */
static weir_status apply_versions(struct serve_replica *replica, const struct wanted *wanted,
                                  struct weir_error *err)
{
    weir_status result = WEIR_OK;
    const char *model = replica->options->spec->deployment;
    for (size_t i = 0; i < wanted->n_versions; i++) {
        versions_announce(replica->versions, model, wanted->versions[i].number);
    }
    atomic_store(&replica->revision, wanted->revision); /* the server finds them announced */
    weir_host_notify(replica->host);
    for (size_t i = 0; i < wanted->n_versions && !is_stopping(replica); i++) {
        struct weir_error one_err;
        const struct wanted_one *one = &wanted->versions[i];
        weir_status status = load_one(replica, wanted, one, &one_err);
        if (status == WEIR_ERR_LIMIT) {
            unload_others(replica, wanted);
            versions_wait_freed(replica->versions);
            status = load_one(replica, wanted, one, &one_err);
        }
        if (status != WEIR_OK && !weir_client_can_retry(status)) {
            versions_fail(replica->versions, model, one->number, one_err.message);
        } else if (status != WEIR_OK && result == WEIR_OK) {
            *err = one_err; /* it stays LOADING until another try */
            result = status;
        }
        weir_host_notify(replica->host);
    }
    if (result == WEIR_OK && !is_stopping(replica)) {
        unload_others(replica, wanted);
        weir_host_notify(replica->host);
    }
    return result;
}

static weir_status apply(void *context, const json_t *json, struct weir_error *err)
{
    struct serve_replica *replica = context;
    struct weir_arena arena;
    struct wanted *wanted;
    weir_arena_init(&arena, 0);
    wanted = WEIR_ARENA_NEW(&arena, struct wanted);
    weir_status status = wanted_parse(json, wanted, err);
    if (status == WEIR_OK) {
        versions_set_limits(replica->versions, wanted->memory_max_bytes, wanted->n_threads);
        status = apply_versions(replica, wanted, err);
    }
    weir_arena_fini(&arena);
    return status;
}

/* ---- what is hosted -------------------------------------------------------------------------- */

/* Does a version that is wanted need it? */
static bool needs(const void *context, const json_t *wanted, const char *file)
{
    size_t i;
    const json_t *one;
    (void)context;
    json_array_foreach(json_object_get(wanted, "versions"), i, one)
    {
        const char *blob = json_string_value(json_object_get(one, "blob"));
        const char *golden = json_string_value(json_object_get(one, "golden"));
        if (strstr(file, blob) != NULL || (golden != NULL && strstr(file, golden) != NULL)) {
            return true;
        }
    }
    return false;
}

static json_t *report(void *context, const struct weir_host_standing *standing)
{
    (void)standing; /* each version has one of its own */
    return serve_report(context);
}

const struct weir_hosted serve_deployed = {.place = "/api/v1/deployments/{}",
                                           .wanted = "desired",
                                           .member = "versions",
                                           .file = "wanted.json",
                                           .report_ms = REPORT_MS,
                                           .unsendable_event = "report_not_utf8",
                                           .refused_event = "report_refused",
                                           .refused_level = WEIR_LOG_WARN,
                                           .apply = apply,
                                           .needs = needs,
                                           .report = report};
