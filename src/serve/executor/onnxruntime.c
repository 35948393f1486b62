#include "serve/executor/executor_private.h"
#include "serve/model/external_data.h"

#include "ort_library.h"

#include "base/log.h"
#include "onnx/onnx.h"

#include <stdlib.h>
#include <string.h>

/* The library packs later types differently, and numbers some otherwise. */
#define TYPE_LAST WEIR_DTYPE_FLOAT8E5M2FNUZ

struct ort_serve_model {
    struct serve_model model;
    const struct ort_library *library;
    ort_session *session;
    ort_metadata *metadata;
    char *text; /**< The last text that metadata gave; the library's memory. */
    struct serve_port inputs[SERVE_PORTS_MAX], outputs[SERVE_PORTS_MAX];
    const char *in_names[SERVE_PORTS_MAX], *out_names[SERVE_PORTS_MAX];
};

static struct ort_serve_model *own(struct serve_model *model)
{
    return WEIR_CONTAINER_OF(model, struct ort_serve_model, model);
}

/* ---- session ---------------------------------------------------------------------------------- */

/* Threads that wait do not spin, in a run or between runs: others need the processors. */
static const char *const no_spinning[][2] = {{"session.intra_op.allow_spinning", "0"},
                                             {"session.inter_op.allow_spinning", "0"},
                                             {"session.force_spinning_stop", "1"}};

static weir_status set_options(const struct ort_library *library,
                               const struct executor_options *options, ort_options *to,
                               struct weir_error *err)
{
    const struct ort_api *api = library->api;
    WEIR_TRY(
        ort_check(library, api->set_optimization(to, ORT_OPTIMIZE_ALL), WEIR_ERR_INTERNAL, err));
    WEIR_TRY(ort_check(library, api->set_intra_threads(to, executor_threads(options)),
                       WEIR_ERR_INTERNAL, err));
    WEIR_TRY(ort_check(library, api->set_inter_threads(to, 1), WEIR_ERR_INTERNAL, err));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(no_spinning); i++) {
        WEIR_TRY(ort_check(library, api->set_entry(to, no_spinning[i][0], no_spinning[i][1]),
                           WEIR_ERR_INTERNAL, err));
    }
    return ort_check(library, api->set_entry(to, "session.use_env_allocators", "1"),
                     WEIR_ERR_INTERNAL, err);
}

static bool has_cuda(const struct ort_library *library)
{
    char **names;
    int n;
    bool has = false;
    if (library->append_cuda == NULL || ort_check(library, library->api->providers(&names, &n),
                                                  WEIR_ERR_INTERNAL, NULL) != WEIR_OK) {
        return false;
    }
    for (int i = 0; i < n; i++) {
        has = has || strcmp(names[i], "CUDAExecutionProvider") == 0;
    }
    ort_ignore(library, library->api->release_providers(names, n));
    return has;
}

/* Without a GPU the library has CUDA all the same, and says so when it is asked for. */
static weir_status append_cuda(const struct ort_library *library, ort_options *to,
                               struct weir_error *err)
{
    return has_cuda(library)
               ? ort_check(library, library->append_cuda(to, 0), WEIR_ERR_UNSUPPORTED, err)
               : weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                "this onnxruntime (%s) is built without CUDA", library->version);
}

/* *out_place: where it will compute. */
static weir_status set_device(const struct ort_library *library,
                              const struct executor_options *options, ort_options *to,
                              const char **out_place, struct weir_error *err)
{
    struct weir_error lacks;
    *out_place = EXECUTOR_ON_PROCESSOR;
    if (!executor_wants_gpu(options)) {
        return WEIR_OK;
    }
    if (append_cuda(library, to, &lacks) == WEIR_OK) {
        *out_place = EXECUTOR_ON_GPU;
        return WEIR_OK;
    }
    if (options->device == EXECUTOR_GPU) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "onnxruntime on the GPU: %s",
                              lacks.message);
    }
    weir_log(WEIR_LOG_WARN, "gpu_not_used", WEIR_KV_STR("executor", "onnxruntime"),
             WEIR_KV_STR("reason", lacks.message));
    return WEIR_OK;
}

