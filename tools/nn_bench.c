/*
 * nn-bench MODEL [flags]: how fast a net of the zoo trains or infers on a back-end. Input and
 * weights are random, a pure function of the seed, and the batch is the same in every step. A run
 * is as many steps as take --seconds, queued one after the other and awaited at its end. Printed is
 * the median run. bench/gpu.py puts it beside PyTorch.
 *
 * inception3 is the zoo's inception_v3. All models have 1000 classes and their own input size.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "base/options.h"
#include "base/rng.h"
#include "nn/nn.h"
#include "nn/optimizer.h"
#include "nn/profile.h"
#include "nn/zoo.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_CLASSES   1000
#define N_TRIAL     3 /* steps that are timed to learn how many a run takes */
#define RUN_STEPS   10
#define STEPS_MAX   1000000
#define SAMPLES_MAX ((size_t)1 << 24)

struct options {
    char *backend, *precision, *output, *trace;
    int64_t batch, steps, warmup, repetitions, threads, seed;
    double seconds, learning_rate;
    bool is_inference, is_latency, is_upload, keeps_all, is_help;
};

// clang-format off
#define OPT(member, name, type, fallback, low, high, arg, doc)                                     \
    WEIR_OPT(options, member, name, 0, type, fallback, low, high, arg, doc)

static const struct weir_option options_table[] = {
    OPT(backend,       "backend",       TEXT, "onednn", 0, 0, "NAME", "Back-end: cuda, onednn or reference"),
    OPT(precision,     "precision",     TEXT, "f32",    0, 0, "TYPE", "f32, tf32, bf16 or fp16"),
    OPT(batch,         "batch",         INT,  "64",     1, 65536, "N", "Images of a step"),
    OPT(is_inference,  "inference",     BOOL, NULL,     0, 0, NULL, "Forward passes in inference form instead of training steps"),
    OPT(is_latency,    "latency",       BOOL, NULL,     0, 0, NULL, "Inference: await each forward pass, with the upload of its pictures"),
    OPT(is_upload,     "upload",        BOOL, NULL,     0, 0, NULL, "Ask for the input before each step, so that the batch is copied each time"),
    OPT(keeps_all,     "keeps-all",     BOOL, NULL,     0, 0, NULL, "Keep every value that backward reads"),
    OPT(steps,         "steps",         INT,  "0",      0, STEPS_MAX, "N", "Steps of a run; 0: as many as take --seconds, at least 10"),
    OPT(warmup,        "warmup",        INT,  "10",     1, STEPS_MAX, "N", "Steps before"),
    OPT(repetitions,   "repetitions",   INT,  "5",      1, 1000, "N", "Runs"),
    OPT(seconds,       "seconds",       F64,  "1",      0, 1e6, "X", "What a run takes"),
    OPT(learning_rate, "learning-rate", F64,  "0.001",  0, 1e6, "X", "Of SGD with momentum 0.9"),
    OPT(threads,       "threads",       INT,  "0",      0, 1024, "N", "Threads; 0: one for each CPU"),
    OPT(seed,          "seed",          INT,  "1",      0, 0, "N", "Of pictures, labels and weights"),
    OPT(trace,         "trace",         TEXT, NULL,     0, 0, "FILE", "Afterwards, write what each operation of three more steps took, for chrome://tracing"),
    { .name = "output", .short_name = 'o', .type = WEIR_OPTION_TEXT, .offset = offsetof(struct options, output),
      .fallback = "text", .arg = "text|json", .doc = "What to print", .words = WEIR_WORDS("text", "json") },
    { .name = "help", .short_name = 'h', .type = WEIR_OPTION_BOOL, .offset = offsetof(struct options, is_help), .doc = "Show this list" },
};

// clang-format on

struct bench {
    const struct options *options;
    const char *model;
    struct weir_graph *graph;
    struct weir_net *net;
    struct weir_optimizer *optimizer; /**< NULL: inference. */
    uint64_t i_step;
    int64_t n_steps;  /**< Of a run. */
    double *samples;  /**< Seconds of each run, or of each awaited forward pass. */
    size_t n_samples; /**< Taken so far. */
    double plan_s, first_step_s, loss_first, loss_last;
    struct weir_error err;
};

/* ---- set-up ------------------------------------------------------------------------------ */

