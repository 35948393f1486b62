/** Logs of tasks: a file for each attempt (base/rolling.h), to which the agent appends, and which readers follow. */
#include "api/core/answer.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/views.h"
#include "job/job.h"
#include "store/table.h"

#include "base/buf.h"
#include "base/clock.h"
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
#define GAP_BYTES      96 /* of the line that counts what is left out */
#define TIMES_MAX      256
#define LEFT_OUT       "\n%s[weir: %lld bytes of output are left out here]\n"
#define STAMPED_BYTES                                                                              \
    ((size_t)32 << 10) /* of the log in one answer with times, which is up to 26 times as much */
#define LOG_MAX_BYTES ((int64_t)64 << 20)
#define BLOCK_BYTES   (2 * (size_t)TAIL_MAX_BYTES)
#define PIECES_MAX    64

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

/* When the lines of a chunk came, by their places in it. */
struct chunk_times {
    struct weir_rolling_time times[TIMES_MAX];
    size_t n;
};

/* "BYTES:MS,BYTES:MS": each so far behind the one before. Of an agent that knows none: they came now. */
static weir_status read_times(struct api_call *call, struct chunk_times *out,
                              struct weir_error *err)
{
    const char *text = api_query_text(call, "times");
    struct weir_rolling_time at = {0};
    *out = (struct chunk_times){.times = {{0, call->now_ms}}, .n = 1};
    for (size_t n = 0; text != NULL && *text != '\0'; n++) {
        char *behind, *end;
        long long bytes = strtoll(text, &behind, 10);
        long long ms = *behind == ':' ? strtoll(behind + 1, &end, 10) : -1;
        if (n == TIMES_MAX || ms < 0 || bytes < 0 || (size_t)bytes > call->request->body_len ||
            ms > INT64_MAX / 4 || end == behind + 1 || (*end != '\0' && *end != ',')) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "query parameter times: expected at most %d of BYTES:MS, with "
                                  "commas, got \"%.40s\"",
                                  TIMES_MAX, text);
        }
        at.position += bytes;
        at.time_ms = WEIR_MIN(at.time_ms + ms, INT64_MAX / 4);
        out->times[n] = at;
        out->n = n + 1;
        text = end + (*end == ',');
    }
    return WEIR_OK;
}

/* From the byte `skip` of the body on, which goes to `position`: each piece with its time. */
static weir_status write_chunk(const struct api_call *call, struct weir_rolling *log, size_t skip,
                               int64_t position, const struct chunk_times *times,
                               struct weir_error *err)
{
    size_t at = skip, n;
    for (size_t i = 0; i < times->n && at < call->request->body_len; i++) {
        size_t end = i + 1 < times->n ? (size_t)times->times[i + 1].position : SIZE_MAX;
        end = WEIR_MIN(end, call->request->body_len);
        if (end > at) {
            WEIR_TRY(weir_rolling_write(log, position + (int64_t)(at - skip),
                                        times->times[i].time_ms, call->request->body + at, end - at,
                                        &n, err));
            at = end;
        }
    }
    return WEIR_OK;
}

