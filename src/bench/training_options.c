#include "bench/training.h"

#include <stdlib.h>
#include <string.h>

#define ARG_BYTES    128
#define RATE_DEFAULT 0.005 /* tf_cnn_benchmarks' of most models */
#define BATCHES_MAX  1000000
#define STEPS_MAX    1000000 /* as many epochs of one step as a training may have */

// clang-format off
#define OPT(member, name, type, fallback, low, high, arg, doc)                                     \
    WEIR_OPT(training_options, member, name, 0, type, fallback, low, high, arg, doc)

static const struct weir_option options[] = {
    OPT(model,              "model",              TEXT, "trivial",  0, 0, "NAME|FILE", "Model of the zoo or of tf_cnn_benchmarks, or a model file"),
    OPT(batch_size,         "batch-size",         INT,  "0",        0, 1 << 20, "N", "Pictures of a step of each worker; 0: the model's"),
    OPT(num_batches,        "num-batches",        INT,  "100",      1, BATCHES_MAX, "N", "Steps to measure"),
    OPT(num_epochs,         "num-epochs",         F64,  "0",        0, 1e6, "X", "Measure so many passes over the data instead; wants --data-dir"),
    OPT(num_warmup_batches, "num-warmup-batches", INT,  "10",       0, BATCHES_MAX, "N", "Steps before"),
    OPT(display_every,      "display-every",      INT,  "10",       1, BATCHES_MAX, "N", "A line after each N steps"),
    OPT(data_dir,           "data-dir",           TEXT, NULL,       0, 0, "DIR", "Pictures to train on; without: random ones, the same in every step"),
    OPT(is_forward_only,    "forward-only",       BOOL, NULL,       0, 0, NULL, "Measure inference"),
    OPT(optimizer,          "optimizer",          TEXT, "sgd",      0, 0, "NAME", "sgd (without momentum), momentum, rmsprop or adam, or one of weir train"),
    OPT(init_learning_rate, "init-learning-rate", F64,  "0",        0, 1e6, "X", "Learning rate; 0: 0.005"),
    OPT(momentum,           "momentum",           F64,  "0.9",      0, 1, "X", "Of momentum and rmsprop"),
    OPT(weight_decay,       "weight-decay",       F64,  "0.00004",  0, 1e6, "X", "Weight decay"),
    OPT(uses_bf16,          "use-bf16",           BOOL, NULL,       0, 0, NULL, "Compute in bfloat16, with weights in f32"),
    OPT(backend,            "backend",            TEXT, "onednn",   0, 0, "NAME", "onednn, cuda (an NVIDIA GPU) or reference"),
    OPT(convolution,        "convolution",        TEXT, "auto",     0, 0, "NAME", "3x3 convolutions in f32: direct, winograd (a quarter of the products, several times the rounding error), or auto: winograd where it is faster"),
    OPT(data_format,        "data-format",        TEXT, NULL,       0, 0, "NAME", "What the back-end computes in: NHWC of onednn, NCHW of reference; another is refused"),
    OPT(threads,            "threads",            INT,  "0",        0, 1024, "N", "Computing threads of a worker; 0: the CPUs of its host divided by the workers there; also --num-intra-threads"),
    OPT(workers,            "workers",            INT,  "0",        0, WEIR_COMM_MAX_RANKS, "N", "Data-parallel workers; 0: as many as the hosts have room for, here 1"),
    OPT(variable_update,    "variable-update",    TEXT, "replicated", 0, 0, "MODE", "replicated, distributed_all_reduce, collective_all_reduce, horovod: all-reduce; parameter_server, distributed_replicated: servers; independent: none"),
    OPT(all_reduce_spec,    "all-reduce-spec",    TEXT, "auto",     0, 0, "SPEC", "How gradients are summed between hosts: auto, flat, direct, ring, halving, tree, or by size: flat:8K:ring"),
    OPT(wire,               "wire",               TEXT, "f32",      0, 0, "TYPE", "What gradients are sent as between hosts: f32, bf16 or fp16"),
    OPT(num_ps,             "num-ps",             INT,  "1",        0, WEIR_COMM_MAX_RANKS - 1, "N", "Parameter servers, where they are used; 0: the workers themselves, each of a part of the weights"),
    OPT(hosts,              "hosts",              TEXT, NULL,       0, 0, "LIST", "Start the ranks there: a,b or a:2,b:2"),
    OPT(launcher,           "launcher",           TEXT, "auto",     0, 0, "NAME", "local, ssh, srun, or auto: ssh with --hosts, srun inside a Slurm allocation"),
    OPT(transport,          "transport",          TEXT, "auto",     0, 0, "NAME", "auto, shm, tcp or ucx"),
    OPT(rendezvous,         "rendezvous",         TEXT, NULL,       0, 0, "URL", "Where ranks on several hosts meet: tcp://HOST:PORT of the first host"),
    OPT(emulate_fabric,     "emulate-fabric",     INT,  "0",        0, 1000, "GBIT", "Slow the exchange down to what it would be on this Ethernet with --accelerator: 10, 25, 100"),
    OPT(accelerator,        "accelerator",        TEXT, "p100",     0, 0, "NAME", "p100 or v100"),
    OPT(trace_file,         "trace-file",         TEXT, NULL,       0, 0, "FILE", "Write a Chrome trace of every operation of worker 0"),
    OPT(profile_steps,      "profile-steps",      INT,  "1",        1, 1000, "N", "Steps in the trace; they come after the measured ones"),
    OPT(seed,               "seed",               INT,  "1",        0, 0, "N", "Of pictures, labels and initial weights"),
    { .name = "output", .short_name = 'o', .type = WEIR_OPTION_TEXT, .offset = offsetof(struct training_options, output),
      .fallback = "text", .arg = "text|json", .doc = "What to print" },
    { .name = "help", .short_name = 'h', .type = WEIR_OPTION_BOOL, .offset = offsetof(struct training_options, is_help), .doc = "Show this list" },
};

