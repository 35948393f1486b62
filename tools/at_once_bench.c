/*
 * at-once-bench MODEL WIDTH HEIGHT ROUNDS: what pictures cost a model on the processor when several are there at once: as one batch,
 * by more threads in one run, and by several models of one thread, each at pictures of its own. The ways take turns. Printed is the
 * median call of each, and what it makes a picture. WIDTH and HEIGHT are those of an input that has them free, and of an ONNX file that can be
 * given others; 0: as the file says.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "base/rng.h"
#include "serve/executor.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS_MAX  200
#define AT_ONCE_MAX 8
#define PART_CALLS  5

/** A way to run pictures. */
struct way {
    int64_t batch;
    int32_t n_threads; /**< Of each model. */
    size_t n_models;
};

static const struct way ways[] = {{1, 1, 1}, {2, 1, 1}, {4, 1, 1}, {8, 1, 1}, {1, 2, 1},
                                  {2, 2, 1}, {4, 2, 1}, {8, 2, 1}, {1, 1, 2}, {2, 1, 2}};

/** One model in a thread, with its input. */
struct runner {
    struct serve_model *model;
    struct weir_tensor *input;
    struct weir_error err;
    weir_status status;
    double ms[ROUNDS_MAX * PART_CALLS];
    size_t n;
};

static struct runner *runners[WEIR_ARRAY_LEN(ways)][AT_ONCE_MAX];

/* Only an ONNX file can be given a side that it says otherwise. */
static weir_status set_shape(const char *path, const int64_t sides[2], int64_t batch, bool is_net,
                             struct serve_port *port, struct weir_error *err)
{
    port->dims[0] = batch;
    for (int i = 2; i < 4; i++) {
        int64_t side = sides[3 - i];
        port->dims[i] = side > 0 && (!is_net || port->dims[i] < 0) ? side : port->dims[i];
        if (port->dims[i] < 0) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s leaves the sides free: give WIDTH and HEIGHT", path);
        }
    }
    return WEIR_OK;
}

static weir_status load(const char *path, const int64_t sides[2], const struct way *way,
                        struct runner *runner)
{
    char why[EXECUTOR_WHY_BYTES];
    struct serve_model *looked_at;
    struct executor_options options = {.n_threads = way->n_threads,
                                       .device = EXECUTOR_PROCESSOR,
                                       .batch_max = (int32_t)way->batch};
    WEIR_TRY(executor_choose(path, &options, &looked_at, why, &runner->err));
    struct serve_port port = looked_at->inputs[0];
    bool is_net = serve_model_format(looked_at) == WEIR_MODEL_FORMAT_WEIR;
    weir_status status =
        looked_at->n_inputs == 1 && port.rank == 4
            ? set_shape(path, sides, way->batch, is_net, &port, &runner->err)
            : weir_error_set(&runner->err, WEIR_ERR_UNSUPPORTED,
                             "%s does not take one input of four dimensions, pictures", path);
    if (status != WEIR_OK) {
        serve_model_unload(looked_at);
        return status;
    }
    options.shapes = is_net ? NULL : &port;
    options.n_shapes = is_net ? 0 : 1;
    status = executor_choose(path, &options, &runner->model, why, &runner->err);
    serve_model_unload(looked_at);
    WEIR_TRY(status);
    return weir_tensor_create(port.dtype, 4, port.dims, &runner->input, &runner->err);
}

static void fill(struct weir_tensor *input)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 1, 0);
    for (size_t i = 0; i < input->n_elems; i++) {
        uint64_t value = weir_rng_below(&rng, 256);
        if (input->dtype == WEIR_DTYPE_FLOAT) {
            ((float *)input->data)[i] = (float)value / 128 - 1;
        } else {
            ((uint8_t *)input->data)[i] = (uint8_t)value;
        }
    }
}

static void *run_part(void *context)
{
    struct runner *runner = context;
    struct weir_tensor *out[SERVE_PORTS_MAX] = {0};
    for (int i = 0; i < PART_CALLS && runner->status == WEIR_OK; i++) {
        uint64_t begin_ns = weir_mono_ns();
        runner->status = serve_model_run(runner->model, &runner->input, out, &runner->err);
        runner->ms[runner->n++] = (double)(weir_mono_ns() - begin_ns) / 1e6;
        serve_tensors_release(out, runner->model->n_outputs);
    }
    return NULL;
}

static weir_status run_way(const struct way *way, struct runner *const *those)
{
    pthread_t threads[AT_ONCE_MAX];
    for (size_t i = 1; i < way->n_models; i++) {
        if (pthread_create(&threads[i], NULL, run_part, those[i]) != 0) {
            return weir_error_set(&those[i]->err, WEIR_ERR_NOMEM, "no thread");
        }
    }
    (void)run_part(those[0]);
    for (size_t i = 1; i < way->n_models; i++) {
        pthread_join(threads[i], NULL);
    }
    return those[0]->status;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_way(const struct way *way, struct runner *runner)
{
    qsort(runner->ms, runner->n, sizeof runner->ms[0], compare);
    double ms = runner->ms[runner->n / 2];
    (void)printf("%6zu %8d %6lld %10.2f %13.2f\n", way->n_models, way->n_threads,
                 (long long)way->batch, ms, ms / (double)way->batch / (double)way->n_models);
}

static weir_status prepare(const char *path, const int64_t sides[2], const struct way *way,
                           struct runner *runner)
{
    WEIR_TRY(load(path, sides, way, runner));
    fill(runner->input);
    (void)run_part(runner); /* warm */
    runner->n = 0;
    return runner->status;
}

static weir_status measure(const char *path, const int64_t sides[2], long n_rounds,
                           struct weir_error *err)
{
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(ways); i++) {
        for (size_t k = 0; k < ways[i].n_models; k++) {
            struct runner *runner = runners[i][k] = weir_xalloc(sizeof *runner);
            *runner = (struct runner){0};
            status = prepare(path, sides, &ways[i], runner);
            if (status != WEIR_OK) {
                return weir_error_set(err, status, "%s", runner->err.message);
            }
        }
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(ways) * (size_t)n_rounds; i++) {
        size_t i_way = i % WEIR_ARRAY_LEN(ways);
        status = run_way(&ways[i_way], runners[i_way]);
        if (status != WEIR_OK) {
            return weir_error_set(err, status, "%s", runners[i_way][0]->err.message);
        }
    }
    (void)printf("models  threads  batch  ms a call  ms a picture\n");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(ways); i++) {
        print_way(&ways[i], runners[i][0]);
    }
    return WEIR_OK;
}

int main(int argc, char **argv)
{
    struct weir_error err;
    if (argc != 5) {
        (void)fprintf(stderr, "at-once-bench MODEL WIDTH HEIGHT ROUNDS\n");
        return 2;
    }
    const int64_t sides[2] = {strtol(argv[2], NULL, 10), strtol(argv[3], NULL, 10)};
    long n_rounds = strtol(argv[4], NULL, 10);
    if (sides[0] < 0 || sides[1] < 0 || n_rounds < 1 || n_rounds > ROUNDS_MAX) {
        (void)fprintf(stderr, "at-once-bench: sides from 0 on, 1 to %d rounds\n", ROUNDS_MAX);
        return 2;
    }
    if (measure(argv[1], sides, n_rounds, &err) != WEIR_OK) {
        (void)fprintf(stderr, "at-once-bench: %s\n", err.message);
        return 1;
    }
    return 0;
}
