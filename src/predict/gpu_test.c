/*
 * Models on the emulated GPU: the numbers are the processor's, picture and mirror image are one run,
 * and a GPU that fails ends the process with the frame undecided, which the next one decides. That
 * replica is this program, started anew with other words.
 */
#include "emulated_backend.h"
#include "predict/model.h"
#include "predict/test_support.h"

#include "base/rng.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_INTERNAL 70

static struct test_dir dir;
static struct weir_error err;

static void set_up(void)
{
    test_dir_make(&dir);
}

static void tear_down(void)
{
    test_dir_drop(&dir);
}

static struct executor_options on_gpu(void)
{
    return (struct executor_options){.device = EXECUTOR_GPU, .gpu = emulated_backend()};
}

/* ---- a model ---------------------------------------------------------------------------------- */

static struct model *load(const char *path, const struct executor_options *options, size_t batch)
{
    struct model *model;
    const struct model_name name = {"m", "id", "blob", 1, options, NULL};
    ck_assert_msg(model_load(path, &name, batch, &model, &err) == WEIR_OK, "%s", err.message);
    ck_assert(serve_model_is_on_gpu(model->serve) == (options->device == EXECUTOR_GPU));
    return model;
}

static void put(struct model *model, size_t i, int i_picture)
{
    char bytes[1024];
    struct weir_image image = {0};
    size_t len = test_picture(i_picture, 3, bytes);
    ck_assert_int_eq(weir_image_decode_within(bytes, len, &weir_image_limits_frame, &image, &err),
                     WEIR_OK);
    ck_assert_int_eq(model_put(model, i, &image, NULL, &err), WEIR_OK);
    weir_image_fini(&image);
}

/* Batches of each size up to the largest, of other pictures each time. */
static void compare(const char *path, size_t batch)
{
    const struct executor_options gpu_options = on_gpu();
    const struct executor_options processor_options = {.device = EXECUTOR_PROCESSOR};
    struct model *gpu = load(path, &gpu_options, batch);
    struct model *processor = load(path, &processor_options, batch);
    for (size_t n = 1; n <= batch; n++) {
        const float *found, *expected;
        for (size_t i = 0; i < n; i++) {
            put(gpu, i, (int)(10 * n + i));
            put(processor, i, (int)(10 * n + i));
        }
        uint64_t digest = model_digest(gpu, n - 1);
        ck_assert_uint_eq(digest, model_digest(processor, n - 1));
        ck_assert_int_eq(model_run(gpu, n, &found, &err), WEIR_OK);
        ck_assert_int_eq(model_run(processor, n, &expected, &err), WEIR_OK);
        for (size_t i = 0; i < n * gpu->dim; i++) {
            ck_assert_double_eq_tol((double)found[i], (double)expected[i], 1e-5);
        }
    }
    model_unref(gpu);
    model_unref(processor);
}

START_TEST(vectors_and_labels_are_those_of_the_processor)
{
    static const size_t batches[] = {1, 3, 8};
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        test_write_model(test_path(&dir, "faces"), 5 + i, NULL);
        compare(test_path(&dir, "faces"), batches[i]);
        test_write_classifier(test_path(&dir, "sorter"), 5 + i, NULL);
        compare(test_path(&dir, "sorter"), batches[i]);
    }
}

END_TEST

START_TEST(a_model_whose_gpu_fails_is_broken)
{
    const struct executor_options options = on_gpu();
    const float *found;
    test_write_model(test_path(&dir, "faces"), 1, NULL);
    struct model *model = load(test_path(&dir, "faces"), &options, 1);
    put(model, 0, 1);
    ck_assert(!model_is_broken(model));
    emulated_set_failed(true);
    ck_assert_int_eq(model_run(model, 1, &found, &err), WEIR_ERR_INTERNAL);
    ck_assert_msg(strstr(err.message, "the GPU failed") != NULL, "%s", err.message);
    ck_assert(model_is_broken(model));
    emulated_set_failed(false);
    model_unref(model);
}

END_TEST

/* ---- a replica -------------------------------------------------------------------------------- */

