/* One worker of the benchmark: the product's own, on pictures that never change. */
#include "bench/training.h"

#include "base/rng.h"
#include "nn/zoo.h"
#include "train/fill.h"

#include <math.h>
#include <stdlib.h>

#define CLASSES_COLOURED 1000
#define CLASSES_GREY     10

/* Streams of random numbers, for a seed. */
enum { STREAM_IMAGES = 1000, STREAM_LABELS = 2000 };

/* ---- task ----------------------------------------------------------------------------------- */

/** As many pictures as a step has, of as many classes as the model would have. They are never read.
 */
static weir_status open_synthetic(const struct training_plan *plan, struct weir_dataset **out,
                                  struct weir_error *err)
{
    struct weir_model_spec *spec = NULL;
    WEIR_TRY(weir_zoo_resolve(plan->config.model.name, NULL, &spec, err));
    size_t n_classes = weir_model_spec_input(spec).c == 3 ? CLASSES_COLOURED : CLASSES_GREY;
    weir_model_spec_destroy(spec);
    size_t n = WEIR_MAX((size_t)plan->config.loop.batch_size, n_classes);
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    struct weir_dataset_item *items = WEIR_ARENA_ARRAY(&arena, n, struct weir_dataset_item);
    const char **names = WEIR_ARENA_ARRAY(&arena, n_classes, const char *);
    for (size_t i = 0; i < n; i++) {
        items[i] =
            (struct weir_dataset_item){.path = "synthetic", .label = (int32_t)(i % n_classes)};
    }
    for (size_t i = 0; i < n_classes; i++) {
        names[i] = weir_arena_printf(&arena, "%zu", i);
    }
    return weir_dataset_open_list(items, n, names, n_classes, 0, out, err);
}

weir_status training_task_open(const struct training_plan *plan, struct train_task *task,
                               struct weir_error *err)
{
    if (plan->options.data_dir != NULL) {
        return train_task_open(task, &plan->config, err);
    }
    struct weir_dataset *dataset = NULL;
    WEIR_TRY(open_synthetic(plan, &dataset, err));
    return train_task_open_on(task, &plan->config, dataset, err);
}

/* ---- pictures ------------------------------------------------------------------------------- */

static weir_status draw(struct training_worker *bench, struct weir_error *err)
{
    const struct weir_shape shape = weir_model_spec_input(bench->task.spec);
    const uint32_t n = (uint32_t)weir_net_batch(bench->worker.net);
    const size_t len = (size_t)shape.c * (size_t)shape.h * (size_t)shape.w;
    const uint64_t n_classes = weir_dataset_n_classes(bench->task.dataset),
                   seed = (uint64_t)bench->plan->options.seed,
                   rank = (uint64_t)weir_comm_rank(bench->group);
    struct weir_rng images, labels;
    weir_rng_init(&images, seed, STREAM_IMAGES + rank);
    weir_rng_init(&labels, seed, STREAM_LABELS + rank);
    bench->images = weir_net_input(bench->worker.net);
    bench->labels = calloc(n, sizeof *bench->labels);
    if (bench->labels == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for %u pictures", n);
    }
    for (size_t i = 0; i < n * len; i++) {
        bench->images[i] = 2 * weir_rng_f32(&images) - 1;
    }
    for (uint32_t i = 0; i < n; i++) {
        bench->labels[i] = (int32_t)weir_rng_below(&labels, n_classes);
    }
    return WEIR_OK;
}

static weir_status start_loader(struct training_worker *bench, struct weir_error *err)
{
    struct worker *worker = &bench->worker;
    struct weir_loader_config config = train_loader_config(&bench->task, &worker->state.input);
    config.rank = (uint32_t)worker->rank;
    config.size = (uint32_t)worker->n_workers;
    config.n_epochs = 0;
    config.n_threads = (unsigned)WEIR_MAX(bench->task.n_threads / 2, 1);
    return weir_loader_create(train_task_stream(&bench->task), &config, &worker->loader, err);
}

static weir_status next_batch(struct training_worker *bench, struct weir_batch *out,
                              struct weir_error *err)
{
    if (bench->worker.loader != NULL) {
        return worker_next_batch(&bench->worker, out, err);
    }
    uint32_t n = (uint32_t)weir_net_batch(bench->worker.net);
    *out = (struct weir_batch){
        .images = bench->images, .labels = bench->labels, .n_slots = n, .n_valid = n};
    return WEIR_OK;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static weir_status forward(struct training_worker *bench, struct weir_error *err)
{
    struct weir_batch batch;
    struct weir_step_result result;
    struct worker *worker = &bench->worker;
    WEIR_TRY(next_batch(bench, &batch, err));
    (void)train_fill(worker->net, NULL, &batch, worker->state.input.shape, 0);
    weir_status status = weir_net_forward(worker->net, weir_net_batch(worker->net), &result);
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "forward pass: %s", weir_status_text(status));
    }
    bench->loss = result.loss;
    return WEIR_OK;
}

