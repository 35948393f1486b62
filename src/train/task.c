#include "train/task.h"

#include "base/file.h"
#include "base/log.h"
#include "nn/zoo.h"
#include "train/cut.h"
#include "train/detect.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Kept in memory once decoded; a face store fits many times over. */
#define DATASET_CACHE_BYTES ((size_t)256 << 20)
#define EPOCHS_DEFAULT      10
#define BATCH_DEFAULT       64
#define WARMUP_PART         0.05 /* warmup_epochs -1 */
#define SLICES_OF_ONE       16   /* what nn takes by itself */
#define SLICE_MACS          ((int64_t)1 << 20)

static weir_status open_data(struct train_task *task, struct weir_error *err)
{
    const struct weir_train_config *config = task->config;
    struct weir_dataset_options options = {.cache_bytes = DATASET_CACHE_BYTES};
    WEIR_TRY(train_data_kind(config->data.kind, &options.kind, err));
    WEIR_TRY(weir_dataset_open(config->data.path, &options, &task->dataset, err));
    if (config->data.validation == NULL) {
        return WEIR_OK;
    }
    options.split = "test";
    options.kind = WEIR_DATASET_AUTO;
    WEIR_TRY(weir_dataset_open(config->data.validation, &options, &task->validation, err));
    if (task->is_detector) {
        return WEIR_OK; /* other people than those that are learnt, on purpose */
    }
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    return train_check_classes(task->validation, train_class_names(task->dataset, &arena),
                               weir_dataset_n_classes(task->dataset), "validation", err);
}

static weir_status read_model(struct train_task *task, struct weir_error *err)
{
    bool is_given = false;
    struct weir_shape shape = {0};
    WEIR_TRY(train_config_shape(task->config, &is_given, &shape, err));
    WEIR_TRY(
        weir_zoo_resolve(task->config->model.name, is_given ? &shape : NULL, &task->spec, err));
    struct weir_shape input = weir_model_spec_input(task->spec);
    if (is_given && (input.c != shape.c || input.h != shape.h || input.w != shape.w)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "input: the model file %s says %d,%d,%d itself",
                              task->config->model.name, input.c, input.h, input.w);
    }
    if (input.c != 1 && input.c != 3) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: a picture has 1 or 3 channels, the model's input %d",
                              task->config->model.name, input.c);
    }
    task->is_detector = strcmp(weir_model_spec_loss(task->spec), "detect") == 0;
    return WEIR_OK;
}

static weir_status build_model(struct train_task *task, struct weir_error *err)
{
    int32_t n_classes = (int32_t)weir_dataset_n_classes(train_task_stream(task));
    WEIR_TRY(weir_model_spec_build(task->spec, n_classes, &task->graph, err));
    task->is_embedding = weir_graph_is_embedding(task->graph);
    if (!task->is_embedding && task->mirrored != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "mirror_classes: %s is a classifier, whose classes are those of the "
                              "data; leave it out",
                              task->config->model.name);
    }
    if (task->is_embedding && task->config->optimizer.label_smoothing > 0) {
        return weir_error_set(
            err, WEIR_ERR_UNSUPPORTED,
            "label_smoothing: %s learns an embedding, whose margin loss has none; "
            "leave it out",
            task->config->model.name);
    }
    if (task->is_embedding && task->validation != NULL) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "validation: %s learns an embedding, which is not measured by "
                              "classes; leave it out",
                              task->config->model.name);
    }
    return WEIR_OK;
}

struct weir_dataset *train_task_stream(const struct train_task *task)
{
    return task->mirrored != NULL ? task->mirrored : task->dataset;
}

