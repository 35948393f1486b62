#include "executor_private.h"

#include "base/open.h"
#include "nn/gpu_given.h"
#include "onnx/onnx.h"
#include "serve/executor_flags.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct weir_kind *const kinds[] = {
#define WEIR_KIND(name) &weir_executor_##name##_kind,
#include "serve/executors.def"
#undef WEIR_KIND
};

const struct weir_registry weir_executors = {
    .noun = "executor",
    .plural = "executors",
    .doc = "What runs a model file.",
    .kinds = kinds,
    .n_kinds = WEIR_ARRAY_LEN(kinds),
};

static const struct executor_ops *ops_of(const struct weir_kind *kind)
{
    return kind->ops;
}

/* ---- files ------------------------------------------------------------------------------------ */

static weir_status map_open(const char *path, int fd, struct model_bytes *out,
                            struct weir_error *err)
{
    struct stat facts;
    if (fstat(fd, &facts) != 0) {
        return weir_error_set_errno(err, errno, "%s", path);
    }
    if (!S_ISREG(facts.st_mode) || facts.st_size == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: %s, expected a model", path,
                              S_ISREG(facts.st_mode) ? "an empty file" : "not a file");
    }
    if ((uint64_t)facts.st_size > SERVE_MODEL_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%s: %lld bytes, a model has at most %zu", path,
                              (long long)facts.st_size, SERVE_MODEL_MAX_BYTES);
    }
    void *at = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED) {
        return weir_error_set_errno(err, errno, "%s: cannot be mapped", path);
    }
    *out = (struct model_bytes){.at = at, .n = (size_t)facts.st_size};
    return WEIR_OK;
}

weir_status model_bytes_map(const char *path, struct model_bytes *out, struct weir_error *err)
{
    int fd = weir_open_read(path);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "%s", path);
    }
    weir_status status = map_open(path, fd, out, err);
    (void)close(fd);
    return status;
}

static weir_status reshape(const struct executor_options *options, struct model_bytes *bytes,
                           struct weir_error *err)
{
    struct weir_onnx_port *ports = calloc(options->n_shapes, sizeof *ports);
    if (ports == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a model");
    }
    for (size_t i = 0; i < options->n_shapes; i++) {
        ports[i].name = options->shapes[i].name;
        ports[i].rank = options->shapes[i].rank;
        memcpy(ports[i].dims, options->shapes[i].dims, sizeof ports[i].dims);
    }
    struct weir_buf reshaped;
    weir_status status =
        weir_onnx_reshape(bytes->at, bytes->n, ports, options->n_shapes, &reshaped, err);
    free(ports);
    WEIR_TRY(status);
    if (reshaped.len == 0) {
        weir_buf_fini(&reshaped);
        return WEIR_OK;
    }
    model_bytes_unmap(bytes);
    *bytes = (struct model_bytes){.at = reshaped.data, .n = reshaped.len, .reshaped = reshaped};
    return WEIR_OK;
}

weir_status model_bytes_map_onnx(const char *path, const struct executor_options *options,
                                 struct model_bytes *out, struct weir_error *err)
{
    WEIR_TRY(model_bytes_map(path, out, err));
    weir_status status = options->n_shapes > 0 ? reshape(options, out, err) : WEIR_OK;
    if (status != WEIR_OK) {
        model_bytes_unmap(out);
    }
    return status;
}

void model_bytes_unmap(struct model_bytes *bytes)
{
    if (bytes->reshaped.len > 0) {
        weir_buf_fini(&bytes->reshaped);
    } else if (bytes->at != NULL) {
        (void)munmap((void *)bytes->at, bytes->n);
    }
    *bytes = (struct model_bytes){0};
}

static weir_status sniff(const char *path, enum weir_model_format *out, struct weir_error *err)
{
    struct model_bytes bytes;
    WEIR_TRY(model_bytes_map(path, &bytes, err));
    *out = weir_model_format_sniff(bytes.at, WEIR_MIN(bytes.n, (size_t)WEIR_MODEL_SNIFF_BYTES),
                                   bytes.n);
    model_bytes_unmap(&bytes);
    return WEIR_OK;
}

/* ---- options ---------------------------------------------------------------------------------- */

const char *const executor_device_words[] = {
    [EXECUTOR_AUTO] = "auto", [EXECUTOR_PROCESSOR] = "processor", [EXECUTOR_GPU] = "gpu", NULL};

weir_status executor_device_parse(const char *text, enum executor_device *out,
                                  struct weir_error *err)
{
    for (int i = 0; executor_device_words[i] != NULL; i++) {
        if (strcmp(text, executor_device_words[i]) == 0) {
            *out = (enum executor_device)i;
            return WEIR_OK;
        }
    }
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "there is no device \"%.40s\": expected auto, processor or gpu", text);
}

weir_status executor_flags_read(const struct executor_flags *flags, struct executor_options *out,
                                struct weir_error *err)
{
    enum weir_precision checked;
    out->onnxruntime_path = flags->onnxruntime;
    out->precision = flags->precision;
    WEIR_TRY(weir_precision_parse(flags->precision, &checked, err));
    return executor_device_parse(flags->device, &out->device, err);
}

