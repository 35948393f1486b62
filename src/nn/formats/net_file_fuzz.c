/* Any bytes: refused with a sentence, or a model whose net (if it is a small one) can be run. */
#include "nn/net_file.h"

#include <stdlib.h>

/* Larger ones are only read: what a network costs is the caller's choice, not the parser's. */
#define SMALL (1 << 16)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run(const struct weir_net_file *file)
{
    struct weir_net *net = NULL;
    struct weir_error err;
    const struct weir_net_config config = {
        .batch = 1, .n_threads = 1, .backend = &weir_reference_backend};
    if (weir_net_file_create_net(file, &config, &net, &err) != WEIR_OK) {
        return;
    }
    if (weir_net_forward(net, 1, NULL) != WEIR_OK) {
        abort();
    }
    weir_net_destroy(net);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_net_file *file = NULL;
    struct weir_error err = {0};
    if (weir_net_file_open_memory(data, size, "input", &file, &err) != WEIR_OK) {
        if (err.message[0] == '\0') {
            abort();
        }
        return 0;
    }
    const struct weir_graph *graph = weir_net_file_graph(file);
    if (weir_net_file_info(file)->n_labels == 0) {
        abort();
    }
    if (weir_graph_n_parameters(graph) < SMALL && weir_graph_n_macs(graph) < SMALL) {
        run(file);
    }
    weir_net_file_close(file);
    return 0;
}