static weir_status set_order(struct train_task *task, struct weir_error *err)
{
    const struct weir_train_config *config = task->config;
    uint64_t n_samples = weir_dataset_n_samples(train_task_stream(task));
    uint64_t batch = config->loop.batch_size > 0 ? (uint64_t)config->loop.batch_size
                                                 : WEIR_MIN(n_samples, (uint64_t)BATCH_DEFAULT);
    task->order = (struct weir_order){.n_samples = n_samples,
                                      .seed = (uint64_t)config->loop.seed,
                                      .batch = (uint32_t)batch,
                                      .shuffle = true,
                                      .tail = WEIR_TAIL_DROP};
    weir_status status = weir_order_check(&task->order, err);
    if (status != WEIR_OK) {
        return weir_error_prefix(err, "batch_size %llu: ", (unsigned long long)batch);
    }
    if (batch < (uint64_t)(config->group.workers * config->loop.micro_batches)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "micro_batches: a batch of %llu pictures is too small for %lld runs "
                              "of %lld workers",
                              (unsigned long long)batch, (long long)config->loop.micro_batches,
                              (long long)config->group.workers);
    }
    task->steps_per_epoch = weir_order_batches(&task->order);
    task->n_epochs = (uint64_t)config->loop.epochs;
    if (config->loop.epochs == 0) {
        uint64_t n_steps = (uint64_t)config->loop.steps, per_epoch = task->steps_per_epoch;
        task->n_epochs = WEIR_MAX((uint64_t)EPOCHS_DEFAULT, (n_steps + per_epoch - 1) / per_epoch);
    }
    task->n_steps = task->steps_per_epoch * task->n_epochs;
    return WEIR_OK;
}

/** The rate that a training has if none is said. */
static double rate_of(const struct weir_optimizer_config *optimizer)
{
    size_t n_types = 0;
    const struct weir_optimizer_type *types = weir_optimizer_types(&n_types);
    size_t i = 0;
    while (strcmp(types[i].name, optimizer->name) != 0) {
        i++;
    }
    return types[i].learning_rate;
}

static weir_status set_pace(struct train_task *task, struct weir_error *err)
{
    const struct weir_train_config *config = task->config;
    WEIR_TRY(set_order(task, err));
    WEIR_TRY(train_config_optimizer(config, &task->optimizer, err));
    task->learning_rate = config->optimizer.learning_rate > 0 ? config->optimizer.learning_rate
                                                              : rate_of(&task->optimizer);
    double n_epochs = (double)task->n_epochs;
    bool is_part = config->optimizer.warmup_epochs < 0;
    const struct weir_schedule_span span = {
        .learning_rate = task->learning_rate,
        .epochs = n_epochs,
        .warmup_epochs = is_part ? WARMUP_PART * n_epochs : config->optimizer.warmup_epochs,
        .steps_per_epoch = task->steps_per_epoch};
    return weir_schedule_parse(config->optimizer.schedule, &span, &task->schedule, err);
}

static int32_t choose_threads(const struct weir_train_config *config)
{
    cpu_set_t set;
    if (config->group.threads > 0) {
        return (int32_t)config->group.threads;
    }
    int64_t n_cpus = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return (int32_t)WEIR_MAX(n_cpus / config->group.workers, 1);
}

/* The name was checked with the rest of the config. */
static enum weir_precision train_precision(const struct weir_train_config *config)
{
    enum weir_precision precision = WEIR_PRECISION_F32;
    weir_status status = weir_precision_parse(config->model.precision, &precision, NULL);
    (void)status;
    return precision;
}

static enum weir_convolution train_convolution(const struct weir_train_config *config)
{
    enum weir_convolution convolution = WEIR_CONVOLUTION_AUTO;
    weir_status status = weir_convolution_parse(config->model.convolution, &convolution, NULL);
    (void)status;
    return convolution;
}

/* Slices of the whole batch. Calling a kernel takes a microsecond: a slice of a small network has
 * as many images as take about fifty. A power of two, so that workers can share them. */
static uint32_t count_slices(const struct train_task *task)
{
    uint32_t n = SLICES_OF_ONE;
    while (n > 1 && task->order.batch * weir_graph_n_macs(task->graph) < n * SLICE_MACS) {
        n /= 2;
    }
    return WEIR_MIN(task->order.batch, n);
}

