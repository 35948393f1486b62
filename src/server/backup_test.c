/* Backup and restore: what comes back is what was there, or nothing comes. Trees are random; the
 * seed is printed. */
#include "server/backup.h"

#include "base/file.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/test_main.h"
#include "store/identity.h"
#include "store/table.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FILES_MAX 24

static char root[64];
static struct weir_arena arena;
static struct weir_error err;
static struct weir_rng rng;

static const char *in(const char *name)
{
    return weir_arena_printf(&arena, "%s/%s", root, name);
}

static void put(const char *path, const char *bytes, size_t len)
{
    char *parent = weir_arena_strdup(&arena, path);
    *strrchr(parent, '/') = '\0';
    ck_assert_msg(weir_dir_make(parent, 0700, &err) == WEIR_OK, "%s", err.message);
    ck_assert_msg(weir_file_write(path, bytes, len, 0600, &err) == WEIR_OK, "%s", err.message);
}

static weir_status add_project(struct weir_txn *txn, void *context, struct weir_error *error)
{
    struct weir_project project = {.name = context, .description = "", .created_ms = 1};
    return weir_txn_insert(txn, &weir_project_resource, &project, error);
}

/** A state folder with a database that has this project, and random files. */
static void make_state(const char *state, const char *project)
{
    static const char *const folders[] = {"blobs/ab",       "datasets/staff/ann",
                                          "logs",           "pictures",
                                          "checkpoints/j1", "datasets/deep/a/b/c/d/e"};
    struct weir_store *store;
    ck_assert_int_eq(weir_dir_make(state, 0700, &err), WEIR_OK);
    char *db = weir_arena_printf(&arena, "%s/weir.db", state);
    ck_assert_msg(weir_store_open(&(struct weir_store_config){.path = db, .n_readers = 1}, &store,
                                  &err) == WEIR_OK,
                  "%s", err.message);
    ck_assert_int_eq(weir_store_write(store, add_project, (char *)project, &err), WEIR_OK);
    weir_store_close(store);
    size_t n = 1 + weir_rng_below(&rng, FILES_MAX);
    for (size_t i = 0; i < n; i++) {
        size_t len = weir_rng_below(&rng, i % 5 == 0 ? 600000 : 2000);
        char *bytes = weir_arena_alloc(&arena, len + 1);
        for (size_t k = 0; k < len; k++) {
            bytes[k] = (char)weir_rng_below(&rng, 256);
        }
        const char *folder = folders[weir_rng_below(&rng, WEIR_ARRAY_LEN(folders))];
        put(weir_arena_printf(&arena, "%s/%s/f%zu", state, folder, i), bytes, len);
    }
    put(weir_arena_printf(&arena, "%s/admin.token", state), "weir_x\n", 7);
    put(weir_arena_printf(&arena, "%s/agent/token", state), "weir_y\n", 7);
}

static void set_up(void)
{
    uint64_t seed = (uint64_t)time(NULL) ^ ((uint64_t)getpid() << 32);
    printf("seed %llu\n", (unsigned long long)seed);
    (void)fflush(stdout);
    weir_log_set_level(WEIR_LOG_ERROR);
    weir_rng_init(&rng, seed, 0);
    weir_arena_init(&arena, 0);
    (void)snprintf(root, sizeof root, "%s/weir-backup-test-XXXXXX",
                   weir_path_is_dir("/dev/shm") ? "/dev/shm" : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(root));
    make_state(in("state"), "lab");
}

static void tear_down(void)
{
    ck_assert_msg(weir_dir_remove(root, &err) == WEIR_OK, "%s", err.message);
    weir_arena_fini(&arena);
}

static weir_status make(const char *state, const char *target)
{
    struct weir_backup_report report;
    return weir_backup_make(state, target, &arena, &report, &err);
}

static weir_status restore(const char *from, const char *state)
{
    struct weir_backup_report report;
    return weir_backup_restore(from, state, &arena, &report, &err);
}

