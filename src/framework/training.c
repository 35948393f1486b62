#include "framework/training.h"

#include "endpoint/cut.h"
#include "framework/model_names.h"

#include <string.h>

#define EPOCHS_MAX 1000000
#define BATCH_MAX  (1 << 20)

// clang-format off
#define OPT(member, name, type, fallback, low, high, arg, doc)                                     \
    WEIR_OPT(weir_train_config, member, name, 0, type, fallback, low, high, arg, doc)
#define OPT_FLAGS(option_flags, member, opt_name, opt_type, dflt, lo, hi, opt_arg, opt_doc)        \
    {                                                                                              \
        .name = (opt_name), .type = WEIR_OPTION_##opt_type,                                        \
        .offset = offsetof(struct weir_train_config, member), .fallback = (dflt), .min = (lo),     \
        .max = (hi), .arg = (opt_arg), .doc = (opt_doc), .flags = (option_flags)                   \
    }
#define OPT_WORDS(option_words, option_flags, member, opt_name, opt_type, dflt, lo, hi, opt_arg,   \
                  opt_doc)                                                                         \
    {                                                                                              \
        .name = (opt_name), .type = WEIR_OPTION_##opt_type,                                        \
        .offset = offsetof(struct weir_train_config, member), .fallback = (dflt), .min = (lo),     \
        .max = (hi), .arg = (opt_arg), .doc = (opt_doc), .flags = (option_flags),                  \
        .words = (option_words)                                                                    \
    }

