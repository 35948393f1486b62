/*
 * For bench/zoo_against_torch.py: one training step of a model of the zoo on an input that the
 * caller made, and what came of it.
 *
 *     zoo-dump MODEL IN.safetensors OUT.safetensors
 *
 * IN holds "input" (batch x C x H x W), "labels" (batch, as f32) and the parameters by name; OUT
 * gets "output" (of the step), "inference" (of the weights given) and "gradient.NAME". Dropout
 * is of rate 0.
 */
#include "base/json.h"
#include "nn/model_file.h"
#include "nn/nn.h"
#include "nn/safetensors.h"
#include "nn/zoo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const struct weir_error *err)
{
    (void)fprintf(stderr, "%s\n", err->message);
    exit(1);
}

static void must(weir_status status, const struct weir_error *err)
{
    if (status != WEIR_OK) {
        die(err);
    }
}

/** The model with dropout of rate 0: it would be another's random numbers. */
static struct weir_graph *build(const char *model)
{
    struct weir_error err = {0};
    struct weir_model_spec *spec = NULL;
    struct weir_graph *graph = NULL;
    must(weir_zoo_spec(model, NULL, &spec, &err), &err);
    json_t *root = json_loads(weir_model_spec_text(spec), 0, NULL), *layer = NULL;
    size_t i = 0;
    json_array_foreach(json_object_get(root, "layers"), i, layer)
    {
        if (json_object_get(layer, "rate") != NULL) {
            (void)json_object_set_new(layer, "rate", json_real(0));
        }
    }
    char *text = json_dumps(root, JSON_COMPACT);
    must(weir_model_build(text, 1000, &graph, &err), &err);
    free(text);
    json_decref(root);
    weir_model_spec_destroy(spec);
    return graph;
}

static void read_inputs(const struct weir_safetensors *file, struct weir_net *net, size_t n_input)
{
    struct weir_error err = {0};
    int32_t batch = weir_net_batch(net);
    float *labels = calloc((size_t)batch, sizeof *labels);
    size_t n_params = 0;
    const struct weir_param *params = weir_net_params(net, &n_params);
    must(weir_safetensors_read_f32(file, "input", weir_net_input(net), n_input, &err), &err);
    must(weir_safetensors_read_f32(file, "labels", labels, (size_t)batch, &err), &err);
    for (int32_t i = 0; i < batch; i++) {
        weir_net_labels(net)[i] = (int32_t)labels[i];
    }
    for (size_t i = 0; i < n_params; i++) {
        float *to = weir_net_weights(net, NULL) + params[i].first_elem;
        must(weir_safetensors_read_f32(file, params[i].name, to, params[i].n_elems, &err), &err);
    }
    weir_net_weights_changed(net);
    free(labels);
}

static float *copy_output(struct weir_net *net, size_t n)
{
    float *copy = malloc(n * sizeof *copy);
    memcpy(copy, weir_net_output(net), n * sizeof *copy);
    return copy;
}

int main(int argc, char **argv)
{
    struct weir_error err = {0};
    struct weir_safetensors *file = NULL;
    struct weir_net *net = NULL;
    struct weir_step_result result;
    if (argc != 4) {
        (void)fprintf(stderr, "usage: zoo-dump MODEL IN.safetensors OUT.safetensors\n");
        return 2;
    }
    struct weir_graph *graph = build(argv[1]);
    must(weir_safetensors_open(argv[2], &file, &err), &err);
    const struct weir_safetensors_entry *input = weir_safetensors_find(file, "input");
    struct weir_net_config config = {
        .batch = input == NULL ? 1 : (int32_t)input->dims[0], .n_threads = 2, .is_training = true};
    must(weir_net_create(graph, &config, &net, &err), &err);
    size_t n_output = (size_t)config.batch * (size_t)weir_graph_output_shape(graph).c;
    read_inputs(file, net, input == NULL ? 0 : (size_t)input->n_elems);
    must(weir_net_forward(net, config.batch, NULL), &err);
    float *inference = copy_output(net, n_output);
    must(weir_net_step(net, 0, NULL, NULL, &result), &err);
    float *output = copy_output(net, n_output);

    size_t n_params = 0, n = 0;
    const struct weir_param *params = weir_net_params(net, &n_params);
    struct weir_safetensors_tensor *tensors = calloc(n_params + 2, sizeof *tensors);
    char(*names)[128] = calloc(n_params, sizeof *names);
    tensors[n++] = (struct weir_safetensors_tensor){
        "inference", {config.batch, (int64_t)n_output / config.batch}, 2, inference};
    tensors[n++] = (struct weir_safetensors_tensor){
        "output", {config.batch, (int64_t)n_output / config.batch}, 2, output};
    for (size_t i = 0; i < n_params; i++) {
        if (params[i].is_trainable) {
            struct weir_safetensors_tensor *t = &tensors[n++];
            (void)snprintf(names[i], sizeof names[i], "gradient.%s", params[i].name);
            t->name = names[i];
            t->n_dims = params[i].n_dims;
            for (int32_t d = 0; d < params[i].n_dims; d++) {
                t->dims[d] = params[i].dims[d];
            }
            t->data = weir_net_gradients(net, NULL) + params[i].first_elem;
        }
    }
    must(weir_safetensors_write(argv[3], tensors, n, NULL, 0, &err), &err);
    free(names);
    free(tensors);
    free(output);
    free(inference);
    weir_net_destroy(net);
    weir_safetensors_close(file);
    weir_graph_destroy(graph);
    return 0;
}
