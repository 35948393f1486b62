/* The server opens in one order and closes in the other: whatever is in its way, it says what, and
 * nothing stays open. */
#include "server/server.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/test_main.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];
static struct weir_arena arena;
static struct weir_error err;

static char *in(const char *name)
{
    return weir_arena_printf(&arena, "%s/%s", root, name);
}

static void set_up(void)
{
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, &signals, NULL), 0); /* the server's to read */
    weir_log_set_level(WEIR_LOG_ERROR);
    weir_arena_init(&arena, 0);
    (void)snprintf(root, sizeof root, "%s/weir-server-test-XXXXXX",
                   weir_path_is_dir("/dev/shm") ? "/dev/shm" : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void tear_down(void)
{
    ck_assert_msg(weir_dir_remove(root, &err) == WEIR_OK, "%s", err.message);
    weir_arena_fini(&arena);
}

/** Entries of a folder of /proc/self: threads ("task"), open files ("fd"). */
static int count_of(const char *what)
{
    char path[32];
    int n = 0;
    (void)snprintf(path, sizeof path, "/proc/self/%s", what);
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    while (readdir(dir) != NULL) {
        n++;
    }
    (void)closedir(dir);
    return n;
}

/** A server in a thread of its own. */
struct run {
    struct weir_server_config config;
    struct weir_error err;
    weir_status status;
    pthread_t thread;
};

static void *run_main(void *context)
{
    struct run *run = context;
    run->status = weir_server_run(&run->config, &run->err);
    return NULL;
}

static struct run *run_on(const char *listen)
{
    struct run *run = weir_arena_alloc(&arena, sizeof *run);
    memset(run, 0, sizeof *run);
    run->config = (struct weir_server_config){
        .state = in("state"), .listen = weir_arena_strdup(&arena, listen), .node = "n"};
    return run;
}

/** Start it and wait until it says where it listens. */
static void start(struct run *run)
{
    char event[4096];
    ck_assert_int_eq(weir_dir_make(in("state"), 0700, &err), WEIR_OK);
    int watch = inotify_init1(IN_CLOEXEC);
    ck_assert_int_ge(inotify_add_watch(watch, in("state"), IN_MOVED_TO | IN_CREATE), 0);
    ck_assert_int_eq(pthread_create(&run->thread, NULL, run_main, run), 0);
    while (access(in("state/server.json"), F_OK) != 0) {
        ck_assert_int_gt(read(watch, event, sizeof event), 0); /* the case has a time limit */
    }
    (void)close(watch);
}

static void stop(struct run *run)
{
    ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
    ck_assert_int_eq(pthread_join(run->thread, NULL), 0);
    ck_assert_msg(run->status == WEIR_OK, "%s", run->err.message);
}

/** The lock of the state folder can be had. */
static void expect_unlocked(void)
{
    int fd;
    if (weir_path_is_dir(in("state"))) {
        ck_assert_msg(weir_file_lock(in("state/server.lock"), &fd, &err) == WEIR_OK, "%s",
                      err.message);
        (void)close(fd);
    }
}

/** Run one that is not to start. If it does, it ends at once: it has been told so already. */
static void run_refused(struct run *run)
{
    sigset_t term;
    const struct timespec now = {0};
    (void)sigemptyset(&term);
    (void)sigaddset(&term, SIGTERM);
    ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
    (void)run_main(run);
    (void)sigtimedwait(&term, NULL, &now);
}

/** It must not start, name `part`, and leave nothing open. */
static void expect_refused(struct run *run, weir_status status, const char *part)
{
    int n_threads = count_of("task"), n_files = count_of("fd");
    run_refused(run);
    ck_assert_msg(run->status == status || (status == WEIR_OK && run->status != WEIR_OK), "%s: %s",
                  weir_status_name(run->status), run->err.message);
    ck_assert_msg(strstr(run->err.message, part) != NULL, "\"%s\" not in \"%s\"", part,
                  run->err.message);
    ck_assert_int_eq(count_of("task"), n_threads);
    ck_assert_int_eq(count_of("fd"), n_files);
    ck_assert(access(in("state/server.json"), F_OK) != 0 ||
              weir_path_is_dir(in("state/server.json")));
    expect_unlocked();
}

START_TEST(a_server_that_ends_leaves_nothing_open)
{
    int n_threads = count_of("task"), n_files = count_of("fd");
    for (int i = 0; i < 2; i++) { /* the second finds what the first left in the folder */
        struct run *run = run_on("127.0.0.1:0");
        start(run);
        stop(run);
        ck_assert_int_eq(count_of("task"), n_threads);
        ck_assert_int_eq(count_of("fd"), n_files);
        ck_assert_int_ne(access(in("state/server.json"), F_OK), 0);
        expect_unlocked();
    }
}

END_TEST

START_TEST(a_second_server_of_a_folder_is_refused_and_the_first_goes_on)
{
    struct run *first = run_on("127.0.0.1:0"), *second = run_on("127.0.0.1:0");
    start(first);
    (void)run_main(second);
    ck_assert_int_eq(second->status, WEIR_ERR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(second->err.message, "another server uses the state folder"));
    ck_assert_int_eq(access(in("state/server.json"), F_OK), 0); /* it is the first's */
    stop(first);
}

END_TEST

START_TEST(a_port_that_is_taken_is_named)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    char *where = weir_arena_printf(&arena, "127.0.0.1:%d", ntohs(address.sin_port));
    expect_refused(run_on(where), WEIR_ERR_CONFLICT, where);
    (void)close(fd);
    expect_refused(run_on("127.0.0.1:99999"), WEIR_ERR_INVALID, "99999");
    struct run *run = run_on("127.0.0.1:0");
    run->config.tls_cert = run->config.tls_key = in("none.pem");
    expect_refused(run, WEIR_OK, "none.pem");
}

