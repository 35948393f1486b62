#include "serve/follower.h"

#include "base/file.h"
#include "client/follow.h"
#include "serve/golden.h"
#include "serve/wanted.h"

#include <stdlib.h>
#include <string.h>

struct follower {
    struct follower_config config;
    char *path; /**< Of what the server wants. */
    struct weir_follow *follow;
};

static bool is_stopping(const struct follower *follower)
{
    return atomic_load(weir_follow_stopping(follower->follow));
}

/* Does a version that is wanted need it? */
static bool is_needed(const void *context, const char *file)
{
    const struct wanted *wanted = context;
    for (size_t i = 0; i < wanted->n_versions; i++) {
        const struct wanted_one *one = &wanted->versions[i];
        if (strstr(file, one->blob) != NULL ||
            (one->golden[0] != '\0' && strstr(file, one->golden) != NULL)) {
            return true;
        }
    }
    return false;
}

/* ---- applying -------------------------------------------------------------------------------- */

static weir_status get_golden(struct follower *follower, const struct wanted_one *one,
                              struct weir_arena *arena, char **out, size_t *out_len,
                              struct weir_error *err)
{
    char path[WEIR_FOLLOW_PATH_BYTES];
    if (one->golden[0] == '\0') {
        return WEIR_OK;
    }
    weir_follow_cache_path(follower->follow, "model", one->golden, path);
    WEIR_TRY(weir_follow_get(follower->follow, one->golden, path, err));
    return weir_file_read(path, GOLDEN_MAX_BYTES, arena, out, out_len, err);
}

static weir_status load_with(struct follower *follower, const struct wanted *wanted,
                             const struct wanted_one *one, struct weir_arena *arena,
                             struct weir_error *err)
{
    const struct follower_config *config = &follower->config;
    char path[WEIR_FOLLOW_PATH_BYTES], *golden = NULL;
    size_t golden_len = 0;
    weir_follow_cache_path(follower->follow, "model", one->blob, path);
    WEIR_TRY(weir_follow_get(follower->follow, one->blob, path, err));
    WEIR_TRY(get_golden(follower, one, arena, &golden, &golden_len, err));
    const struct version_wanted version = {.model = config->spec->deployment,
                                           .number = one->number,
                                           .path = path,
                                           .blob = one->blob,
                                           .signature = one->signature,
                                           .golden = golden,
                                           .golden_len = golden_len,
                                           .rules = wanted->rules};
    return versions_load(config->versions, &version, err);
}

static weir_status load_one(struct follower *follower, const struct wanted *wanted,
                            const struct wanted_one *one, struct weir_error *err)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    weir_status status = load_with(follower, wanted, one, &arena, err);
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

static void unload_others(struct follower *follower, const struct wanted *wanted)
{
    struct weir_arena arena;
    struct versions_view view;
    weir_arena_init(&arena, 0);
    versions_view(follower->config.versions, &arena, &view);
    versions_view_release(&view);
    for (size_t i = 0; i < view.n; i++) {
        if (!is_wanted(wanted, view.rows[i].number)) {
            (void)versions_unload(follower->config.versions, view.rows[i].model,
                                  view.rows[i].number);
        }
    }
    weir_arena_fini(&arena);
}

/* What runs goes on while the new ones are loaded; only where there is no room for both it ends
 * first. The first error that another try may mend is returned. */
static weir_status apply_versions(struct follower *follower, const struct wanted *wanted,
                                  struct weir_error *err)
{
    weir_status result = WEIR_OK;
    const char *model = follower->config.spec->deployment;
    for (size_t i = 0; i < wanted->n_versions; i++) {
        versions_announce(follower->config.versions, model, wanted->versions[i].number);
    }
    reporter_set_revision(follower->config.reporter, wanted->revision);
    for (size_t i = 0; i < wanted->n_versions && !is_stopping(follower); i++) {
        struct weir_error one_err;
        const struct wanted_one *one = &wanted->versions[i];
        weir_status status = load_one(follower, wanted, one, &one_err);
        if (status == WEIR_ERR_LIMIT) {
            unload_others(follower, wanted);
            versions_wait_freed(follower->config.versions);
            status = load_one(follower, wanted, one, &one_err);
        }
        if (status != WEIR_OK && !weir_client_can_retry(status)) {
            versions_fail(follower->config.versions, model, one->number, one_err.message);
        } else if (status != WEIR_OK && result == WEIR_OK) {
            *err = one_err; /* it stays LOADING until another try */
            result = status;
        }
        reporter_notify(follower->config.reporter);
    }
    if (result == WEIR_OK && !is_stopping(follower)) {
        unload_others(follower, wanted);
        reporter_notify(follower->config.reporter);
    }
    return result;
}

static weir_status apply(void *context, const json_t *json, struct weir_error *err)
{
    struct follower *follower = context;
    struct weir_arena arena;
    struct wanted *wanted;
    weir_arena_init(&arena, 0);
    wanted = WEIR_ARENA_NEW(&arena, struct wanted);
    weir_status status = wanted_parse(json, wanted, err);
    if (status == WEIR_OK) {
        versions_set_limits(follower->config.versions, wanted->memory_max_bytes, wanted->n_threads);
        status = apply_versions(follower, wanted, err);
    }
    if (status == WEIR_OK && weir_follow_remember(follower->follow, json)) {
        weir_follow_clean(follower->follow, is_needed, wanted);
    }
    weir_arena_fini(&arena);
    return status;
}

/* ---- lifecycle ------------------------------------------------------------------------------- */

static char *path_of(const struct serve_spec *spec)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    char *path = weir_xstrdup(weir_client_path(&arena, "/api/v1/deployments/{}/desired",
                                               (const char *[]){spec->deployment}, 1));
    weir_arena_fini(&arena);
    return path;
}

weir_status follower_start(const struct follower_config *config, struct follower **out,
                           struct weir_error *err)
{
    const struct serve_spec *spec = config->spec;
    struct follower *follower = weir_xalloc(sizeof *follower);
    *follower =
        (struct follower){.config = *config, .path = spec->server != NULL ? path_of(spec) : NULL};
    const struct weir_follow_config follow = {.server = spec->server,
                                              .token_file = spec->token_file,
                                              .ca_file = spec->ca_file,
                                              .path = follower->path,
                                              .member = "versions",
                                              .dir = spec->dir,
                                              .file = "wanted.json",
                                              .apply = apply,
                                              .context = follower};
    weir_status status = weir_follow_create(&follow, &follower->follow, err);
    if (status == WEIR_OK) {
        status = weir_follow_start(follower->follow, err);
    }
    if (status != WEIR_OK) {
        follower_stop(follower);
        return status;
    }
    *out = follower;
    return WEIR_OK;
}

void follower_stop(struct follower *follower)
{
    if (follower == NULL) {
        return;
    }
    weir_follow_destroy(follower->follow);
    free(follower->path);
    free(follower);
}