/** The files below `dir`, by path, as a sorted text of paths and sums; the database left out. */
static char *listing(const char *dir, const char *path)
{
    struct dirent **entries;
    char *text = weir_arena_strdup(&arena, "");
    char *folder = weir_arena_printf(&arena, "%s/%s", dir, path);
    int n = scandir(folder, &entries, NULL, alphasort);
    ck_assert_msg(n >= 0, "%s: %s", folder, strerror(errno));
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        char *inside = weir_arena_printf(&arena, "%s%s%s", path, path[0] != '\0' ? "/" : "", name);
        char *whole = weir_arena_printf(&arena, "%s/%s", dir, inside), sum[WEIR_SHA256_TEXT_BYTES];
        /* weir-partial: one that is killed at its last step leaves its mark */
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
            strcmp(name, "weir-partial") != 0 && strncmp(inside, "weir.db", 7) != 0) {
            if (weir_path_is_dir(whole)) {
                text = weir_arena_printf(&arena, "%s%s", text, listing(dir, inside));
            } else {
                ck_assert_int_eq(weir_file_sha256(whole, sum, NULL, &err), WEIR_OK);
                text = weir_arena_printf(&arena, "%s%s %s\n", text, sum, inside);
            }
        }
        free(entries[i]);
    }
    free(entries);
    return text;
}

static weir_status get_project(struct weir_txn *txn, void *context, struct weir_error *error)
{
    struct weir_project project;
    return weir_txn_get(txn, &weir_project_resource, context, &arena, &project, error);
}

/** The restored folder must be the state, with this project in its database. */
static void expect_state(const char *state, const char *like, const char *project)
{
    struct weir_store *store;
    ck_assert_str_eq(listing(state, ""), listing(like, ""));
    char *db = weir_arena_printf(&arena, "%s/weir.db", state);
    ck_assert_msg(weir_store_open(&(struct weir_store_config){.path = db, .n_readers = 1}, &store,
                                  &err) == WEIR_OK,
                  "%s", err.message);
    weir_status status = weir_store_read(store, get_project, (char *)project, &err);
    weir_store_close(store);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

START_TEST(what_comes_back_is_what_was_there)
{
    struct weir_backup_report made, restored;
    ck_assert_msg(weir_backup_make(in("state"), in("backup"), &arena, &made, &err) == WEIR_OK, "%s",
                  err.message);
    ck_assert_msg(weir_backup_restore(in("backup"), in("again"), &arena, &restored, &err) ==
                      WEIR_OK,
                  "%s", err.message);
    expect_state(in("again"), in("state"), "lab");
    ck_assert_int_eq(made.n_files, restored.n_files);
    ck_assert_int_eq(made.n_bytes, restored.n_bytes);
    ck_assert_str_eq(restored.state, made.state);
    ck_assert(!exists(in("backup.partial")) && !exists(in("again.partial")));
    struct stat st;
    ck_assert_int_eq(stat(in("again/admin.token"), &st), 0);
    ck_assert_int_eq((int)(st.st_mode & 07777), 0600);
}

END_TEST

START_TEST(what_only_running_processes_need_stays_behind)
{
    static const char *const left_out[] = {"server.json",  "server.lock",      "uploads/u1",
                                           "rendezvous/r", "agent/agent.sock", "a.tmp"};
    ck_assert_int_eq(weir_dir_make(in("state/datasets"), 0700, &err), WEIR_OK);
    char *before = listing(in("state"), "");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(left_out); i++) {
        put(weir_arena_printf(&arena, "%s/state/%s", root, left_out[i]), "x", 1);
    }
    ck_assert_int_eq(symlink("/etc/passwd", in("state/datasets/link")), 0);
    ck_assert_msg(make(in("state"), in("backup")) == WEIR_OK, "%s", err.message);
    ck_assert_int_eq(restore(in("backup"), in("again")), WEIR_OK);
    ck_assert_str_eq(listing(in("again"), ""), before);
}

END_TEST

START_TEST(a_backup_that_differs_anywhere_is_not_restored)
{
    ck_assert_int_eq(make(in("state"), in("backup")), WEIR_OK);
    /* one bit of a random file, then a file that is gone, then the list itself */
    char *list = listing(in("backup"), "state"), *line = list;
    size_t n = 0;
    for (const char *p = list; (p = strchr(p, '\n')) != NULL; p++) {
        n++;
    }
    for (size_t i = weir_rng_below(&rng, n); i > 0; i--) {
        line = strchr(line, '\n') + 1;
    }
    const char *path = in(weir_arena_printf(&arena, "backup/%.*s",
                                            (int)(strcspn(line, "\n") - WEIR_SHA256_TEXT_BYTES),
                                            line + WEIR_SHA256_TEXT_BYTES));
    char *bytes;
    size_t len;
    ck_assert_int_eq(weir_file_read(path, 16 << 20, &arena, &bytes, &len, &err), WEIR_OK);
    char *damaged = weir_arena_memdup(&arena, bytes, len + 1); /* with its NUL */
    size_t at = len > 0 ? weir_rng_below(&rng, len) : 0;
    damaged[at] ^= 1;
    put(path, damaged, len > 0 ? len : 1);
    ck_assert_int_eq(restore(in("backup"), in("again")), WEIR_ERR_CORRUPT);
    ck_assert(!exists(in("again")) && !exists(in("again.partial")));
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(restore(in("backup"), in("again")), WEIR_ERR_CORRUPT);
    put(path, bytes, len);
    ck_assert_msg(restore(in("backup"), in("again")) == WEIR_OK, "%s", err.message);
    put(in("backup/manifest.sha256"), "", 0);
    ck_assert_int_eq(restore(in("backup"), in("third")), WEIR_ERR_CORRUPT);
    ck_assert(!exists(in("third")));
}

