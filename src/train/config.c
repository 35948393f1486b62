#include "train/config.h"

#include "comm/comm.h"
#include "train/recipe.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(WEIR_TRAINING_RANKS_MAX == WEIR_COMM_MAX_RANKS, "a training's ranks are comm's");

#define SPEC_MAX_BYTES ((size_t)1 << 20)

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
        size_t n_options = 0;
        const struct weir_option *options = weir_training_options(&n_options);
        status = weir_options_from_json(options, n_options, object, arena, out, err);
    }
    json_decref(object);
    return status == WEIR_OK ? WEIR_OK : weir_error_prefix(err, "%s: ", path);
}

static weir_status parse(const struct weir_option *table, size_t n_options, int argc,
                         char *const *argv, struct weir_arena *arena, struct weir_train_config *out,
                         struct weir_error *err)
{
    char **args = NULL;
    size_t n_args = 0;
    WEIR_TRY(weir_options_parse(table, n_options, argc, argv, arena, out, &args, &n_args, err));
    return n_args == 0 ? WEIR_OK
                       : weir_error_set(err, WEIR_ERR_INVALID,
                                        "\"%.60s\": expected a flag; --help lists them", args[0]);
}

weir_status weir_train_config_parse(int argc, char *const *argv, struct weir_arena *arena,
                                    struct weir_train_config *out, struct weir_error *err)
{
    size_t n_options = 0;
    const struct weir_option *options = weir_training_options(&n_options);
    struct weir_option *without_defaults = WEIR_ARENA_ARRAY(arena, n_options, struct weir_option);
    memcpy(without_defaults, options, n_options * sizeof *options);
    for (size_t i = 0; i < n_options; i++) {
        without_defaults[i].fallback = NULL;
    }
    memset(out, 0, sizeof *out);
    WEIR_TRY(parse(options, n_options, argc, argv, arena, out, err));
    if (out->is_help) {
        return WEIR_OK;
    }
    if (out->spec != NULL || train_recipe_find(out->model.name) != NULL) {
        /* Both come between the defaults and the environment: begin again with them. */
        char *path = out->spec, *model = out->model.name;
        weir_training_defaults(out, arena);
        WEIR_TRY(path != NULL ? load_spec(path, model, arena, out, err)
                              : train_recipe_apply(model, arena, out, err));
        WEIR_TRY(parse(without_defaults, n_options, argc, argv, arena, out, err));
    }
    if (out->group.role != NULL && strcmp(out->group.role, "command") == 0) {
        /* A job that runs this very command: the agent's WEIR_ROLE and WEIR_RANK are the job's. */
        out->group.role = NULL;
        out->group.rank = -1;
    }
    return weir_train_config_check(out, err);
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
    *out_is_given = config->model.input != NULL;
    if (config->model.input == NULL) {
        return WEIR_OK;
    }
    const char *text = config->model.input + (config->model.input[0] == '[');
    int c = 0, h = 0, w = 0, n_read = 0;
    if (sscanf(text, "%d , %d , %d%n", &c, &h, &w, &n_read) != 3 ||
        (strcmp(text + n_read, "") != 0 && strcmp(text + n_read, "]") != 0) || (c != 1 && c != 3) ||
        h < 1 || w < 1 || h > WEIR_IMAGE_MAX_SIDE || w > WEIR_IMAGE_MAX_SIDE) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "input: expected channels (1 or 3), height and width as \"1,28,28\", "
                              "got \"%.60s\"",
                              config->model.input);
    }
    *out = (struct weir_shape){c, h, w};
    return WEIR_OK;
}

bool train_is_launcher(const struct weir_train_config *config)
{
    return config->group.rank < 0;
}

bool train_is_server(const struct weir_train_config *config)
{
    return !config->group.join && config->group.rank >= config->group.workers;
}

bool train_is_elastic(const struct weir_train_config *config)
{
    return config->group.elastic || config->group.join;
}

bool train_keeps_best(const struct weir_train_config *config)
{
    return strcmp(config->checkpoint.keep, "best") == 0;
}

