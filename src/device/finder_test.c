/* The parent's side with children that a shell plays, and the child's with the driver's library of
 * our own. Time is driven; what a child does is waited for. */
#include "device/finder.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/test_main.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 10000

/* All providers but the last, which is the driver's, find nothing. */
#define OTHERS                                                                                     \
    "for p in cpu memory disk nic declared allocated; do "                                         \
    "echo '{\"provider\":\"'$p'\",\"error\":null,\"devices\":[]}'; done; "
#define NVML(devices)  "echo '{\"provider\":\"nvml\",\"error\":null,\"devices\":[" devices "]}'; "
#define GPU(id, state) "{\"id\":\"" id "\",\"state\":\"" state "\",\"reason\":null}"
#define BEGIN_NVML     "echo '{\"begin\":\"nvml\"}'; "
/* It tells and begins again in one write: whoever has seen the one has seen the other. */
#define NVML_AND_BEGIN(devices)                                                                    \
    "printf '%s\\n' '{\"provider\":\"nvml\",\"error\":null,\"devices\":[" devices                  \
    "]}' '{\"begin\":\"nvml\"}'; "

static struct weir_finder *finder;

static void start(const char *script)
{
    static char *argv[] = {"/bin/sh", "-c", NULL, NULL};
    argv[2] = (char *)script;
    finder = weir_finder_create(
        &(struct weir_finder_config){.argv = argv, .deadline_ms = 1000, .retry_ms = 5000});
}

static void tear_down(void)
{
    weir_finder_destroy(finder);
    finder = NULL;
}

/** What is known: "a:ok b:bad". */
static const char *known(void)
{
    static char text[1024];
    json_t *devices = weir_finder_devices(finder), *device;
    size_t i;
    text[0] = '\0';
    json_array_foreach(devices, i, device)
    {
        size_t len = strlen(text);
        (void)snprintf(text + len, sizeof text - len, "%s%s:%s", i > 0 ? " " : "",
                       json_string_value(json_object_get(device, "id")),
                       json_string_value(json_object_get(device, "state")));
    }
    json_decref(devices);
    return text;
}

/** Look at this time until that is known. @return Whether a look on the way said that it is news. */
static bool look_until(int64_t now_ms, const char *expected)
{
    int64_t give_up_ms = weir_mono_ms() + PATIENCE_MS;
    bool is_news = weir_finder_look(finder, now_ms);
    while (!weir_finder_is_complete(finder) || strcmp(known(), expected) != 0) {
        struct pollfd fd = {.fd = weir_finder_fd(finder), .events = POLLIN};
        ck_assert_msg(weir_mono_ms() < give_up_ms, "known is %s", known());
        (void)poll(&fd, 1, 20);
        is_news = weir_finder_look(finder, now_ms) || is_news;
    }
    return is_news;
}

static const char *error_of(const char *provider)
{
    static char text[256];
    json_t *errors = weir_finder_errors(finder);
    const char *error = json_string_value(json_object_get(errors, provider));
    (void)snprintf(text, sizeof text, "%s", error != NULL ? error : "");
    json_decref(errors);
    return text;
}

START_TEST(devices_are_known_once_all_providers_have_told)
{
    start(OTHERS BEGIN_NVML NVML(GPU("a", "ok")) "exec sleep 100");
    ck_assert(look_until(0, "a:ok"));
    ck_assert(!weir_finder_look(finder, 10));
    ck_assert_str_eq(error_of("nvml"), "");
}

END_TEST

START_TEST(a_driver_that_hangs_makes_its_devices_bad_and_is_tried_again_later)
{
    start(OTHERS BEGIN_NVML NVML_AND_BEGIN(GPU("a", "ok")) "exec sleep 100");
    (void)look_until(0, "a:ok");
    ck_assert(!weir_finder_look(finder, 999));
    ck_assert_str_eq(known(), "a:ok");
    ck_assert(weir_finder_look(finder, 1000));
    ck_assert_str_eq(known(), "a:bad");
    ck_assert_ptr_nonnull(strstr(error_of("nvml"), "does not answer"));
    ck_assert_str_eq(error_of("cpu"), "");
    (void)weir_finder_look(finder, 5999);
    ck_assert_int_eq(weir_finder_fd(finder), -1);
    ck_assert(look_until(6000, "a:ok"));
    ck_assert_str_eq(error_of("nvml"), "");
}

END_TEST