const struct weir_option weir_training_table[] = {
    OPT_FLAGS(WEIR_OPTION_INTERNAL, spec, "spec", TEXT, NULL,       0, 0, "FILE", "Read all of this from a JSON file"),
    OPT_FLAGS(WEIR_OPTION_PATH, model.name, "model", TEXT, NULL,       0, 0, "NAME|FILE", "Built-in model, or a model file"),
    OPT_FLAGS(WEIR_OPTION_PATH, model.weights, "weights", TEXT, NULL,       0, 0, "FILE", "Start from these weights (safetensors, torchvision's names); a last layer of other classes begins anew"),
    OPT(model.input,        "input",              TEXT, NULL,       0, 0, "C,H,W", "Input of a built-in model instead of its own"),
    OPT_FLAGS(WEIR_OPTION_PATH, data.path, "data", TEXT, NULL,       0, 0, "DIR", "Training pictures: a folder per class, or IDX files"),
    OPT_WORDS(WEIR_WORDS("auto", "folder", "idx"), 0, data.kind, "data-kind", TEXT, "auto",     0, 0, "KIND", "auto, folder or idx"),
    OPT_FLAGS(WEIR_OPTION_PATH, data.validation, "validation", TEXT, NULL,       0, 0, "DIR", "Measure on these pictures after each epoch (IDX: the test split)"),
    OPT_WORDS(WEIR_WORDS("none", "flip", "shift-flip", "face", "photo"), 0, data.augment, "augment", TEXT, "none",     0, 0, "POLICY", "none, flip, shift-flip, face or photo"),
    OPT_WORDS(WEIR_WORDS("skip", "fatal"), 0, data.on_damage, "on-damage", TEXT, "skip",     0, 0, "RULE", "Damaged pictures: skip or fatal"),
    OPT(data.mirror_classes, "mirror-classes",     BOOL, NULL,       0, 0, NULL, "Of an embedding: train on mirror images too, as further classes"),
    OPT_FLAGS(WEIR_OPTION_PATH, data.backgrounds, "backgrounds", TEXT, NULL, 0, 0, "DIR", "Of a detector: photographs without faces, to compose the faces into; without: textures"),
    OPT(data.scenes,        "scenes",             INT,  "10000",     1, 1 << 24, "N", "Of a detector: scenes that are composed of faces and backgrounds; an epoch is all of them"),
    OPT(data.face_box,      "face-box",           TEXT, NULL,       0, 0, "L,T,R,B", "Of a detector: where the face lies in its pictures, from forehead to chin, as shares of width and height; without: 0.078,0.14,0.911,0.967, a head that fills them"),
    OPT(data.detector,      "detector",           TEXT, NULL,       0, 0, "NAME|FILE", "Of an embedding: cut the largest face out of each photo, as a pipeline with this detector does: NAME, NAME@ALIAS or NAME/VERSION of a registered model; of weir-worker alone a file"),
    OPT(data.detect,        "detect",             TEXT, NULL,       0, 0, "JSON", "With detector: options of the stage detect, an object as text: {\"min_face\": 30}"),
    OPT(data.align,         "align",              TEXT, NULL,       0, 0, "JSON", "With detector: options of the stage align, an object as text: {\"by\": \"box\"}"),
    OPT_FLAGS(WEIR_OPTION_INTERNAL, data.detector_blob, "detector-blob", TEXT, NULL, 0, 0, "SHA256", "The detector's file at the server"),
    OPT_FLAGS(WEIR_OPTION_INTERNAL, data.detector_signature, "detector-signature", TEXT, NULL, 0, 0, "JSON", "What it takes and gives"),
    OPT(loop.epochs,        "epochs",             INT,  "0",        0, EPOCHS_MAX, "N", "Passes over the data; 0: 10, or as many more as --steps needs"),
    OPT(loop.steps,         "steps",              INT,  "0",        0, EPOCHS_MAX, "N", "Without --epochs: train for at least so many steps"),
    OPT(loop.batch_size,    "batch-size",         INT,  "0",        0, BATCH_MAX, "N", "Pictures of a step, over all workers; 0: 64, or all if they are fewer"),
    OPT(loop.micro_batches, "micro-batches",      INT,  "1",        1, 1024, "N", "Compute each worker's part of a step in N runs and add up their gradients: needs less memory"),
    OPT(loop.gradient_parts, "gradient-parts",     INT,  "2",        1, 64, "N", "Of one worker: sum gradients over N parts of the batch, as N workers do: same bits as theirs"),
    OPT_WORDS(WEIR_WORDS("sgd", "rmsprop", "adam", "adamw", "lars", "lamb"), WEIR_OPTION_SETTINGS, optimizer.name, "optimizer", TEXT, "sgd",      0, 0, "NAME", "sgd, rmsprop, adam, adamw, lars or lamb, with settings: adamw:beta2=0.95"),
    OPT(optimizer.learning_rate, "learning-rate",      F64,  NULL,       0, 1e6, "X", "After warm-up; 0: the optimiser's own, 0.05 for sgd, 0.001 for adam"),
    OPT(optimizer.momentum, "momentum",           F64,  "0.9",      0, 1, "X", "Of sgd, rmsprop and lars"),
    OPT(optimizer.weight_decay, "weight-decay",       F64,  "0.0005",   0, 1e6, "X", "Of weights but not of biases and norms; in the gradient, of adamw and lamb beside it"),
    OPT(optimizer.clip_norm, "clip-norm",          F64,  "0",        0, 1e9, "X", "Make gradients no longer than this, over all weights; 0: as they are"),
    OPT_WORDS(WEIR_WORDS("constant", "step", "piecewise", "polynomial", "cosine"), WEIR_OPTION_SETTINGS, optimizer.schedule, "schedule", TEXT, "cosine",   0, 0, "NAME", "cosine, step, piecewise, polynomial or constant, with settings: step:gamma=0.1"),
    OPT(optimizer.warmup_epochs, "warmup-epochs",      F64,  "0",        -1, EPOCHS_MAX, "X", "Epochs of linear warm-up; -1: a twentieth of all"),
    OPT(optimizer.label_smoothing, "label-smoothing",    F64,  "0",        0, 0.999, "X", "Part of a label that all classes share; not for embeddings"),
    OPT(optimizer.average_decay, "average-decay",      F64,  "0",        0, 0.9999999, "X", "Measure and export a moving average of the weights; 0: the weights of the last step"),
    OPT(loop.seed,          "seed",               INT,  "1",        0, 0, "N", "Of order, augmentation, initial weights and dropout"),
    OPT(group.workers,      "workers",            INT,  "1",        1, WEIR_TRAINING_RANKS_MAX, "N", "Data-parallel workers"),
    OPT(group.parameter_servers, "parameter-servers",  INT,  "0",        0, WEIR_TRAINING_RANKS_MAX - 1, "N", "Parameter servers; 0: all-reduce"),
    OPT(exchange.staleness, "staleness",          INT,  "0",        0, 1000, "N", "With parameter servers: a worker may be so many steps ahead of the slowest; 0: all make each step together; not with lars, lamb and clip-norm"),
    OPT(exchange.shard_update, "shard-update",       BOOL, NULL,       0, 0, NULL, "Each worker is the parameter server of a part of the weights, with the optimiser's state of that part alone"),
    OPT(group.threads,      "threads",            INT,  "0",        0, 1024, "N", "Computing threads of a worker; 0: the CPUs divided by the workers"),
    OPT_WORDS(WEIR_WORDS("onednn", "cuda", "reference"), 0, model.backend, "backend", TEXT, "onednn",   0, 0, "NAME", "onednn (processors), cuda (an NVIDIA GPU) or reference (slow, for comparison)"),
    OPT_WORDS(WEIR_WORDS("f32", "bf16", "tf32", "fp16"), 0, model.precision, "precision", TEXT, "f32",      0, 0, "NAME", "f32; bf16: activations of half the size, about twice as fast, where the processor or GPU has bfloat16; tf32: f32 whose factors a GPU rounds; fp16: halves with a loss scale, on a GPU"),
    OPT_WORDS(WEIR_WORDS("auto", "direct", "winograd"), 0, model.convolution, "convolution", TEXT, "auto",     0, 0, "NAME", "3x3 convolutions in f32: direct, winograd (a quarter of the products, several times the rounding error), or auto: winograd where it is faster"),
    OPT_FLAGS(WEIR_OPTION_INTERNAL, group.rank, "rank", INT, "-1",       -1, WEIR_TRAINING_RANKS_MAX - 1, "N", "Be this rank of a group started by someone else"),
    OPT_FLAGS(WEIR_OPTION_INTERNAL, group.role, "role", TEXT, NULL,       0, 0, "ROLE", "With --rank: worker or parameter_server"),
    OPT_FLAGS(WEIR_OPTION_INTERNAL | WEIR_OPTION_PATH | WEIR_OPTION_WRITTEN, group.rendezvous, "rendezvous", TEXT, NULL,       0, 0, "URL", "Where the ranks meet: file:///DIR, tcp://HOST:PORT, or env://NAME: what that variable says"),
    OPT_FLAGS(WEIR_OPTION_INTERNAL, group.secret, "secret", TEXT, NULL,       0, 0, "TEXT", "What the ranks prove to each other that they know"),
    OPT_WORDS(WEIR_WORDS("auto", "shm", "tcp", "ucx", "rc", "dc"), 0, exchange.transport, "transport", TEXT, "auto",     0, 0, "NAME", "auto, shm (one host), tcp, ucx, or of UCX only rc or dc"),
    OPT_WORDS(WEIR_WORDS("auto", "nccl", "memory"), 0, exchange.strategy, "exchange", TEXT, "auto",     0, 0, "NAME", "How workers with GPUs exchange gradients: nccl (from GPU to GPU), memory (the processor's), or auto: nccl where it can be"),
    OPT(exchange.all_reduce_spec, "all-reduce-spec",    TEXT, "auto",     0, 0, "SPEC", "How gradients are summed between hosts: auto, flat, direct, ring, halving, tree, or by size: flat:8K:ring"),
    OPT_FLAGS(WEIR_OPTION_PATH, exchange.tuning, "tuning", TEXT, NULL,       0, 0, "FILE", "What auto chooses by: written by weir bench allreduce --tune"),
    OPT_WORDS(WEIR_WORDS("f32", "bf16", "fp16"), 0, exchange.wire, "wire", TEXT, "f32",      0, 0, "TYPE", "What gradients, and weights of parameter servers, are sent as between hosts: f32, bf16 or fp16"),
    OPT_FLAGS(WEIR_OPTION_INTERNAL, group.attempt, "attempt", INT, "0",        0, 1 << 30, "N", "How often the group was started before"),
    OPT(group.timeout_s,    "timeout-s",          INT,  "120",      1, 86400, "S", "Longest wait for another rank"),
    OPT(group.max_restarts, "max-restarts",       INT,  "3",        0, 1000000, "N", "Restarts of the group after a rank was lost"),
    OPT(group.elastic,      "elastic",            BOOL, NULL,       0, 0, NULL, "Go on with the other workers when one is lost, and take in those that come"),
    OPT(group.min_workers,  "min-workers",        INT,  "1",        1, WEIR_TRAINING_RANKS_MAX, "N", "With --elastic: fewer than these start again from the last checkpoint"),
    OPT_FLAGS(WEIR_OPTION_INTERNAL, group.join, "join", BOOL, NULL,       0, 0, NULL, "With --rank: join the elastic group of this rendezvous while it trains"),
    OPT_FLAGS(WEIR_OPTION_PATH | WEIR_OPTION_WRITTEN, checkpoint.dir, "checkpoint-dir", TEXT, NULL,       0, 0, "DIR", "Where checkpoints are; without: beside the output, until it is there"),
    OPT(checkpoint.every_s, "checkpoint-every-s", F64,  "30",       0, 1e9, "S", "Time between checkpoints; each epoch ends with one too"),
    OPT_WORDS(WEIR_WORDS("last", "best"), 0, checkpoint.keep, "keep", TEXT, "last",     0, 0, "WHICH", "The model is that of the last epoch, or of the best on the validation pictures: last or best"),
    OPT_FLAGS(WEIR_OPTION_PATH | WEIR_OPTION_WRITTEN, output.file, "output", TEXT, "model.safetensors", 0, 0, "FILE", "The trained model. Without it a job registers it under its model_name, or else keeps it with its run"),
    { .name = "format", .short_name = 'o', .type = WEIR_OPTION_TEXT, .offset = offsetof(struct weir_train_config, output.format),
      .fallback = "text", .arg = "FORMAT", .flags = WEIR_OPTION_INTERNAL, .words = WEIR_WORDS("text", "json"), .doc = "Progress as text, or as JSON lines: json" },
    OPT(output.display_every, "display-every",      INT,  "0",        0, 1 << 30, "N", "Progress after each N steps; 0: by time, as often as a person reads"),
    OPT_FLAGS(WEIR_OPTION_PATH | WEIR_OPTION_WRITTEN, output.profile, "profile", TEXT, NULL,       0, 0, "FILE", "Write a Chrome trace of every operation of worker 0, after the first steps"),
    OPT_FLAGS(WEIR_OPTION_PATH | WEIR_OPTION_WRITTEN, output.tensorboard, "tensorboard", TEXT, NULL, 0, 0, "DIR", "Write the metrics as an event file of TensorBoard into this folder; a job does so unasked, and the file is kept with its run"),
    OPT(output.profile_steps, "profile-steps",      INT,  "1",        1, 1000, "N", "Steps in the trace"),
    OPT_FLAGS(WEIR_OPTION_INTERNAL, report.server, "server", TEXT, NULL,       0, 0, "URL", "Report to this Weir server"),
    OPT_FLAGS(WEIR_OPTION_INTERNAL, report.token_file, "token-file", TEXT, NULL,       0, 0, "FILE", "Token for the server"),
    OPT_FLAGS(WEIR_OPTION_INTERNAL, report.ca_file, "ca-file", TEXT, NULL,       0, 0, "FILE", "Authorities to trust if the server's address is https"),
    OPT_FLAGS(WEIR_OPTION_INTERNAL, report.run, "run", TEXT, NULL,       0, 0, "UUID", "Run that metrics belong to"),
    OPT(report.model_name,  "model-name",         TEXT, NULL,       0, 0, "NAME", "Register the trained model on the server under this name"),
    OPT(report.dataset,     "dataset",            TEXT, NULL,       0, 0, "NAME", "What the server calls the data"),
    OPT(report.dataset_version, "dataset-version",    INT,  "0",        0, 0, "N", "Its version"),
    OPT(report.code_version, "code-version",       TEXT, NULL,       0, 0, "TEXT", "Version of what made the model"),
    OPT(report.register_timeout_s, "register-timeout-s", F64,  "600",      0, 1e9, "S", "How long to try to register while the server is down"),
    OPT_FLAGS(WEIR_OPTION_INTERNAL, report.job, "job", TEXT, NULL,       0, 0, "ID", "The job this belongs to: part of the rendezvous' name"),
    { .name = "help", .short_name = 'h', .type = WEIR_OPTION_BOOL, .offset = offsetof(struct weir_train_config, is_help), .flags = WEIR_OPTION_INTERNAL, .doc = "Show this list" },
};

