#include "net_texts.h"

#include "base/json.h"

static char *picture_text(const struct weir_net_input *input, struct weir_arena *arena)
{
    json_t *mean = json_array(), *std = json_array();
    for (int32_t c = 0; c < input->shape.c; c++) {
        (void)json_array_append_new(mean, json_real((double)input->mean[c]));
        (void)json_array_append_new(std, json_real((double)input->std[c]));
    }
    json_t *picture = json_pack("{s:s, s:s, s:i, s:o, s:o}", "layout", "NCHW", "fit", "stretch",
                                "scale", 1, "mean", mean, "std", std);
    char *text = weir_json_text(picture, arena);
    json_decref(picture);
    return text;
}

static char *labels_text(const struct weir_net_file_info *info, struct weir_arena *arena)
{
    json_t *labels = json_array();
    for (size_t i = 0; i < info->n_labels; i++) {
        (void)json_array_append_new(labels, json_string(info->labels[i]));
    }
    char *text = weir_json_text(labels, arena);
    json_decref(labels);
    return text;
}

struct net_texts net_texts_make(const struct weir_net_file *file, struct weir_arena *arena)
{
    const struct weir_net_file_info *info = weir_net_file_info(file);
    const struct weir_graph *graph = weir_net_file_graph(file);
    bool is_embedding = weir_graph_is_embedding(graph);
    bool has_labels = !is_embedding && info->n_labels == (size_t)weir_graph_output_shape(graph).c;
    return (struct net_texts){.picture = picture_text(&info->input, arena),
                              .labels = has_labels ? labels_text(info, arena) : NULL,
                              .output_kind = is_embedding                    ? "embedding"
                                             : weir_graph_is_detector(graph) ? "tensor"
                                                                             : "logits"};
}