bool executor_wants_gpu(const struct executor_options *options)
{
    enum executor_device device = options != NULL ? options->device : EXECUTOR_AUTO;
    return device == EXECUTOR_GPU || (device == EXECUTOR_AUTO && weir_gpu_is_given());
}

weir_status executor_precision(const struct executor_options *options, enum weir_precision *out,
                               struct weir_error *err)
{
    *out = WEIR_PRECISION_F32;
    return options->precision != NULL ? weir_precision_parse(options->precision, out, err)
                                      : WEIR_OK;
}

/* What an executor cannot do is refused, not left out. */
static weir_status check_options(const struct weir_kind *kind,
                                 const struct executor_options *options, struct weir_error *err)
{
    const struct executor_ops *ops = ops_of(kind);
    enum weir_precision precision;
    WEIR_TRY(executor_precision(options, &precision, err));
    if (options->device == EXECUTOR_GPU && !ops->can_use_gpu) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "the executor %s computes on the processor, not on a GPU: leave out "
                              "device gpu",
                              kind->name);
    }
    if (precision != WEIR_PRECISION_F32 && !ops->has_precisions) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "the executor %s computes in the types of the file, not in %s: leave "
                              "out the precision",
                              kind->name, options->precision);
    }
    return WEIR_OK;
}

/* ---- load ------------------------------------------------------------------------------------- */

int32_t executor_threads(const struct executor_options *options)
{
    if (options->n_threads > 0) {
        return options->n_threads;
    }
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? WEIR_MAX(CPU_COUNT(&set), 1) : 1;
}

static weir_status check_ports(const struct serve_model *model, const char *path,
                               struct weir_error *err)
{
    if (model->n_inputs > SERVE_PORTS_MAX || model->n_outputs > SERVE_PORTS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "%s: %zu inputs and %zu outputs, at most %d of each are served", path,
                              model->n_inputs, model->n_outputs, SERVE_PORTS_MAX);
    }
    return model->n_outputs > 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "%s: the model has no outputs", path);
}

/* Has the model the input, with the shape that was said? */
static weir_status check_shape(const struct serve_model *model, const struct serve_port *said,
                               const char *path, struct weir_error *err)
{
    char names[256] = "", given[WEIR_TENSOR_TEXT_BYTES], has[WEIR_TENSOR_TEXT_BYTES];
    for (size_t i = 0, n = 0; i < model->n_inputs; i++) {
        const struct serve_port *port = &model->inputs[i];
        if (strcmp(port->name, said->name) != 0) {
            n += n < sizeof names ? (size_t)snprintf(names + n, sizeof names - n, "%s%.60s",
                                                     i > 0 ? ", " : "", port->name)
                                  : 0;
            continue;
        }
        bool is = port->rank < 0 ||
                  (port->rank == said->rank &&
                   memcmp(port->dims, said->dims, (size_t)said->rank * sizeof *said->dims) == 0);
        return is ? WEIR_OK
                  : weir_error_set(err, WEIR_ERR_INVALID,
                                   "%s: input \"%.80s\" is %s and cannot be %s", path, said->name,
                                   weir_tensor_dims_text(port->rank, port->dims, has),
                                   weir_tensor_dims_text(said->rank, said->dims, given));
    }
    return weir_error_set(err, WEIR_ERR_INVALID, "%s: it has no input \"%.80s\", but %s", path,
                          said->name, names);
}

static weir_status check_loaded(const struct serve_model *model, const char *path,
                                const struct executor_options *options, struct weir_error *err)
{
    WEIR_TRY(check_ports(model, path, err));
    for (size_t i = 0; i < options->n_shapes; i++) {
        WEIR_TRY(check_shape(model, &options->shapes[i], path, err));
    }
    return WEIR_OK;
}

weir_status executor_load(const char *name, const char *path,
                          const struct executor_options *options, struct serve_model **out,
                          struct weir_error *err)
{
    static const struct executor_options defaults;
    const struct weir_kind *kind;
    WEIR_TRY(weir_registry_find(&weir_executors, name, "executor", &kind, err));
    struct serve_model *model;
    options = options != NULL ? options : &defaults;
    WEIR_TRY(check_options(kind, options, err));
    WEIR_TRY(ops_of(kind)->load(path, options, &model, err));
    model->kind = kind;
    model->place = model->place != NULL ? model->place : EXECUTOR_ON_PROCESSOR;
    weir_status status = check_loaded(model, path, options, err);
    if (status != WEIR_OK) {
        serve_model_unload(model);
        return status;
    }
    *out = model;
    return WEIR_OK;
}

const char *executor_message(const char *message, const char *path)
{
    size_t len = strlen(path);
    bool has = len > 0 && strncmp(message, path, len) == 0 && strncmp(message + len, ": ", 2) == 0;
    return has ? message + len + 2 : message;
}

