/** Tests: a state folder with a database, blobs, and a retainer whose clock the test drives. */
#ifndef WEIR_RETAIN_RETAIN_FIXTURE_H
#define WEIR_RETAIN_RETAIN_FIXTURE_H

#include "retain/retain_private.h"
#include "store/store_fixture.h"
#include "store/table.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <sys/stat.h>

#define HOUR_MS ((int64_t)3600000)
#define DAY_MS  (24 * HOUR_MS)

/** When the tests' world begins: file times are set by it too, so it lies in the past. */
#define NOON_MS ((int64_t)1700000000000)

#define KIND(name) weir_retain_kind_from_text(name)

static struct store_fixture fixture;
static struct weir_blobs *blobs;
static struct weir_packs *pictures;
static struct weir_retainer *retainer;
static int64_t now_ms;

static inline int64_t driven_now(const struct weir_clock *clock)
{
    (void)clock;
    return now_ms;
}

static const struct weir_clock driven_clock = {.now_ms = driven_now};

static inline const char *WEIR_PRINTF(1, 2) in_state(const char *fmt, ...)
{
    static char path[4][512];
    static int i_path;
    va_list args;
    i_path = (i_path + 1) % 4;
    int len = snprintf(path[i_path], sizeof path[0], "%s/", fixture.dir);
    va_start(args, fmt);
    (void)vsnprintf(path[i_path] + len, sizeof path[0] - (size_t)len, fmt, args);
    va_end(args);
    return path[i_path];
}

static inline void retain_set_up(void)
{
    now_ms = NOON_MS;
    fixture_make(&fixture, NULL);
    ck_assert_int_eq(weir_blobs_open(in_state("blobs"), &blobs, NULL), WEIR_OK);
    ck_assert_int_eq(weir_packs_open(in_state("pictures"), 20000, &pictures, NULL), WEIR_OK);
    struct weir_retainer_config config = {.pictures = pictures,
                                          .store = fixture.store,
                                          .blobs = blobs,
                                          .state_dir = fixture.dir,
                                          .clock = &driven_clock};
    retainer = weir_retainer_create(&config);
}

static inline void retain_tear_down(void)
{
    weir_retainer_destroy(retainer);
    weir_packs_close(pictures);
    weir_blobs_close(blobs);
    fixture_fini(&fixture);
}

static inline weir_status exec_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_exec(txn, context, WEIR_NO_BINDS, NULL, err);
}

/** One SQL statement, printed. */
static inline void WEIR_PRINTF(1, 2) sql(const char *fmt, ...)
{
    char text[4096];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fixture_write(&fixture, exec_in, text);
}

struct asking {
    const char *sql;
    int64_t value;
};

static inline weir_status ask_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct asking *asking = context;
    return weir_txn_query_int(txn, asking->sql, WEIR_NO_BINDS, 0, &asking->value, err);
}

static inline int64_t ask(const char *text)
{
    struct asking asking = {.sql = text};
    fixture_read(&fixture, ask_in, &asking);
    return asking.value;
}

/** A job, and what else has no better place. */
static inline void add_job(const char *id, const char *kind, const char *state, int64_t finished_ms)
{
    sql("INSERT INTO projects (name, created_ms) VALUES ('p', 0) ON CONFLICT DO NOTHING");
    sql("INSERT INTO jobs (id, name, project, kind, spec, state, attempt, max_restarts, n_restarts,"
        " due_ms, training, created_ms, started_ms, finished_ms) VALUES ('%s', 'n', 'p', '%s', "
        "'{}',"
        " '%s', 1, 0, 0, 0, 0, 1, 1, %" PRId64 ")",
        id, kind, state, finished_ms);
}

static inline void add_task(const char *id, const char *job, int attempt)
{
    sql("INSERT INTO tasks (id, job, rank, role, cpu_slots, attempt, state, desired, pid, "
        "exit_code,"
        " signal, n_restarts, due_ms, started_ms, finished_ms) VALUES ('%s', '%s', 0, 'worker', 1,"
        " %d, 'RUNNING', 'running', 0, 0, 0, 0, 0, 0, 0)",
        id, job, attempt);
}

/** A file of `size` bytes whose time is `time_ms`; its folder is made. */
static inline void add_file(const char *path, size_t size, int64_t time_ms)
{
    char dir[512], *bytes = calloc(1, size + 1);
    (void)snprintf(dir, sizeof dir, "%.*s", (int)(strrchr(path, '/') - path), path);
    ck_assert_int_eq(weir_dir_make(dir, 0700, NULL), WEIR_OK);
    ck_assert_int_eq(weir_file_write(path, bytes, size, 0600, NULL), WEIR_OK);
    free(bytes);
    struct timespec times[2] = {{.tv_sec = time_ms / 1000}, {.tv_sec = time_ms / 1000}};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    ck_assert_int_eq(utimensat(AT_FDCWD, dir, times, 0), 0);
}

struct policy_change {
    const char *kind, *text;
};

static inline weir_status change_policy_in(struct weir_txn *txn, void *context,
                                           struct weir_error *err)
{
    struct weir_retain_policy policy;
    struct policy_change *change = context;
    int kind = weir_retain_kind_from_text(change->kind);
    WEIR_TRY(weir_retain_policy_load(txn, &fixture.arena, &policy, err));
    WEIR_TRY(weir_retain_limit_parse(change->text, kind, &policy.limits[kind], err));
    return weir_retain_policy_save(txn, &policy, now_ms, &fixture.arena, err);
}

static inline void retain(const char *kind, const char *text)
{
    struct policy_change change = {kind, text};
    fixture_write(&fixture, change_policy_in, &change);
}

static inline void sweep_round(void)
{
    struct weir_error err = {0};
    ck_assert_msg(weir_retainer_round(retainer, &err) == WEIR_OK, "%s", err.message);
}

#endif