static weir_status create_session(struct ort_serve_model *self, const struct model_bytes *bytes,
                                  const struct executor_options *options, struct weir_error *err)
{
    const struct ort_library *library = self->library;
    ort_options *session_options;
    WEIR_TRY(
        ort_check(library, library->api->create_options(&session_options), WEIR_ERR_INTERNAL, err));
    weir_status status = set_options(library, options, session_options, err);
    if (status == WEIR_OK) {
        status = set_device(library, options, session_options, &self->model.place, err);
    }
    if (status == WEIR_OK) {
        status = ort_check(library,
                           library->api->create_session(library->env, bytes->at, bytes->n,
                                                        session_options, &self->session),
                           WEIR_ERR_UNSUPPORTED, err);
    }
    library->api->release_options(session_options);
    return status;
}

void executor_preload(const struct executor_options *options)
{
    const struct ort_library *library;
    struct weir_error lacks;
    if (ort_library_get(options->onnxruntime_path, options->memory_max_bytes, &library, &lacks) !=
        WEIR_OK) {
        return; /* whoever needs it is told so */
    }
}

/* ---- ports ------------------------------------------------------------------------------------ */

static weir_status read_shape(const struct ort_library *library, const ort_shape *shape,
                              struct serve_port *out, struct weir_error *err)
{
    const struct ort_api *api = library->api;
    int type;
    size_t rank;
    WEIR_TRY(ort_check(library, api->shape_type(shape, &type), WEIR_ERR_INTERNAL, err));
    WEIR_TRY(ort_check(library, api->shape_rank(shape, &rank), WEIR_ERR_INTERNAL, err));
    if (rank > WEIR_TENSOR_RANK_MAX) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "it has %zu dimensions, at most %d are "
                              "supported",
                              rank, WEIR_TENSOR_RANK_MAX);
    }
    out->dtype = weir_dtype_of(type);
    out->rank = (int32_t)rank;
    if (out->dtype == WEIR_DTYPE_NONE || type > TYPE_LAST ||
        weir_dtype_class(out->dtype) == WEIR_DTYPE_IS_COMPLEX) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "elements of type %d are not supported",
                              type);
    }
    return ort_check(library, api->shape_dims(shape, out->dims, rank), WEIR_ERR_INTERNAL, err);
}

/* Converters of classifiers make their probabilities a list of maps, if they are not told otherwise. */
static weir_status read_type(const struct ort_library *library, ort_type_info *type, bool is_input,
                             struct serve_port *out, struct weir_error *err)
{
    const ort_shape *shape = NULL;
    WEIR_TRY(ort_check(library, library->api->as_shape(type, &shape), WEIR_ERR_INTERNAL, err));
    return shape != NULL ? read_shape(library, shape, out, err)
                         : weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                          "it is no tensor but a sequence, a map or optional%s",
                                          is_input ? ""
                                                   : ": of a classifier (ZipMap), convert it with "
                                                     "the option zipmap=False");
}

static weir_status read_port(struct ort_serve_model *self, bool is_input, size_t i,
                             struct serve_port *out, struct weir_error *err)
{
    const struct ort_library *library = self->library;
    const struct ort_api *api = library->api;
    ort_type_info *type;
    char *name;
    WEIR_TRY(ort_check(library,
                       (is_input ? api->input_name : api->output_name)(self->session, i,
                                                                       library->allocator, &name),
                       WEIR_ERR_INTERNAL, err));
    *out = (struct serve_port){.name = name};
    WEIR_TRY(ort_check(library,
                       (is_input ? api->input_type : api->output_type)(self->session, i, &type),
                       WEIR_ERR_INTERNAL, err));
    weir_status status = read_type(library, type, is_input, out, err);
    api->release_type_info(type);
    return status == WEIR_OK
               ? WEIR_OK
               : weir_error_prefix(err, "%s \"%.80s\": ", is_input ? "input" : "output", name);
}

