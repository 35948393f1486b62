/** What a net takes from the system: no memory and no new page after warm-up, no thread of its own.
 */
#include "net.h"
#include "net_fixture.h"

#include "base/clock.h"

#include <malloc.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED 1 /* their allocators answer neither mallinfo2 nor a quiet page table */
#else
#define IS_SANITIZED 0
#endif

static long n_page_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

struct growth {
    size_t n_bytes;
    long n_faults;
};

/* What fifty steps take from the allocator and from the kernel. */
static struct growth fifty_steps(struct weir_net *net)
{
    struct weir_step_result result;
    size_t bytes_before = mallinfo2().uordblks + mallinfo2().hblkhd;
    long faults_before = n_page_faults();
    for (uint64_t step = 0; step < 50; step++) {
        train_step(net, step);
        if (weir_net_forward(net, 11, &result) != WEIR_OK) {
            ck_abort();
        }
    }
    return (struct growth){mallinfo2().uordblks + mallinfo2().hblkhd - bytes_before,
                           n_page_faults() - faults_before};
}

/* A bottleneck as residual networks have it: 1x1, 3x3 with a stride, 1x1, and a projection. */
static weir_value_t bottleneck(struct weir_graph *graph, weir_value_t x, const char *name,
                               int32_t k, int32_t stride)
{
    const struct weir_conv_params convs[] = {
        {.k = k, .kernel_h = 1, .kernel_w = 1, .stride = 1},
        {.k = k, .kernel_h = 3, .kernel_w = 3, .stride = stride, .pad_h = 1, .pad_w = 1},
        {.k = 4 * k, .kernel_h = 1, .kernel_w = 1, .stride = 1},
        {.k = 4 * k, .kernel_h = 1, .kernel_w = 1, .stride = stride}};
    weir_value_t y = x, shortcut = x;
    for (int i = 0; i < 4; i++) {
        char conv[32], norm[32], relu[32];
        snprintf(conv, sizeof(conv), "%s.conv%d", name, i);
        snprintf(norm, sizeof(norm), "%s.bn%d", name, i);
        snprintf(relu, sizeof(relu), "%s.relu%d", name, i);
        weir_value_t made = weir_graph_conv(graph, conv, i < 3 ? y : x, &convs[i]);
        made = weir_graph_batch_norm(graph, norm, made);
        made = i < 2 ? weir_graph_relu(graph, relu, made) : made;
        y = i < 3 ? made : y;
        shortcut = made;
    }
    char add[32], relu[32];
    snprintf(add, sizeof(add), "%s.add", name);
    snprintf(relu, sizeof(relu), "%s.relu", name);
    return weir_graph_relu(graph, relu, weir_graph_add(graph, add, y, shortcut));
}

static struct weir_graph *bottleneck_graph(void)
{
    struct weir_graph *graph = weir_graph_create();
    weir_value_t x = weir_graph_input(graph, (struct weir_shape){16, 12, 12});
    x = bottleneck(graph, x, "a", 16, 1);
    x = bottleneck(graph, x, "b", 16, 2);
    x = bottleneck(graph, x, "c", 32, 2);
    x = weir_graph_global_pool(graph, "pool", x);
    x = weir_graph_linear(graph, "wide", x, 1000, true);
    x = weir_graph_linear(graph, "fc", x, RANDOM_GRAPH_CLASSES, true);
    weir_graph_softmax_loss(graph, "loss", x);
    return graph;
}

/* By oneDNN: the reference takes its time for so many channels. */
static bool is_fast(int i_form)
{
    return form_backend(i_form) == &weir_onednn_backend;
}

/* Warm is a thread that has run every kind of task once; on a busy machine that may take a while.
 */
static void expect_no_growth(const struct weir_graph *graph, bool is_large)
{
    for (int i_form = next_form(-1); !IS_SANITIZED && i_form < N_FORMS;
         i_form = next_form(i_form)) {
        if (is_large && !is_fast(i_form)) {
            continue;
        }
        struct weir_net *net = training_net(graph, i_form, 2);
        struct growth growth = fifty_steps(net);
        for (int i = 0; i < 10 && (growth.n_bytes != 0 || growth.n_faults > 4); i++) {
            growth = fifty_steps(net);
        }
        ck_assert_uint_eq(growth.n_bytes, 0);
        /* Check's own messages between the steps may cost a page or two. */
        ck_assert_msg(growth.n_faults <= 4, "%ld page faults in 50 steps", growth.n_faults);
        weir_net_destroy(net);
    }
}

START_TEST(nothing_is_allocated_and_no_page_is_new_after_warm_up)
{
    struct weir_graph *graph = small_graph();
    expect_no_growth(graph, false);
    weir_graph_destroy(graph);
    graph = bottleneck_graph();
    expect_no_growth(graph, true);
    weir_graph_destroy(graph);
}