// clang-format on

const struct weir_option *weir_training_options(size_t *out_n)
{
    *out_n = WEIR_TRAINING_N_OPTIONS;
    return weir_training_table;
}

_Static_assert(WEIR_ARRAY_LEN(weir_training_table) == WEIR_TRAINING_N_OPTIONS,
               "the header says how many options there are");

void weir_training_defaults(struct weir_train_config *out, struct weir_arena *arena)
{
    memset(out, 0, sizeof *out);
    weir_options_defaults(weir_training_table, WEIR_TRAINING_N_OPTIONS, arena, out);
}

const char *const *weir_training_words(const char *key, size_t *out_n)
{
    const struct weir_option *option =
        weir_options_find(weir_training_table, WEIR_TRAINING_N_OPTIONS, key);
    if (option == NULL || option->words == NULL) {
        return NULL;
    }
    for (*out_n = 0; option->words[*out_n] != NULL;) {
        ++*out_n;
    }
    return option->words;
}

static weir_status check_words(const struct weir_train_config *config, struct weir_error *err)
{
    for (size_t i = 0; i < WEIR_TRAINING_N_OPTIONS; i++) {
        const struct weir_option *option = &weir_training_table[i];
        if (option->words != NULL) {
            const char *text = *(char *const *)((const char *)config + option->offset);
            if (text != NULL) {
                WEIR_TRY(weir_option_check_word(option, NULL, text, err));
            }
        }
    }
    return WEIR_OK;
}

