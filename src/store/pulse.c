#include "store/pulse.h"

#include "base/clock.h"
#include "base/log.h"
#include "store/store_private.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHECK_MAX_MS 600000

static const char sql_beat[] = "INSERT INTO counters (name, value) VALUES ('beats', 1)"
                               " ON CONFLICT (name) DO UPDATE SET value = counters.value + 1";

struct pulse {
    pthread_mutex_t lock; /* Protects the next two. */
    struct weir_store_pulse seen;
    int64_t written_mono_ms;
    atomic_bool is_stopping;
    bool has_thread;
    pthread_t thread;
    char *path;
    int end_fd; /* Of the file beside the database; -1: there is none. Of the opener, then the writer. */
    int64_t synced_mono_ms; /* When it was brought to the disk. Of the writer. */
};

struct pulse *pulse_create(const char *path)
{
    struct pulse *pulse = calloc(1, sizeof *pulse);
    char *own = strdup(path);
    if (pulse == NULL || own == NULL) {
        free(pulse);
        free(own);
        return NULL;
    }
    pulse->path = own;
    pulse->end_fd = -1;
    pthread_mutex_init(&pulse->lock, NULL);
    return pulse;
}

void pulse_stop(struct pulse *pulse)
{
    if (pulse != NULL && pulse->has_thread) {
        atomic_store(&pulse->is_stopping, true);
        pthread_join(pulse->thread, NULL);
        pulse->has_thread = false;
    }
}

void pulse_destroy(struct pulse *pulse)
{
    if (pulse != NULL) {
        pulse_stop(pulse);
        pthread_mutex_destroy(&pulse->lock);
        if (pulse->end_fd >= 0) {
            (void)close(pulse->end_fd);
        }
        free(pulse->path);
        free(pulse);
    }
}

/* The first is kept, and logged: those that follow say the same. */
static void note(struct pulse *pulse, int64_t *since, char text[WEIR_STORE_PULSE_TEXT_BYTES],
                 const char *event, const char *what)
{
    pthread_mutex_lock(&pulse->lock);
    bool is_first = *since == 0;
    if (is_first) {
        *since = WEIR_MAX(weir_mono_ms(), (int64_t)1);
        (void)snprintf(text, WEIR_STORE_PULSE_TEXT_BYTES, "%s", what);
    }
    pthread_mutex_unlock(&pulse->lock);
    if (is_first) {
        weir_log(WEIR_LOG_ERROR, event, WEIR_KV_STR("error", what));
    }
}

void pulse_damaged(struct pulse *pulse, const char *what)
{
    if (pulse != NULL) {
        note(pulse, &pulse->seen.damaged_mono_ms, pulse->seen.damage, "store_is_damaged", what);
    }
}

void pulse_unread(struct pulse *pulse, const char *what)
{
    if (pulse != NULL) {
        note(pulse, &pulse->seen.unread_mono_ms, pulse->seen.unread, "store_cannot_be_read", what);
    }
}

void pulse_failed(struct pulse *pulse, const struct weir_error *error)
{
    note(pulse, &pulse->seen.failing_mono_ms, pulse->seen.failed, "store_cannot_write",
         error->message);
    pthread_mutex_lock(&pulse->lock);
    pulse->seen.failure = error->status;
    pthread_mutex_unlock(&pulse->lock);
}

void pulse_wrote(struct pulse *pulse)
{
    pthread_mutex_lock(&pulse->lock);
    bool was_failing = pulse->seen.failing_mono_ms != 0;
    pulse->seen.failing_mono_ms = 0;
    pulse->seen.failure = WEIR_OK;
    pulse->seen.failed[0] = '\0';
    pulse->written_mono_ms = weir_mono_ms();
    pthread_mutex_unlock(&pulse->lock);
    if (was_failing) {
        weir_log(WEIR_LOG_INFO, "store_writes_again");
    }
}

void pulse_read(struct pulse *pulse, struct weir_store_pulse *out)
{
    pthread_mutex_lock(&pulse->lock);
    *out = pulse->seen;
    pthread_mutex_unlock(&pulse->lock);
}

bool pulse_is_due(struct pulse *pulse)
{
    pthread_mutex_lock(&pulse->lock);
    bool is_due = pulse->seen.failing_mono_ms != 0 || pulse->written_mono_ms == 0 ||
                  weir_mono_ms() - pulse->written_mono_ms >= WEIR_STORE_PROBE_MS;
    pthread_mutex_unlock(&pulse->lock);
    return is_due;
}

weir_status pulse_beat(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_txn_exec(txn, sql_beat, WEIR_NO_BINDS, NULL, err);
}

/* ---- the end beside the database ------------------------------------------------------------- */