/** A flag of tf_cnn_benchmarks that can say only one thing here, or nothing. */
struct foreign_flag {
    const char *name;
    const char *accepted; /**< Values that say what is so anyway, each followed by a space. */
    bool is_bool;
    const char *advice;
};

static const struct foreign_flag foreign[] = {
    {"num-gpus",               "0 1 ", false, "there are no GPUs in this build: each worker is one device, see --workers"},
    {"device",                 "cpu ", false, "this build computes on the CPU"},
    {"local-parameter-device", "cpu ", false, "parameters lie where their worker or server is"},
    {"param-server-device",    "cpu ", false, "parameters lie where their worker or server is"},
    {"cross-replica-sync",     "true ", true, "updates are synchronous; --variable-update=independent has none"},
    {"variable-consistency",   "strong ", false, "updates are synchronous"},
    {"server-protocol",        "grpc ", false, "there is no gRPC between ranks: choose with --transport, and RDMA with UCX_TLS"},
    {"num-inter-threads",      "0 ", false, "a worker has one set of threads: --threads"},
    {"batch-group-size",       "1 ", false, "batches are made one by one"},
    {"use-fp16",               "false ", true, "bfloat16 needs no loss scale: --use-bf16"},
    {"fp16-loss-scale",        "", false, "bfloat16 needs none: --use-bf16"},
    {"fp16-vars",              "false ", true, "weights are f32: --use-bf16 computes in bfloat16"},
    {"fp16-enable-auto-loss-scale", "false ", true, "bfloat16 needs none: --use-bf16"},
    {"eval",                   "false ", true, "measure a model's accuracy with weir evaluate, its speed with --forward-only"},
    {"print-training-accuracy", "false ", true, "weir train shows it"},
    {"stop-at-top-1-accuracy", "", false, "weir train with --epochs"},
    {"job-name",               "", false, "one command starts all ranks: --hosts, --workers, --num-ps"},
    {"ps-hosts",               "", false, "one command starts all ranks: --hosts, --num-ps"},
    {"worker-hosts",           "", false, "one command starts all ranks: --hosts, --workers"},
    {"task-index",             "", false, "one command starts all ranks: --hosts, --workers"},
    {"gradient-repacking",     "0 ", false, "gradients are summed where they lie, in buckets"},
    {"compact-gradient-transfer", "true ", true, "it compresses what fp16 makes; there is none"},
    {"agg-small-grads-max-bytes", "0 ", false, "gradients are summed in buckets of 1 MiB"},
    {"agg-small-grads-max-group", "10 ", false, "gradients are summed in buckets of 1 MiB"},
    {"hierarchical-copy",      "false ", true, "ranks of one host sum in shared memory"},
    {"staged-vars",            "false ", true, "weights are renewed in place"},
    {"gradient-clip",          "", false, "weir train --clip-norm"},
    {"piecewise-learning-rate-schedule", "", false, "weir train --schedule piecewise"},
    {"tfprof-file",            "", false, "--trace-file has times, FLOP and bytes of each operation"},
    {"train-dir",              "", false, "weir train writes checkpoints"},
    {"save-model-secs",        "0 ", false, "weir train writes checkpoints"},
    {"max-ckpts-to-keep",      "", false, "weir train writes checkpoints"},
    {"data-name",              "imagenet ", false, "what --data-dir holds is found out"},
    {"distortions",            "false ", true, "pictures are taken as they are; weir train --augment"},
    {"use-datasets",           "true ", true, "there is one way to read them"},
    {"loss-type-to-report",    "base_loss ", false, "the loss is that of the labels, without weight decay"},
    {"summary-verbosity",      "0 ", false, "weir train reports to a server"},
    {"horovod-device",         "cpu ", false, "gradients are summed by the CPU"},
    {"allow-growth",           "false ", true, "there are no GPUs in this build"},
    {"winograd-nonfused",      "false ", true, "there are no GPUs in this build"},
    {"batchnorm-persistent",   "false ", true, "there are no GPUs in this build"},
    {"xla",                    "false ", true, "there is no other compiler"},
    {"mkl",                    "true ", true, "--backend onednn is the same library"},
    {"kmp-blocktime",          "", false, "threads wait by themselves"},
};