END_TEST

START_TEST(a_folder_of_another_user_is_not_touched)
{
    struct stat st;
    if (geteuid() != 0) {
        return; /* only root can become another user */
    }
    ck_assert_int_eq(mkdir(in("state"), 0755), 0);
    ck_assert_int_eq(chmod(root, 0755), 0);
    ck_assert_int_eq(seteuid(12345), 0);
    struct run *run = run_on("127.0.0.1:0");
    run_refused(run);
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(run->status, WEIR_ERR_DENIED);
    ck_assert_ptr_nonnull(strstr(run->err.message, "belongs to the user with number 0"));
    ck_assert_int_eq(stat(in("state"), &st), 0);
    ck_assert_int_eq((int)(st.st_mode & 07777), 0755);
    ck_assert_int_ne(access(in("state/weir.db"), F_OK), 0);
}

END_TEST

/** Where opening can fail, in the order of opening: a file where a folder must be, or the other way
 *  round. */
static const struct obstacle {
    const char *name;
    bool is_folder; /**< Else a file. */
} obstacles[] = {
    {"server.lock", true}, {"weir.db", true},     {"blobs", false},      {"pictures", false},
    {"agent", false},      {"admin.token", true}, {"server.json", true},
};

START_TEST(whatever_is_in_the_way_nothing_stays_open)
{
    const struct obstacle *obstacle = &obstacles[_i];
    char *path = weir_arena_printf(&arena, "%s/state/%s", root, obstacle->name);
    ck_assert_int_eq(mkdir(in("state"), 0700), 0);
    if (obstacle->is_folder) { /* one that a rename does not replace */
        ck_assert_int_eq(mkdir(path, 0700), 0);
        ck_assert_int_eq(mkdir(weir_arena_printf(&arena, "%s/x", path), 0700), 0);
    } else {
        ck_assert_int_eq(weir_file_write(path, "x", 1, 0600, &err), WEIR_OK);
    }
    struct run *run = run_on("127.0.0.1:0");
    int n_threads = count_of("task"), n_files = count_of("fd");
    run_refused(run);
    ck_assert_msg(run->status != WEIR_OK, "%s was no obstacle", obstacle->name);
    ck_assert_msg(strstr(run->err.message, obstacle->name) != NULL, "\"%s\" not in \"%s\"",
                  obstacle->name, run->err.message);
    ck_assert_int_eq(count_of("task"), n_threads);
    ck_assert_int_eq(count_of("fd"), n_files);
    ck_assert_int_eq(
        obstacle->is_folder ? weir_dir_remove(path, &err) == WEIR_OK ? 0 : 1 : unlink(path), 0);
    expect_unlocked();
    start(run = run_on("127.0.0.1:0")); /* and once it is out of the way, all is well */
    stop(run);
}

