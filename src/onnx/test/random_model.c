/* A random graph as a file, and in print. */
#include "random_private.h"

#include "base/protobuf.h"

#include <string.h>

#define FREE (-1)

/* ---- attributes ------------------------------------------------------------------------------- */

enum { ATTRIBUTE_FLOAT = 1, ATTRIBUTE_INT, ATTRIBUTE_TEXT, ATTRIBUTE_INTS = 7 };

static size_t begin_attribute(struct random_graph *g, const char *name, uint64_t type)
{
    size_t at = weir_protobuf_begin(&g->attributes, 5);
    weir_protobuf_put_text(&g->attributes, 1, name);
    weir_protobuf_put_varint(&g->attributes, 20, type);
    return at;
}

void graph_set_int(struct random_graph *g, const char *name, int64_t value)
{
    size_t at = begin_attribute(g, name, ATTRIBUTE_INT);
    weir_protobuf_put_varint(&g->attributes, 3, (uint64_t)value);
    weir_protobuf_end(&g->attributes, at);
}

void graph_set_ints(struct random_graph *g, const char *name, int n, const int64_t *values)
{
    size_t at = begin_attribute(g, name, ATTRIBUTE_INTS);
    for (int i = 0; i < n; i++) {
        weir_protobuf_put_varint(&g->attributes, 8, (uint64_t)values[i]);
    }
    weir_protobuf_end(&g->attributes, at);
}

void graph_set_float(struct random_graph *g, const char *name, double value)
{
    size_t at = begin_attribute(g, name, ATTRIBUTE_FLOAT);
    weir_protobuf_put_float(&g->attributes, 2, (float)value);
    weir_protobuf_end(&g->attributes, at);
}

void graph_set_text(struct random_graph *g, const char *name, const char *text)
{
    size_t at = begin_attribute(g, name, ATTRIBUTE_TEXT);
    weir_protobuf_put_text(&g->attributes, 4, text);
    weir_protobuf_end(&g->attributes, at);
}

/* ---- the file --------------------------------------------------------------------------------- */

static void put_tensor(struct weir_buf *to, const struct random_value *value)
{
    const struct weir_tensor *tensor = value->now;
    size_t at = weir_protobuf_begin(to, 5);
    for (int i = 0; i < tensor->rank; i++) {
        weir_protobuf_put_varint(to, 1, (uint64_t)tensor->dims[i]);
    }
    weir_protobuf_put_varint(to, 2, (uint64_t)tensor->dtype);
    weir_protobuf_put_text(to, 8, value->name);
    if (tensor->dtype == WEIR_DTYPE_STRING) {
        const struct weir_tensor_string *text = tensor->data;
        for (size_t i = 0; i < tensor->n_elems; i++) {
            weir_protobuf_put_bytes(to, 6, text[i].bytes != NULL ? text[i].bytes : "", text[i].len);
        }
    } else {
        weir_protobuf_put_bytes(to, 9, tensor->data,
                                tensor->n_elems * weir_dtype_bytes(tensor->dtype));
    }
    weir_protobuf_end(to, at);
}

/* rank -1: the shape is not said; a dimension FREE: neither. */
static void put_port(struct weir_buf *to, uint32_t number, const char *name, enum weir_dtype dtype,
                     int rank, const int64_t *dims)
{
    size_t port = weir_protobuf_begin(to, number);
    weir_protobuf_put_text(to, 1, name);
    size_t outer = weir_protobuf_begin(to, 2), tensor = weir_protobuf_begin(to, 1);
    weir_protobuf_put_varint(to, 1, (uint64_t)dtype);
    if (rank >= 0) {
        size_t shape = weir_protobuf_begin(to, 2);
        for (int i = 0; i < rank; i++) {
            size_t dim = weir_protobuf_begin(to, 1);
            if (dims[i] == FREE) {
                weir_protobuf_put_text(to, 2, "batch");
            } else {
                weir_protobuf_put_varint(to, 1, (uint64_t)dims[i]);
            }
            weir_protobuf_end(to, dim);
        }
        weir_protobuf_end(to, shape);
    }
    weir_protobuf_end(to, tensor);
    weir_protobuf_end(to, outer);
    weir_protobuf_end(to, port);
}

static void put_opset(struct weir_buf *to, int opset)
{
    size_t at = weir_protobuf_begin(to, 8);
    weir_protobuf_put_text(to, 1, "");
    weir_protobuf_put_varint(to, 2, (uint64_t)opset);
    weir_protobuf_end(to, at);
}

static struct weir_onnx *load(const struct weir_buf *model)
{
    const struct weir_onnx_limits limits = {
        .run_bytes = GRAPH_BYTES_MAX, .n_threads = 1, .only_interprets = true};
    struct weir_onnx *onnx;
    struct weir_error err;
    return weir_onnx_load(model->data, model->len, &limits, &onnx, &err) == WEIR_OK ? onnx : NULL;
}

