/** Tests and fuzz targets: a model file with fresh weights, for two people. */
#ifndef WEIR_PREDICT_TEST_MODEL_H
#define WEIR_PREDICT_TEST_MODEL_H

#include "nn/model_file.h"
#include "nn/net_file.h"

#include <string.h>

/** @param spec  As weir_model_spec_parse reads it. @param baseline  JSON, or NULL. */
static inline weir_status test_model_save(const char *path, const char *spec, uint64_t seed,
                                          const char *baseline, struct weir_error *err)
{
    static const char *const labels[] = {"a", "b"};
    struct weir_model_spec *parsed = NULL;
    struct weir_graph *graph = NULL;
    struct weir_net *net = NULL;
    const struct weir_net_config config = {.batch = 1, .n_threads = 1};
    weir_status status;
    WEIR_TRY_GOTO(weir_model_spec_parse(spec, strlen(spec), "test", &parsed, err), status, done);
    WEIR_TRY_GOTO(weir_model_spec_build(parsed, 2, &graph, err), status, done);
    WEIR_TRY_GOTO(weir_net_create(graph, &config, &net, err), status, done);
    weir_net_init_weights(net, seed);
    const struct weir_net_file_info info = {
        .input = {.shape = weir_model_spec_input(parsed), .mean = {0.5f}, .std = {0.25f}},
        .graph = weir_model_spec_text(parsed),
        .labels = labels,
        .n_labels = 2,
        .baseline = baseline};
    status = weir_net_file_save(path, net, &info, err);
done:
    weir_net_destroy(net);
    weir_graph_destroy(graph);
    weir_model_spec_destroy(parsed);
    return status;
}

#endif