END_TEST

START_TEST(nothing_is_written_over)
{
    ck_assert_int_eq(make(in("state"), in("backup")), WEIR_OK);
    ck_assert_int_eq(make(in("state"), in("backup")), WEIR_ERR_EXISTS);
    ck_assert_int_eq(restore(in("backup"), in("state")), WEIR_ERR_EXISTS);
    ck_assert_int_eq(mkdir(in("empty"), 0700), 0);
    ck_assert_msg(restore(in("backup"), in("empty")) == WEIR_OK, "%s", err.message);
    put(in("mine.partial/precious"), "x", 1);
    ck_assert_int_eq(make(in("state"), in("mine")), WEIR_ERR_EXISTS);
    ck_assert(exists(in("mine.partial/precious")));
    ck_assert_int_eq(make(in("state"), in("state/backup")), WEIR_ERR_INVALID);
    ck_assert(!exists(in("state/backup")) && !exists(in("state/backup.partial")));
}

END_TEST

START_TEST(what_is_no_state_and_no_backup_says_so)
{
    ck_assert_int_eq(mkdir(in("none"), 0700), 0);
    ck_assert_int_eq(make(in("none"), in("backup")), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "no weir.db"));
    ck_assert_int_eq(make(in("gone"), in("backup")), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(restore(in("none"), in("again")), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "no backup.json"));
    put(in("new/backup.json"), "{\"format\":99}", 13);
    ck_assert_int_eq(restore(in("new"), in("again")), WEIR_ERR_UNSUPPORTED);
    put(in("bad/weir.db"), "this is no database at all, it only has its name", 48);
    ck_assert_int_ne(make(in("bad"), in("backup")), WEIR_OK);
    ck_assert(!exists(in("backup")) && !exists(in("backup.partial")) && !exists(in("again")));
}

END_TEST

/** Run in a process that is killed after so many microseconds, unless it is done before: any moment
 *  is right, the law holds at each. */
static void run_killed(bool is_restore, int64_t after_us)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        const struct itimerval timer = {.it_value = {.tv_usec = (suseconds_t)after_us}};
        (void)signal(SIGALRM, SIG_DFL); /* Check has a handler of its own */
        (void)setitimer(ITIMER_REAL, &timer, NULL);
        weir_status status =
            is_restore ? restore(in("backup"), in("again")) : make(in("state"), in("backup"));
        _exit(status == WEIR_OK ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

START_TEST(one_that_is_killed_leaves_all_or_nothing)
{
    for (int i = 0; i < WEIR_TEST_TIMES(12, 4); i++) {
        run_killed(false, 1 + (int64_t)weir_rng_below(&rng, 30000));
        if (!exists(in("backup"))) { /* the next one clears up */
            ck_assert_msg(make(in("state"), in("backup")) == WEIR_OK, "%s", err.message);
        }
        ck_assert(!exists(in("backup.partial")));
        run_killed(true, 1 + (int64_t)weir_rng_below(&rng, 30000));
        if (!exists(in("again"))) {
            ck_assert_msg(restore(in("backup"), in("again")) == WEIR_OK, "%s", err.message);
        }
        expect_state(in("again"), in("state"), "lab");
        ck_assert_int_eq(weir_dir_remove(in("again"), &err), WEIR_OK);
        ck_assert_int_eq(weir_dir_remove(in("backup"), &err), WEIR_OK);
    }
}

END_TEST

WEIR_TEST_MAIN_WITH("backup", set_up, tear_down, what_comes_back_is_what_was_there,
                    what_only_running_processes_need_stays_behind,
                    a_backup_that_differs_anywhere_is_not_restored, nothing_is_written_over,
                    what_is_no_state_and_no_backup_says_so,
                    one_that_is_killed_leaves_all_or_nothing)
