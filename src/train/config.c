#include "train/config.h"

#include "comm/comm.h"
#include "train/recipe.h"

#include <stdlib.h>
#include <string.h>

#define SPEC_MAX_BYTES ((size_t)1 << 20)
#define EPOCHS_MAX     1000000
#define BATCH_MAX      (1 << 20)

// clang-format off
#define OPT(member, name, type, fallback, low, high, arg, doc)                                     \
    WEIR_OPT(weir_train_config, member, name, 0, type, fallback, low, high, arg, doc)

static const struct weir_option options[] = {
    OPT(spec,               "spec",               TEXT, NULL,       0, 0, "FILE", "Read all of this from a JSON file"),
    OPT(model,              "model",              TEXT, NULL,       0, 0, "NAME|FILE", "Built-in model, or a model file"),
    OPT(weights,            "weights",            TEXT, NULL,       0, 0, "FILE", "Start from these weights (safetensors, torchvision's names); a last layer of other classes begins anew"),
    OPT(input,              "input",              TEXT, NULL,       0, 0, "C,H,W", "Input of a built-in model instead of its own"),
    OPT(data,               "data",               TEXT, NULL,       0, 0, "DIR", "Training pictures: a folder per class, or IDX files"),
    OPT(data_kind,          "data-kind",          TEXT, "auto",     0, 0, "KIND", "auto, folder or idx"),
    OPT(validation,         "validation",         TEXT, NULL,       0, 0, "DIR", "Measure on these pictures after each epoch (IDX: the test split)"),
    OPT(augment,            "augment",            TEXT, "none",     0, 0, "POLICY", "none, flip, shift-flip, face or photo"),
    OPT(on_damage,          "on-damage",          TEXT, "skip",     0, 0, "RULE", "Damaged pictures: skip or fatal"),
    OPT(mirror_classes,     "mirror-classes",     BOOL, NULL,       0, 0, NULL, "Of an embedding: train on mirror images too, as further classes"),
    OPT(epochs,             "epochs",             INT,  "0",        0, EPOCHS_MAX, "N", "Passes over the data; 0: 10, or as many more as --steps needs"),
    OPT(steps,              "steps",              INT,  "0",        0, EPOCHS_MAX, "N", "Without --epochs: train for at least so many steps"),
    OPT(batch_size,         "batch-size",         INT,  "0",        0, BATCH_MAX, "N", "Pictures of a step, over all workers; 0: 64, or all if they are fewer"),
    OPT(micro_batches,      "micro-batches",      INT,  "1",        1, 1024, "N", "Compute each worker's part of a step in N runs and add up their gradients: needs less memory"),
    OPT(gradient_parts,     "gradient-parts",     INT,  "2",        1, 64, "N", "Of one worker: sum gradients over N parts of the batch, as N workers do: same bits as theirs"),
    OPT(optimizer,          "optimizer",          TEXT, "sgd",      0, 0, "NAME", "sgd, rmsprop, adam, adamw, lars or lamb, with settings: adamw:beta2=0.95"),
    OPT(learning_rate,      "learning-rate",      F64,  NULL,       0, 1e6, "X", "After warm-up; 0: the optimiser's own, 0.05 for sgd, 0.001 for adam"),
    OPT(momentum,           "momentum",           F64,  "0.9",      0, 1, "X", "Of sgd, rmsprop and lars"),
    OPT(weight_decay,       "weight-decay",       F64,  "0.0005",   0, 1e6, "X", "Of weights but not of biases and norms; in the gradient, of adamw and lamb beside it"),
    OPT(clip_norm,          "clip-norm",          F64,  "0",        0, 1e9, "X", "Make gradients no longer than this, over all weights; 0: as they are"),
    OPT(schedule,           "schedule",           TEXT, "cosine",   0, 0, "NAME", "cosine, step, piecewise, polynomial or constant, with settings: step:gamma=0.1"),
    OPT(warmup_epochs,      "warmup-epochs",      F64,  "0",        -1, EPOCHS_MAX, "X", "Epochs of linear warm-up; -1: a twentieth of all"),
    OPT(label_smoothing,    "label-smoothing",    F64,  "0",        0, 0.999, "X", "Part of a label that all classes share; not for embeddings"),
    OPT(average_decay,      "average-decay",      F64,  "0",        0, 0.9999999, "X", "Measure and export a moving average of the weights; 0: the weights of the last step"),
    OPT(seed,               "seed",               INT,  "1",        0, 0, "N", "Of order, augmentation, initial weights and dropout"),
    OPT(workers,            "workers",            INT,  "1",        1, WEIR_COMM_MAX_RANKS, "N", "Data-parallel workers"),
    OPT(parameter_servers,  "parameter-servers",  INT,  "0",        0, WEIR_COMM_MAX_RANKS - 1, "N", "Parameter servers; 0: all-reduce"),
    OPT(staleness,          "staleness",          INT,  "0",        0, 1000, "N", "With parameter servers: a worker may be so many steps ahead of the slowest; 0: all make each step together; not with lars, lamb and clip-norm"),
    OPT(shard_update,       "shard-update",       BOOL, NULL,       0, 0, NULL, "Each worker is the parameter server of a part of the weights, with the optimiser's state of that part alone"),
    OPT(threads,            "threads",            INT,  "0",        0, 1024, "N", "Computing threads of a worker; 0: the CPUs divided by the workers"),
    OPT(backend,            "backend",            TEXT, "onednn",   0, 0, "NAME", "onednn or reference"),
    OPT(precision,          "precision",          TEXT, "f32",      0, 0, "NAME", "f32, or bf16: activations of half the size, about twice as fast, where the processor has bfloat16"),
    OPT(convolution,        "convolution",        TEXT, "auto",     0, 0, "NAME", "3x3 convolutions in f32: direct, winograd (a quarter of the products, several times the rounding error), or auto: winograd where it is faster"),
    OPT(rank,               "rank",               INT,  "-1",       -1, WEIR_COMM_MAX_RANKS - 1, "N", "Be this rank of a group started by someone else"),
    OPT(role,               "role",               TEXT, NULL,       0, 0, "ROLE", "With --rank: worker or parameter_server"),
    OPT(rendezvous,         "rendezvous",         TEXT, NULL,       0, 0, "URL", "Where the ranks meet: file:///DIR or tcp://HOST:PORT"),
    OPT(secret,             "secret",             TEXT, NULL,       0, 0, "TEXT", "What the ranks prove to each other that they know"),
    OPT(transport,          "transport",          TEXT, "auto",     0, 0, "NAME", "auto, shm (one host), tcp, ucx, or of UCX only rc or dc"),
    OPT(all_reduce_spec,    "all-reduce-spec",    TEXT, "auto",     0, 0, "SPEC", "How gradients are summed between hosts: auto, flat, direct, ring, halving, tree, or by size: flat:8K:ring"),
    OPT(tuning,             "tuning",             TEXT, NULL,       0, 0, "FILE", "What auto chooses by: written by weir bench allreduce --tune"),
    OPT(wire,               "wire",               TEXT, "f32",      0, 0, "TYPE", "What gradients, and weights of parameter servers, are sent as between hosts: f32, bf16 or fp16"),
    OPT(attempt,            "attempt",            INT,  "0",        0, 1 << 30, "N", "How often the group was started before"),
    OPT(timeout_s,          "timeout-s",          INT,  "120",      1, 86400, "S", "Longest wait for another rank"),
    OPT(max_restarts,       "max-restarts",       INT,  "3",        0, 1000000, "N", "Restarts of the group after a rank was lost"),
    OPT(elastic,            "elastic",            BOOL, NULL,       0, 0, NULL, "Go on with the other workers when one is lost, and take in those that come"),
    OPT(min_workers,        "min-workers",        INT,  "1",        1, WEIR_COMM_MAX_RANKS, "N", "With --elastic: fewer than these start again from the last checkpoint"),
    OPT(join,               "join",               BOOL, NULL,       0, 0, NULL, "With --rank: join the elastic group of this rendezvous while it trains"),
    OPT(checkpoint_dir,     "checkpoint-dir",     TEXT, NULL,       0, 0, "DIR", "Where checkpoints are; without: beside the output, until it is there"),
    OPT(checkpoint_every_s, "checkpoint-every-s", F64,  "30",       0, 1e9, "S", "Time between checkpoints; each epoch ends with one too"),
    OPT(keep,               "keep",               TEXT, "last",     0, 0, "WHICH", "The model is that of the last epoch, or of the best on the validation pictures: last or best"),
    OPT(output,             "output",             TEXT, "model.safetensors", 0, 0, "FILE", "The trained model"),
    { .name = "format", .short_name = 'o', .type = WEIR_OPTION_TEXT, .offset = offsetof(struct weir_train_config, format),
      .fallback = "text", .arg = "FORMAT", .doc = "Progress as text, or as JSON lines: json" },
    OPT(display_every,      "display-every",      INT,  "0",        0, 1 << 30, "N", "Progress after each N steps; 0: by time, as often as a person reads"),
    OPT(profile,            "profile",            TEXT, NULL,       0, 0, "FILE", "Write a Chrome trace of every operation of worker 0, after the first steps"),
    OPT(profile_steps,      "profile-steps",      INT,  "1",        1, 1000, "N", "Steps in the trace"),
    OPT(server,             "server",             TEXT, NULL,       0, 0, "URL", "Report to this Weir server"),
    OPT(token_file,         "token-file",         TEXT, NULL,       0, 0, "FILE", "Token for the server"),
    OPT(ca_file,            "ca-file",            TEXT, NULL,       0, 0, "FILE", "Authorities to trust if the server's address is https"),
    OPT(run,                "run",                TEXT, NULL,       0, 0, "UUID", "Run that metrics belong to"),
    OPT(model_name,         "model-name",         TEXT, NULL,       0, 0, "NAME", "Register the trained model on the server under this name"),
    OPT(dataset,            "dataset",            TEXT, NULL,       0, 0, "NAME", "What the server calls the data"),
    OPT(dataset_version,    "dataset-version",    INT,  "0",        0, 0, "N", "Its version"),
    OPT(code_version,       "code-version",       TEXT, NULL,       0, 0, "TEXT", "Version of what made the model"),
    OPT(register_timeout_s, "register-timeout-s", F64,  "600",      0, 1e9, "S", "How long to try to register while the server is down"),
    OPT(job,                "job",                TEXT, NULL,       0, 0, "ID", "The job this belongs to: part of the rendezvous' name"),
    { .name = "help", .short_name = 'h', .type = WEIR_OPTION_BOOL, .offset = offsetof(struct weir_train_config, is_help), .doc = "Show this list" },
};

