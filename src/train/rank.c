#include "comm/elastic.h"
#include "train/worker.h"

#include "base/file.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

/* "env://NAME": where ranks meet may be known only when they start (agent/rendezvous/rendezvous.h). */
static const char *rendezvous_of(const struct weir_train_config *config)
{
    static const char env_url[] = "env://";
    const char *url = config->group.rendezvous;
    bool is_env = url != NULL && strncmp(url, env_url, sizeof env_url - 1) == 0;
    return is_env ? getenv(url + sizeof env_url - 1) : url;
}

/* In words of people: which node and address of the two did not find each other. */
static weir_status name_places(const struct weir_train_config *config, weir_status status,
                               struct weir_error *err)
{
    const char *own = getenv("WEIR_RANK_PLACE"), *first = getenv("WEIR_RANK_0_PLACE");
    bool is_apart = status == WEIR_ERR_TIMEOUT || status == WEIR_ERR_PEER;
    if (!is_apart || own == NULL || first == NULL) {
        return status;
    }
    return config->group.rank == 0
               ? weir_error_prefix(err, "rank 0 (%s) was not reached by all: ", own)
               : weir_error_prefix(err, "rank %lld (%s) did not meet rank 0 (%s): ",
                                   (long long)config->group.rank, own, first);
}

static weir_status make_folders(const struct weir_train_config *config, struct weir_error *err)
{
    static const char file_url[] = "file://";
    if (config->checkpoint.dir != NULL) {
        WEIR_TRY(weir_dir_make(config->checkpoint.dir, 0755, err));
    }
    const char *url = rendezvous_of(config);
    if (url != NULL && strncmp(url, file_url, sizeof file_url - 1) == 0) {
        WEIR_TRY(weir_dir_make(url + sizeof file_url - 1, 0700, err));
    }
    return WEIR_OK;
}

static weir_status join(const struct weir_train_config *config, struct weir_comm **out,
                        struct weir_error *err)
{
    const struct weir_comm_config group = {
        .rendezvous = rendezvous_of(config),
        .secret = config->group.secret != NULL ? config->group.secret : "alone",
        .job_id = config->report.job,
        .attempt = (int)config->group.attempt,
        .rank = (int)config->group.rank,
        .size = (int)(config->group.workers + config->group.parameter_servers),
        .n_servers = (int)config->group.parameter_servers,
        .is_elastic = train_is_elastic(config),
        .timeout_ms = (int)(config->group.timeout_s * 1000),
        .transport = config->exchange.transport,
        .algorithm = config->exchange.all_reduce_spec,
        .tuning = config->exchange.tuning,
        .wire = config->exchange.wire};
    /* The others may never come, and nothing has been done yet: a stop need not wait for them. */
    pthread_t aborting;
    WEIR_TRY(train_abort_on_signal_begin(&aborting, err));
    weir_status status =
        config->group.join ? weir_comm_join(&group, out, err) : weir_comm_create(&group, out, err);
    train_abort_on_signal_end(aborting);
    return name_places(config, status, err);
}

weir_status train_rank_run(struct train_task *task, const struct weir_train_hooks *hooks,
                           struct weir_error *err)
{
    const struct weir_train_config *config = task->config;
    struct weir_comm *comm = NULL;
    WEIR_TRY(make_folders(config, err));
    weir_status status = join(config, &comm, err);
    if (status == WEIR_ERR_END && config->group.join) {
        /* This joiner found the work done. */
        weir_log(WEIR_LOG_INFO, "training_is_done", WEIR_KV_INT("rank", config->group.rank));
        return WEIR_OK;
    }
    if (status == WEIR_OK) {
        status = train_is_server(config) ? train_server_run(task, comm, hooks, err)
                                         : train_worker_run(task, &comm, hooks, err);
    }
    weir_comm_destroy(comm);
    return status;
}

weir_status weir_train_rank(const struct weir_train_config *config,
                            const struct weir_train_hooks *hooks, struct weir_error *err)
{
    train_block_signals();
    WEIR_TRY(weir_train_config_check(config, err));
    if (train_is_launcher(config)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "rank: missing");
    }
    WEIR_AUTO(train_task_close) struct train_task task;
    WEIR_TRY(train_task_open(&task, config, err));
    return train_rank_run(&task, hooks, err);
}