static weir_status plan_net(struct bench *bench)
{
    const struct options *o = bench->options;
    struct weir_net_config config = {.batch = (int32_t)o->batch,
                                     .n_threads = (int32_t)o->threads,
                                     .is_training = !o->is_inference,
                                     .keeps_all = o->keeps_all,
                                     .seed = (uint64_t)o->seed,
                                     .backend = weir_backend_find(o->backend)};
    if (config.backend == NULL) {
        return weir_error_set(&bench->err, WEIR_ERR_NOT_FOUND, "there is no back-end \"%s\"",
                              o->backend);
    }
    WEIR_TRY(weir_precision_parse(o->precision, &config.precision, &bench->err));
    WEIR_TRY(weir_zoo_build(strcmp(bench->model, "inception3") == 0 ? "inception_v3" : bench->model,
                            NULL, N_CLASSES, &bench->graph, &bench->err));
    uint64_t begin = weir_mono_ns();
    WEIR_TRY(weir_net_create(bench->graph, &config, &bench->net, &bench->err));
    bench->plan_s = (double)(weir_mono_ns() - begin) / 1e9;
    return WEIR_OK;
}

static weir_status make_optimizer(struct bench *bench)
{
    struct weir_optimizer_config config;
    size_t n_params = 0;
    const struct weir_param *params = weir_net_params(bench->net, &n_params);
    WEIR_TRY(weir_optimizer_defaults("sgd", &config, &bench->err));
    config.momentum = 0.9;
    return weir_optimizer_create(&config, params, n_params, &bench->optimizer, &bench->err);
}

static void fill_batch(struct bench *bench)
{
    struct weir_rng rng;
    struct weir_shape shape = weir_graph_input_shape(bench->graph);
    size_t n_images = (size_t)bench->options->batch;
    size_t n = n_images * (size_t)shape.c * (size_t)shape.h * (size_t)shape.w;
    float *input = weir_net_input(bench->net);
    int32_t *labels = weir_net_labels(bench->net);
    weir_rng_init(&rng, (uint64_t)bench->options->seed, 0);
    for (size_t i = 0; i < n; i++) {
        input[i] = 2 * weir_rng_f32(&rng) - 1;
    }
    for (size_t i = 0; i < n_images; i++) {
        labels[i] = (int32_t)weir_rng_below(&rng, N_CLASSES);
    }
}

static weir_status prepare(struct bench *bench)
{
    WEIR_TRY(plan_net(bench));
    if (!bench->options->is_inference) {
        WEIR_TRY(make_optimizer(bench));
    }
    weir_net_init_weights(bench->net, (uint64_t)bench->options->seed);
    fill_batch(bench);
    return WEIR_OK;
}

/* ---- measurement ------------------------------------------------------------------------- */

/** Queues a training step or a forward pass. With a result it waits. */
static weir_status do_step(struct bench *bench, struct weir_step_result *result)
{
    const struct options *o = bench->options;
    if (o->is_upload || o->is_latency) {
        (void)weir_net_input(bench->net);
    }
    if (bench->optimizer == NULL) {
        return result == NULL && !o->is_latency
                   ? weir_net_begin_forward(bench->net, (int32_t)o->batch)
                   : weir_net_forward(bench->net, (int32_t)o->batch, result);
    }
    WEIR_TRY(weir_net_step(bench->net, bench->i_step, NULL, NULL, result));
    weir_optimizer_update_net(bench->optimizer, bench->net, NULL, o->learning_rate, bench->i_step);
    bench->i_step++;
    return WEIR_OK;
}

static weir_status measure_loss(struct bench *bench, double *out)
{
    struct weir_step_result result;
    WEIR_TRY(do_step(bench, &result));
    *out = result.loss;
    return weir_net_wait(bench->net);
}

static weir_status time_steps(struct bench *bench, int64_t n, double *out_s)
{
    uint64_t begin = weir_mono_ns();
    for (int64_t i = 0; i < n; i++) {
        WEIR_TRY(do_step(bench, NULL));
    }
    WEIR_TRY(weir_net_wait(bench->net));
    *out_s = (double)(weir_mono_ns() - begin) / 1e9;
    return WEIR_OK;
}

static weir_status warm_up(struct bench *bench)
{
    double seconds = 0;
    uint64_t begin = weir_mono_ns();
    WEIR_TRY(measure_loss(bench, &bench->loss_first));
    bench->first_step_s = (double)(weir_mono_ns() - begin) / 1e9;
    return time_steps(bench, bench->options->warmup - 1, &seconds);
}