// clang-format on

const struct weir_option *weir_train_options(size_t *out_n)
{
    *out_n = WEIR_ARRAY_LEN(options);
    return options;
}

/** What the file says, over what the recipe of its model says; `model` not NULL: of that one. */
static weir_status load_spec(const char *path, const char *model, struct weir_arena *arena,
                             struct weir_train_config *out, struct weir_error *err)
{
    json_t *object = NULL;
    WEIR_TRY(weir_json_load(path, SPEC_MAX_BYTES, &object, err));
    if (model == NULL) {
        model = json_string_value(json_object_get(object, "model"));
    }
    weir_status status = train_recipe_apply(model, arena, out, err);
    if (status == WEIR_OK) {
        status = weir_options_from_json(options, WEIR_ARRAY_LEN(options), object, arena, out, err);
    }
    json_decref(object);
    return status == WEIR_OK ? WEIR_OK : weir_error_prefix(err, "%s: ", path);
}

static weir_status parse(const struct weir_option *table, int argc, char *const *argv,
                         struct weir_arena *arena, struct weir_train_config *out,
                         struct weir_error *err)
{
    char **words = NULL;
    size_t n_words = 0;
    WEIR_TRY(weir_options_parse(table, WEIR_ARRAY_LEN(options), argc, argv, arena, out, &words,
                                &n_words, err));
    return n_words == 0 ? WEIR_OK
                        : weir_error_set(err, WEIR_ERR_INVALID,
                                         "\"%.60s\": expected a flag; --help lists them", words[0]);
}

