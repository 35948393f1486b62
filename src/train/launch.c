#include "train/train.h"

#include "base/file.h"
#include "base/log.h"
#include "base/rng.h"
#include "client/client.h"
#include "train/gang.h"
#include "train/worker.h"

#include <signal.h>
#include <stdlib.h>

#define SECRET_BYTES    32
#define BACKOFF_BASE_MS 200
#define BACKOFF_MAX_MS  10000

/** What the launcher adds to the user's configuration. */
struct launch {
    struct weir_train_config config;
    struct train_task task;
    struct weir_arena arena;
    char rendezvous_dir[WEIR_DIR_TEMPORARY_BYTES]; /**< "": none. */
    bool is_checkpoint_ours; /**< No folder was given: it is removed when the model is written. */
};

static weir_status prepare(struct launch *launch, struct weir_error *err)
{
    struct weir_train_config *config = &launch->config;
    unsigned char bytes[SECRET_BYTES];
    char *secret = weir_arena_alloc(&launch->arena, 2 * SECRET_BYTES + 1);
    weir_random_bytes(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        (void)snprintf(secret + 2 * i, 3, "%02x", bytes[i]);
    }
    config->group.secret = secret;
    if (config->checkpoint.dir == NULL) {
        config->checkpoint.dir =
            weir_arena_printf(&launch->arena, "%s.checkpoints", config->output.file);
        launch->is_checkpoint_ours = true;
    }
    WEIR_TRY(weir_dir_make(config->checkpoint.dir, 0755, err));
    WEIR_TRY(weir_dir_make_temporary("train", launch->rendezvous_dir, err));
    config->group.rendezvous =
        weir_arena_printf(&launch->arena, "file://%s", launch->rendezvous_dir);
    return WEIR_OK;
}

/** Attempt after attempt, until one does it or none will. */
static weir_status run(struct launch *launch, const struct weir_train_hooks *hooks,
                       struct weir_error *err)
{
    struct weir_train_config *config = &launch->config;
    struct weir_backoff backoff = {.base_ms = BACKOFF_BASE_MS, .max_ms = BACKOFF_MAX_MS};
    for (int64_t n_restarts = 0;; n_restarts++) {
        struct gang_end end;
        WEIR_TRY(gang_run(&launch->task, hooks, &end, err));
        if (end.status == WEIR_OK) {
            return WEIR_OK;
        }
        if (end.is_stopped) {
            return weir_error_set(
                err, WEIR_ERR_CANCELLED, "%s%s",
                end.status == WEIR_ERR_CANCELLED ? "" : "stopped: ", end.err.message);
        }
        if (!end.is_worth_restarting) {
            return weir_error_set(err, end.status, "%s", end.err.message);
        }
        if (n_restarts == config->group.max_restarts) {
            return weir_error_set(err, end.status, "%s; it was restarted %lld times already",
                                  end.err.message, (long long)n_restarts);
        }
        weir_log(WEIR_LOG_WARN, "training_restarts", WEIR_KV_INT("restart", n_restarts + 1),
                 WEIR_KV_INT("of", config->group.max_restarts),
                 WEIR_KV_STR("cause", end.err.message));
        config->group.attempt++;
        if (train_pause(weir_backoff_next_ms(&backoff))) {
            return weir_error_set(err, WEIR_ERR_CANCELLED, "stopped");
        }
    }
}

weir_status weir_train_launch(const struct weir_train_config *given,
                              const struct weir_train_hooks *hooks, struct weir_error *err)
{
    struct launch launch = {.config = *given};
    sigset_t children;
    WEIR_TRY(weir_train_config_check(given, err));
    train_block_signals();
    (void)sigemptyset(&children);
    (void)sigaddset(&children, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &children, NULL);
    weir_arena_init(&launch.arena, 0);
    weir_status status = prepare(&launch, err);
    if (status == WEIR_OK) {
        status = train_task_open(&launch.task, &launch.config, err);
        if (status == WEIR_OK) {
            status = run(&launch, hooks, err);
        }
        train_task_close(&launch.task);
    }
    if (status == WEIR_OK && launch.is_checkpoint_ours) {
        struct weir_error ignored;
        if (weir_dir_remove(launch.config.checkpoint.dir, &ignored) != WEIR_OK) {
            weir_log(WEIR_LOG_WARN, "checkpoints_not_removed",
                     WEIR_KV_STR("error", ignored.message));
        }
    }
    if (launch.rendezvous_dir[0] != '\0' &&
        weir_dir_remove(launch.rendezvous_dir, NULL) != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "folder_not_removed", WEIR_KV_STR("path", launch.rendezvous_dir));
    }
    weir_arena_fini(&launch.arena);
    (void)sigprocmask(SIG_UNBLOCK, &children, NULL);
    return status;
}