/* Our own could not run an ONNX file: `lacks` says why. */
static weir_status choose_other(const char *path, const struct executor_options *options,
                                const struct weir_error *lacks, struct serve_model **out,
                                char why[EXECUTOR_WHY_BYTES], struct weir_error *err)
{
    struct weir_error other;
    const char *reason = executor_message(lacks->message, path);
    weir_status status = executor_load("onnxruntime", path, options, out, &other);
    if (status == WEIR_OK) {
        (void)snprintf(why, EXECUTOR_WHY_BYTES,
                       "onnxruntime %s runs it, because Weir cannot: %.500s", (*out)->version,
                       reason);
        return WEIR_OK;
    }
    return weir_error_set(
        err, lacks->status, "%s: %.260s; onnxruntime%s %s", path, reason,
        status == WEIR_ERR_NOT_FOUND ? ", which has more operators, would be tried, but" : ":",
        executor_message(other.message, path));
}

weir_status executor_choose(const char *path, const struct executor_options *options,
                            struct serve_model **out, char why[EXECUTOR_WHY_BYTES],
                            struct weir_error *err)
{
    enum weir_model_format format;
    WEIR_TRY(sniff(path, &format, err));
    if (format == WEIR_MODEL_FORMAT_UNKNOWN) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: neither a model that Weir trained (safetensors) nor ONNX", path);
    }
    if (format == WEIR_MODEL_FORMAT_WEIR) {
        WEIR_TRY(executor_load("weir", path, options, out, err));
        (void)snprintf(why, EXECUTOR_WHY_BYTES, "Weir runs it, because Weir trained it");
        return WEIR_OK;
    }
    struct weir_error lacks;
    weir_status status = executor_load("onnx", path, options, out, &lacks);
    if (status == WEIR_OK) {
        (void)snprintf(why, EXECUTOR_WHY_BYTES,
                       "Weir runs it, because Weir has all of its operators");
        return WEIR_OK;
    }
    bool may_other = status == WEIR_ERR_UNSUPPORTED || status == WEIR_ERR_LIMIT;
    if (!may_other) {
        return weir_error_set(err, status, "%s", lacks.message);
    }
    return choose_other(path, options, &lacks, out, why, err);
}

/* ---- a loaded model --------------------------------------------------------------------------- */

static const char *dtype_text(enum weir_dtype dtype)
{
    return dtype == WEIR_DTYPE_NONE ? "any type" : weir_dtype_name(dtype);
}

weir_status serve_port_check(const struct serve_port *port, const struct weir_tensor *tensor,
                             struct weir_error *err)
{
    bool fits = (port->dtype == WEIR_DTYPE_NONE || port->dtype == tensor->dtype) &&
                (port->rank < 0 || port->rank == tensor->rank);
    for (int32_t i = 0; fits && i < port->rank; i++) {
        fits = port->dims[i] < 0 || port->dims[i] == tensor->dims[i];
    }
    if (fits) {
        return WEIR_OK;
    }
    char wanted[WEIR_TENSOR_TEXT_BYTES] = "any shape", given[WEIR_TENSOR_TEXT_BYTES];
    return weir_error_set(
        err, WEIR_ERR_INVALID, "input \"%.80s\" is %s of %s, expected %s of %s (-1: any)",
        port->name, weir_tensor_dims_text(tensor->rank, tensor->dims, given),
        weir_dtype_name(tensor->dtype),
        port->rank < 0 ? wanted : weir_tensor_dims_text(port->rank, port->dims, wanted),
        dtype_text(port->dtype));
}

weir_status serve_model_run(struct serve_model *model, struct weir_tensor *const *in,
                            struct weir_tensor **out, struct weir_error *err)
{
    for (size_t i = 0; i < model->n_inputs; i++) {
        WEIR_TRY(serve_port_check(&model->inputs[i], in[i], err));
    }
    return ops_of(model->kind)->run(model, in, out, err);
}

enum weir_model_format serve_model_format(const struct serve_model *model)
{
    return strcmp(model->kind->name, "weir") == 0 ? WEIR_MODEL_FORMAT_WEIR : WEIR_MODEL_FORMAT_ONNX;
}

bool serve_model_is_on_gpu(const struct serve_model *model)
{
    return strcmp(model->place, EXECUTOR_ON_GPU) == 0;
}

void serve_model_unload(struct serve_model *model)
{
    if (model != NULL) {
        ops_of(model->kind)->unload(model);
    }
}

const char *serve_model_metadata(struct serve_model *model, const char *key)
{
    const struct executor_ops *ops = ops_of(model->kind);
    return ops->metadata != NULL ? ops->metadata(model, key) : NULL;
}

static bool are_batched(const struct serve_port *ports, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (ports[i].rank < 1 || ports[i].dims[0] >= 0) {
            return false;
        }
    }
    return n > 0;
}

bool serve_model_is_batched(const struct serve_model *model)
{
    return are_batched(model->inputs, model->n_inputs) &&
           are_batched(model->outputs, model->n_outputs);
}

void serve_tensors_release(struct weir_tensor **tensors, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        weir_tensor_release(tensors[i]);
        tensors[i] = NULL;
    }
}