weir_status weir_train_config_parse(int argc, char *const *argv, struct weir_arena *arena,
                                    struct weir_train_config *out, struct weir_error *err)
{
    struct weir_option without_defaults[WEIR_ARRAY_LEN(options)];
    memcpy(without_defaults, options, sizeof options);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(options); i++) {
        without_defaults[i].fallback = NULL;
    }
    memset(out, 0, sizeof *out);
    WEIR_TRY(parse(options, argc, argv, arena, out, err));
    if (out->is_help) {
        return WEIR_OK;
    }
    if (out->spec != NULL || train_recipe_find(out->model) != NULL) {
        /* Both come between the defaults and the environment: begin again with them. */
        char *path = out->spec, *model = out->model;
        weir_train_config_defaults(out, arena);
        WEIR_TRY(path != NULL ? load_spec(path, model, arena, out, err)
                              : train_recipe_apply(model, arena, out, err));
        WEIR_TRY(parse(without_defaults, argc, argv, arena, out, err));
    }
    if (out->role != NULL && strcmp(out->role, "command") == 0) {
        /* A job that runs this very command: the agent's WEIR_ROLE and WEIR_RANK are the job's. */
        out->role = NULL;
        out->rank = -1;
    }
    return weir_train_config_check(out, err);
}

void weir_train_config_defaults(struct weir_train_config *out, struct weir_arena *arena)
{
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(options); i++) {
        void *member = (char *)out + options[i].offset;
        const char *text = options[i].fallback;
        if (text != NULL && options[i].type == WEIR_OPTION_INT) {
            *(int64_t *)member = strtoll(text, NULL, 10);
        } else if (text != NULL && options[i].type == WEIR_OPTION_F64) {
            *(double *)member = strtod(text, NULL);
        } else if (text != NULL) {
            *(char **)member = weir_arena_strdup(arena, text);
        }
    }
}

