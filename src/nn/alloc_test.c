/*
 * Memory that runs out: every allocation of graph and net is made to fail in turn (the linker hands
 * the library's malloc, calloc, realloc and mmap to this file); each failure must come back as
 * NOMEM, leave nothing behind (the address sanitizer looks), and a step must not allocate at all.
 */
#include "nn/nn.h"

#include "base/test_main.h"
#include "random_graph_test.h"

#include <stdatomic.h>
#include <sys/mman.h>

static atomic_long n_allocations, fail_at = -1;
static atomic_bool is_armed; /* Check allocates too */

static bool must_fail(void)
{
    if (!atomic_load(&is_armed)) {
        return false;
    }
    long n = atomic_fetch_add(&n_allocations, 1);
    return n == atomic_load(&fail_at);
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);

void *__wrap_malloc(size_t size)
{
    return must_fail() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return must_fail() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return must_fail() ? NULL : __real_realloc(p, size);
}

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    return must_fail() ? MAP_FAILED : __real_mmap(at, size, protection, flags, fd, offset);
}

static void fail_allocation(long n)
{
    atomic_store(&n_allocations, 0);
    atomic_store(&fail_at, n);
    atomic_store(&is_armed, true);
}

static void disarm(void)
{
    atomic_store(&is_armed, false);
}

/* Graph, net and one step. @return the first status that is not OK. */
static weir_status build_and_step(const struct weir_backend *backend)
{
    struct weir_net *net = NULL;
    struct weir_graph *graph = weir_graph_create();
    if (!graph) {
        return WEIR_ERR_NOMEM;
    }
    weir_value_t x = weir_graph_input(graph, (struct weir_shape){2, 6, 6});
    x = weir_graph_conv(graph, "conv", x, &(struct weir_conv_params){4, 3, 3, 1, 1, 1, true});
    x = weir_graph_batch_norm(graph, "bn", x);
    x = weir_graph_relu(graph, "relu", x);
    x = weir_graph_linear(graph, "fc", x, RANDOM_GRAPH_CLASSES, true);
    weir_graph_softmax_loss(graph, "loss", x);
    weir_status status = weir_graph_check(graph, NULL);
    struct weir_net_config config = {
        .batch = 3, .n_threads = 2, .is_training = true, .backend = backend};
    if (status == WEIR_OK) {
        status = weir_net_create(graph, &config, &net, NULL);
    }
    if (status == WEIR_OK) {
        weir_net_init_weights(net, 1);
        random_batch(net, graph, 1);
        fail_allocation(0); /* from here on none is allowed */
        status = weir_net_step(net, 0, NULL, NULL, NULL);
        weir_status forward_status = weir_net_forward(net, 3, NULL);
        disarm();
        ck_assert_int_eq(forward_status, WEIR_OK);
        ck_assert_int_eq((int)atomic_load(&n_allocations), 0);
    }
    weir_net_destroy(net);
    weir_graph_destroy(graph);
    return status;
}

static void sweep(const struct weir_backend *backend)
{
    weir_status status = WEIR_ERR_NOMEM;
    int n_failed = -1;
    while (status == WEIR_ERR_NOMEM) {
        fail_allocation(++n_failed);
        status = build_and_step(backend);
        disarm();
        ck_assert(status == WEIR_ERR_NOMEM || status == WEIR_OK);
        ck_assert_int_lt(n_failed, 10000);
    }
    ck_assert_int_gt(n_failed, 40); /* or nothing was swept */
}

START_TEST(every_failed_allocation_of_the_reference_is_reported)
{
    sweep(&weir_reference_backend);
}

END_TEST

START_TEST(every_failed_allocation_of_the_onednn_backend_is_reported)
{
#if !defined(__SANITIZE_THREAD__)
    sweep(&weir_onednn_backend);
#endif
}

END_TEST

WEIR_TEST_MAIN("alloc", every_failed_allocation_of_the_reference_is_reported,
               every_failed_allocation_of_the_onednn_backend_is_reported)
