#include "train/worker.h"

#include <assert.h>
#include <stdlib.h>

/*
 * The optimiser lives here, for this server's pieces of the parameters. Workers send it two
 * commands between steps (weir_ps_command): restore the state of a checkpoint, and save its own.
 */

/* Workers measure and save between two steps; a lost one is noticed at once, whatever this is. */
#define IDLE_TIMEOUT_MS (24 * 3600 * 1000)

struct server {
    const struct train_task *task;
    const struct weir_train_hooks *hooks;
    struct weir_comm *comm;
    struct weir_optimizer *optimizer;
    struct train_saver *saver;
    struct checkpoint_range *pieces; /**< This server's. */
    size_t n_pieces, n_elems;        /**< How many, and elements in all of them. */
    size_t n_updated;                /**< Elements that the step has updated so far. */
    struct weir_error failure;       /**< Why an update failed. */
};

static int server_number(const struct server *server)
{
    return weir_comm_rank(server->comm) - weir_comm_n_workers(server->comm);
}

static weir_status on_update(void *context, const struct weir_ps_step *step, float *weights,
                             const float *gradient_sum, size_t first_elem, size_t n_elems)
{
    struct server *server = context;
    weir_optimizer_apply(server->optimizer, weights - first_elem, gradient_sum - first_elem,
                         first_elem, n_elems, step->learning_rate, step->step);
    server->n_updated += n_elems;
    if (server->n_updated >= server->n_elems) {
        server->n_updated = 0;
        if (server->hooks != NULL && server->hooks->on_step != NULL) {
            const struct weir_train_step done = {.rank = weir_comm_rank(server->comm),
                                                 .attempt =
                                                     (int)server->task->config->group.attempt,
                                                 .step = step->step};
            server->hooks->on_step(server->hooks->context, &done);
        }
    }
    return WEIR_OK;
}

static_assert(WEIR_PS_PIECE_UNIT % WEIR_OPTIMIZER_TILE == 0, "a server measures whole tiles");

static void on_measure(void *context, const struct weir_ps_step *step, size_t i_pass,
                       const float *weights, const float *gradient_sum, size_t first_elem,
                       size_t n_elems)
{
    const struct server *server = context;
    weir_optimizer_measure(server->optimizer, i_pass, weights - first_elem,
                           gradient_sum - first_elem, first_elem, n_elems, step->learning_rate,
                           step->step);
}

static void on_conclude(void *context, size_t i_pass)
{
    const struct server *server = context;
    weir_optimizer_conclude(server->optimizer, i_pass);
}

static weir_status on_command(void *context, const struct weir_ps_step *command)
{
    struct server *server = context;
    if (command->n_samples == TRAIN_COMMAND_RESTORE) {
        return checkpoint_load_optimizer(server->task->config->checkpoint.dir, command->step,
                                         server->optimizer, &server->failure);
    }
    const struct checkpoint_share share = {
        .i_server = server_number(server), .ranges = server->pieces, .n_ranges = server->n_pieces};
    return train_saver_save_share(server->saver, command->step, &share, server->optimizer,
                                  &server->failure);
}

static weir_status list_pieces(struct server *server, size_t n_all, struct weir_error *err)
{
    const int n_servers = weir_comm_size(server->comm) - weir_comm_n_workers(server->comm);
    struct checkpoint_range piece;
    while (weir_ps_piece(n_all, n_servers, server_number(server), server->n_pieces, &piece.first,
                         &piece.n)) {
        struct checkpoint_range *more =
            realloc(server->pieces, (server->n_pieces + 1) * sizeof *more);
        if (more == NULL) {
            return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a list of pieces");
        }
        server->pieces = more;
        server->pieces[server->n_pieces++] = piece;
        server->n_elems += piece.n;
    }
    return WEIR_OK;
}

/** Elements of a training net's gradients: running statistics lie behind them. */
static size_t count_trainable(struct weir_net *net, const struct weir_param *params,
                              size_t n_params)
{
    size_t n_weights = 0;
    (void)weir_net_weights(net, &n_weights);
    for (size_t i = 0; i < n_params; i++) {
        if (!params[i].is_trainable) {
            return params[i].first_elem;
        }
    }
    return n_weights;
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
    const size_t n_gradients = count_trainable(net, params, n_params);
    weir_status status =
        weir_optimizer_create(&server->task->optimizer, params, n_params, &server->optimizer, err);
    weir_net_destroy(net);
    return status == WEIR_OK ? list_pieces(server, n_gradients, err) : status;
}

static weir_status serve(struct server *server, struct weir_error *err)
{
    const char *dir = server->task->config->checkpoint.dir;
    WEIR_TRY(make_optimizer(server, err));
    struct weir_ps_sums norms = {.n_passes = weir_optimizer_n_passes(server->optimizer),
                                 .measure = on_measure,
                                 .conclude = on_conclude};
    norms.sums = weir_optimizer_sums(server->optimizer, &norms.n_sums);
    const struct weir_ps_config config = {.idle_timeout_ms = IDLE_TIMEOUT_MS,
                                          .command = on_command,
                                          .sums = norms.n_passes > 0 ? &norms : NULL};
    if (dir != NULL) {
        WEIR_TRY(train_saver_create(dir, &server->saver, err));
    }
    weir_status status = weir_ps_serve(server->comm, &config, on_update, server);
    weir_status saved = train_saver_wait(server->saver, &server->failure);
    if (saved != WEIR_OK || server->failure.status != WEIR_OK) {
        return weir_error_set(err, server->failure.status, "%s", server->failure.message);
    }
    if (status != WEIR_OK) {
        weir_status failure = weir_comm_failure(server->comm, NULL, err);
        return failure != WEIR_OK
                   ? failure
                   : weir_error_set(err, status, "parameter server: %s", weir_status_text(status));
    }
    return WEIR_OK;
}

weir_status train_server_run(const struct train_task *task, struct weir_comm *comm,
                             const struct weir_train_hooks *hooks, struct weir_error *err)
{
    struct server server = {.task = task, .hooks = hooks, .comm = comm};
    weir_status status = serve(&server, err);
    train_saver_destroy(server.saver);
    weir_optimizer_destroy(server.optimizer);
    free(server.pieces);
    return status;
}
