/*
 * kill -9 of a whole replica at random moments, frames in a directory: in the end every frame has
 * one decision, the same for the server and in the JSON lines file, and the folder is empty. The
 * replica is this program, started anew with other words.
 */
#include "predict/test_support.h"

#include "base/clock.h"
#include "base/rng.h"
#include "predict/predict.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_ROUNDS          15
#define FRAMES_EACH_ROUND 30

static struct test_dir dir;
static struct test_server *server;
static char sink[128];

static pid_t start_replica(void)
{
    const char *spec =
        test_write_spec(&dir, test_server_port(server), test_directory_source(&dir), sink);
    /* SIGTERM stays blocked in the child across exec: before the replica waits for it, Check's own
     * handler, which ends the whole test, would take it. */
    sigset_t term, before;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    ck_assert_int_eq(sigprocmask(SIG_BLOCK, &term, &before), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child != 0) {
        ck_assert_int_eq(sigprocmask(SIG_SETMASK, &before, NULL), 0);
    } else {
        int null = open("/dev/null", O_WRONLY);
        (void)dup2(null, STDERR_FILENO);
        execl("/proc/self/exe", "predict", "--spec", spec, (char *)NULL);
        _exit(127);
    }
    return child;
}

static int stop_replica(pid_t child, int signal_number)
{
    int status;
    ck_assert_int_eq(kill(child, signal_number), 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

static void put_frames(int first, int n)
{
    char bytes[1024];
    for (int i = first; i < first + n; i++) {
        size_t len = test_picture(i % 12, 100 + i, bytes);
        test_put_frame(&dir, i % 3 == 0 ? "east" : "west", i, bytes, len);
    }
}

static bool all_is_decided(void *context)
{
    return test_server_n_decisions(server, NULL) >= *(const size_t *)context &&
           test_count_files(test_path(&dir, "frames/east")) == 0 &&
           test_count_files(test_path(&dir, "frames/west")) == 0;
}

/* One line for each frame, with the identifier the server has. */
static void check_sink(size_t n_wanted)
{
    FILE *file = fopen(sink, "re");
    char *line = NULL;
    size_t cap = 0, n = 0;
    ssize_t len;
    ck_assert_ptr_nonnull(file);
    while ((len = getline(&line, &cap, file)) > 0) {
        json_t *decision = json_loadb(line, (size_t)len, 0, NULL);
        ck_assert_msg(decision != NULL, "not JSON: %s", line);
        json_t *stored = test_server_decision(server, test_text(decision, "camera"),
                                              test_int(decision, "frame"));
        ck_assert_str_eq(test_text(decision, "id"), test_text(stored, "id"));
        json_decref(stored);
        json_decref(decision);
        n++;
    }
    free(line);
    (void)fclose(file);
    /* As many lines as frames, and each frame's line has the one identifier: each is there once. */
    ck_assert_uint_eq(n, n_wanted);
}

START_TEST(killed_at_any_moment_a_replica_decides_every_frame_once)
{
    const uint64_t seed = 31337;
    struct weir_rng rng;
    size_t n_frames = (N_ROUNDS + 1) * FRAMES_EACH_ROUND, n_again;
    weir_rng_init(&rng, seed, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    test_dir_make(&dir);
    (void)snprintf(sink, sizeof sink, "%s/out.jsonl", dir.path);
    server = test_server_start(&dir, 0);
    test_write_model(test_path(&dir, "model-1"), 1, NULL);
    test_server_deploy(
        server, test_deployment(server, &dir, test_path(&dir, "model-1"), 1, 10, 4, 1, true));
    for (int round = 0; round < N_ROUNDS; round++) {
        pid_t child = start_replica();
        /* From before it is ready until after all is shipped; frames come in the middle. */
        (void)poll(NULL, 0, (int)weir_rng_below(&rng, 150));
        put_frames(round * FRAMES_EACH_ROUND, FRAMES_EACH_ROUND);
        (void)poll(NULL, 0, (int)weir_rng_below(&rng, 200));
        int status = stop_replica(child, SIGKILL);
        ck_assert(WIFSIGNALED(status));
    }
    /* The last one is asked to stop when it has decided something, so it is there to be asked. */
    pid_t child = start_replica();
    put_frames(N_ROUNDS * FRAMES_EACH_ROUND, FRAMES_EACH_ROUND);
    ck_assert_msg(test_wait(all_is_decided, &n_frames), "%zu of %zu",
                  test_server_n_decisions(server, &n_again), n_frames);
    int status = stop_replica(child, SIGTERM);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_uint_eq(test_server_n_decisions(server, &n_again), n_frames);
    printf("%zu decisions came to the server a second time\n", n_again);
    check_sink(n_frames);
    test_server_stop(server);
    test_dir_drop(&dir);
}

END_TEST

int main(int argc, char **argv)
{
    if (argc > 1) {
        return weir_predict_main(argc, argv);
    }
    const TTest *const tests[] = {killed_at_any_moment_a_replica_decides_every_frame_once};
    return weir_test_run(weir_test_suite("kill", tests, sizeof tests / sizeof tests[0]));
}