/** How gradients travel under each name. */
static const struct {
    const char *name;
    enum training_exchange exchange;
} updates[] = {
    {"replicated",             TRAINING_ALL_REDUCE},
    {"distributed_all_reduce", TRAINING_ALL_REDUCE},
    {"collective_all_reduce",  TRAINING_ALL_REDUCE},
    {"horovod",                TRAINING_ALL_REDUCE},
    {"parameter_server",       TRAINING_SERVERS},
    {"distributed_replicated", TRAINING_SERVERS},
    {"independent",            TRAINING_INDEPENDENT},
};

// clang-format on

const struct weir_option *training_option_table(size_t *out_n)
{
    *out_n = WEIR_ARRAY_LEN(options);
    return options;
}

/* ---- arguments ------------------------------------------------------------------------------ */

/** "--batch_size=8" as "--batch-size=8", "=True" as "=true", "--num_intra_threads" as "--threads".
 */
static char *plain_arg(const char *arg, struct weir_arena *arena)
{
    static const char alias[] = "--num-intra-threads";
    char *copy = weir_arena_strdup(arena, arg);
    if (strncmp(arg, "--", 2) != 0) {
        return copy;
    }
    char *value = copy + strcspn(copy, "=");
    for (char *at = copy; at < value; at++) {
        *at = *at == '_' ? '-' : *at;
    }
    if (strcmp(value, "=True") == 0 || strcmp(value, "=False") == 0) {
        value[1] = value[1] == 'T' ? 't' : 'f';
    }
    if ((size_t)(value - copy) == sizeof alias - 1 && strncmp(copy, alias, sizeof alias - 1) == 0) {
        return weir_arena_printf(arena, "--threads%s", value);
    }
    return copy;
}

static const struct foreign_flag *find_foreign(const char *arg, bool *out_is_negated)
{
    size_t len = strcspn(arg + 2, "=");
    *out_is_negated = strncmp(arg, "--no", 4) == 0;
    for (size_t i = 0; strncmp(arg, "--", 2) == 0 && i < WEIR_ARRAY_LEN(foreign); i++) {
        const char *name = foreign[i].name;
        if (strlen(name) == len && strncmp(arg + 2, name, len) == 0) {
            *out_is_negated = false;
            return &foreign[i];
        }
        size_t skip = strncmp(arg, "--no-", 5) == 0 ? 5 : 4;
        if (*out_is_negated && foreign[i].is_bool && strcmp(arg + skip, name) == 0) {
            return &foreign[i];
        }
    }
    return NULL;
}

static bool is_accepted(const struct foreign_flag *flag, const char *value)
{
    char arg[ARG_BYTES];
    int len = snprintf(arg, sizeof arg, "%s ", value);
    const char *at = len < (int)sizeof arg ? strstr(flag->accepted, arg) : NULL;
    return at != NULL && (at == flag->accepted || at[-1] == ' ');
}