struct weir_net_config train_net_config(const struct train_task *task, uint32_t rank,
                                        uint32_t n_workers)
{
    uint32_t batch = task->order.batch, first = 0, n = 0;
    uint32_t n_runs = (uint32_t)task->config->loop.micro_batches;
    uint32_t n_parts = (uint32_t)task->config->loop.gradient_parts;
    /* Alone the slices are those of as many workers as there are parts: so are the bits. */
    uint32_t n_shares = n_workers == 1 && n_runs == 1 ? n_parts : n_workers * n_runs;
    uint32_t n_all = WEIR_MIN(WEIR_MAX(count_slices(task), n_shares), batch);
    uint32_t n_slices = n_all / n_workers / n_runs;
    weir_order_share(batch, rank, n_workers, &first, &n);
    return (struct weir_net_config){
        .batch = (int32_t)((weir_order_max_share(batch, n_workers) + n_runs - 1) / n_runs),
        .n_threads = task->n_threads,
        .n_slices =
            n_slices >= (uint32_t)task->n_threads || n_all < SLICES_OF_ONE ? (int32_t)n_slices : 0,
        .n_gradient_parts =
            n_workers == 1 && n_runs == 1 && batch % n_parts == 0 ? (int32_t)n_parts : 1,
        .is_training = true,
        .seed = (uint64_t)task->config->loop.seed,
        .label_smoothing = task->config->optimizer.label_smoothing,
        .first_image = first,
        .precision = train_precision(task->config),
        .convolution = train_convolution(task->config),
        .backend = weir_backend_find(task->config->model.backend),
        /* Workers of a host have GPUs of their own, as far as there are any. */
        .gpu = (int32_t)rank};
}

struct weir_loader_config train_loader_config(const struct train_task *task,
                                              const struct weir_net_input *input)
{
    bool is_fatal = strcmp(task->config->data.on_damage, "fatal") == 0;
    return (struct weir_loader_config){.input = train_data_input(input),
                                       .batch = task->order.batch,
                                       .seed = task->order.seed,
                                       .n_epochs = task->n_epochs,
                                       .shuffle = task->order.shuffle,
                                       .tail = task->order.tail,
                                       .augment = task->augment,
                                       .on_damage =
                                           is_fatal ? WEIR_ON_DAMAGE_FATAL : WEIR_ON_DAMAGE_SKIP};
}

json_t *train_parameters(const struct train_task *task)
{
    const struct weir_train_config *config = task->config;
    struct weir_shape input = weir_model_spec_input(task->spec);
    json_t *parameters = json_pack(
        "{s:s,s:[i,i,i],s:I,s:I,s:I,s:I,s:s,s:f,s:f,s:f,s:f,s:s,s:f,s:f,s:f,s:s,s:b,s:s}", "model",
        config->model.name, "input", input.c, input.h, input.w, "seed",
        (json_int_t)config->loop.seed, "epochs", (json_int_t)task->n_epochs, "batch_size",
        (json_int_t)task->order.batch, "micro_batches", (json_int_t)config->loop.micro_batches,
        "optimizer", config->optimizer.name, "learning_rate", task->learning_rate, "momentum",
        config->optimizer.momentum, "weight_decay", config->optimizer.weight_decay, "clip_norm",
        config->optimizer.clip_norm, "schedule", config->optimizer.schedule, "warmup_epochs",
        config->optimizer.warmup_epochs, "label_smoothing", config->optimizer.label_smoothing,
        "average_decay", config->optimizer.average_decay, "augment", config->data.augment,
        "mirror_classes", config->data.mirror_classes, "precision", config->model.precision);
    if (task->cut != NULL) {
        json_object_set_new(parameters, "cut", train_cut_describe(task->cut));
    }
    return parameters;
}

/** SHA-256 of class names and labels: the same pictures by name, whatever folder they lie in. */
static void hash_labels(const struct weir_dataset *dataset, char out[WEIR_SHA256_TEXT_BYTES],
                        struct weir_arena *arena)
{
    size_t n = weir_dataset_n_samples(dataset);
    int32_t *labels = WEIR_ARENA_ARRAY(arena, n + 1, int32_t);
    for (size_t i = 0; i < n; i++) {
        labels[i] = weir_dataset_label(dataset, i);
    }
    weir_sha256(labels, n * sizeof *labels, out);
}