struct weir_onnx *graph_load_alone(const struct random_graph *g, const struct random_step *step)
{
    struct weir_buf model;
    weir_buf_init(&model, GRAPH_BYTES_MAX);
    weir_protobuf_put_varint(&model, 1, 8);
    size_t graph = weir_protobuf_begin(&model, 7);
    graph_must(weir_buf_append(&model, step->node.data, step->node.len));
    for (int i = 0; i < step->n_in; i++) {
        bool is_new = step->in[i] >= 0;
        for (int k = 0; k < i; k++) {
            is_new = is_new && step->in[k] != step->in[i];
        }
        if (is_new) {
            const struct random_value *value = &g->values[step->in[i]];
            put_port(&model, 11, value->name, value->now->dtype, -1, NULL);
        }
    }
    for (int i = 0; i < step->n_out; i++) {
        put_port(&model, 12, g->values[step->out[i]].name, WEIR_DTYPE_NONE, -1, NULL);
    }
    weir_protobuf_end(&model, graph);
    put_opset(&model, g->opset);
    struct weir_onnx *onnx = load(&model);
    weir_buf_fini(&model);
    return onnx;
}

void random_graph_write(const struct random_graph *g, struct weir_buf *to)
{
    weir_protobuf_put_varint(to, 1, 8);
    size_t graph = weir_protobuf_begin(to, 7);
    for (int i = 0; i < g->n_steps; i++) {
        graph_must(weir_buf_append(to, g->steps[i].node.data, g->steps[i].node.len));
    }
    weir_protobuf_put_text(to, 2, "random");
    for (int i = 0; i < g->n_values; i++) {
        const struct random_value *value = &g->values[i];
        if (value->is_constant) {
            put_tensor(to, value);
        } else if (value->is_input) {
            int64_t dims[WEIR_TENSOR_RANK_MAX];
            memcpy(dims, value->now->dims, sizeof dims);
            dims[0] = g->batch > 0 ? FREE : dims[0];
            put_port(to, 11, value->name, value->now->dtype,
                     g->batch > 0 || g->seed % 3 != 0 ? value->now->rank : -1, dims);
        }
    }
    for (int i = 0; i < g->n_outputs; i++) {
        const struct random_value *value = &g->values[g->outputs[i]];
        put_port(to, 12, value->name,
                 value->now != NULL && g->is_common ? value->now->dtype : WEIR_DTYPE_NONE, -1,
                 NULL);
    }
    weir_protobuf_end(to, graph);
    put_opset(to, g->opset);
    graph_must(to->status);
}

void random_graph_print(const struct random_graph *g, FILE *to)
{
    (void)fprintf(to, "opset %d, batch %lld\n", g->opset, (long long)g->batch);
    for (int i = 0; i < g->n_steps; i++) {
        const struct random_step *step = &g->steps[i];
        for (int k = 0; k < step->n_out; k++) {
            const struct random_value *value = &g->values[step->out[k]];
            (void)fprintf(to, "%s%s", k > 0 ? ", " : "", value->name);
            for (int d = -1; value->now != NULL && d < value->now->rank; d++) {
                (void)fprintf(to, d < 0 ? " %s" : "%.0s %lld", weir_dtype_name(value->now->dtype),
                              d < 0 ? 0LL : (long long)value->now->dims[d]);
            }
            (void)fprintf(to, "%s", value->is_exact ? " exact" : "");
        }
        (void)fprintf(to, " = %s(", step->type);
        for (int k = 0; k < step->n_in; k++) {
            const struct random_value *value = step->in[k] >= 0 ? &g->values[step->in[k]] : NULL;
            (void)fprintf(to, "%s%s%s", k > 0 ? ", " : "", value != NULL ? value->name : "-",
                          value == NULL        ? ""
                          : value->is_constant ? " const"
                          : value->is_input    ? " input"
                                               : "");
            for (int d = 0; value != NULL && value->now != NULL && d < value->now->rank &&
                            (value->is_constant || value->is_input);
                 d++) {
                (void)fprintf(to, " %lld", (long long)value->now->dims[d]);
            }
        }
        (void)fprintf(to, ")\n");
    }
    (void)fprintf(to, "outputs");
    for (int i = 0; i < g->n_outputs; i++) {
        (void)fprintf(to, " %s", g->values[g->outputs[i]].name);
    }
    (void)fprintf(to, "\n");
}

void graph_put_node(struct random_graph *g, struct random_step *step)
{
    size_t at = weir_protobuf_begin(&step->node, 1);
    for (int i = 0; i < step->n_in; i++) {
        weir_protobuf_put_text(&step->node, 1, step->in[i] >= 0 ? g->values[step->in[i]].name : "");
    }
    for (int i = 0; i < step->n_out; i++) {
        weir_protobuf_put_text(&step->node, 2, g->values[step->out[i]].name);
    }
    weir_protobuf_put_text(&step->node, 4, step->type);
    graph_must(weir_buf_append(&step->node, g->attributes.data, g->attributes.len));
    weir_protobuf_end(&step->node, at);
    weir_buf_reset(&g->attributes);
}