/* ---- values together --------------------------------------------------------------------------
 */

static weir_status check_elastic(const struct weir_train_config *config, struct weir_error *err)
{
    if (config->group.join && config->group.rank < 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "join: needs a rank, the number of a worker that the group lost or "
                              "never had");
    }
    if (!config->group.elastic && !config->group.join) {
        return config->group.min_workers == 1
                   ? WEIR_OK
                   : weir_error_set(err, WEIR_ERR_INVALID, "min_workers: needs elastic");
    }
    if (config->group.parameter_servers > 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "elastic: a group with parameter servers, which hold the optimiser's "
                              "state, starts again from its checkpoint when a rank is lost; leave "
                              "out one of the two");
    }
    if (config->exchange.shard_update) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "elastic: with shard_update a lost worker takes its part of the "
                              "optimiser's state with it; leave out one of the two");
    }
    if (config->group.min_workers > config->group.workers) {
        return weir_error_set(err, WEIR_ERR_INVALID, "min_workers: %lld of %lld workers",
                              (long long)config->group.min_workers,
                              (long long)config->group.workers);
    }
    return WEIR_OK;
}

static weir_status check_shards(const struct weir_train_config *config, struct weir_error *err)
{
    if (config->exchange.shard_update && config->group.parameter_servers > 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "shard_update: the workers serve, or parameter_servers do; leave out "
                              "one of the two");
    }
    return WEIR_OK;
}