/* What the log has is sent again after an answer that was lost; what the agent has no more is left out. */
static weir_status append_at(struct api_call *call, struct weir_rolling *log, int64_t offset,
                             int64_t n_left_out, struct weir_error *err)
{
    struct chunk_times times;
    int64_t end = weir_rolling_end(log);
    WEIR_TRY(read_times(call, &times, err));
    if (offset - n_left_out > end) {
        weir_http_response_json(call->response, 409,
                                json_pack("{s:I,s:{s:s,s:s}}", "offset", (json_int_t)end, "error",
                                          "status", "CONFLICT", "message",
                                          "the log is shorter than the offset"));
        return WEIR_OK;
    }
    size_t skip =
        (size_t)WEIR_MIN(WEIR_MAX(end - offset, (int64_t)0), (int64_t)call->request->body_len);
    WEIR_TRY(write_chunk(call, log, skip, WEIR_MAX(offset, end), &times, err));
    API_ANSWER(call, api_log_end, .offset = weir_rolling_end(log));
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
    char *path;
    struct weir_rolling log;
    int lock_fd = -1;
    int64_t offset = api_query_int(call, "offset");
    int64_t attempt = api_query_int(call, "attempt");
    int64_t n_left_out = api_query_int(call, "left_out");
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
        n_line =
            (size_t)snprintf(line, sizeof line, LEFT_OUT, "", (long long)(part.from - *position));
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

/* ---- with times --------------------------------------------------------------------------------------------- */

/* Does a line begin at this position? */
static weir_status is_line_begin(const char *path, int64_t position, bool *out,
                                 struct weir_error *err)
{
    struct weir_rolling_part part = {.from = position};
    char before = '\n';
    if (position > 0) {
        WEIR_TRY(weir_rolling_read(path, position - 1, &before, 1, &part, err));
    }
    *out = before == '\n' || part.from >= position;
    return WEIR_OK;
}

/* Each line of a text with its time in front; "-" where that is unknown. */
static void stamp(const char *text, const struct weir_rolling_part *part,
                  const struct weir_rolling_time *times, size_t n_times, bool begins_line,
                  struct weir_buf *out)
{
    char when[WEIR_TIME_TEXT_BYTES] = "-";
    size_t i = 0;
    for (size_t at = 0; at < part->n;) {
        const char *end = memchr(text + at, '\n', part->n - at);
        size_t len = end != NULL ? (size_t)(end - text) + 1 - at : part->n - at;
        bool is_later = false;
        while (i < n_times && times[i].position <= part->from + (int64_t)at) {
            is_later = true;
            i++;
        }
        if (is_later) {
            weir_time_format(times[i - 1].time_ms, when);
        }
        if (begins_line) {
            (void)weir_buf_printf(out, "%s ", when);
        }
        (void)weir_buf_append(out, text + at, len); /* they fit: STAMPED_BYTES */
        begins_line = true;
        at += len;
    }
}

/* As read_shown, with the time of each line in front of it. */
static weir_status read_stamped(const char *path, int64_t *position, struct weir_arena *arena,
                                struct weir_buf *out, struct weir_error *err)
{
    struct weir_rolling_part part;
    bool begins_line;
    char *text = weir_arena_alloc(arena, STAMPED_BYTES);
    struct weir_rolling_time *times =
        WEIR_ARENA_ARRAY(arena, STAMPED_BYTES, struct weir_rolling_time);
    WEIR_TRY(is_line_begin(path, *position, &begins_line, err));
    WEIR_TRY(weir_rolling_read(path, *position, text, STAMPED_BYTES, &part, err));
    if (part.n > 0 && part.from > *position) {
        (void)weir_buf_printf(out, LEFT_OUT, "- ", (long long)(part.from - *position));
        begins_line = true;
    }
    size_t n_times = weir_rolling_times(path, &part, times, STAMPED_BYTES);
    stamp(text, &part, times, n_times, begins_line, out);
    *position = part.from + (int64_t)part.n;
    return WEIR_OK;
}

static weir_status answer_stamped(struct api_call *call, const char *path, int64_t *position,
                                  struct weir_error *err)
{
    struct weir_buf out;
    weir_buf_init(&out, (WEIR_TIME_TEXT_BYTES + 1) * STAMPED_BYTES + GAP_BYTES);
    weir_status status = read_stamped(path, position, call->arena, &out, err);
    if (status == WEIR_OK) {
        answer_log(call, out.data != NULL ? out.data : "", out.len, *position);
    }
    weir_buf_fini(&out);
    return status;
}

static weir_status end_of(const char *path, int64_t *out, struct weir_error *err)
{
    struct weir_rolling_part part;
    WEIR_TRY(weir_rolling_read(path, 0, NULL, 0, &part, err));
    *out = part.end;
    return WEIR_OK;
}

/* How to read. */
struct log_wish {
    int64_t offset, wait_s, n_lines; /* -1: not by lines */
    int64_t since_ms;                /* -1: from the offset on */
    bool has_times;
};

/* Is more to come, perhaps, and wanted? Where until_end says so only as long as the job is not over. */
static weir_status may_wait(struct api_call *call, struct weir_txn *txn, const char *job, bool *out,
                            struct weir_error *err)
{
    bool is_over = false;
    if (api_query_bool(call, "until_end")) {
        WEIR_TRY(weir_job_is_over(txn, job, &is_over, err));
    }
    *out = !is_over && !call->request->is_expired;
    return WEIR_OK;
}

static weir_status read_at(struct api_call *call, const char *path, const struct log_wish *wish,
                           struct weir_error *err)
{
    int64_t end, offset = wish->offset;
    size_t n;
    WEIR_TRY(end_of(path, &end, err));
    if (offset > end) {
        offset = 0; /* the reader followed an earlier attempt: this one's log begins here */
    }
    if (offset == end && wish->wait_s > 0) {
        weir_http_response_wait(call->response, WEIR_HTTP_ALL_TOPICS, wish->wait_s * 1000);
        return WEIR_OK;
    }
    if (wish->has_times) {
        return answer_stamped(call, path, &offset, err);
    }
    char *chunk = weir_arena_alloc(call->arena, READ_MAX_BYTES + GAP_BYTES);
    WEIR_TRY(read_shown(path, &offset, chunk, READ_MAX_BYTES, &n, err));
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

/* What was read of the last of a log, and where in the log each piece of it lies. */
struct block {
    char *text;
    size_t n, n_pieces;

    struct {
        size_t at;
        int64_t position;
    } pieces[PIECES_MAX];
};

/* From a position on to the end; *position moves there. Of few parts: a line for each gap that is left between. */
static weir_status read_block(const char *path, int64_t *position, int64_t end, struct block *block,
                              struct weir_error *err)
{
    size_t n_more = 1;
    while (n_more > 0 && block->n_pieces < PIECES_MAX) {
        size_t room = BLOCK_BYTES - block->n;
        size_t size = room > GAP_BYTES && *position < end
                          ? (size_t)WEIR_MIN(end - *position, (int64_t)(room - GAP_BYTES))
                          : 0;
        WEIR_TRY(read_shown(path, position, block->text + block->n, size, &n_more, err));
        block->pieces[block->n_pieces].at = block->n;
        block->pieces[block->n_pieces++].position = *position - (int64_t)n_more;
        block->n += n_more;
    }
    return WEIR_OK;
}

/* Where in the log a byte of the block lies; of the line that counts what is left out, what is behind that. */
static int64_t position_of(const struct block *block, size_t at)
{
    size_t i = block->n_pieces;
    while (i > 1 && block->pieces[i - 1].at > at) {
        i--;
    }
    return block->pieces[i - 1].position + (int64_t)(at - block->pieces[i - 1].at);
}

/* The last lines from an offset on, as far as they lie in the last TAIL_MAX_BYTES; never waits. */
static weir_status read_tail(struct api_call *call, const char *path, const struct log_wish *wish,
                             struct weir_error *err)
{
    int64_t end;
    struct block block = {.text = weir_arena_alloc(call->arena, BLOCK_BYTES)};
    WEIR_TRY(end_of(path, &end, err));
    int64_t begin_at = WEIR_MAX(end - TAIL_MAX_BYTES, wish->offset), next = begin_at;
    WEIR_TRY(read_block(path, &next, end, &block, err));
    const char *begin = last_lines(block.text, block.n, wish->n_lines);
    const char *first_end = memchr(block.text, '\n', block.n);
    if (begin == block.text && begin_at > wish->offset && first_end != NULL) {
        begin = first_end + 1; /* the block's first line is only the end of one */
    }
    if (wish->has_times) {
        next = position_of(&block, (size_t)(begin - block.text));
        return answer_stamped(call, path, &next, err);
    }
    answer_log(call, begin, (size_t)(block.text + block.n - begin), next);
    return WEIR_OK;
}

/* "since" is a time, "last_s" so many seconds ago: the offset becomes that of the first line since then. */
static weir_status find_since(struct api_call *call, const char *path, int64_t last_s,
                              struct log_wish *wish, struct weir_error *err)
{
    bool has_times;
    if (wish->since_ms >= 0 && last_s >= 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "query parameters since and last_s: give one of the two");
    }
    if (last_s >= 0) {
        wish->since_ms = WEIR_MAX(call->now_ms - last_s * 1000, (int64_t)0);
    }
    if (wish->since_ms < 0) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_rolling_find_time(path, wish->since_ms, &wish->offset, &has_times, err));
    return has_times ? WEIR_OK
                     : weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                      "this log was kept by an earlier version, without the times "
                                      "of its lines");
}

static void read_wish(const struct api_call *call, struct log_wish *out)
{
    out->offset = api_query_int(call, "offset");
    out->wait_s = api_query_int(call, "wait_s");
    out->n_lines = api_query_int(call, "tail");
    out->since_ms = api_query_time(call, "since", -1);
    out->has_times = api_query_bool(call, "times");
}

weir_status api_task_log_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    char *path;
    struct weir_task task;
    struct log_wish wish;
    read_wish(call, &wish);
    WEIR_TRY(weir_txn_get(txn, &weir_task_resource, call->params[0], call->arena, &task, err));
    int64_t attempt =
        api_query_has(call, "attempt") ? api_query_int(call, "attempt") : task.attempt;
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
    if (wish.wait_s > 0) {
        WEIR_TRY(may_wait(call, txn, task.job, &waits, err));
    }
    wish.wait_s = waits ? wish.wait_s : 0;
    WEIR_TRY(find_since(call, path, api_query_int(call, "last_s"), &wish, err));
    return wish.n_lines >= 0 ? read_tail(call, path, &wish, err) : read_at(call, path, &wish, err);
}
