/** Logs of tasks: a file for each attempt (base/rolling.h), to which the agent appends, and which readers follow. */
#include "api/answer.h"
#include "api/args.h"
#include "api/functions.h"
#include "job/job.h"
#include "store/table.h"

#include "base/file.h"
#include "base/rolling.h"
#include "base/uuid.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define READ_MAX_BYTES ((size_t)256 << 10)
#define TAIL_MAX_BYTES ((int64_t)1 << 20)
#define TAIL_MAX_LINES 1000000
#define GAP_BYTES      96 /* of the line that counts what is left out */
#define LOG_MAX_BYTES  ((int64_t)64 << 20)
#define WAIT_MAX_S     60

/* One file per attempt: each starts its log anew. */
static weir_status log_path(struct api_call *call, int64_t attempt, char **out,
                            struct weir_error *err)
{
    const char *task = call->params[0];
    size_t len = strlen(task);
    if (len >= WEIR_UUID_BYTES || strspn(task, "abcdefghijklmnopqrstuvwxyz0123456789-") != len) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "task \"%.60s\" not found", task);
    }
    *out = weir_arena_printf(call->arena, "%s/logs/%s.%lld.log", call->api->state_dir, task,
                             (long long)attempt);
    return WEIR_OK;
}

/* ---- the agent ----------------------------------------------------------------------------------- */

/* What the log has is sent again after an answer that was lost; what the agent has no more is left out. */
static weir_status append_at(struct api_call *call, struct weir_rolling *log, int64_t offset,
                             int64_t n_left_out, struct weir_error *err)
{
    int64_t end = weir_rolling_end(log);
    if (offset - n_left_out > end) {
        weir_http_response_json(call->response, 409,
                                json_pack("{s:I,s:{s:s,s:s}}", "offset", (json_int_t)end, "error",
                                          "status", "CONFLICT", "message",
                                          "the log is shorter than the offset"));
        return WEIR_OK;
    }
    size_t body_len = call->request->body_len, n;
    size_t skip = (size_t)WEIR_MIN(WEIR_MAX(end - offset, (int64_t)0), (int64_t)body_len);
    if (skip < body_len) {
        WEIR_TRY(weir_rolling_write(log, WEIR_MAX(offset, end), call->request->body + skip,
                                    body_len - skip, &n, err));
    }
    api_answer(call, json_pack("{s:I}", "offset", (json_int_t)weir_rolling_end(log)));
    return WEIR_OK;
}

/* One at a time: an agent that has given up an answer may ask again while that is still made. */
static weir_status lock(const char *path, int *out_fd, struct weir_error *err)
{
    int fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX) != 0) {
        int errno_value = errno;
        if (fd >= 0) {
            close(fd);
        }
        return weir_error_set_errno(err, errno_value, "cannot open %s", path);
    }
    *out_fd = fd;
    return WEIR_OK;
}

weir_status api_task_log_append(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    (void)txn;
    int64_t offset, attempt, n_left_out;
    char *path;
    struct weir_rolling log;
    int lock_fd = -1;
    WEIR_TRY(api_query_int(call, "offset", 0, 0, INT64_MAX / 2, &offset, err));
    WEIR_TRY(api_query_int(call, "attempt", 1, 0, INT64_MAX, &attempt, err));
    WEIR_TRY(api_query_int(call, "left_out", 0, 0, INT64_MAX / 2, &n_left_out, err));
    WEIR_TRY(log_path(call, attempt, &path, err));
    WEIR_TRY(
        weir_dir_make(weir_arena_printf(call->arena, "%s/logs", call->api->state_dir), 0700, err));
    WEIR_TRY(lock(path, &lock_fd, err));
    weir_status status = weir_rolling_open(&log, path, LOG_MAX_BYTES, err);
    if (status == WEIR_OK) {
        status = append_at(call, &log, offset, n_left_out, err);
        weir_rolling_close(&log);
    }
    close(lock_fd);
    if (status == WEIR_OK) {
        api_wake(call->api);
    }
    return status;
}

/* ---- readers ------------------------------------------------------------------------------------- */

/**
 * What is there from *position on, which moves behind it. Where bytes are left out, a line says how many.
 * @param out  GAP_BYTES more than size.
 */
static weir_status read_shown(const char *path, int64_t *position, char *out, size_t size,
                              size_t *out_n, struct weir_error *err)
{
    struct weir_rolling_part part;
    char line[GAP_BYTES];
    size_t n_line = 0;
    WEIR_TRY(weir_rolling_read(path, *position, out, size, &part, err));
    if (part.n > 0 && part.from > *position) {
        n_line = (size_t)snprintf(line, sizeof line,
                                  "\n[weir: %lld bytes of output are left out here]\n",
                                  (long long)(part.from - *position));
        memmove(out + n_line, out, part.n);
        memcpy(out, line, n_line);
    }
    *position = part.from + (int64_t)part.n;
    *out_n = n_line + part.n;
    return WEIR_OK;
}

static void answer_log(struct api_call *call, const char *text, size_t n, int64_t next)
{
    weir_http_response_bytes(call->response, 200, "text/plain; charset=utf-8", text, n);
    weir_http_response_header(call->response, "X-Weir-Offset",
                              weir_arena_printf(call->arena, "%lld", (long long)next));
}

