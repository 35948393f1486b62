/*
 * Memory that runs out: every allocation of graph and net is made to fail in turn; each failure
 * must come back as NOMEM, leave nothing behind (the address sanitizer looks), and a step must not
 * allocate at all.
 */
#include "nn/nn.h"

#include "base/test_alloc.h"
#include "base/test_main.h"
#include "nn/backend/test_backends.h"
#include "nn/graph/random_graph_test.h"

static void leave(void *context, const struct weir_gradients *gradients)
{
    (void)context;
    (void)gradients;
}

/* Graph, net and one step. @return the first status that is not OK. */
static weir_status build_and_run(const struct weir_net_config *config)
{
    struct weir_net *net = NULL;
    struct weir_graph *graph = weir_graph_create();
    if (!graph) {
        return WEIR_ERR_NOMEM;
    }
    weir_value_t x = weir_graph_input(graph, (struct weir_shape){2, 6, 6});
    x = weir_graph_conv(graph, "conv", x,
                        &(struct weir_conv_params){.k = 4,
                                                   .kernel_h = 3,
                                                   .kernel_w = 3,
                                                   .stride = 1,
                                                   .pad_h = 1,
                                                   .pad_w = 1,
                                                   .has_bias = true});
    x = weir_graph_batch_norm(graph, "bn", x);
    x = weir_graph_relu(graph, "relu", x);
    x = weir_graph_linear(graph, "fc", x, RANDOM_GRAPH_CLASSES, true);
    weir_graph_softmax_loss(graph, "loss", x);
    weir_status status = weir_graph_check(graph, NULL);
    if (status == WEIR_OK) {
        status = weir_net_create(graph, config, &net, NULL);
    }
    if (status == WEIR_OK) {
        weir_net_init_weights(net, 1);
        random_batch(net, graph, 1);
        test_alloc_fail(0); /* from here on none is allowed */
        if (config->updates_in_backward) {
            status = weir_net_step_and_update(net, 0, leave, NULL, NULL);
        } else if (config->is_training) {
            status = weir_net_step(net, 0, NULL, NULL, NULL);
        }
        weir_status forward_status = weir_net_forward(net, 3, NULL);
        (void)test_alloc_end();
        ck_assert_int_eq(forward_status, WEIR_OK);
        ck_assert_int_eq(test_alloc_count(), 0);
    }
    weir_net_destroy(net);
    weir_graph_destroy(graph);
    return status;
}

static void sweep(const struct weir_net_config *config)
{
    weir_status status = WEIR_ERR_NOMEM;
    int n_failed = -1;
    while (status == WEIR_ERR_NOMEM) {
        test_alloc_fail(++n_failed);
        status = build_and_run(config);
        (void)test_alloc_end();
        ck_assert(status == WEIR_ERR_NOMEM || status == WEIR_OK);
        ck_assert_int_lt(n_failed, 10000);
    }
    ck_assert_int_gt(n_failed, 40); /* or nothing was swept */
}

START_TEST(every_failed_allocation_of_the_reference_is_reported)
{
    sweep(&(struct weir_net_config){
        .batch = 3, .n_threads = 2, .is_training = true, .backend = &weir_reference_backend});
}

END_TEST

START_TEST(every_failed_allocation_of_the_onednn_backend_is_reported)
{
    for (int i_form = 1; i_form < N_FORMS; i_form += 2) {
        struct weir_net_config config = {.batch = 3,
                                         .n_threads = 2,
                                         .is_training = true,
                                         .precision = form_precision(i_form),
                                         .backend = form_backend(i_form)};
        if (has_form(i_form)) {
            sweep(&config);
            config.convolution =
                config.precision == WEIR_PRECISION_F32 ? other_convolution() : config.convolution;
            sweep(&config);
            config.updates_in_backward = true;
            sweep(&config);
            config.updates_in_backward = false;
            config.is_training = false;
            config.n_row_tiles = 2;
            sweep(&config);
        }
    }
}

END_TEST

WEIR_TEST_MAIN("alloc", every_failed_allocation_of_the_reference_is_reported,
               every_failed_allocation_of_the_onednn_backend_is_reported)