weir_status train_data_kind(const char *name, enum weir_dataset_kind *out, struct weir_error *err)
{
    static const struct {
        const char *name;
        enum weir_dataset_kind kind;
    } kinds[] = {
        {"auto", WEIR_DATASET_AUTO}, {"folder", WEIR_DATASET_FOLDER}, {"idx", WEIR_DATASET_IDX}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(kinds); i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            *out = kinds[i].kind;
            return WEIR_OK;
        }
    }
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "data-kind: \"%.40s\" is none of auto, folder, idx", name);
}

weir_status train_config_shape(const struct weir_train_config *config, bool *out_is_given,
                               struct weir_shape *out, struct weir_error *err)
{
    *out_is_given = config->input != NULL;
    if (config->input == NULL) {
        return WEIR_OK;
    }
    const char *text = config->input + (config->input[0] == '[');
    int c = 0, h = 0, w = 0, n_read = 0;
    if (sscanf(text, "%d , %d , %d%n", &c, &h, &w, &n_read) != 3 ||
        (strcmp(text + n_read, "") != 0 && strcmp(text + n_read, "]") != 0) || (c != 1 && c != 3) ||
        h < 1 || w < 1 || h > WEIR_IMAGE_MAX_SIDE || w > WEIR_IMAGE_MAX_SIDE) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "input: expected channels (1 or 3), height and width as \"1,28,28\", "
                              "got \"%.60s\"",
                              config->input);
    }
    *out = (struct weir_shape){c, h, w};
    return WEIR_OK;
}