END_TEST

/* Which thread meets its most demanding task in which step is left to chance: so all of their
 * memory must be there before, and not only what one run of a test happens to touch. */
START_TEST(all_memory_of_the_threads_is_there_before_the_first_step)
{
    struct weir_graph *graph = bottleneck_graph();
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    for (int i_form = next_form(-1); i_form < N_FORMS; i_form = next_form(i_form)) {
        struct weir_net *net = training_net(graph, i_form, 3);
        size_t n_pages = (net->threads.size_bytes + page_bytes - 1) / page_bytes, n_there = 0;
        unsigned char *pages = calloc(n_pages, 1);
        ck_assert_uint_gt(n_pages, 3);
        ck_assert_int_eq(mincore(net->threads.base, net->threads.size_bytes, pages), 0);
        for (size_t i = 0; i < n_pages; i++) {
            n_there += pages[i] & 1;
        }
        ck_assert_msg(n_there == n_pages, "form %d: %zu of %zu pages", i_form, n_there, n_pages);
        free(pages);
        weir_net_destroy(net);
    }
    weir_graph_destroy(graph);
}

END_TEST

static int n_threads_now(void)
{
    char line[256];
    int n = -1;
    FILE *status = fopen("/proc/self/status", "r");
    ck_assert_ptr_nonnull(status);
    while (fgets(line, sizeof(line), status)) {
        if (strncmp(line, "Threads:", 8) == 0) {
            n = (int)strtol(line + 8, NULL, 10);
        }
    }
    (void)fclose(status);
    return n;
}

/* A thread that was joined may be in the kernel's count for a moment longer. */
static void expect_threads(int n)
{
    uint64_t deadline_ns = weir_mono_ns() + 5000000000u;
    while (n_threads_now() != n && weir_mono_ns() < deadline_ns) {
        sched_yield();
    }
    ck_assert_int_eq(n_threads_now(), n);
}

START_TEST(a_net_has_the_threads_it_was_given_and_no_others)
{
    struct weir_graph *graph = small_graph();
    int n_before = n_threads_now();
    /* Sanitizers have threads of their own. */
    for (int i_form = next_form(-1); !IS_SANITIZED && i_form < N_FORMS;
         i_form = next_form(i_form)) {
        struct weir_net *net = training_net(graph, i_form, 3);
        train_step(net, 0);
        expect_threads(n_before + 2); /* the caller is the third */
        weir_net_destroy(net);
        expect_threads(n_before);
    }
    weir_graph_destroy(graph);
}

END_TEST

/* Two trainings that differ in nothing but what is kept for backward. */
static struct weir_net *net_keeping(const struct weir_graph *graph, int i_form, bool keeps_all,
                                    int32_t n_threads)
{
    return make_net(graph, (struct weir_net_config){.batch = 11,
                                                    .n_slices = 4,
                                                    .n_threads = n_threads,
                                                    .is_training = true,
                                                    .keeps_all = keeps_all,
                                                    .seed = 5,
                                                    .precision = form_precision(i_form),
                                                    .backend = form_backend(i_form)});
}

START_TEST(what_is_made_again_has_the_bits_of_what_is_kept)
{
    for (int i_form = next_form(-1); i_form < N_FORMS; i_form = next_form(i_form)) {
        const uint64_t n_seeds = i_form < 2 ? WEIR_TEST_TIMES(20, 6) : WEIR_TEST_TIMES(8, 4);
        for (uint64_t seed = 0; seed < n_seeds; seed++) {
            bool is_large = seed == 1 && is_fast(i_form);
            struct weir_graph *graph = seed == 0  ? small_graph()
                                       : is_large ? bottleneck_graph()
                                                  : random_graph(seed, 8, NULL);
            struct weir_net *all = net_keeping(graph, i_form, true, 2);
            struct weir_net *less = net_keeping(graph, i_form, false, 2);
            for (uint64_t step = 0; step < 3; step++) {
                struct weir_step_result a = train_step(all, step), b = train_step(less, step);
                ck_assert_msg(memcmp(&a.loss, &b.loss, sizeof(a.loss)) == 0 &&
                                  hash_weights(all) == hash_weights(less),
                              "seed %d, form %d, step %d", (int)seed, i_form, (int)step);
            }
            weir_net_destroy(all);
            weir_net_destroy(less);
            weir_graph_destroy(graph);
        }
    }
}

END_TEST

WEIR_TEST_MAIN("net memory", what_is_made_again_has_the_bits_of_what_is_kept,
               nothing_is_allocated_and_no_page_is_new_after_warm_up,
               all_memory_of_the_threads_is_there_before_the_first_step,
               a_net_has_the_threads_it_was_given_and_no_others)