static weir_status check_staleness(const struct weir_train_config *config, struct weir_error *err)
{
    struct weir_optimizer_config optimizer;
    if (config->exchange.staleness == 0) {
        return WEIR_OK;
    }
    WEIR_TRY(train_config_optimizer(config, &optimizer, err));
    if (weir_optimizer_needs_all(&optimizer)) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "staleness: %s needs the sum of all gradients of a step, which is "
                              "never made then",
                              config->optimizer.clip_norm > 0 ? "clip_norm" : optimizer.name);
    }
    return WEIR_OK;
}

static weir_status check_rank(const struct weir_train_config *config, struct weir_error *err)
{
    int64_t size = config->group.workers + config->group.parameter_servers;
    WEIR_TRY(check_staleness(config, err));
    if (train_is_launcher(config)) {
        return config->group.role == NULL
                   ? WEIR_OK
                   : weir_error_set(err, WEIR_ERR_INVALID,
                                    "role: needs a rank; leave both out to have "
                                    "the whole group started");
    }
    if (config->group.rank >= size && !config->group.join) {
        return weir_error_set(err, WEIR_ERR_INVALID, "rank: %lld of a group of %lld",
                              (long long)config->group.rank, (long long)size);
    }
    const char *role = train_is_server(config) ? "parameter_server" : "worker";
    if (config->group.role != NULL && strcmp(config->group.role, role) != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "role: rank %lld of %lld workers and %lld parameter servers is a %s",
                              (long long)config->group.rank, (long long)config->group.workers,
                              (long long)config->group.parameter_servers, role);
    }
    if ((size > 1 || train_is_elastic(config)) &&
        (config->group.rendezvous == NULL || config->group.secret == NULL ||
         config->group.secret[0] == '\0' || config->checkpoint.dir == NULL)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "a rank of a group needs rendezvous, secret and checkpoint_dir");
    }
    return WEIR_OK;
}

/* What is decided by all gradients of a step together needs them in one place. */
static weir_status check_fp16(const struct weir_train_config *config, struct weir_error *err)
{
    bool is_shared = config->group.parameter_servers > 0 || config->exchange.shard_update;
    if (strcmp(config->model.precision, "fp16") != 0) {
        return WEIR_OK;
    }
    if (strcmp(config->model.backend, "cuda") != 0) {
        return weir_error_set(
            err, WEIR_ERR_UNSUPPORTED,
            "precision fp16 needs --backend cuda (an NVIDIA GPU); use bf16 or f32");
    }
    return is_shared ? weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                      "precision fp16: not with %s, where parts of the weights "
                                      "change before all gradients are there; use bf16",
                                      config->exchange.shard_update ? "--shard-update"
                                                                    : "--parameter-servers")
                     : WEIR_OK;
}

static weir_status check_keep(const struct weir_train_config *config, struct weir_error *err)
{
    return !train_keeps_best(config) || train_is_launcher(config) || config->checkpoint.dir != NULL
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "keep: a rank needs checkpoint_dir, where the best weights are");
}

weir_status train_config_optimizer(const struct weir_train_config *config,
                                   struct weir_optimizer_config *out, struct weir_error *err)
{
    struct weir_optimizer_config optimizer;
    WEIR_TRY(weir_optimizer_parse(config->optimizer.name, &optimizer, err));
    optimizer.momentum = config->optimizer.momentum;
    optimizer.weight_decay = config->optimizer.weight_decay;
    optimizer.clip_norm = config->optimizer.clip_norm;
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
    if (config->model.name == NULL || config->data.path == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s is missing: see --help",
                              config->model.name == NULL ? "--model" : "--data");
    }
    WEIR_TRY(weir_training_check(config, err));
    WEIR_TRY(train_data_kind(config->data.kind, &kind, err));
    WEIR_TRY(weir_augment_from_name(config->data.augment, &augment, err));
    WEIR_TRY(train_config_shape(config, &is_given, &shape, err));
    WEIR_TRY(train_config_optimizer(config, &optimizer, err));
    WEIR_TRY(check_keep(config, err));
    WEIR_TRY(weir_precision_parse(config->model.precision, &precision, err));
    WEIR_TRY(weir_convolution_parse(config->model.convolution, &convolution, err));
    WEIR_TRY(check_fp16(config, err));
    if (config->report.model_name != NULL && config->report.server == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "model_name: registering a model needs a server");
    }
    if (config->report.run != NULL && config->report.server == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "run: reporting a run needs a server");
    }
    return check_rank(config, err);
}