static weir_status check_exchange(const struct weir_train_config *config, struct weir_error *err)
{
    if (config->exchange.strategy == NULL || strcmp(config->exchange.strategy, "nccl") != 0) {
        return WEIR_OK;
    }
    if (strcmp(config->model.backend, "cuda") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "exchange: nccl is for workers with GPUs: it needs backend cuda, not "
                              "%s",
                              config->model.backend);
    }
    if (config->exchange.shard_update || config->group.parameter_servers > 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "exchange: with nccl every worker updates all weights; leave out %s",
                              config->exchange.shard_update ? "shard_update" : "parameter_servers");
    }
    return WEIR_OK;
}

static weir_status check_keep(const struct weir_train_config *config, struct weir_error *err)
{
    if (strcmp(config->checkpoint.keep, "best") == 0 && config->data.validation == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "keep: which epoch is the best is measured on validation pictures; "
                              "give validation");
    }
    return WEIR_OK;
}

static weir_status check_batch(const struct weir_train_config *config, struct weir_error *err)
{
    if (config->loop.batch_size > 0 && config->loop.batch_size < config->group.workers) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "batch_size: %lld is shared by %lld workers: each needs a picture",
                              (long long)config->loop.batch_size, (long long)config->group.workers);
    }
    if (config->loop.batch_size > 0 &&
        config->loop.batch_size < config->group.workers * config->loop.micro_batches) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "micro_batches: %lld pictures are too few for %lld runs of %lld "
                              "workers: each needs a picture",
                              (long long)config->loop.batch_size,
                              (long long)config->loop.micro_batches,
                              (long long)config->group.workers);
    }
    return WEIR_OK;
}

static weir_status check_group(const struct weir_train_config *config, struct weir_error *err)
{
    int64_t size = config->group.workers + config->group.parameter_servers;
    if (size > WEIR_TRAINING_RANKS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "workers: %lld workers and parameter servers: at most %d are "
                              "supported",
                              (long long)size, WEIR_TRAINING_RANKS_MAX);
    }
    if (config->exchange.staleness > 0 && config->group.parameter_servers == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "staleness: only parameter servers let workers be apart");
    }
    WEIR_TRY(check_elastic(config, err));
    WEIR_TRY(check_shards(config, err));
    return check_exchange(config, err);
}