bool train_is_launcher(const struct weir_train_config *config)
{
    return config->rank < 0;
}

bool train_is_server(const struct weir_train_config *config)
{
    return !config->join && config->rank >= config->workers;
}

bool train_is_elastic(const struct weir_train_config *config)
{
    return config->elastic || config->join;
}

bool train_keeps_best(const struct weir_train_config *config)
{
    return strcmp(config->keep, "best") == 0;
}

static weir_status check_elastic(const struct weir_train_config *config, struct weir_error *err)
{
    if (config->join && train_is_launcher(config)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "join: needs a rank, the number of a worker that the group lost or "
                              "never had");
    }
    if (!train_is_elastic(config)) {
        return config->min_workers == 1
                   ? WEIR_OK
                   : weir_error_set(err, WEIR_ERR_INVALID, "min_workers: needs elastic");
    }
    if (config->parameter_servers > 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "elastic: a group with parameter servers, which hold the optimiser's "
                              "state, starts again from its checkpoint when a rank is lost; leave "
                              "out one of the two");
    }
    if (config->shard_update) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "elastic: with shard_update a lost worker takes its part of the "
                              "optimiser's state with it; leave out one of the two");
    }
    if (config->min_workers > config->workers) {
        return weir_error_set(err, WEIR_ERR_INVALID, "min_workers: %lld of %lld workers",
                              (long long)config->min_workers, (long long)config->workers);
    }
    return WEIR_OK;
}

/* What comm finds out only when the ranks have met. */
static weir_status check_wire(const struct weir_train_config *config, struct weir_error *err)
{
    const char *wire = config->wire == NULL ? "f32" : config->wire;
    if (strcmp(wire, "f32") != 0 && strcmp(wire, "bf16") != 0 && strcmp(wire, "fp16") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "wire: \"%.40s\": expected f32, bf16 or fp16",
                              wire);
    }
    return WEIR_OK;
}

static weir_status check_shards(const struct weir_train_config *config, struct weir_error *err)
{
    if (config->shard_update && config->parameter_servers > 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "shard_update: the workers serve, or parameter_servers do; leave out "
                              "one of the two");
    }
    return WEIR_OK;
}

static weir_status check_staleness(const struct weir_train_config *config, struct weir_error *err)
{
    struct weir_optimizer_config optimizer;
    if (config->staleness == 0) {
        return WEIR_OK;
    }
    if (config->parameter_servers == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "staleness: only parameter servers let workers be apart");
    }
    WEIR_TRY(train_config_optimizer(config, &optimizer, err));
    if (weir_optimizer_needs_all(&optimizer)) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "staleness: %s needs the sum of all gradients of a step, which is "
                              "never made then",
                              config->clip_norm > 0 ? "clip_norm" : optimizer.name);
    }
    return WEIR_OK;
}

static weir_status check_rank(const struct weir_train_config *config, struct weir_error *err)
{
    int64_t size = config->workers + config->parameter_servers;
    if (size > WEIR_COMM_MAX_RANKS) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "%lld workers and parameter servers: at most %d are supported",
                              (long long)size, WEIR_COMM_MAX_RANKS);
    }
    WEIR_TRY(check_elastic(config, err));
    WEIR_TRY(check_wire(config, err));
    WEIR_TRY(check_shards(config, err));
    WEIR_TRY(check_staleness(config, err));
    if (train_is_launcher(config)) {
        return config->role == NULL ? WEIR_OK
                                    : weir_error_set(err, WEIR_ERR_INVALID,
                                                     "role: needs a rank; leave both out to have "
                                                     "the whole group started");
    }
    if (config->rank >= size && !config->join) {
        return weir_error_set(err, WEIR_ERR_INVALID, "rank: %lld of a group of %lld",
                              (long long)config->rank, (long long)size);
    }
    const char *role = train_is_server(config) ? "parameter_server" : "worker";
    if (config->role != NULL && strcmp(config->role, role) != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "role: rank %lld of %lld workers and %lld parameter servers is a %s",
                              (long long)config->rank, (long long)config->workers,
                              (long long)config->parameter_servers, role);
    }
    if ((size > 1 || train_is_elastic(config)) &&
        (config->rendezvous == NULL || config->secret == NULL || config->secret[0] == '\0' ||
         config->checkpoint_dir == NULL)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "a rank of a group needs rendezvous, secret and checkpoint_dir");
    }
    return WEIR_OK;
}