#define END_BYTES   21 /* 20 digits and a line's end */
#define END_SYNC_MS 1000

static const char sql_commit[] = "INSERT INTO counters (name, value) VALUES ('commits', 1)"
                                 " ON CONFLICT (name) DO UPDATE SET value = counters.value + 1";
static const char sql_end[] = "SELECT sum(value) FROM counters";

weir_status pulse_count_commit(struct connection *connection, struct weir_error *err)
{
    struct weir_txn txn = {.connection = connection};
    return weir_txn_exec(&txn, sql_commit, WEIR_NO_BINDS, NULL, err);
}

/* Counters only grow, and each commit moves one: their sum says how far the database has come. */
static weir_status read_end(struct connection *connection, int64_t *out)
{
    struct weir_txn txn = {.connection = connection};
    struct weir_error ignored;
    bool has_end;
    *out = 0; /* of a database that is new */
    WEIR_TRY(txn_has_table(&txn, "counters", &has_end, &ignored));
    return has_end ? weir_txn_query_int(&txn, sql_end, WEIR_NO_BINDS, 0, out, &ignored) : WEIR_OK;
}

void pulse_compare_end(struct pulse *pulse, struct connection *connection)
{
    char path[4096], text[END_BYTES + 1] = "", what[WEIR_STORE_PULSE_TEXT_BYTES];
    int64_t end;
    (void)snprintf(path, sizeof path, "%s-end", pulse->path);
    pulse->end_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (pulse->end_fd < 0 || pread(pulse->end_fd, text, END_BYTES, 0) < END_BYTES ||
        read_end(connection, &end) != WEIR_OK) {
        return; /* none was noted, or it cannot be read: nothing is known */
    }
    long long noted = strtoll(text, NULL, 10);
    if (end < noted) {
        (void)snprintf(
            what, sizeof what,
            "it has lost what was stored last, and acknowledged: it ends at %lld, and had "
            "come to %lld; was its log (weir.db-wal) removed or cut, or the file replaced "
            "by an older one?",
            (long long)end, noted);
        pulse_damaged(pulse, what);
    }
}

/* After its commit: the number on the disk is never ahead of the database there. What fails is a help, not the store. */
void pulse_note_end(struct pulse *pulse, struct connection *connection)
{
    char text[END_BYTES + 1];
    int64_t end, now_ms = weir_mono_ms();
    if (pulse->end_fd < 0 || read_end(connection, &end) != WEIR_OK) {
        return;
    }
    (void)snprintf(text, sizeof text, "%020lld\n", (long long)end);
    if (pwrite(pulse->end_fd, text, END_BYTES, 0) == END_BYTES &&
        now_ms - pulse->synced_mono_ms >= END_SYNC_MS) {
        (void)fdatasync(pulse->end_fd);
        pulse->synced_mono_ms = now_ms;
    }
}

/* ---- the check ------------------------------------------------------------------------------- */

struct glance {
    struct pulse *pulse;
    int64_t until_mono_ms;
};

static bool glance(void *context)
{
    const struct glance *of = context;
    return atomic_load(&of->pulse->is_stopping) || weir_mono_ms() >= of->until_mono_ms;
}

static void *check_main(void *context)
{
    struct pulse *pulse = context;
    struct connection connection;
    struct weir_error err;
    char verdict[WEIR_ERROR_MESSAGE_BYTES] = "";
    struct glance of = {pulse, weir_mono_ms() + CHECK_MAX_MS};
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 10);
    if (connection_open(pulse->path, 0, true, &connection, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "store_check_failed", WEIR_KV_STR("error", err.message));
        return NULL;
    }
    connection.pulse = pulse;
    weir_status status = connection_check(&connection, glance, &of, verdict, &err);
    if (status == WEIR_OK) {
        pthread_mutex_lock(&pulse->lock);
        pulse->seen.is_checked = true;
        pthread_mutex_unlock(&pulse->lock);
        weir_log(WEIR_LOG_DEBUG, "store_checked");
    } else if (verdict[0] != '\0') {
        pulse_damaged(pulse, verdict);
    } else if (!atomic_load(&pulse->is_stopping)) {
        weir_log(WEIR_LOG_WARN, "store_check_failed", WEIR_KV_STR("error", err.message));
    }
    connection_close(&connection);
    return NULL;
}

weir_status pulse_check_start(struct pulse *pulse, struct weir_error *err)
{
    int reason = pthread_create(&pulse->thread, NULL, check_main, pulse);
    pulse->has_thread = reason == 0;
    return reason == 0 ? WEIR_OK
                       : weir_error_set_errno(err, reason, "starting the database's check");
}