/* The program of the other process: SIGUSR1 is the GPU's end, which it confirms by a byte. */
static int replica_main(const char *spec_path, int confirm_fd)
{
    struct weir_arena arena;
    struct predict_spec spec;
    struct replica *replica;
    sigset_t signals;
    int number = 0;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGUSR1);
    weir_arena_init(&arena, 0);
    if (predict_spec_load(spec_path, &arena, &spec, &err) != WEIR_OK) {
        return 1;
    }
    spec.executor = on_gpu();
    if (replica_start(&spec, &replica, &err) != WEIR_OK) {
        return 2;
    }
    while (sigwait(&signals, &number) != 0 || number == SIGUSR1) {
        emulated_set_failed(true);
        if (write(confirm_fd, "x", 1) != 1) {
            return 3;
        }
    }
    replica_stop(replica);
    predict_spec_fini(&spec);
    weir_arena_fini(&arena);
    return EXIT_SUCCESS;
}

static pid_t start_replica(int server_port, int confirm_fd)
{
    char fd[16];
    const char *spec = test_write_spec(&dir, server_port, test_directory_source(&dir), NULL);
    (void)snprintf(fd, sizeof fd, "%d", confirm_fd);
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGUSR1);
    ck_assert_int_eq(sigprocmask(SIG_BLOCK, &blocked, &before), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        execl("/proc/self/exe", "predict", spec, fd, (char *)NULL);
        _exit(127);
    }
    ck_assert_int_eq(sigprocmask(SIG_SETMASK, &before, NULL), 0);
    return child;
}

static int end_of(pid_t child)
{
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void put_frame(int64_t frame)
{
    char bytes[1024];
    size_t len = test_picture((int)frame, 100, bytes);
    test_put_frame(&dir, "door", frame, bytes, len);
}

static bool are_taken_away(void *context)
{
    (void)context;
    return test_count_files(test_path(&dir, "frames/door")) == 0;
}

START_TEST(a_frame_that_meets_a_failing_gpu_is_decided_by_the_next_process)
{
    int pipe_fds[2];
    char byte;
    size_t n_again;
    struct test_server *server = test_server_start(&dir, 0);
    test_write_model(test_path(&dir, "faces"), 1, NULL);
    test_server_deploy(server,
                       test_deployment(server, &dir, test_path(&dir, "faces"), 1, 10, 4, 1, true));
    ck_assert_int_eq(pipe(pipe_fds), 0);
    pid_t child = start_replica(test_server_port(server), pipe_fds[1]);
    put_frame(1);
    test_wait_for_decisions(server, 1);
    ck_assert(test_wait(are_taken_away, NULL)); /* the server may hear of it before the source */
    ck_assert_int_eq(kill(child, SIGUSR1), 0);
    ck_assert_int_eq(read(pipe_fds[0], &byte, 1), 1);
    put_frame(2);
    ck_assert_int_eq(end_of(child), EXIT_INTERNAL);
    ck_assert_uint_eq(test_server_n_decisions(server, NULL), 1);
    ck_assert_uint_eq(test_count_files(test_path(&dir, "frames/door")), 1);
    child = start_replica(test_server_port(server), pipe_fds[1]);
    test_wait_for_decisions(server, 2);
    json_t *decision = test_server_decision(server, "door", 2);
    ck_assert_str_eq(test_text(decision, "person"), "p02");
    json_decref(decision);
    ck_assert_int_eq(kill(child, SIGTERM), 0);
    ck_assert_int_eq(end_of(child), EXIT_SUCCESS);
    ck_assert_uint_eq(test_server_n_decisions(server, &n_again), 2);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    test_server_stop(server);
}

END_TEST

int main(int argc, char **argv)
{
    if (argc == 3) {
        return replica_main(argv[1], (int)strtol(argv[2], NULL, 10));
    }
    const TTest *const tests[] = {vectors_and_labels_are_those_of_the_processor,
                                  a_model_whose_gpu_fails_is_broken,
                                  a_frame_that_meets_a_failing_gpu_is_decided_by_the_next_process};
    return weir_test_run(weir_test_suite_with("predict on a GPU", set_up, tear_down, tests,
                                              sizeof tests / sizeof tests[0]));
}