/** As worker.c's loop does it: agree on how many pictures have a label, then the step. */
weir_status training_worker_step(struct training_worker *bench, struct weir_error *err)
{
    struct weir_batch batch;
    struct worker *worker = &bench->worker;
    if (bench->plan->options.is_forward_only) {
        return forward(bench, err);
    }
    WEIR_TRY(next_batch(bench, &batch, err));
    int64_t votes[] = {batch.n_valid, 0, 0};
    weir_status status =
        weir_comm_allreduce(worker->comm, votes, WEIR_ARRAY_LEN(votes), WEIR_COMM_I64);
    if (status != WEIR_OK) {
        return worker_comm_error(worker, status, err);
    }
    if (votes[0] == 0) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "none of the pictures of a step can be read");
    }
    WEIR_TRY(worker_step(worker, &batch, votes[0], err));
    bench->loss = worker->sums[SUM_LOSS] / (double)votes[0];
    return WEIR_OK;
}

weir_status training_worker_set_alone(struct training_worker *bench, bool is_alone,
                                      struct weir_error *err)
{
    struct worker *worker = &bench->worker;
    bool has_servers = bench->plan->exchange == TRAINING_SERVERS;
    bool is_by_itself = is_alone || bench->plan->exchange == TRAINING_INDEPENDENT;
    worker->comm = is_by_itself ? bench->alone : bench->group;
    worker->n_workers = weir_comm_n_workers(worker->comm);
    if (has_servers && is_alone && bench->own_optimizer == NULL) {
        size_t n_params = 0;
        const struct weir_param *params = weir_net_params(worker->net, &n_params);
        WEIR_TRY(weir_optimizer_create(&bench->task.optimizer, params, n_params,
                                       &bench->own_optimizer, err));
    }
    if (has_servers) {
        worker->optimizer = is_alone ? bench->own_optimizer : NULL;
    }
    worker_exchange_choose(worker);
    if (is_alone) {
        return WEIR_OK;
    }
    worker->state.step = 0; /* servers count from their first step */
    return worker_share_start(worker, err);
}

/* ---- life ----------------------------------------------------------------------------------- */

/** Bands of a picture that give every thread something to do where there are few pictures. */
static int32_t bands_for(const struct weir_net_config *config)
{
    int32_t n = (config->n_threads + config->batch - 1) / config->batch;
    return config->backend == &weir_onednn_backend ? WEIR_MIN(n, WEIR_NET_ROW_TILES_MAX) : 1;
}

/** Inference has a net of its own kind: batch norms are folded, nothing is kept for backward. */
static weir_status make_forward_net(struct training_worker *bench, struct weir_error *err)
{
    struct weir_net_config config = train_net_config(&bench->task, 0, 1);
    config.is_training = false;
    config.n_gradient_parts = 1;
    config.n_row_tiles = bands_for(&config);
    WEIR_TRY(weir_net_create(bench->task.graph, &config, &bench->worker.net, err));
    weir_net_init_weights(bench->worker.net, (uint64_t)bench->plan->options.seed);
    weir_net_weights_changed(bench->worker.net);
    return WEIR_OK;
}

static weir_status measure_input(struct training_worker *bench, struct weir_error *err)
{
    struct weir_net_input *input = &bench->worker.state.input;
    if (bench->plan->options.data_dir != NULL) {
        return train_measure_input(&bench->task, input, err);
    }
    *input =
        (struct weir_net_input){.shape = weir_model_spec_input(bench->task.spec), .std = {1, 1, 1}};
    return WEIR_OK;
}

weir_status training_worker_open(struct training_worker *bench, struct weir_error *err)
{
    struct worker *worker = &bench->worker;
    bool is_independent = bench->plan->exchange == TRAINING_INDEPENDENT;
    worker->task = &bench->task;
    worker->comm = is_independent ? bench->alone : bench->group;
    worker->rank = weir_comm_rank(worker->comm);
    worker->n_workers = weir_comm_n_workers(worker->comm);
    worker->saving.step = UINT64_MAX;
    WEIR_TRY(measure_input(bench, err));
    if (bench->plan->options.is_forward_only) {
        WEIR_TRY(make_forward_net(bench, err));
    } else {
        if (bench->plan->options.emulate_fabric > 0) {
            /* Its speed is set when it is known: from now on there is a network between workers. */
            weir_comm_emulate_link(bench->group, INFINITY);
        }
        WEIR_TRY(worker_prepare(worker, err));
        WEIR_TRY(training_worker_set_alone(bench, bench->plan->options.emulate_fabric > 0, err));
    }
    return bench->plan->options.data_dir != NULL ? start_loader(bench, err) : draw(bench, err);
}

void training_worker_close(struct training_worker *bench)
{
    if (bench->worker.optimizer == bench->own_optimizer) {
        bench->worker.optimizer = NULL;
    }
    weir_optimizer_destroy(bench->own_optimizer);
    worker_release(&bench->worker);
    train_task_close(&bench->task);
    free(bench->labels);
}