static void set_identity(struct train_task *task)
{
    struct weir_arena arena;
    char graph[WEIR_SHA256_TEXT_BYTES], labels[WEIR_SHA256_TEXT_BYTES];
    const char *text = weir_model_spec_text(task->spec);
    weir_arena_init(&arena, (size_t)2 << 30);
    weir_sha256(text, strlen(text), graph);
    const struct weir_dataset *faces = weir_scenes_faces(task->dataset);
    hash_labels(faces != NULL ? faces : task->dataset, labels, &arena);
    json_t *identity = train_parameters(task);
    json_object_set_new(identity, "backend", json_string(task->config->model.backend));
    json_object_set_new(identity, "convolution", json_string(task->config->model.convolution));
    json_object_set_new(identity, "graph", json_string(graph));
    json_object_set_new(identity, "classes",
                        json_integer((json_int_t)weir_dataset_n_classes(task->dataset)));
    json_object_set_new(identity, "pictures", json_integer((json_int_t)task->order.n_samples));
    json_object_set_new(identity, "labels", json_string(labels));
    task->identity = weir_json_text(identity, &task->arena);
    json_decref(identity);
    weir_arena_fini(&arena);
}

static void begin(struct train_task *task, const struct weir_train_config *config)
{
    memset(task, 0, sizeof *task);
    weir_arena_init(&task->arena, 0);
    task->config = config;
    task->n_threads = choose_threads(config);
}

/* Whatever a network of one class answers is right. */
static void check_class_names(const struct train_task *task)
{
    if (!task->is_detector && weir_dataset_n_classes(task->dataset) == 1 &&
        task->config->group.rank <= 0) {
        weir_log(WEIR_LOG_WARN, "one_class", WEIR_KV_STR("data", task->config->data.path),
                 WEIR_KV_STR("class", weir_dataset_class_name(task->dataset, 0)),
                 WEIR_KV_STR("meaning", "every answer is right: accuracy says nothing"));
    }
}

/** Everything that follows from the data. */
static weir_status complete(struct train_task *task, struct weir_error *err)
{
    check_class_names(task);
    WEIR_TRY(weir_augment_from_name(task->config->data.augment, &task->augment, err));
    WEIR_TRY(train_detect_compose(task, err));
    WEIR_TRY(train_cut_open(task, err));
    if (task->config->data.mirror_classes) {
        WEIR_TRY(weir_dataset_open_mirrored(task->dataset, &task->mirrored, err));
    }
    WEIR_TRY(build_model(task, err));
    WEIR_TRY(set_pace(task, err));
    set_identity(task);
    return WEIR_OK;
}

weir_status train_task_open(struct train_task *task, const struct weir_train_config *config,
                            struct weir_error *err)
{
    begin(task, config);
    WEIR_TRY(read_model(task, err));
    WEIR_TRY(open_data(task, err));
    return complete(task, err);
}

weir_status train_task_open_on(struct train_task *task, const struct weir_train_config *config,
                               struct weir_dataset *dataset, struct weir_error *err)
{
    begin(task, config);
    task->dataset = dataset;
    WEIR_TRY(read_model(task, err));
    return complete(task, err);
}

void train_task_close(struct train_task *task)
{
    weir_graph_destroy(task->graph);
    weir_model_spec_destroy(task->spec);
    weir_dataset_close(task->validation);
    weir_dataset_close(task->mirrored);
    if (task->cut == NULL) {
        weir_dataset_close(task->dataset);
    }
    train_cut_close(task->cut);
    weir_arena_fini(&task->arena);
    memset(task, 0, sizeof *task);
}

/* ---- normalisation -------------------------------------------------------------------------- */

struct moments {
    double sum[3], sum_squares[3];
    uint64_t n; /**< Per channel. */
};

static void add_tensor(struct moments *moments, const struct weir_input *input, const float *tensor)
{
    size_t n_pixels = (size_t)input->h * (size_t)input->w;
    for (int c = 0; c < input->c; c++) {
        for (size_t i = 0; i < n_pixels; i++) {
            double value = (double)tensor[(size_t)c * n_pixels + i];
            moments->sum[c] += value;
            moments->sum_squares[c] += value * value;
        }
    }
    moments->n += n_pixels;
}

