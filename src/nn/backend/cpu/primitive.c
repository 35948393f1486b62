#include "primitive.h"

#include <string.h>

/* libgomp's, which oneDNN brings; <omp.h> is not there for every compiler Weir is checked with. */
void omp_set_num_threads(int n_threads);

void dnn_enter_thread(void)
{
    omp_set_num_threads(1);
}

weir_status dnn_check(dnnl_status_t status, const char *what, struct weir_error *err)
{
    if (status == dnnl_success) {
        return WEIR_OK;
    }
    return weir_error_set(err,
                          status == dnnl_out_of_memory   ? WEIR_ERR_NOMEM
                          : status == dnnl_unimplemented ? WEIR_ERR_UNSUPPORTED
                                                         : WEIR_ERR_INTERNAL,
                          "oneDNN: %s failed with status %d", what, (int)status);
}

/* oneDNN compiles its matrix product in the first call of a process, which takes 30 ms: here, and
 * not in the first step or the first answer of a service. */
static dnnl_status_t warm_up(void)
{
    float a[4] = {0}, b[4] = {0}, c[4] = {0};
    return dnnl_sgemm('N', 'N', 2, 2, 2, 1, a, 2, b, 2, 0, c, 2);
}

/* Without its own instructions oneDNN computes bf16 by converting, slower than f32. */
static bool has_bf16(void)
{
    return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_bf16) ==
           dnnl_cpu_isa_avx512_core_bf16;
}

bool dnn_has_tiles(void)
{
    return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_amx) ==
           dnnl_cpu_isa_avx512_core_amx;
}

bool dnn_is_memory_far(void)
{
    return dnn_has_tiles();
}

weir_status dnn_open(const struct weir_net_config *config, int32_t n_threads, void **out_context,
                     struct weir_error *err)
{
    if (config->precision == WEIR_PRECISION_BF16 && !has_bf16()) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "precision bf16: this processor has no AVX-512 instructions for "
                              "bfloat16 (avx512_bf16); use f32");
    }
    struct dnn_context *context = calloc(1, sizeof(*context));
    if (!context) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "out of memory");
    }
    context->n_threads = n_threads;
    context->streams = calloc((size_t)n_threads, sizeof(dnnl_stream_t));
    weir_status status = WEIR_OK;
    WEIR_TRY_GOTO(context->streams ? dnn_check(dnnl_engine_create(&context->engine, dnnl_cpu, 0),
                                               "creating an engine", err)
                                   : weir_error_set(err, WEIR_ERR_NOMEM, "out of memory"),
                  status, close);
    for (int32_t i = 0; i < n_threads; i++) {
        WEIR_TRY_GOTO(dnn_check(dnnl_stream_create(&context->streams[i], context->engine,
                                                   dnnl_stream_default_flags),
                                "creating a stream", err),
                      status, close);
    }
    WEIR_TRY_GOTO(dnn_check(warm_up(), "a first matrix product", err), status, close);
    *out_context = context;
    return WEIR_OK;
close:
    dnn_close(context);
    return status;
}

void dnn_close(void *context_pointer)
{
    struct dnn_context *context = context_pointer;
    for (int32_t i = 0; context->streams && i < context->n_threads; i++) {
        if (context->streams[i]) {
            dnnl_stream_destroy(context->streams[i]);
        }
    }
    if (context->engine) {
        dnnl_engine_destroy(context->engine);
    }
    for (int32_t i = 0; i < context->n_pieces; i++) {
        slab_unmap(&context->pieces[i]);
    }
    free(context->streams);
    free(context);
}

#define FIRST_PIECE_BYTES ((size_t)1 << 20)

void *dnn_take(struct dnn_context *context, size_t n_bytes)
{
    struct slab *last = &context->pieces[WEIR_MAX(context->n_pieces, 1) - 1];
    if (context->n_pieces > 0 && last->size_bytes - last->used_bytes >= n_bytes + 63) {
        return slab_take(last, n_bytes);
    }
    if (context->n_pieces == DNN_MAX_PIECES) {
        return NULL;
    }
    struct slab *next = &context->pieces[context->n_pieces];
    if (!slab_map(next, WEIR_MAX(n_bytes, FIRST_PIECE_BYTES << context->n_pieces))) {
        return NULL;
    }
    context->n_pieces++;
    return slab_take(next, n_bytes);
}

/* "ref" code is hundreds of times slower than any other. */
static bool is_slow(const_dnnl_primitive_desc_t desc)
{
    const char *name = NULL;
    dnnl_status_t status = dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &name);
    return status == dnnl_success && name && strstr(name, "ref");
}

/* Slope of negative values. With slope 0, oneDNN's ReLU turns NaN into 0; with another slope NaN
 * passes. This slope is so small that what it leaves of negative values disappears beside any
 * other. */
#define RELU_SLOPE 1e-30f

