/* What goes wrong under the store: no space, no memory, a killed process, files that are no
 * database. */
#include "base/clock.h"
#include "store/store_fixture.h"
#include "store/store_private.h"
#include "store/test_gate.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const char sql_put[] =
    "INSERT INTO settings (key, value, updated_ms) VALUES (:key, :value, 0)";
static const char sql_count[] = "SELECT count(*) FROM settings";
static const char sql_has[] = "SELECT count(*) FROM settings WHERE key = :key";

static struct store_fixture fixture;

static void set_up(void)
{
    fixture_init(&fixture);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

struct put {
    const char *key;
    const char *value;
    weir_status status;
};

static weir_status put(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct put *row = context;
    return weir_txn_exec(
        txn, sql_put,
        WEIR_BINDS(WEIR_BIND_TEXT("key", row->key), WEIR_BIND_TEXT("value", row->value)), NULL,
        err);
}

static weir_status count(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_query_int(txn, sql_count, WEIR_NO_BINDS, -1, context, err);
}

static int64_t rows(void)
{
    int64_t n;
    fixture_read(&fixture, count, &n);
    return n;
}

#define LARGE_BYTES 8000000
static char large[LARGE_BYTES];

static void make_large(void)
{
    memset(large, 'x', sizeof(large) - 1);
}

START_TEST(a_full_database_refuses_undoes_and_goes_on)
{
    make_large();
    fixture_open(&fixture, (struct weir_store_config){.max_bytes = 4 << 20});
    struct put row = {"large", large, 0};
    ck_assert_int_eq(weir_store_write(fixture.store, put, &row, &fixture.err), WEIR_ERR_NOSPACE);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "full"));
    ck_assert_int_eq(rows(), 0);
    fixture_write(&fixture, put, &(struct put){"small", "1", 0});
    ck_assert_int_eq(rows(), 1);
}

END_TEST

static weir_status put_and_swallow(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)put(txn, context, err);
    return WEIR_OK;
}

START_TEST(a_transaction_that_swallows_no_space_does_not_succeed)
{
    make_large();
    fixture_open(&fixture, (struct weir_store_config){.max_bytes = 4 << 20});
    struct put row = {"large", large, 0};
    ck_assert_int_eq(weir_store_write(fixture.store, put_and_swallow, &row, &fixture.err),
                     WEIR_ERR_NOSPACE);
    ck_assert_int_eq(rows(), 0);
}

END_TEST

static void *put_thread(void *context)
{
    struct put *row = context;
    row->status = weir_store_write(fixture.store, put, row, NULL);
    return NULL;
}

START_TEST(one_that_is_too_large_does_not_fail_those_that_wait_with_it)
{
    make_large();
    fixture_open(&fixture, (struct weir_store_config){.max_bytes = 4 << 20});
    struct gate gate;
    pthread_t threads[7];
    gate_shut(&gate, fixture.store);
    struct put puts[7] = {{"a", "1", 1}, {"b", "1", 1}, {"c", "1", 1}, {"large", large, 1},
                          {"d", "1", 1}, {"e", "1", 1}, {"f", "1", 1}};
    for (size_t i = 0; i < 7; i++) {
        pthread_create(&threads[i], NULL, put_thread, &puts[i]);
    }
    gate_open(&gate);
    for (size_t i = 0; i < 7; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(puts[i].status, puts[i].value == large ? WEIR_ERR_NOSPACE : WEIR_OK);
    }
    ck_assert_int_eq(rows(), 6);
}

END_TEST

static void limit_file_size(rlim_t bytes)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

START_TEST(a_write_that_the_system_refuses_is_an_error_and_the_next_one_works)
{
    make_large();
    fixture_open(&fixture, (struct weir_store_config){0});
    ck_assert_ptr_ne(signal(SIGXFSZ, SIG_IGN), SIG_ERR);
    fixture_write(&fixture, put, &(struct put){"before", "1", 0});
    limit_file_size(1 << 20);
    weir_status status =
        weir_store_write(fixture.store, put, &(struct put){"large", large, 0}, &fixture.err);
    limit_file_size(RLIM_INFINITY);
    ck_assert_msg(status == WEIR_ERR_IO || status == WEIR_ERR_NOSPACE, "%s", fixture.err.message);
    ck_assert_int_eq(rows(), 1);
    fixture_write(&fixture, put, &(struct put){"large", large, 0});
    ck_assert_int_eq(rows(), 2);
}

