/* Groups by NCCL, with a driver and a libnccl.so.2 that do what the test says: every way in which one
 * can fail. What the real one does is cuda_test.c's, where there is a GPU. */
#include "gpu_private.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/test_main.h"

#include <dlfcn.h>

/* ---- a driver --------------------------------------------------------------------------------- */

static int n_streams, n_events, n_records, n_queries;
static bool is_busy;
static int place; /* streams and events are addresses of it */

static cu_result make_stream(cu_stream *stream, unsigned flags)
{
    (void)flags;
    n_streams++;
    *stream = (cu_stream)(void *)&place;
    return CUDA_SUCCESS;
}

static cu_result end_stream(cu_stream stream)
{
    (void)stream;
    n_streams--;
    return CUDA_SUCCESS;
}

static cu_result make_event(cu_event *event, unsigned flags)
{
    (void)flags;
    n_events++;
    *event = (cu_event)(void *)&place;
    return CUDA_SUCCESS;
}

static cu_result end_event(cu_event event)
{
    (void)event;
    n_events--;
    return CUDA_SUCCESS;
}

static cu_result end_graph(cu_graph_exec exec)
{
    (void)exec;
    n_records--;
    return CUDA_SUCCESS;
}

static cu_result record_event(cu_event event, cu_stream stream)
{
    (void)event;
    (void)stream;
    return CUDA_SUCCESS;
}

static cu_result await_event(cu_stream stream, cu_event event, unsigned flags)
{
    (void)stream;
    (void)event;
    (void)flags;
    return CUDA_SUCCESS;
}

static cu_result query_stream(cu_stream stream)
{
    (void)stream;
    n_queries++;
    return is_busy ? CUDA_IS_BUSY : CUDA_SUCCESS;
}

/* It would wait for ever for what a group has not given up. */
static cu_result wait_stream(cu_stream stream)
{
    int *n_open =
        dlsym(dlopen(FAKE_NCCL_FOLDER "/libnccl.so.2", RTLD_NOW | RTLD_NOLOAD), "fake_nccl_n_open");
    (void)stream;
    ck_assert(!is_busy || *n_open == 0);
    return CUDA_SUCCESS;
}

static struct cuda_gpu gpu;

static void set_up(void)
{
    ck_assert_int_eq(setenv("WEIR_CUDA_LIBRARIES", FAKE_NCCL_FOLDER, 1), 0);
    weir_log_set_level(WEIR_LOG_ERROR);
    n_streams = n_events = n_queries = 0;
    is_busy = false;
    gpu = (struct cuda_gpu){.gpu.ops = &gpu_cuda_ops,
                            .cu = {.stream_create = make_stream,
                                   .stream_destroy = end_stream,
                                   .stream_query = query_stream,
                                   .stream_wait = wait_stream,
                                   .event_create = make_event,
                                   .event_destroy = end_event,
                                   .event_record = record_event,
                                   .stream_wait_event = await_event,
                                   .graph_exec_destroy = end_graph}};
    gpu.records[2] = (cu_graph_exec)(void *)&place;
    n_records = 1;
}

static int n_open(void)
{
    void *library = dlopen(FAKE_NCCL_FOLDER "/libnccl.so.2", RTLD_NOW);
    const int *n = dlsym(library, "fake_nccl_n_open");
    ck_assert_ptr_nonnull(n);
    return *n;
}

/* Nothing of a group is left, the records that it was part of included. */
static void must_be_closed(void)
{
    ck_assert_ptr_null(gpu.comm);
    ck_assert_int_eq(n_open(), 0);
    ck_assert_int_eq(n_streams, 0);
    ck_assert_int_eq(n_events, 0);
}

static weir_status enter(int timeout_ms, weir_status (*check)(void *context),
                         struct weir_error *err)
{
    struct gpu_group group = {.size = 2, .rank = 1, .timeout_ms = timeout_ms, .check = check};
    WEIR_TRY(cuda_make_group_id(&gpu.gpu, &group.id, err));
    return cuda_open_group(&gpu.gpu, &group, err);
}

static float array[4];

/* ---- tests ------------------------------------------------------------------------------------ */