/** Take out what only says how it is anyway; refuse what asks for something else. */
static weir_status sort_args(int argc, char *const *argv, struct weir_arena *arena, char **out,
                             int *out_n, struct weir_error *err)
{
    int n = 0;
    for (int i = 0; i < argc; i++) {
        bool is_negated = false;
        char *arg = plain_arg(argv[i], arena);
        const struct foreign_flag *flag = find_foreign(arg, &is_negated);
        if (flag == NULL) {
            out[n++] = arg;
            continue;
        }
        const char *value = strchr(arg, '=');
        if (value != NULL) {
            value++;
        } else if (flag->is_bool) {
            value = is_negated ? "false" : "true";
        } else {
            value = i + 1 < argc ? argv[++i] : "";
        }
        if (!is_accepted(flag, value)) {
            return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "not supported: --%s=%.60s: %s",
                                  flag->name, value, flag->advice);
        }
    }
    *out_n = n;
    return WEIR_OK;
}

/* ---- meaning -------------------------------------------------------------------------------- */

static weir_status find_exchange(struct training_plan *plan, struct weir_error *err)
{
    const struct training_options *o = &plan->options;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(updates); i++) {
        if (strcmp(updates[i].name, o->variable_update) == 0) {
            plan->exchange = o->is_forward_only ? TRAINING_INDEPENDENT : updates[i].exchange;
            if (plan->exchange == TRAINING_SERVERS && o->num_ps == 0) {
                plan->exchange = TRAINING_SHARED;
            }
            return WEIR_OK;
        }
    }
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "variable-update: \"%.40s\" is none of replicated, "
                          "distributed_all_reduce, collective_all_reduce, horovod, "
                          "parameter_server, distributed_replicated, independent",
                          o->variable_update);
}

static weir_status check_args(const struct training_plan *plan, struct weir_error *err)
{
    const struct training_options *o = &plan->options;
    const char *format = strcmp(o->backend, "reference") == 0 ? "NCHW" : "NHWC";
    if (o->data_format != NULL && strcmp(o->data_format, format) != 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "not supported: --data-format=%.20s: the back-end %.20s computes in "
                              "%s",
                              o->data_format, o->backend, format);
    }
    if (plan->model.advice != NULL) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "not supported: --model=%s: %s", o->model,
                              plan->model.advice);
    }
    if (strpbrk(o->all_reduce_spec, "/") != NULL || strncmp(o->all_reduce_spec, "nccl", 4) == 0 ||
        strncmp(o->all_reduce_spec, "ps", 2) == 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "not supported: --all-reduce-spec=%.60s: take auto, flat, direct, "
                              "ring, halving or tree, or some of them by size; ranks of one host "
                              "sum in shared memory",
                              o->all_reduce_spec);
    }
    if (strcmp(o->output, "text") != 0 && strcmp(o->output, "json") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--output: expected text or json, got \"%.40s\"", o->output);
    }
    if (o->num_epochs > 0 && o->data_dir == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "num-epochs: random pictures have no epochs; say --num-batches");
    }
    return WEIR_OK;
}

static weir_status check_fabric(const struct training_plan *plan, struct weir_error *err)
{
    const struct training_options *o = &plan->options;
    double ignored = 0;
    if (o->emulate_fabric == 0) {
        return WEIR_OK;
    }
    if (plan->exchange == TRAINING_INDEPENDENT) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "emulate-fabric: nothing is exchanged; take another "
                              "--variable-update, without --forward-only");
    }
    return training_accelerator_step_s(o->accelerator, &plan->model, 1, &ignored, err);
}

/** tf_cnn_benchmarks' optimisers by the product's names. */
static void set_optimizer(struct training_plan *plan, struct weir_arena *arena)
{
    const struct training_options *o = &plan->options;
    struct weir_train_config *config = &plan->config;
    config->optimizer.momentum = o->momentum;
    config->optimizer.name = o->optimizer;
    if (strcmp(o->optimizer, "sgd") == 0) {
        config->optimizer.momentum = 0;
    } else if (strcmp(o->optimizer, "momentum") == 0) {
        config->optimizer.name = weir_arena_strdup(arena, "sgd");
    } else if (strcmp(o->optimizer, "rmsprop") == 0) {
        config->optimizer.name = weir_arena_strdup(arena, "rmsprop:alpha=0.9,epsilon=1");
    }
}