static weir_status end_of(const char *path, int64_t *out, struct weir_error *err)
{
    struct weir_rolling_part part;
    WEIR_TRY(weir_rolling_read(path, 0, NULL, 0, &part, err));
    *out = part.end;
    return WEIR_OK;
}

/* Is more to come, perhaps, and wanted? Where until_end says so only as long as the job is not over. */
static weir_status may_wait(struct api_call *call, struct weir_txn *txn, const char *job, bool *out,
                            struct weir_error *err)
{
    int64_t until_end;
    bool is_over = false;
    WEIR_TRY(api_query_int(call, "until_end", 0, 0, 1, &until_end, err));
    if (until_end != 0) {
        WEIR_TRY(weir_job_is_over(txn, job, &is_over, err));
    }
    *out = !is_over && !call->request->is_expired;
    return WEIR_OK;
}

static weir_status read_at(struct api_call *call, const char *path, int64_t offset, int64_t wait_s,
                           struct weir_error *err)
{
    int64_t end;
    size_t n;
    WEIR_TRY(end_of(path, &end, err));
    if (offset > end) {
        offset = 0; /* the reader followed an earlier attempt: this one's log begins here */
    }
    char *chunk = weir_arena_alloc(call->arena, READ_MAX_BYTES + GAP_BYTES);
    WEIR_TRY(read_shown(path, &offset, chunk, READ_MAX_BYTES, &n, err));
    if (n == 0 && wait_s > 0) {
        weir_http_response_wait(call->response, WEIR_HTTP_ALL_TOPICS, wait_s * 1000);
        return WEIR_OK;
    }
    answer_log(call, chunk, n, offset);
    return WEIR_OK;
}

/* Where the last `n_lines` lines of a text begin. An end without a newline is a line too. */
static const char *last_lines(const char *text, size_t n, int64_t n_lines)
{
    const char *end = text + n - (n > 0 && text[n - 1] == '\n' ? 1 : 0);
    if (n_lines == 0) {
        return text + n;
    }
    while (n_lines-- > 0) {
        end = memrchr(text, '\n', (size_t)(end - text));
        if (end == NULL) {
            return text;
        }
    }
    return end + 1;
}

/* The last lines, as far as they lie in the last TAIL_MAX_BYTES; never waits. */
static weir_status read_tail(struct api_call *call, const char *path, int64_t n_lines,
                             struct weir_error *err)
{
    int64_t end;
    size_t n = 0, n_more = 0;
    WEIR_TRY(end_of(path, &end, err));
    int64_t begin_at = WEIR_MAX(end - TAIL_MAX_BYTES, (int64_t)0), offset = begin_at;
    /* Of few parts: a line for each gap that is left between them. */
    char *block = weir_arena_alloc(call->arena, 2 * (size_t)TAIL_MAX_BYTES);
    do {
        n += n_more;
        size_t room = 2 * (size_t)TAIL_MAX_BYTES - n;
        size_t size = room > GAP_BYTES && offset < end
                          ? (size_t)WEIR_MIN(end - offset, (int64_t)(room - GAP_BYTES))
                          : 0;
        WEIR_TRY(read_shown(path, &offset, block + n, size, &n_more, err));
    } while (n_more > 0);
    const char *begin = last_lines(block, n, n_lines);
    const char *first_end = memchr(block, '\n', n);
    if (begin == block && begin_at > 0 && first_end != NULL) {
        begin = first_end + 1; /* the block's first line is only the end of one */
    }
    answer_log(call, begin, (size_t)(block + n - begin), offset);
    return WEIR_OK;
}

weir_status api_task_log_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    int64_t offset, wait_s, attempt, n_lines;
    char *path;
    struct weir_task task;
    WEIR_TRY(api_query_int(call, "offset", 0, 0, INT64_MAX / 2, &offset, err));
    WEIR_TRY(api_query_int(call, "wait_s", 0, 0, WAIT_MAX_S, &wait_s, err));
    WEIR_TRY(api_query_int(call, "tail", -1, 0, TAIL_MAX_LINES, &n_lines, err));
    WEIR_TRY(weir_txn_get(txn, &weir_task_resource, call->params[0], call->arena, &task, err));
    WEIR_TRY(api_query_int(call, "attempt", task.attempt, 0, INT64_MAX, &attempt, err));
    WEIR_TRY(log_path(call, attempt, &path, err));
    if (attempt > task.attempt && !weir_path_exists(path)) {
        return weir_error_set(
            err, WEIR_ERR_NOT_FOUND, "there is no attempt %lld of the task: %s", (long long)attempt,
            task.attempt == 0 ? "it has not been started"
            : task.attempt == 1
                ? "it has been started once"
                : weir_arena_printf(call->arena, "the last is %lld", (long long)task.attempt));
    }
    bool waits = false;
    if (wait_s > 0) {
        WEIR_TRY(may_wait(call, txn, task.job, &waits, err));
    }
    return n_lines >= 0 ? read_tail(call, path, n_lines, err)
                        : read_at(call, path, offset, waits ? wait_s : 0, err);
}
