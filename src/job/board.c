#include "job/board.h"

#include "store/stmt.h"

#include <string.h>

#define LIVES                                                                                      \
    " EXISTS (SELECT 1 FROM tasks t WHERE t.id = b.task AND t.attempt = b.attempt"                 \
    " AND t.state IN ('STARTING', 'RUNNING', 'STOPPING'))"
/* The first text that is greater than all that begin with the prefix: no key has the letter '~'. */
#define OF_PREFIX " b.job = :job AND b.key >= :prefix AND b.key < :prefix || '~'"

static const char sql_put[] =
    "INSERT INTO board (job, key, task, attempt, value, seq)"
    " VALUES (:job, :key, :task, :attempt, :value, :seq)"
    " ON CONFLICT (job, key) DO UPDATE SET task = excluded.task, attempt = excluded.attempt,"
    " value = excluded.value, seq = excluded.seq";
static const char sql_remove[] = "DELETE FROM board WHERE job = :job AND key = :key";
static const char sql_keys[] = "SELECT count(*) FROM board WHERE job = :job AND key <> :key";
static const char sql_bytes[] =
    "SELECT coalesce(sum(length(value) + length(key)), 0) FROM board WHERE job = :job"
    " AND key <> :key";
static const char sql_list[] = "SELECT b.key, b.value FROM board b WHERE" OF_PREFIX " AND" LIVES
                               " ORDER BY b.key LIMIT :limit";
static const char sql_look[] =
    "SELECT count(*), coalesce(max(b.seq), 0) FROM board b WHERE" OF_PREFIX " AND" LIVES;
static const char sql_clear[] = "DELETE FROM board WHERE job = :job";

static weir_status check_key(const char *key, struct weir_error *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t len = strlen(key);
    return len > 0 && len <= WEIR_BOARD_KEY_MAX_BYTES && strspn(key, letters) == len
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "a key of a board has 1 to %d of a-z 0-9 . _ -",
                                WEIR_BOARD_KEY_MAX_BYTES);
}

weir_status weir_board_put(struct weir_txn *txn, const struct weir_attempt *attempt,
                           const char *key, const char *value, struct weir_error *err)
{
    int64_t n_keys, n_bytes, seq;
    WEIR_TRY(check_key(key, err));
    if (value == NULL) {
        return weir_txn_exec(
            txn, sql_remove,
            WEIR_BINDS(WEIR_BIND_TEXT("job", attempt->job), WEIR_BIND_TEXT("key", key)), NULL, err);
    }
    size_t len = strlen(value);
    if (len > WEIR_BOARD_VALUE_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "a value of a board has at most %zu bytes",
                              WEIR_BOARD_VALUE_MAX_BYTES);
    }
    const struct weir_bind of_key[] = {WEIR_BIND_TEXT("job", attempt->job),
                                       WEIR_BIND_TEXT("key", key)};
    WEIR_TRY(weir_txn_query_int(txn, sql_keys, of_key, 2, 0, &n_keys, err));
    WEIR_TRY(weir_txn_query_int(txn, sql_bytes, of_key, 2, 0, &n_bytes, err));
    if (n_keys >= WEIR_BOARD_KEYS_MAX ||
        n_bytes + (int64_t)(len + strlen(key)) > WEIR_BOARD_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "the board of a job has at most %d values, and %lld bytes",
                              WEIR_BOARD_KEYS_MAX, (long long)WEIR_BOARD_MAX_BYTES);
    }
    WEIR_TRY(weir_txn_next(txn, "board", &seq, err));
    return weir_txn_exec(txn, sql_put,
                         WEIR_BINDS(WEIR_BIND_TEXT("job", attempt->job), WEIR_BIND_TEXT("key", key),
                                    WEIR_BIND_TEXT("task", attempt->task),
                                    WEIR_BIND_INT("attempt", attempt->number),
                                    WEIR_BIND_TEXT("value", value), WEIR_BIND_INT("seq", seq)),
                         NULL, err);
}

weir_status weir_board_list(struct weir_txn *txn, const char *job, const char *prefix,
                            struct weir_arena *arena, struct weir_board_value **out, size_t *out_n,
                            struct weir_error *err)
{
    int64_t n_most, seq;
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    size_t n = 0;
    WEIR_TRY(weir_board_look(txn, job, prefix, &n_most, &seq, err));
    struct weir_board_value *values =
        WEIR_ARENA_ARRAY(arena, (size_t)n_most + 1, struct weir_board_value);
    WEIR_TRY(weir_stmt_open(txn, sql_list,
                            WEIR_BINDS(WEIR_BIND_TEXT("job", job), WEIR_BIND_TEXT("prefix", prefix),
                                       WEIR_BIND_INT("limit", n_most)),
                            &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    while (has_row) {
        values[n++] =
            (struct weir_board_value){weir_stmt_text(row, 0, arena), weir_stmt_text(row, 1, arena)};
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
    }
    *out = values;
    *out_n = n;
    return WEIR_OK;
}

weir_status weir_board_look(struct weir_txn *txn, const char *job, const char *prefix,
                            int64_t *out_n, int64_t *out_seq, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    WEIR_TRY(weir_stmt_open(
        txn, sql_look, WEIR_BINDS(WEIR_BIND_TEXT("job", job), WEIR_BIND_TEXT("prefix", prefix)),
        &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    *out_n = has_row ? weir_stmt_int(row, 0) : 0;
    *out_seq = has_row ? weir_stmt_int(row, 1) : 0;
    return WEIR_OK;
}

weir_status weir_board_clear(struct weir_txn *txn, const char *job, struct weir_error *err)
{
    return weir_txn_exec(txn, sql_clear, WEIR_BINDS(WEIR_BIND_TEXT("job", job)), NULL, err);
}