START_TEST(a_first_look_that_hangs_is_complete_without_what_it_hung_in)
{
    start(OTHERS BEGIN_NVML "exec sleep 100");
    int64_t give_up_ms = weir_mono_ms() + PATIENCE_MS, now_ms = 0;
    (void)weir_finder_look(finder, now_ms);
    while (strcmp(error_of("nvml"), "") == 0 && weir_mono_ms() < give_up_ms) {
        struct pollfd fd = {.fd = weir_finder_fd(finder), .events = POLLIN};
        (void)poll(&fd, 1, 20);
        now_ms += 1500; /* later than the deadline */
        (void)weir_finder_look(finder, now_ms);
    }
    ck_assert(weir_finder_is_complete(finder));
    ck_assert_ptr_nonnull(strstr(error_of("nvml"), "does not answer"));
}

END_TEST

START_TEST(a_crash_of_the_driver_makes_its_devices_bad)
{
    start(OTHERS NVML(GPU("a", "ok") "," GPU("b", "ok")) BEGIN_NVML "kill -9 $$");
    (void)look_until(0, "a:bad b:bad");
    ck_assert_ptr_nonnull(strstr(error_of("nvml"), "crashed"));
}

END_TEST

START_TEST(a_provider_that_fails_keeps_what_it_still_finds)
{
    start(OTHERS NVML(GPU("a", "ok") "," GPU(
        "b",
        "ok")) "echo '{\"provider\":\"nvml\",\"error\":\"no\",\"devices\":[" GPU("b",
                                                                                 "ok") "]}'; exec "
                                                                                       "sleep 100");
    (void)look_until(0, "b:ok a:bad");
    ck_assert_str_eq(error_of("nvml"), "no");
}

END_TEST

START_TEST(nonsense_and_lines_without_end_do_no_harm)
{
    start("echo '{]'; echo '{\"provider\":\"x\",\"devices\":[]}'; echo '[1]';" OTHERS NVML(
        "") "exec sleep 100");
    (void)look_until(0, "");
    tear_down();
    start(OTHERS NVML(GPU("a", "ok")) BEGIN_NVML "exec yes | tr -d '\\n'");
    (void)look_until(0, "a:bad");
}

END_TEST

START_TEST(a_program_that_is_not_there_is_an_error_of_its_own_and_no_crash)
{
    static char *argv[] = {"/nowhere/weir", NULL};
    finder = weir_finder_create(&(struct weir_finder_config){.argv = argv});
    ck_assert(!weir_finder_look(finder, 0));
    ck_assert_int_eq(weir_finder_fd(finder), -1);
    ck_assert(!weir_finder_is_complete(finder));
}

END_TEST

/** A child that serves, and the pipe it tells on. */
static pid_t serve(int *out_fd)
{
    int fds[2];
    ck_assert_int_eq(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        const struct weir_device_config config = {.root = "/nowhere", .nvml_library = FAKE_NVML};
        (void)close(fds[0]);
        weir_device_serve(weir_device_context_create(&config), fds[1], 10);
        _exit(7);
    }
    (void)close(fds[1]);
    *out_fd = fds[0];
    return pid;
}

START_TEST(the_child_tells_every_provider_and_ends_when_nobody_reads)
{
    int fd, status;
    pid_t pid = serve(&fd);
    FILE *pipe_file = fdopen(fd, "r");
    static char line[1 << 20];
    size_t n_gpus = 0;
    for (size_t i = 0; i < 2 * weir_device_providers.n_kinds; i++) {
        ck_assert_ptr_nonnull(fgets(line, sizeof line, pipe_file));
        ck_assert_ptr_nonnull(strstr(line, weir_device_providers.kinds[i / 2]->name));
        for (const char *at = line; (at = strstr(at, "\"GPU-")) != NULL; at++) {
            n_gpus++;
        }
    }
    ck_assert_uint_eq(n_gpus, 8);
    (void)fclose(pipe_file);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

END_TEST

WEIR_TEST_MAIN_WITH("finder", NULL, tear_down, devices_are_known_once_all_providers_have_told,
                    a_driver_that_hangs_makes_its_devices_bad_and_is_tried_again_later,
                    a_first_look_that_hangs_is_complete_without_what_it_hung_in,
                    a_crash_of_the_driver_makes_its_devices_bad,
                    a_provider_that_fails_keeps_what_it_still_finds,
                    nonsense_and_lines_without_end_do_no_harm,
                    a_program_that_is_not_there_is_an_error_of_its_own_and_no_crash,
                    the_child_tells_every_provider_and_ends_when_nobody_reads)
