/*
 * make_net MODEL SIDE FILE: a model of the zoo with random weights, as a net file. SIDE 0 is the
 * model's own input. Norms get random parameters and statistics.
 */
#include "base/rng.h"
#include "nn/net_file.h"
#include "nn/zoo.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_CLASSES 10

static struct weir_error err;

static void stir(struct weir_net *net)
{
    size_t n;
    struct weir_rng rng;
    const struct weir_param *params = weir_net_params(net, &n);
    weir_rng_init(&rng, 1, 77);
    for (size_t i = 0; i < n; i++) {
        float *values = weir_net_weights(net, NULL) + params[i].first_elem;
        bool is_variance = strstr(params[i].name, "running_var") != NULL;
        for (size_t k = 0; params[i].n_dims == 1 && k < params[i].n_elems; k++) {
            float step = 0.25f * (float)weir_rng_normal(&rng);
            values[k] += is_variance ? fabsf(step) : step;
        }
    }
}

static weir_status save(const char *path, struct weir_net *net, const struct weir_model_spec *spec)
{
    static char names[N_CLASSES][16];
    const char *labels[N_CLASSES];
    for (int i = 0; i < N_CLASSES; i++) {
        (void)snprintf(names[i], sizeof names[i], "class %d", i);
        labels[i] = names[i];
    }
    const struct weir_net_file_info info = {.input = {.shape = weir_model_spec_input(spec),
                                                      .mean = {0.5f, 0.25f, 0.125f},
                                                      .std = {0.25f, 0.5f, 0.75f}},
                                            .graph = weir_model_spec_text(spec),
                                            .labels = labels,
                                            .n_labels = N_CLASSES};
    return weir_net_file_save(path, net, &info, &err);
}

static weir_status make(const char *name, int32_t side, const char *path)
{
    const struct weir_zoo_model *model = weir_zoo_find(name);
    if (model == NULL) {
        return weir_error_set(&err, WEIR_ERR_NOT_FOUND, "%s: no such model", name);
    }
    struct weir_shape shape = model->shape;
    if (side > 0) {
        shape.h = shape.w = side;
    }
    const struct weir_net_config config = {.batch = 1, .n_threads = 1};
    struct weir_model_spec *spec = NULL;
    struct weir_graph *graph = NULL;
    struct weir_net *net = NULL;
    weir_status status;
    WEIR_TRY_GOTO(weir_zoo_spec(name, &shape, &spec, &err), status, done);
    WEIR_TRY_GOTO(weir_model_spec_build(spec, N_CLASSES, &graph, &err), status, done);
    WEIR_TRY_GOTO(weir_net_create(graph, &config, &net, &err), status, done);
    weir_net_init_weights(net, 1);
    stir(net);
    status = save(path, net, spec);
done:
    weir_net_destroy(net);
    weir_graph_destroy(graph);
    weir_model_spec_destroy(spec);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        (void)fprintf(stderr, "usage: make_net MODEL SIDE FILE\n");
        return EXIT_FAILURE;
    }
    weir_status status = make(argv[1], (int32_t)strtol(argv[2], NULL, 10), argv[3]);
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "make_net: %s\n", err.message);
    }
    return status == WEIR_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