/* The library says rank 0 of an output whose rank it does not know. */
static weir_status describe(struct ort_serve_model *self, struct weir_error *err)
{
    const struct ort_library *library = self->library;
    struct serve_model *model = &self->model;
    WEIR_TRY(ort_check(library, library->api->n_inputs(self->session, &model->n_inputs),
                       WEIR_ERR_INTERNAL, err));
    WEIR_TRY(ort_check(library, library->api->n_outputs(self->session, &model->n_outputs),
                       WEIR_ERR_INTERNAL, err));
    if (model->n_inputs > SERVE_PORTS_MAX || model->n_outputs > SERVE_PORTS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "more than %d inputs or outputs",
                              SERVE_PORTS_MAX);
    }
    model->inputs = self->inputs;
    model->outputs = self->outputs;
    for (size_t i = 0; i < model->n_inputs; i++) {
        WEIR_TRY(read_port(self, true, i, &self->inputs[i], err));
        self->in_names[i] = self->inputs[i].name;
    }
    for (size_t i = 0; i < model->n_outputs; i++) {
        WEIR_TRY(read_port(self, false, i, &self->outputs[i], err));
        self->out_names[i] = self->outputs[i].name;
        self->outputs[i].rank = self->outputs[i].rank == 0 ? -1 : self->outputs[i].rank;
    }
    return WEIR_OK;
}

/* ---- load and unload -------------------------------------------------------------------------- */

static void free_text(const struct ort_library *library, const char *text)
{
    if (text != NULL) {
        ort_ignore(library, library->api->allocator_free(library->allocator, (void *)text));
    }
}

static void unload(struct serve_model *model)
{
    struct ort_serve_model *self = own(model);
    for (size_t i = 0; i < SERVE_PORTS_MAX; i++) {
        free_text(self->library, self->inputs[i].name);
        free_text(self->library, self->outputs[i].name);
    }
    free_text(self->library, self->text);
    if (self->metadata != NULL) {
        self->library->api->release_metadata(self->metadata);
    }
    if (self->session != NULL) {
        self->library->api->release_session(self->session);
    }
    free(self);
}

/* By the graph, which may have operators that Weir's own executor does not run. */
static void read_rows(struct ort_serve_model *self, const struct model_bytes *bytes)
{
    static const enum serve_rows rows[] = {[WEIR_ONNX_ROWS_APART] = SERVE_ROWS_APART,
                                           [WEIR_ONNX_ROWS_MIXED] = SERVE_ROWS_MIXED,
                                           [WEIR_ONNX_ROWS_UNSURE] = SERVE_ROWS_UNSURE};

    self->model.rows = rows[weir_onnx_rows_of_file(bytes->at, bytes->n, self->model.rows_why)];
}

static weir_status open_model(struct ort_serve_model *self, const char *path,
                              const struct executor_options *options, struct weir_error *err)
{
    struct model_bytes bytes;
    WEIR_TRY(model_bytes_map_onnx(path, options, &bytes, err));
    weir_status status = external_data_refuse(bytes.at, bytes.n, err);
    if (status == WEIR_OK) {
        status = create_session(self, &bytes, options, err);
    }
    if (status == WEIR_OK) {
        read_rows(self, &bytes);
    }
    model_bytes_unmap(&bytes);
    if (status == WEIR_OK) {
        status = describe(self, err);
    }
    if (status == WEIR_OK) {
        status = ort_check(self->library,
                           self->library->api->session_metadata(self->session, &self->metadata),
                           WEIR_ERR_INTERNAL, err);
    }
    return status;
}