END_TEST

/** A file system of 8 MB over the fixture's folder, in a mount namespace of our own. */
static bool mount_small(void)
{
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
        return false;
    }
    return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("weir-test", fixture.dir, "tmpfs", 0, "size=8m") == 0;
}

START_TEST(a_full_disk_is_no_space_and_freeing_it_is_enough)
{
    if (!mount_small()) {
        printf("left out: this user may not mount a file system\n");
        return;
    }
    make_large();
    fixture_open(&fixture, (struct weir_store_config){0});
    fixture_write(&fixture, put, &(struct put){"before", "1", 0});
    char ballast[128];
    (void)snprintf(ballast, sizeof(ballast), "%s/ballast", fixture.dir);
    int fd = open(ballast, O_WRONLY | O_CREAT, 0600);
    ck_assert_int_ge(fd, 0);
    while (write(fd, large, 4096) == 4096) {
    }
    ck_assert_int_eq(errno, ENOSPC);
    close(fd);
    large[300000] = '\0';
    ck_assert_int_eq(
        weir_store_write(fixture.store, put, &(struct put){"more", large, 0}, &fixture.err),
        WEIR_ERR_NOSPACE);
    ck_assert_int_eq(rows(), 1);
    ck_assert_int_eq(unlink(ballast), 0);
    fixture_write(&fixture, put, &(struct put){"more", large, 0});
    ck_assert_int_eq(rows(), 2);
    weir_store_close(fixture.store);
    fixture.store = NULL;
    ck_assert_int_eq(umount2(fixture.dir, MNT_DETACH), 0);
}

END_TEST

static void put_file(const char *bytes, size_t len)
{
    ck_assert_int_eq(weir_file_write_atomic(fixture.path, bytes, len, 0600, NULL), WEIR_OK);
}

START_TEST(a_file_that_is_no_database_is_refused_by_name)
{
    static char bytes[8192];
    memset(bytes, 'z', sizeof(bytes));
    put_file(bytes, sizeof(bytes));
    const struct weir_store_config config = {.path = fixture.path};
    ck_assert_int_eq(weir_store_open(&config, &fixture.store, &fixture.err), WEIR_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, fixture.path));
}

END_TEST

START_TEST(the_database_of_another_program_is_refused_and_left_alone)
{
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(fixture.path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "CREATE TABLE theirs (x)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    const struct weir_store_config config = {.path = fixture.path};
    ck_assert_int_eq(weir_store_open(&config, &fixture.store, &fixture.err), WEIR_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "another program"));
}

END_TEST

START_TEST(a_folder_that_is_not_there_is_an_error)
{
    const struct weir_store_config config = {.path = "/nonexistent/weir.db"};
    ck_assert_int_lt(weir_store_open(&config, &fixture.store, &fixture.err), 0);
}

END_TEST

/** The child writes keys 0, 1, 2 … and reports each when it is durable, until it is killed. */
static void write_until_killed(int fd)
{
    fixture_open(&fixture, (struct weir_store_config){0});
    for (int i = 0;; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "%d", i);
        fixture_write(&fixture, put, &(struct put){key, "1", 0});
        if (write(fd, &i, sizeof(i)) != sizeof(i)) {
            _exit(1);
        }
    }
}

static weir_status has(struct weir_txn *txn, void *context, struct weir_error *err)
{
    int64_t n;
    WEIR_TRY(
        weir_txn_query_int(txn, sql_has, WEIR_BINDS(WEIR_BIND_TEXT("key", context)), 0, &n, err));
    return n == 1 ? WEIR_OK : weir_error_set(err, WEIR_ERR_NOT_FOUND, "%s", (char *)context);
}