END_TEST

START_TEST(a_damaged_database_is_left_as_it_is)
{
    static const char junk[] = "this is no database at all: it only has the name of one";
    char *text;
    size_t len;
    ck_assert_int_eq(mkdir(in("state"), 0700), 0);
    ck_assert_int_eq(weir_file_write(in("state/weir.db"), junk, sizeof junk, 0600, &err), WEIR_OK);
    expect_refused(run_on("127.0.0.1:0"), WEIR_ERR_CORRUPT, "weir.db");
    ck_assert_int_eq(weir_file_read(in("state/weir.db"), 4096, &arena, &text, &len, &err), WEIR_OK);
    ck_assert_uint_eq(len, sizeof junk);
    ck_assert_mem_eq(text, junk, len);
}

END_TEST

START_TEST(a_folder_that_is_a_file_is_named)
{
    ck_assert_int_eq(weir_file_write(in("state"), "x", 1, 0600, &err), WEIR_OK);
    expect_refused(run_on("127.0.0.1:0"), WEIR_OK, "state");
}

END_TEST

START_TEST(what_lies_in_the_folder_is_its_owners_alone)
{
    static const char *const files[] = {"weir.db", "admin.token", "agent/token", "server.json"};
    struct stat st;
    ck_assert_int_eq(weir_dir_make(in("state/blobs"), 0700, &err), WEIR_OK);
    ck_assert_int_eq(chmod(in("state"), 0777), 0);
    ck_assert_int_eq(chmod(in("state/blobs"), 0755), 0);
    struct run *run = run_on("127.0.0.1:0");
    start(run);
    ck_assert_int_eq(stat(in("state"), &st), 0);
    ck_assert_int_eq((int)(st.st_mode & 07777), 0700);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(files); i++) {
        ck_assert_int_eq(stat(weir_arena_printf(&arena, "%s/state/%s", root, files[i]), &st), 0);
        ck_assert_msg((st.st_mode & 077) == 0, "%s has mode %o", files[i],
                      (unsigned)(st.st_mode & 07777));
    }
    stop(run);
    ck_assert_int_eq(stat(in("state/blobs"), &st), 0);
    ck_assert_int_eq((int)(st.st_mode & 077), 0);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("server");
    TCase *each = tcase_create("each"), *loop = tcase_create("obstacles");
    tcase_set_timeout(each, 60);
    tcase_set_timeout(loop, 60);
    tcase_add_checked_fixture(each, set_up, tear_down);
    tcase_add_test(each, a_server_that_ends_leaves_nothing_open);
    tcase_add_test(each, a_second_server_of_a_folder_is_refused_and_the_first_goes_on);
    tcase_add_test(each, a_port_that_is_taken_is_named);
    tcase_add_test(each, a_folder_of_another_user_is_not_touched);
    tcase_add_test(each, a_damaged_database_is_left_as_it_is);
    tcase_add_test(each, a_folder_that_is_a_file_is_named);
    tcase_add_test(each, what_lies_in_the_folder_is_its_owners_alone);
    tcase_add_checked_fixture(loop, set_up, tear_down);
    tcase_add_loop_test(loop, whatever_is_in_the_way_nothing_stays_open, 0,
                        (int)WEIR_ARRAY_LEN(obstacles));
    suite_add_tcase(suite, each);
    suite_add_tcase(suite, loop);
    return weir_test_run(suite);
}