static weir_status measure(const struct train_task *task, const struct weir_input *plain,
                           float *tensor, struct moments *moments, struct weir_error *err)
{
    uint64_t n = weir_dataset_n_samples(task->dataset);
    for (uint64_t i = 0; i < WEIR_MIN(n, (uint64_t)TRAIN_INPUT_SAMPLES); i++) {
        struct weir_image image = {0};
        uint64_t sample = weir_permute(task->order.seed, 0, n, i);
        weir_status status = weir_dataset_read(task->dataset, sample, &image, err);
        if (status == WEIR_OK) {
            status = weir_image_to_tensor(&image, plain, tensor, err);
            weir_image_fini(&image);
        }
        if (status == WEIR_ERR_NOMEM) {
            return status;
        }
        if (status == WEIR_OK) { /* a damaged picture is the loader's to report */
            add_tensor(moments, plain, tensor);
        }
    }
    return moments->n > 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_CORRUPT, "%s: none of its pictures can be read",
                                task->config->data.path);
}

weir_status train_measure_input(const struct train_task *task, struct weir_net_input *out,
                                struct weir_error *err)
{
    struct weir_shape shape = weir_model_spec_input(task->spec);
    if (task->is_detector) {
        /* Whatever decodes the detector's output knows these. */
        *out = (struct weir_net_input){.shape = shape, .mean = {0.5F}, .std = {0.25F}};
        return WEIR_OK;
    }
    const struct weir_input plain = {.c = shape.c, .h = shape.h, .w = shape.w, .std = {1, 1, 1}};
    float *tensor = calloc((size_t)shape.c * (size_t)shape.h * (size_t)shape.w, sizeof *tensor);
    if (tensor == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a picture");
    }
    struct moments moments = {0};
    weir_status status = measure(task, &plain, tensor, &moments, err);
    free(tensor);
    WEIR_TRY(status);
    struct weir_net_input input = {.shape = shape};
    for (int c = 0; c < shape.c; c++) {
        double mean = moments.sum[c] / (double)moments.n;
        double variance = moments.sum_squares[c] / (double)moments.n - mean * mean;
        input.mean[c] = (float)mean;
        /* Pictures of one grey only: leave their scale as it is. */
        input.std[c] = variance > 1e-6 ? (float)sqrt(variance) : 1;
    }
    *out = input;
    return WEIR_OK;
}

struct weir_input train_data_input(const struct weir_net_input *input)
{
    struct weir_input out = {.c = input->shape.c, .h = input->shape.h, .w = input->shape.w};
    memcpy(out.mean, input->mean, sizeof out.mean);
    memcpy(out.std, input->std, sizeof out.std);
    return out;
}

/* ---- classes -------------------------------------------------------------------------------- */

const char *const *train_class_names(const struct weir_dataset *dataset, struct weir_arena *arena)
{
    size_t n = weir_dataset_n_classes(dataset);
    const char **names = WEIR_ARENA_ARRAY(arena, n + 1, const char *);
    for (size_t i = 0; i < n; i++) {
        names[i] = weir_dataset_class_name(dataset, i);
    }
    return names;
}

weir_status train_check_classes(const struct weir_dataset *dataset, const char *const *names,
                                size_t n_names, const char *what, struct weir_error *err)
{
    size_t n = weir_dataset_n_classes(dataset);
    for (size_t i = 0; i < WEIR_MIN(n, n_names); i++) {
        const char *name = weir_dataset_class_name(dataset, i);
        if (strcmp(name, names[i]) != 0) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s: class %zu is \"%.60s\", the model's is \"%.60s\"", what, i,
                                  name, names[i]);
        }
    }
    return n == n_names ? WEIR_OK
                        : weir_error_set(err, WEIR_ERR_INVALID,
                                         "%s: it has %zu classes, the model %zu", what, n, n_names);
}