START_TEST(what_was_acknowledged_survives_a_kill)
{
    int pipe_fds[2];
    ck_assert_int_eq(pipe(pipe_fds), 0);
    pid_t child = fork();
    if (child == 0) {
        close(pipe_fds[0]);
        write_until_killed(pipe_fds[1]);
    }
    close(pipe_fds[1]);
    int last = -1;
    for (int i = 0; i < 40; i++) {
        ck_assert_int_eq(read(pipe_fds[0], &last, sizeof(last)), sizeof(last));
    }
    kill(child, SIGKILL);
    while (read(pipe_fds[0], &last, sizeof(last)) == sizeof(last)) {
    }
    close(pipe_fds[0]);
    int wait_status;
    ck_assert_int_eq(waitpid(child, &wait_status, 0), child);
    ck_assert(WIFSIGNALED(wait_status));
    fixture_open(&fixture, (struct weir_store_config){0});
    for (int i = 0; i <= last; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "%d", i);
        fixture_read(&fixture, has, key);
    }
    /* One more may have been written and not reported. */
    ck_assert_int_ge(rows(), last + 1);
    ck_assert_int_le(rows(), last + 2);
}

END_TEST

/* SQLite's allocator, with a fault: allocation number fail_at gives nothing. */
static sqlite3_mem_methods real_memory;
static _Atomic long n_allocations, fail_at = -1;

static bool is_due(void)
{
    return ++n_allocations == fail_at;
}

static void *faulty_malloc(int size)
{
    return is_due() ? NULL : real_memory.xMalloc(size);
}

static void *faulty_realloc(void *old, int size)
{
    return is_due() ? NULL : real_memory.xRealloc(old, size);
}

START_TEST(lack_of_memory_anywhere_is_reported_and_passes)
{
    sqlite3_shutdown();
    ck_assert_int_eq(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_memory), SQLITE_OK);
    sqlite3_mem_methods faulty = real_memory;
    faulty.xMalloc = faulty_malloc;
    faulty.xRealloc = faulty_realloc;
    ck_assert_int_eq(sqlite3_config(SQLITE_CONFIG_MALLOC, &faulty), SQLITE_OK);
    fixture_open(&fixture, (struct weir_store_config){.n_readers = 1});
    int64_t n_written = 0;
    int n_failures = 0, n_clean = 0;
    for (long i = 1; i < 2000 && n_clean < 3; i++) {
        char key[32];
        (void)snprintf(key, sizeof(key), "%ld", i);
        n_allocations = 0;
        fail_at = i;
        weir_status status =
            weir_store_write(fixture.store, put, &(struct put){key, "1", 0}, &fixture.err);
        bool was_hit = n_allocations >= i;
        fail_at = -1;
        ck_assert_msg(status == WEIR_OK || status == WEIR_ERR_NOMEM, "%s", fixture.err.message);
        n_written += status == WEIR_OK ? 1 : 0;
        n_failures += status == WEIR_OK ? 0 : 1;
        n_clean = was_hit ? 0 : n_clean + 1;
        ck_assert_int_eq(rows(), n_written);
    }
    ck_assert_int_eq(n_clean, 3);
    ck_assert_int_gt(n_failures, 0);
}

END_TEST

WEIR_TEST_MAIN_WITH("fault", set_up, tear_down, a_full_database_refuses_undoes_and_goes_on,
                    a_transaction_that_swallows_no_space_does_not_succeed,
                    one_that_is_too_large_does_not_fail_those_that_wait_with_it,
                    a_write_that_the_system_refuses_is_an_error_and_the_next_one_works,
                    a_full_disk_is_no_space_and_freeing_it_is_enough,
                    a_file_that_is_no_database_is_refused_by_name,
                    the_database_of_another_program_is_refused_and_left_alone,
                    a_folder_that_is_not_there_is_an_error, what_was_acknowledged_survives_a_kill,
                    lack_of_memory_anywhere_is_reported_and_passes)