static weir_status check_cut(const struct weir_train_config *config, struct weir_error *err)
{
    const struct weir_train_data *data = &config->data;
    struct weir_cut cut = {0};
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    if (data->detector == NULL) {
        return data->detect == NULL && data->align == NULL
                   ? WEIR_OK
                   : weir_error_set(err, WEIR_ERR_INVALID,
                                    "%s: says how photos are cut with a detector: name one in "
                                    "detector",
                                    data->detect != NULL ? "detect" : "align");
    }
    const struct weir_model_name *model =
        config->model.name != NULL ? weir_model_name_find(config->model.name) : NULL;
    if (model != NULL && !model->is_embedding) {
        return weir_error_set(err, model->is_detector ? WEIR_ERR_INVALID : WEIR_ERR_UNSUPPORTED,
                              "detector: %s %s: only photos that an embedding learns from are cut; "
                              "leave it out, or take the model face-embed",
                              config->model.name,
                              model->is_detector ? "is a detector itself" : "is a classifier");
    }
    WEIR_TRY(weir_cut_read(data->detector, data->detect, data->align, &arena, &cut, err));
    weir_cut_fini(&cut);
    return WEIR_OK;
}

weir_status weir_training_check(const struct weir_train_config *config, struct weir_error *err)
{
    WEIR_TRY(check_words(config, err));
    WEIR_TRY(check_cut(config, err));
    WEIR_TRY(check_keep(config, err));
    WEIR_TRY(check_batch(config, err));
    return check_group(config, err);
}

/* ---- a job's specification ----------------------------------------------------------------------
 */

static weir_status check_reserved(const json_t *spec, struct weir_error *err)
{
    for (void *it = json_object_iter((json_t *)spec); it != NULL;
         it = json_object_iter_next((json_t *)spec, it)) {
        const char *key = json_object_iter_key(it);
        const struct weir_option *option =
            weir_options_find(weir_training_table, WEIR_TRAINING_N_OPTIONS, key);
        if (option != NULL && (option->flags & WEIR_OPTION_INTERNAL)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s: of a job this is the server's to set: leave it out", key);
        }
    }
    return WEIR_OK;
}

static weir_status check_model(const char *model, struct weir_error *err)
{
    if (model == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "model: missing: the name of a built-in model (\"lenet\"), or the "
                              "absolute path of a model file");
    }
    return weir_model_name_check(model, "model", err);
}

static weir_status check_data(const struct weir_train_config *config, struct weir_error *err)
{
    if (config->data.path == NULL && config->report.dataset == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "dataset: missing: the name of a dataset (`weir get datasets`), or "
                              "give data, a folder by its absolute path");
    }

    const struct {
        const char *key, *path;
    } paths[] = {{"data", config->data.path},
                 {"weights", config->model.weights},
                 {"checkpoint_dir", config->checkpoint.dir},
                 {"tuning", config->exchange.tuning},
                 {"profile", config->output.profile},
                 {"tensorboard", config->output.tensorboard}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(paths); i++) {
        if (paths[i].path != NULL && paths[i].path[0] != '/') {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s: \"%.200s\" is relative: the job runs in a folder of its own "
                                  "on some node; give an absolute path",
                                  paths[i].key, paths[i].path);
        }
    }

    const struct {
        const char *key, *text;
    } either[] = {{"validation", config->data.validation},
                  {"backgrounds", config->data.backgrounds}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(either); i++) {
        const char *text = either[i].text;
        if (text != NULL && text[0] != '/' && strchr(text, '/') != NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s: \"%.200s\" is neither the name of a dataset nor an "
                                  "absolute path",
                                  either[i].key, text);
        }
    }
    return WEIR_OK;
}

static weir_status check_detector(const char *detector, struct weir_arena *arena,
                                  struct weir_error *err)
{
    struct weir_detector_name name;
    return detector == NULL ? WEIR_OK
                            : weir_detector_name_parse(detector, "detector", arena, &name, err);
}

weir_status weir_training_spec_check(const json_t *spec, struct weir_arena *arena,
                                     struct weir_error *err)
{
    struct weir_train_config config;
    struct weir_error found;
    WEIR_TRY(check_reserved(spec, err));
    weir_training_defaults(&config, arena);
    weir_status status = weir_options_from_json(weir_training_table, WEIR_TRAINING_N_OPTIONS, spec,
                                                arena, &config, &found);
    if (status != WEIR_OK) { /* it begins with "$." */
        return weir_error_set(err, status, "%s", found.message + 2);
    }
    WEIR_TRY(check_model(config.model.name, err));
    WEIR_TRY(check_data(&config, err));
    WEIR_TRY(check_detector(config.data.detector, arena, err));
    return weir_training_check(&config, err);
}
