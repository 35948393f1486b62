/* Models on the GPU of this machine, with the files and laws of test_gpu.h. Where there is none, it is
 * skipped (77). */
#include "serve/model/test_gpu.h"

#define SKIPPED 77

/* Convolutions of a library add in an order of their own. */
#define TOLERANCE 1e-4

/* UNSUPPORTED: there is no GPU, or its libraries are not. */
static weir_status probe(struct weir_error *err)
{
    const struct weir_net_config config = {.batch = 1, .backend = &weir_cuda_backend};
    struct weir_graph *graph = weir_graph_create();
    struct weir_net *net = NULL;
    weir_value_t x = weir_graph_input(graph, (struct weir_shape){3, 1, 1});
    (void)weir_graph_linear(graph, "fc", x, 2, true);
    weir_status status = weir_net_create(graph, &config, &net, err);
    weir_net_destroy(net);
    weir_graph_destroy(graph);
    return status;
}

int main(void)
{
    struct weir_error err = {0};
    weir_status status = probe(&err);
    if (status != WEIR_OK) {
        (void)printf("%s: %s\n", status == WEIR_ERR_UNSUPPORTED ? "skipped" : "failed",
                     err.message);
        return status == WEIR_ERR_UNSUPPORTED ? SKIPPED : EXIT_FAILURE;
    }
    Suite *suite = suite_create("executor on this machine's GPU");
    TCase *tcase = tcase_create("executor on this machine's GPU");
    setenv("CK_FORK", "no", 1); /* a driver does not survive a fork */
    test_gpu_tolerance = TOLERANCE;
    tcase_set_timeout(tcase, 300);
    tcase_add_checked_fixture(tcase, test_gpu_set_up, test_gpu_tear_down);
    TEST_GPU_CASES(tcase);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