START_TEST(a_group_sums_and_leaves_nothing)
{
    struct weir_error err = {.status = WEIR_OK};
    weir_status status = enter(5000, NULL, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    ck_assert_int_eq(n_open(), 1);
    ck_assert_int_eq(cuda_all_reduce(&gpu.gpu, array, 4), WEIR_OK);
    ck_assert_int_eq(cuda_join_group(&gpu.gpu), WEIR_OK);
    ck_assert_int_eq(gpu_cuda_ops.wait(&gpu.gpu), WEIR_OK);
    ck_assert_int_eq(n_queries, GPU_LANES + 1);
    cuda_close_group(&gpu.gpu);
    must_be_closed();
    ck_assert_int_eq(n_records, 0);
    ck_assert_int_eq(cuda_all_reduce(&gpu.gpu, array, 4), WEIR_ERR_INVALID);
    ck_assert_int_eq(cuda_join_group(&gpu.gpu), WEIR_OK);
}

END_TEST

START_TEST(what_nccl_says_when_a_group_cannot_be_is_told)
{
    struct weir_error err = {.status = WEIR_OK};
    setenv("FAKE_NCCL_ID", "2", 1);
    ck_assert_int_eq(enter(5000, NULL, &err), WEIR_ERR_INTERNAL);
    ck_assert_ptr_nonnull(strstr(err.message, "ncclGetUniqueId: some error (error 2)"));
    unsetenv("FAKE_NCCL_ID");
    setenv("FAKE_NCCL_INIT", "5", 1); /* at once, without a communicator */
    ck_assert_int_eq(enter(5000, NULL, &err), WEIR_ERR_INTERNAL);
    ck_assert_ptr_nonnull(strstr(err.message, "ncclCommInitRankConfig: some error (error 5)"));
    ck_assert_ptr_nonnull(strstr(err.message, "the socket said so"));
    must_be_closed();
    unsetenv("FAKE_NCCL_INIT");
    setenv("FAKE_NCCL_ASYNC", "6", 1); /* after a while */
    ck_assert_int_eq(enter(5000, NULL, &err), WEIR_ERR_PEER);
    ck_assert_ptr_nonnull(strstr(err.message, "remote process exited"));
    must_be_closed();
    unsetenv("FAKE_NCCL_ASYNC");
    setenv("FAKE_NCCL_VERSION", "21304", 1);
    ck_assert_int_eq(enter(5000, NULL, &err), WEIR_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "21304"));
    must_be_closed();
    unsetenv("FAKE_NCCL_VERSION");
}

END_TEST

static weir_status one_is_lost(void *context)
{
    (void)context;
    return WEIR_ERR_PEER;
}

START_TEST(a_rank_that_never_comes_ends_the_opening)
{
    struct weir_error err = {.status = WEIR_OK};
    setenv("FAKE_NCCL_ASYNC", "7", 1); /* in progress for ever */
    int64_t begin_ms = weir_mono_ms();
    ck_assert_int_eq(enter(50, NULL, &err), WEIR_ERR_TIMEOUT);
    ck_assert_int_ge(weir_mono_ms() - begin_ms, 50);
    must_be_closed();
    ck_assert_int_eq(enter(600000, one_is_lost, &err), WEIR_ERR_PEER);
    must_be_closed();
    unsetenv("FAKE_NCCL_ASYNC");
}

END_TEST

/* Streams that stay busy: the group is given up, and then what is queued has an end. */
static void must_give_up(const char *async, weir_status (*check)(void *context),
                         weir_status expected)
{
    struct weir_error err = {.status = WEIR_OK};
    gpu.records[2] = (cu_graph_exec)(void *)&place;
    n_records = 1;
    ck_assert_int_eq(enter(600000, NULL, &err), WEIR_OK);
    ck_assert_int_eq(cuda_all_reduce(&gpu.gpu, array, 4), WEIR_OK);
    gpu.group.timeout_ms =
        50; /* of the sum alone: a busy machine may take longer for what is before */
    gpu.group.check = check;
    is_busy = true;
    setenv("FAKE_NCCL_ASYNC", async, 1);
    ck_assert_int_eq(gpu_cuda_ops.wait(&gpu.gpu), expected);
    ck_assert_int_eq(gpu.gpu.group_failure.status, expected);
    unsetenv("FAKE_NCCL_ASYNC");
    must_be_closed();
    ck_assert_int_eq(n_records, 0);
    is_busy = false;
    ck_assert_int_eq(cuda_all_reduce(&gpu.gpu, array, 4), expected);
    ck_assert_int_eq(gpu_cuda_ops.wait(&gpu.gpu), WEIR_OK);
}

START_TEST(a_sum_that_never_comes_ends_the_wait)
{
    must_give_up("7", NULL, WEIR_ERR_TIMEOUT);
    must_give_up("7", one_is_lost, WEIR_ERR_PEER);
    must_give_up("6", NULL, WEIR_ERR_PEER);
    must_give_up("3", NULL, WEIR_ERR_INTERNAL);
}

END_TEST

START_TEST(a_sum_that_cannot_be_queued_ends_the_group_in_the_next_wait)
{
    struct weir_error err = {.status = WEIR_OK};
    ck_assert_int_eq(enter(5000, NULL, &err), WEIR_OK);
    setenv("FAKE_NCCL_SUM", "4", 1);
    ck_assert_int_eq(cuda_all_reduce(&gpu.gpu, array, 4), WEIR_ERR_INTERNAL);
    unsetenv("FAKE_NCCL_SUM");
    ck_assert_int_eq(gpu_cuda_ops.wait(&gpu.gpu), WEIR_ERR_INTERNAL);
    must_be_closed();
    ck_assert_ptr_nonnull(strstr(gpu.gpu.group_failure.message, "ncclAllReduce: some error"));
}

END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_group_sums_and_leaves_nothing,
        what_nccl_says_when_a_group_cannot_be_is_told,
        a_rank_that_never_comes_ends_the_opening,
        a_sum_that_never_comes_ends_the_wait,
        a_sum_that_cannot_be_queued_ends_the_group_in_the_next_wait,
    };
    return weir_test_run(
        weir_test_suite_with("gpu_group", set_up, NULL, tests, WEIR_ARRAY_LEN(tests)));
}