static weir_status set_config(struct training_plan *plan, struct weir_arena *arena,
                              struct weir_error *err)
{
    const struct training_options *o = &plan->options;
    struct weir_train_config *config = &plan->config;
    int64_t batch = o->batch_size > 0 ? o->batch_size : plan->model.batch_size;
    bool is_shared = plan->exchange != TRAINING_INDEPENDENT;
    weir_training_defaults(config, arena);
    config->model.name =
        weir_arena_strdup(arena, plan->model.zoo != NULL ? plan->model.zoo : plan->model.name);
    config->data.path = o->data_dir != NULL ? o->data_dir : weir_arena_strdup(arena, "synthetic");
    config->loop.batch_size = batch * (is_shared ? plan->n_workers : 1);
    config->group.workers = is_shared ? plan->n_workers : 1;
    config->group.parameter_servers = plan->n_servers;
    config->exchange.shard_update = plan->exchange == TRAINING_SHARED;
    config->exchange.wire = o->wire;
    config->loop.gradient_parts = 1;
    config->loop.epochs = STEPS_MAX;
    config->optimizer.schedule = weir_arena_strdup(arena, "constant");
    config->optimizer.learning_rate =
        o->init_learning_rate > 0 ? o->init_learning_rate : RATE_DEFAULT;
    config->optimizer.weight_decay = o->weight_decay;
    config->loop.seed = o->seed;
    config->group.threads = o->threads;
    config->model.backend = o->backend;
    config->model.convolution = o->convolution;
    config->exchange.transport = o->transport;
    config->model.precision = weir_arena_strdup(arena, o->uses_bf16 ? "bf16" : "f32");
    set_optimizer(plan, arena);
    return weir_train_config_check(config, err);
}

const char *training_algorithm(const struct training_plan *plan)
{
    const char *spec = plan->options.all_reduce_spec;
    bool is_ring =
        strcmp(spec, "xring") == 0 ||
        (strcmp(spec, "auto") == 0 && strcmp(plan->options.variable_update, "horovod") == 0);
    return is_ring ? "ring" : strcmp(spec, "rechd") == 0 ? "halving" : spec;
}

struct weir_spawn_config training_spawn_config(const struct training_plan *plan, char *const *argv)
{
    const struct training_options *o = &plan->options;
    return (struct weir_spawn_config){.n_ranks = plan->n_workers + plan->n_servers,
                                      .hosts = o->hosts,
                                      .by = o->launcher,
                                      .argv = argv,
                                      .rendezvous = o->rendezvous};
}

/** Numbers of workers and servers: as given, or as many as there is room for. */
static weir_status set_ranks(struct training_plan *plan, int n_ranks, struct weir_error *err)
{
    const struct training_options *o = &plan->options;
    plan->n_servers = plan->exchange == TRAINING_SERVERS ? (int)o->num_ps : 0;
    plan->n_workers = (int)o->workers;
    if (n_ranks > 0) {
        plan->n_workers = n_ranks - plan->n_servers;
        return plan->n_workers > 0
                   ? WEIR_OK
                   : weir_error_set(err, WEIR_ERR_INVALID, "num-ps: no rank is left to work");
    }
    if (o->workers == 0) {
        const struct weir_spawn_config room = {.hosts = o->hosts, .by = o->launcher};
        WEIR_TRY(weir_spawn_count(&room, &n_ranks, err));
        plan->n_workers = WEIR_MAX(n_ranks - plan->n_servers, 1);
    }
    const struct weir_spawn_config wanted = training_spawn_config(plan, NULL);
    return weir_spawn_count(&wanted, &n_ranks, err);
}

weir_status training_plan_parse(int argc, char *const *argv, int n_ranks, struct weir_arena *arena,
                                struct training_plan *out, struct weir_error *err)
{
    struct training_plan plan = {.is_json = false};
    char **args = WEIR_ARENA_ARRAY(arena, (size_t)argc + 1, char *), **rest = NULL;
    size_t n_rest = 0;
    int n_args = 0;
    WEIR_TRY(sort_args(argc, argv, arena, args, &n_args, err));
    WEIR_TRY(weir_options_parse(options, WEIR_ARRAY_LEN(options), n_args, args, arena,
                                &plan.options, &rest, &n_rest, err));
    if (n_rest > 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "\"%.60s\": expected a flag; --help lists them", rest[0]);
    }
    if (!plan.options.is_help) {
        plan.model = training_model_find(plan.options.model);
        plan.is_json = strcmp(plan.options.output, "json") == 0;
        WEIR_TRY(find_exchange(&plan, err));
        WEIR_TRY(check_args(&plan, err));
        WEIR_TRY(check_fabric(&plan, err));
        WEIR_TRY(set_ranks(&plan, n_ranks, err));
        WEIR_TRY(set_config(&plan, arena, err));
    }
    *out = plan;
    return WEIR_OK;
}