static weir_status load(const char *path, const struct executor_options *options,
                        struct serve_model **out, struct weir_error *err)
{
    const struct ort_library *library;
    size_t most = options->memory_max_bytes > 0 ? options->memory_max_bytes : EXECUTOR_MEMORY_BYTES;
    WEIR_TRY(ort_library_get(options->onnxruntime_path, most, &library, err));
    struct ort_serve_model *self = calloc(1, sizeof *self);
    if (self == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a model");
    }
    self->library = library;
    self->model.version = library->version;
    weir_status status = open_model(self, path, options, err);
    if (status != WEIR_OK) {
        unload(&self->model);
        return status;
    }
    *out = &self->model;
    return WEIR_OK;
}

static const char *metadata(struct serve_model *model, const char *key)
{
    struct ort_serve_model *self = own(model);
    const struct ort_library *library = self->library;
    free_text(library, self->text);
    self->text = NULL;
    weir_status status = ort_check(
        library, library->api->metadata_value(self->metadata, library->allocator, key, &self->text),
        WEIR_ERR_INTERNAL, NULL);
    return status == WEIR_OK ? self->text : NULL;
}

/* ---- run -------------------------------------------------------------------------------------- */

/* The library takes strings that end with NUL. */
static weir_status fill_strings(const struct ort_library *library, const struct weir_tensor *tensor,
                                ort_value *value, struct weir_error *err)
{
    const struct weir_tensor_string *strings = tensor->data;
    size_t n_bytes = 0;
    for (size_t i = 0; i < tensor->n_elems; i++) {
        if (strings[i].len > 0 && memchr(strings[i].bytes, '\0', strings[i].len) != NULL) {
            return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                  "onnxruntime takes no strings with NUL characters");
        }
        n_bytes += strings[i].len + 1;
    }
    const char **texts = calloc(tensor->n_elems + 1, sizeof *texts);
    char *bytes = malloc(n_bytes + 1), *at = bytes;
    weir_status status = texts != NULL && bytes != NULL
                             ? WEIR_OK
                             : weir_error_set(err, WEIR_ERR_NOMEM, "no memory for strings");
    for (size_t i = 0; status == WEIR_OK && i < tensor->n_elems; i++) {
        texts[i] = at;
        if (strings[i].len > 0) {
            memcpy(at, strings[i].bytes, strings[i].len);
        }
        at[strings[i].len] = '\0';
        at += strings[i].len + 1;
    }
    if (status == WEIR_OK) {
        status = ort_check(library, library->api->fill_strings(value, texts, tensor->n_elems),
                           WEIR_ERR_INVALID, err);
    }
    free(texts);
    free(bytes);
    return status;
}

static weir_status make_value(const struct ort_library *library, const struct weir_tensor *tensor,
                              ort_value **out, struct weir_error *err)
{
    const struct ort_api *api = library->api;
    size_t rank = (size_t)tensor->rank;
    if (tensor->dtype != WEIR_DTYPE_STRING) {
        return ort_check(library,
                         api->wrap_tensor(library->memory, tensor->data,
                                          tensor->n_elems * weir_dtype_bytes(tensor->dtype),
                                          tensor->dims, rank, (int)tensor->dtype, out),
                         WEIR_ERR_INVALID, err);
    }
    WEIR_TRY(ort_check(
        library,
        api->create_tensor(library->allocator, tensor->dims, rank, (int)tensor->dtype, out),
        WEIR_ERR_INVALID, err));
    return fill_strings(library, tensor, *out, err);
}

static weir_status copy_strings(const struct ort_library *library, const ort_value *value,
                                struct weir_tensor *tensor, struct weir_error *err)
{
    size_t n_bytes, n = tensor->n_elems;
    WEIR_TRY(
        ort_check(library, library->api->strings_bytes(value, &n_bytes), WEIR_ERR_INTERNAL, err));
    char *bytes = malloc(n_bytes + 1);
    size_t *offsets = calloc(n + 1, sizeof *offsets);
    weir_status status = bytes != NULL && offsets != NULL
                             ? WEIR_OK
                             : weir_error_set(err, WEIR_ERR_NOMEM, "no memory for strings");
    if (status == WEIR_OK) {
        status =
            ort_check(library, library->api->strings_content(value, bytes, n_bytes, offsets, n),
                      WEIR_ERR_INTERNAL, err);
    }
    for (size_t i = 0; status == WEIR_OK && i < n; i++) {
        size_t end = i + 1 < n ? offsets[i + 1] : n_bytes;
        const struct weir_tensor_string from = {.bytes = bytes + offsets[i],
                                                .len = end - offsets[i]};
        status = weir_elems_copy(WEIR_DTYPE_STRING, (struct weir_tensor_string *)tensor->data + i,
                                 &from, 1);
    }
    free(bytes);
    free(offsets);
    return status;
}