static weir_status choose_n_steps(struct bench *bench)
{
    double seconds = 0;
    bench->n_steps = bench->options->steps;
    if (bench->n_steps == 0) {
        WEIR_TRY(time_steps(bench, N_TRIAL, &seconds));
        double n = ceil(bench->options->seconds * N_TRIAL / seconds);
        bench->n_steps = (int64_t)WEIR_MIN(WEIR_MAX(n, RUN_STEPS), STEPS_MAX);
    }
    return WEIR_OK;
}

/** A run. It leaves one sample, or one for each awaited pass. */
static weir_status sample_run(struct bench *bench)
{
    bool awaits = bench->options->is_latency;
    for (int64_t i = 0; i < (awaits ? bench->n_steps : 1); i++) {
        double *sample = &bench->samples[bench->n_samples];
        WEIR_TRY(time_steps(bench, awaits ? 1 : bench->n_steps, sample));
        bench->n_samples++;
    }
    return WEIR_OK;
}

static weir_status measure_steps(struct bench *bench)
{
    WEIR_TRY(warm_up(bench));
    WEIR_TRY(choose_n_steps(bench));
    size_t n = (size_t)bench->options->repetitions *
               (size_t)(bench->options->is_latency ? bench->n_steps : 1);
    bench->samples = n > SAMPLES_MAX ? NULL : calloc(n, sizeof *bench->samples);
    if (bench->samples == NULL) {
        return WEIR_ERR_NOMEM;
    }
    for (int64_t i = 0; i < bench->options->repetitions; i++) {
        WEIR_TRY(sample_run(bench));
    }
    return measure_loss(bench, &bench->loss_last);
}

static weir_status measure(struct bench *bench)
{
    weir_status status = measure_steps(bench);
    return status == WEIR_OK
               ? WEIR_OK
               : weir_error_set(&bench->err, status, "step %llu failed: %s",
                                (unsigned long long)bench->i_step, weir_status_text(status));
}

#define TRACED_STEPS 3

static weir_status trace(struct bench *bench)
{
    struct weir_profile *profile = NULL;
    double seconds = 0;
    WEIR_TRY(weir_profile_create(bench->net, TRACED_STEPS, &profile, &bench->err));
    weir_status status = time_steps(bench, TRACED_STEPS, &seconds);
    if (status == WEIR_OK) {
        status = weir_profile_write(profile, bench->options->trace, 0, 0, &bench->err);
    }
    weir_profile_destroy(profile);
    return status;
}

/* ---- report ------------------------------------------------------------------------------ */