static dnnl_status_t set_tail(dnnl_primitive_attr_t attr, struct primitive_tail tail)
{
    dnnl_post_ops_t ops;
    if (!tail.has_sum && !tail.has_relu) {
        return dnnl_success;
    }
    dnnl_status_t status = dnnl_post_ops_create(&ops);
    if (status != dnnl_success) {
        return status;
    }
    if (tail.has_sum) {
        status = weir_dnn_append_sum(ops);
    }
    if (status == dnnl_success && tail.has_relu) {
        status = weir_dnn_append_eltwise(ops, dnnl_eltwise_relu, RELU_SLOPE, 0);
    }
    if (status == dnnl_success) {
        status = dnnl_primitive_attr_set_post_ops(attr, ops);
    }
    dnnl_post_ops_destroy(ops);
    return status;
}

weir_status primitive_create(const struct dnn_context *context, const struct weir_dnn_op *op,
                             const struct primitive *hint, struct primitive_tail tail,
                             struct primitive *p, struct weir_error *err)
{
    dnnl_primitive_attr_t attr;
    WEIR_TRY(dnn_check(dnnl_primitive_attr_create(&attr), "creating attributes", err));
    dnnl_status_t status = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (status == dnnl_success) {
        status = set_tail(attr, tail);
    }
    if (status == dnnl_success) {
        status = weir_dnn_describe(op, context->engine, attr, hint ? hint->desc : NULL, &p->desc);
    }
    dnnl_primitive_attr_destroy(attr);
    if (status == dnnl_unimplemented) {
        p->desc = NULL;
        return WEIR_OK;
    }
    WEIR_TRY(dnn_check(status, "describing a primitive", err));
    if (is_slow(p->desc)) {
        return WEIR_OK;
    }
    return dnn_check(dnnl_primitive_create(&p->primitive, p->desc), "creating a primitive", err);
}

weir_status primitive_create_reorder(const struct dnn_context *context,
                                     const struct weir_dnn_layout *from,
                                     const struct weir_dnn_layout *to, struct primitive *p,
                                     struct weir_error *err)
{
    dnnl_primitive_attr_t attr;
    WEIR_TRY(dnn_check(dnnl_primitive_attr_create(&attr), "creating attributes", err));
    dnnl_status_t status = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (status == dnnl_success) {
        const struct weir_dnn_op op = {.kind = WEIR_DNN_REORDER, .src = from, .dst = to};
        status = weir_dnn_describe(&op, context->engine, attr, NULL, &p->desc);
    }
    dnnl_primitive_attr_destroy(attr);
    WEIR_TRY(dnn_check(status, "describing a reorder", err));
    return dnn_check(dnnl_primitive_create(&p->primitive, p->desc), "creating a reorder", err);
}

weir_status primitive_attach(const struct dnn_context *context, struct primitive *p,
                             const struct primitive_arg *args, int32_t n_args,
                             struct weir_error *err)
{
    const struct weir_dnn_layout scratch = weir_dnn_layout_of(p->desc, dnnl_query_scratchpad_md);
    p->n_threads = context->n_threads;
    p->n_args = n_args + 1;
    p->scratch_bytes = scratch.n_bytes;
    p->args = calloc((size_t)p->n_threads * (size_t)p->n_args, sizeof(*p->args));
    if (!p->args) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "out of memory");
    }
    for (int32_t t = 0; t < p->n_threads; t++) {
        for (int32_t i = 0; i < p->n_args; i++) {
            dnnl_exec_arg_t *arg = &p->args[t * p->n_args + i];
            arg->arg = i < n_args ? args[i].index : DNNL_ARG_SCRATCHPAD;
            WEIR_TRY(dnn_check(weir_dnn_memory(&arg->memory, i < n_args ? args[i].layout : &scratch,
                                               context->engine, DNNL_MEMORY_NONE),
                               "creating a memory object", err));
        }
    }
    return WEIR_OK;
}

void primitive_destroy(struct primitive *p)
{
    for (int32_t i = 0; p->args && i < p->n_threads * p->n_args; i++) {
        if (p->args[i].memory) {
            dnnl_memory_destroy(p->args[i].memory);
        }
    }
    free(p->args);
    if (p->primitive) {
        dnnl_primitive_destroy(p->primitive);
    }
    if (p->desc) {
        dnnl_primitive_desc_destroy(p->desc);
    }
    memset(p, 0, sizeof(*p));
}

struct weir_dnn_layout primitive_layout(const struct primitive *p, dnnl_query_t what)
{
    return weir_dnn_layout_of(p->desc, what);
}

weir_status primitive_run(const struct dnn_context *context, const struct primitive *p,
                          int32_t i_thread, void *const *addresses, void *scratch)
{
    dnnl_exec_arg_t *args = &p->args[i_thread * p->n_args];
    for (int32_t i = 0; i < p->n_args; i++) {
        void *address = i + 1 < p->n_args ? addresses[i] : scratch;
        if (dnnl_memory_set_data_handle(args[i].memory, address) != dnnl_success) {
            return WEIR_ERR_INTERNAL;
        }
    }
    dnnl_status_t status =
        dnnl_primitive_execute(p->primitive, context->streams[i_thread], p->n_args, args);
    return status == dnnl_success         ? WEIR_OK
           : status == dnnl_out_of_memory ? WEIR_ERR_NOMEM
                                          : WEIR_ERR_INTERNAL;
}