static weir_status copy_elements(const struct ort_library *library, ort_value *value,
                                 struct weir_tensor *tensor, struct weir_error *err)
{
    void *data;
    if (tensor->dtype == WEIR_DTYPE_STRING) {
        return copy_strings(library, value, tensor, err);
    }
    WEIR_TRY(ort_check(library, library->api->tensor_data(value, &data), WEIR_ERR_INTERNAL, err));
    memcpy(tensor->data, data, tensor->n_elems * weir_dtype_bytes(tensor->dtype));
    return WEIR_OK;
}

static weir_status copy_value(const struct ort_library *library, ort_value *value,
                              struct weir_tensor **out, struct weir_error *err)
{
    ort_shape *shape;
    struct serve_port port = {0};
    WEIR_TRY(ort_check(library, library->api->value_shape(value, &shape), WEIR_ERR_INTERNAL, err));
    weir_status status = read_shape(library, shape, &port, err);
    library->api->release_shape(shape);
    WEIR_TRY(status);
    struct weir_tensor *tensor;
    WEIR_TRY(weir_tensor_create(port.dtype, port.rank, port.dims, &tensor, err));
    status = copy_elements(library, value, tensor, err);
    if (status != WEIR_OK) {
        weir_tensor_release(tensor);
        return status;
    }
    *out = tensor;
    return WEIR_OK;
}

static void release_values(const struct ort_library *library, ort_value **values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (values[i] != NULL) {
            library->api->release_value(values[i]);
        }
    }
}

static weir_status run_values(struct ort_serve_model *self, ort_value **in, ort_value **out,
                              struct weir_error *err)
{
    const struct ort_library *library = self->library;
    return ort_check(library,
                     library->api->run(self->session, NULL, self->in_names,
                                       (const ort_value *const *)in, self->model.n_inputs,
                                       self->out_names, self->model.n_outputs, out),
                     WEIR_ERR_INVALID, err);
}

static weir_status run(struct serve_model *model, struct weir_tensor *const *in,
                       struct weir_tensor **out, struct weir_error *err)
{
    struct ort_serve_model *self = own(model);
    ort_value *values[SERVE_PORTS_MAX] = {NULL}, *results[SERVE_PORTS_MAX] = {NULL};
    struct weir_tensor *made[SERVE_PORTS_MAX] = {NULL};
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < model->n_inputs && status == WEIR_OK; i++) {
        status = make_value(self->library, in[i], &values[i], err);
    }
    if (status == WEIR_OK) {
        status = run_values(self, values, results, err);
    }
    for (size_t i = 0; i < model->n_outputs && status == WEIR_OK; i++) {
        status = copy_value(self->library, results[i], &made[i], err);
    }
    release_values(self->library, values, model->n_inputs);
    release_values(self->library, results, model->n_outputs);
    if (status != WEIR_OK) {
        serve_tensors_release(made, model->n_outputs);
        return status;
    }
    memcpy(out, made, model->n_outputs * sizeof(struct weir_tensor *));
    return WEIR_OK;
}

static const struct executor_ops ops = {
    .load = load, .run = run, .unload = unload, .metadata = metadata, .can_use_gpu = true};

const struct weir_kind weir_executor_onnxruntime_kind = {
    .name = "onnxruntime",
    .doc =
        "The library onnxruntime, where it is found: models in ONNX files, on a GPU where it has "
        "CUDA.",
    .ops = &ops,
};
