/* What a graph is, in numbers. Each answers zero for a graph that weir_graph_check refuses. */
#include "graph.h"

struct weir_shape weir_graph_output_shape(const struct weir_graph *graph)
{
    weir_value_t output = graph_output(graph);
    return output < 0 ? (struct weir_shape){0, 0, 0} : graph->layers[output].out;
}

struct weir_shape weir_graph_input_shape(const struct weir_graph *graph)
{
    return graph->input < 0 ? (struct weir_shape){0, 0, 0} : graph->layers[graph->input].out;
}

bool weir_graph_is_embedding(const struct weir_graph *graph)
{
    weir_value_t output = graph_output(graph);
    return output >= 0 && graph->layers[output].kind == LAYER_L2_NORMALISE;
}

int32_t weir_graph_n_classes(const struct weir_graph *graph)
{
    if (graph->loss < 0) {
        return 0;
    }
    const struct graph_layer *loss = &graph->layers[graph->loss];
    return loss->kind == LAYER_MARGIN_LOSS   ? loss->n_classes
           : loss->kind == LAYER_DETECT_LOSS ? 1
                                             : loss->out.c;
}

bool weir_graph_is_detector(const struct weir_graph *graph)
{
    return graph->loss >= 0 && graph->layers[graph->loss].kind == LAYER_DETECT_LOSS;
}

int64_t weir_graph_n_parameters(const struct weir_graph *graph)
{
    int64_t n = 0;
    for (int32_t i = 0; i < graph->n_layers; i++) {
        const struct graph_layer *l = &graph->layers[i];
        struct weir_shape in =
            l->n_in > 0 ? graph->layers[l->in[0]].out : (struct weir_shape){0, 0, 0};
        int64_t bias = l->conv.has_bias ? l->conv.k : 0;
        switch (l->kind) {
        case LAYER_CONV:
            n +=
                (int64_t)l->conv.k * (in.c / l->conv.groups) * l->conv.kernel_h * l->conv.kernel_w +
                bias;
            break;
        case LAYER_LINEAR:
            n += l->conv.k * shape_elems(in) + bias;
            break;
        case LAYER_BATCH_NORM:
            n += 2 * (int64_t)in.c;
            break;
        case LAYER_PRELU:
            n += in.c;
            break;
        case LAYER_MARGIN_LOSS:
            n += (int64_t)l->n_classes * in.c;
            break;
        default:
            break;
        }
    }
    return n;
}

static int64_t count_macs(const struct graph_layer *l, const struct graph_layer *in)
{
    switch (l->kind) {
    case LAYER_CONV:
        return shape_elems(l->out) * (in->out.c / l->conv.groups) * l->conv.kernel_h *
               l->conv.kernel_w;
    case LAYER_LINEAR:
        return l->conv.k * shape_elems(in->out);
    default:
        return 0;
    }
}

int64_t weir_graph_n_macs(const struct weir_graph *graph)
{
    int64_t n = 0;
    for (int32_t i = 0; i < graph->n_layers; i++) {
        n += count_macs(&graph->layers[i], &graph->layers[graph->layers[i].in[0]]);
    }
    return n;
}

int64_t weir_graph_n_step_macs(const struct weir_graph *graph)
{
    int64_t n = 0;
    for (int32_t i = 0; i < graph->n_layers; i++) {
        const struct graph_layer *l = &graph->layers[i], *in = &graph->layers[l->in[0]];
        n += count_macs(l, in) * (in->is_trained ? 3 : 2);
    }
    return n;
}