/** What is printed. */
struct report {
    double step_ms, images_per_s, spread, p99_ms, flop_per_image;
};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(const double *sorted, size_t n)
{
    return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

/** Sorts the samples. */
static struct report report_of(struct bench *bench)
{
    const struct options *o = bench->options;
    size_t n = bench->n_samples;
    double *s = bench->samples, n_steps = o->is_latency ? 1 : (double)bench->n_steps;
    qsort(s, n, sizeof *s, compare);
    double median = median_of(s, n);
    int64_t macs =
        o->is_inference ? weir_graph_n_macs(bench->graph) : weir_graph_n_step_macs(bench->graph);
    return (struct report){.step_ms = 1e3 * median / n_steps,
                           .images_per_s = (double)o->batch * n_steps / median,
                           .spread = (s[n - 1] - s[0]) / median,
                           .p99_ms = 1e3 * s[(size_t)ceil(0.99 * (double)n) - 1] / n_steps,
                           .flop_per_image = 2 * (double)macs};
}

/** JSON has no NaN. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static const char *mode_of(const struct options *o)
{
    return !o->is_inference ? "training" : o->is_latency ? "latency" : "inference";
}

static void print_json(const struct bench *bench, const struct report *r)
{
    const struct options *o = bench->options;
    json_t *root = json_pack("{ss ss ss ss ss sI sb sb sI sI sI}", "program", "weir", "model",
                             bench->model, "mode", mode_of(o), "backend", o->backend, "precision",
                             o->precision, "batch", (json_int_t)o->batch, "upload",
                             o->is_upload || o->is_latency, "keeps_all", o->keeps_all, "steps",
                             (json_int_t)bench->n_steps, "repetitions", (json_int_t)o->repetitions,
                             "memory_bytes", (json_int_t)weir_net_memory_bytes(bench->net));
    json_t *figures = json_pack(
        "{so so so so so so so so so}", "images_per_s", number(r->images_per_s), "spread",
        number(r->spread), "step_ms", number(r->step_ms), "loss_first", number(bench->loss_first),
        "loss_last", number(bench->loss_last), "plan_s", number(bench->plan_s), "first_step_s",
        number(bench->first_step_s), "flop_per_image", number(r->flop_per_image), "flop_per_s",
        number(r->flop_per_image * r->images_per_s));
    (void)json_object_update(root, figures);
    if (o->is_latency) {
        (void)json_object_set_new(root, "p99_ms", number(r->p99_ms));
    }
    char *text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(7));
    (void)printf("%s\n", text != NULL ? text : "{}");
    free(text);
    json_decref(figures);
    json_decref(root);
}

static void print_text(const struct bench *bench, const struct report *r)
{
    const struct options *o = bench->options;
    (void)printf("%s, %s, %s, %s, batch %lld\n", bench->model, mode_of(o), o->backend, o->precision,
                 (long long)o->batch);
    if (o->is_latency) {
        (void)printf("  latency      %.3f ms (median of %zu), %.3f ms (p99)\n", r->step_ms,
                     bench->n_samples, r->p99_ms);
    } else {
        (void)printf("  speed        %.1f images/s, median of %zu runs of %lld steps; "
                     "(largest - smallest) / median %.1f %%\n",
                     r->images_per_s, bench->n_samples, (long long)bench->n_steps, 100 * r->spread);
        (void)printf("  step         %.3f ms\n", r->step_ms);
    }
    (void)printf("  operations   %.4g FLOP an image, %.4g FLOP/s\n", r->flop_per_image,
                 r->flop_per_image * r->images_per_s);
    (void)printf("  memory       %.1f MiB\n",
                 (double)weir_net_memory_bytes(bench->net) / (1 << 20));
    (void)printf("  loss         %.4f in the first step, %.4f in the last\n", bench->loss_first,
                 bench->loss_last);
    (void)printf("  start        %.2f s to plan, %.3f s for the first step\n", bench->plan_s,
                 bench->first_step_s);
}

/* ---- program ----------------------------------------------------------------------------- */

static void print_help(void)
{
    (void)printf("usage: nn-bench MODEL [flags]\n\n");
    weir_options_print(options_table, WEIR_ARRAY_LEN(options_table), stdout);
}

static weir_status run(struct bench *bench)
{
    WEIR_TRY(prepare(bench));
    WEIR_TRY(measure(bench));
    if (bench->options->trace != NULL) {
        WEIR_TRY(trace(bench));
    }
    struct report report = report_of(bench);
    if (strcmp(bench->options->output, "json") == 0) {
        print_json(bench, &report);
    } else {
        print_text(bench, &report);
    }
    return WEIR_OK;
}

static weir_status check(const struct options *options, size_t n_words, struct weir_error *err)
{
    if (n_words != 1) {
        return weir_error_set(err, WEIR_ERR_INVALID, "expected one model; --help lists the flags");
    }
    return options->is_latency && !options->is_inference
               ? weir_error_set(err, WEIR_ERR_INVALID, "--latency is for --inference")
               : WEIR_OK;
}

int main(int argc, char **argv)
{
    struct weir_arena arena;
    struct options options = {.is_help = false};
    struct bench bench = {.options = &options};
    char **words = NULL;
    size_t n_words = 0;
    weir_arena_init(&arena, 0);
    weir_status status =
        weir_options_parse(options_table, WEIR_ARRAY_LEN(options_table), argc - 1, argv + 1, &arena,
                           &options, &words, &n_words, &bench.err);
    if (status == WEIR_OK && options.is_help) {
        print_help();
    } else if (status == WEIR_OK) {
        status = check(&options, n_words, &bench.err);
        if (status == WEIR_OK) {
            bench.model = words[0];
            status = run(&bench);
        }
    }
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "nn-bench: %s\n", bench.err.message);
    }
    free(bench.samples);
    weir_optimizer_destroy(bench.optimizer);
    weir_net_destroy(bench.net);
    weir_graph_destroy(bench.graph);
    weir_arena_fini(&arena);
    return status == WEIR_OK ? 0 : 1;
}
