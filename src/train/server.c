#include "train/worker.h"

/*
 * The optimiser lives here, for this server's shard of the parameters. Two things come over the one
 * call that workers make (weir_ps_push_pull): a step, and, with n_samples 0, the wish to save.
 */

/* Workers measure and save between two steps; a lost one is noticed at once, whatever this is. */
#define IDLE_TIMEOUT_MS (24 * 3600 * 1000)

struct server {
    const struct train_task *task;
    const struct weir_train_hooks *hooks;
    struct weir_comm *comm;
    struct weir_optimizer *optimizer;
    struct train_saver *saver;
    bool is_restored;
    struct weir_error failure; /**< Why an update failed. */
};

static weir_status on_update(void *context, const struct weir_ps_step *step, float *weights,
                             const float *gradient_sum, size_t first_elem, size_t n_elems)
{
    struct server *server = context;
    const struct weir_train_config *config = server->task->config;
    if (!server->is_restored && step->step > 0) {
        WEIR_TRY(checkpoint_load_optimizer(config->checkpoint_dir, step->step, server->optimizer,
                                           &server->failure));
    }
    server->is_restored = true;
    if (step->n_samples <= 0) {
        const struct checkpoint_share share = {.i_server = weir_comm_rank(server->comm) -
                                                           weir_comm_n_workers(server->comm),
                                               .first = first_elem,
                                               .n = n_elems};
        return train_saver_save_share(server->saver, step->step, &share, server->optimizer,
                                      &server->failure);
    }
    weir_optimizer_update(server->optimizer, weights - first_elem, gradient_sum - first_elem,
                          first_elem, n_elems, step->learning_rate, step->step);
    if (server->hooks != NULL && server->hooks->on_step != NULL) {
        const struct weir_train_step done = {.rank = weir_comm_rank(server->comm),
                                             .attempt = (int)config->attempt,
                                             .step = step->step};
        server->hooks->on_step(server->hooks->context, &done);
    }
    return WEIR_OK;
}

/** An optimiser needs the list of parameters, which the smallest net of the graph knows. */
static weir_status make_optimizer(struct server *server, struct weir_error *err)
{
    struct weir_net *net = NULL;
    const struct weir_net_config smallest = {
        .batch = 1, .n_threads = 1, .backend = &weir_reference_backend};
    WEIR_TRY(weir_net_create(server->task->graph, &smallest, &net, err));
    size_t n_params = 0;
    const struct weir_param *params = weir_net_params(net, &n_params);
    weir_status status =
        weir_optimizer_create(&server->task->optimizer, params, n_params, &server->optimizer, err);
    weir_net_destroy(net);
    return status;
}

weir_status train_server_run(const struct train_task *task, struct weir_comm *comm,
                             const struct weir_train_hooks *hooks, struct weir_error *err)
{
    struct server server = {.task = task, .hooks = hooks, .comm = comm};
    WEIR_TRY(make_optimizer(&server, err));
    const char *dir = task->config->checkpoint_dir;
    weir_status status = dir == NULL ? WEIR_OK : train_saver_create(dir, &server.saver, err);
    if (status != WEIR_OK) {
        weir_optimizer_destroy(server.optimizer);
        return status;
    }
    status = weir_ps_serve(comm, &(struct weir_ps_config){.idle_timeout_ms = IDLE_TIMEOUT_MS},
                           on_update, &server);
    weir_status saved = train_saver_wait(server.saver, &server.failure);
    train_saver_destroy(server.saver);
    weir_optimizer_destroy(server.optimizer);
    if (saved != WEIR_OK || server.failure.status != WEIR_OK) {
        return weir_error_set(err, server.failure.status, "%s", server.failure.message);
    }
    if (status != WEIR_OK) {
        weir_status failure = weir_comm_failure(comm, NULL, err);
        return failure != WEIR_OK
                   ? failure
                   : weir_error_set(err, status, "parameter server: %s", weir_status_text(status));
    }
    return WEIR_OK;
}