static weir_status check_word(const char *key, const char *text, const char *a, const char *b,
                              struct weir_error *err)
{
    return strcmp(text, a) == 0 || strcmp(text, b) == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "%s: \"%.40s\" is neither %s nor %s", key,
                                text, a, b);
}

static weir_status check_keep(const struct weir_train_config *config, struct weir_error *err)
{
    WEIR_TRY(check_word("keep", config->keep, "last", "best", err));
    if (!train_keeps_best(config)) {
        return WEIR_OK;
    }
    if (config->validation == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "keep: which epoch is the best is measured on validation pictures; "
                              "give validation");
    }
    return train_is_launcher(config) || config->checkpoint_dir != NULL
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "keep: a rank needs checkpoint_dir, where the best weights are");
}

weir_status train_config_optimizer(const struct weir_train_config *config,
                                   struct weir_optimizer_config *out, struct weir_error *err)
{
    struct weir_optimizer_config optimizer;
    WEIR_TRY(weir_optimizer_parse(config->optimizer, &optimizer, err));
    optimizer.momentum = config->momentum;
    optimizer.weight_decay = config->weight_decay;
    optimizer.clip_norm = config->clip_norm;
    WEIR_TRY(weir_optimizer_check(&optimizer, err));
    *out = optimizer;
    return WEIR_OK;
}

weir_status weir_train_config_check(const struct weir_train_config *config, struct weir_error *err)
{
    enum weir_dataset_kind kind;
    enum weir_augment augment;
    enum weir_precision precision;
    enum weir_convolution convolution;
    struct weir_shape shape;
    struct weir_optimizer_config optimizer;
    bool is_given = false;
    if (config->model == NULL || config->data == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s is missing: see --help",
                              config->model == NULL ? "--model" : "--data");
    }
    WEIR_TRY(train_data_kind(config->data_kind, &kind, err));
    WEIR_TRY(weir_augment_from_name(config->augment, &augment, err));
    WEIR_TRY(train_config_shape(config, &is_given, &shape, err));
    WEIR_TRY(train_config_optimizer(config, &optimizer, err));
    WEIR_TRY(check_word("on_damage", config->on_damage, "skip", "fatal", err));
    WEIR_TRY(check_word("format", config->format, "text", "json", err));
    WEIR_TRY(check_keep(config, err));
    if (weir_backend_find(config->backend) == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "backend: \"%.40s\" is neither onednn nor reference",
                              config->backend);
    }
    WEIR_TRY(weir_precision_parse(config->precision, &precision, err));
    WEIR_TRY(weir_convolution_parse(config->convolution, &convolution, err));
    if (config->batch_size > 0 && config->batch_size < config->workers) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "batch_size: %lld is shared by %lld workers: each needs a picture",
                              (long long)config->batch_size, (long long)config->workers);
    }
    if (config->batch_size > 0 && config->batch_size < config->workers * config->micro_batches) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "micro_batches: %lld pictures are too few for %lld runs of %lld "
                              "workers: each needs a picture",
                              (long long)config->batch_size, (long long)config->micro_batches,
                              (long long)config->workers);
    }
    if (config->model_name != NULL && config->server == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "model_name: registering a model needs a server");
    }
    if (config->run != NULL && config->server == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "run: reporting a run needs a server");
    }
    return check_rank(config, err);
}
