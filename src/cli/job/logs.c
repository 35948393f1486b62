/** weir logs: what the tasks of a job, or of an ION, have printed. */
#include "cli/core/find.h"
#include "cli/core/wait.h"

#include "base/clock.h"
#include "base/quantity.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_MAX_BYTES ((size_t)1 << 20)
#define FOLLOW_WAIT_S   "20"
#define TASKS_MAX       256
#define LINE_MAX_BYTES  ((size_t)4 << 20)

struct logs_options {
    struct cli_common common;
    bool is_following, is_raw, ignores_case, is_previous, has_times;
    int64_t tail, attempt;
    char *grep, *since;
};

static const struct weir_option logs_options[] = {
    CLI_COMMON_OPTIONS(logs_options),
    CLI_FLAG(logs_options, is_following, "follow", 'f', "Go on as more is printed"),
    CLI_FLAG(logs_options, is_raw, "raw", 0,
             "Print control characters as they are, also to a terminal"),
    CLI_TEXT(logs_options, grep, "grep", 'g', "PATTERN",
             "Print only lines that this extended regular expression fits"),
    CLI_FLAG(logs_options, ignores_case, "ignore-case", 'i', "It fits in capitals too"),
    WEIR_OPT(logs_options, tail, "tail", 'n', INT, "-1", -1, 1000000, "N",
             "Begin with each task's last N lines, of its last MiB; -1: with all"),
    WEIR_OPT(logs_options, attempt, "attempt", 0, INT, "0", 0, 1e9, "N",
             "Of this start of the tasks, 1 is the first; 0: of the last"),
    CLI_FLAG(logs_options, is_previous, "previous", 'p', "Of the start before the last one"),
    CLI_FLAG(logs_options, has_times, "timestamps", 't',
             "When each line came, in front of it, by the clock of its node"),
    CLI_TEXT(logs_options, since, "since", 0, "TIME",
             "Only lines since then: 10m, 2h ago, or a time like 2026-01-31T12:00:00Z"),
};

struct followed {
    char *task, *label;
    int64_t offset, attempt;
    bool is_begun;         /* the tail, if one is wanted, has been printed */
    struct weir_buf begun; /* of a line whose end has not come: only where lines are searched */
};

/* Tasks of one job, with a label for each line. */
static weir_status add_tasks(struct cli_call *call, const char *job, struct followed *followed,
                             size_t max, size_t *n, struct weir_error *err)
{
    json_t *answer, *task;
    size_t i;
    WEIR_TRY(
        cli_rest(call, "GET", cli_path1(call, "/api/v1/jobs/{}/tasks", job), NULL, &answer, err));
    json_array_foreach(json_object_get(answer, "items"), i, task)
    {
        if (*n < max) {
            followed[(*n)++] = (struct followed){
                .task = cli_text(call, task, "id"),
                .label = weir_arena_printf(call->arena, "%s-%s", cli_text(call, task, "role"),
                                           cli_text(call, task, "rank")),
                .attempt = json_integer_value(json_object_get(task, "attempt")),
            };
        }
    }
    json_decref(answer);
    return WEIR_OK;
}

/* The jobs of an ION's pipelines ("ion" or "ion/pipeline"), else the word is a job: *out_job. */
static weir_status find_tasks(struct cli_call *call, const char *target, struct followed *followed,
                              size_t max, size_t *n, char **out_job, struct weir_error *err)
{
    json_t *ion, *pipeline;
    struct weir_error not_ion;
    size_t i, name_len = strcspn(target, "/");
    const char *only = target[name_len] == '/' ? target + name_len + 1 : NULL;
    char *name = weir_arena_memdup(call->arena, target, name_len);
    weir_status status =
        cli_rest(call, "GET", cli_path1(call, "/api/v1/ions/{}", name), NULL, &ion, &not_ion);
    *out_job = NULL;
    if (status == WEIR_ERR_NOT_FOUND) {
        WEIR_TRY(cli_find(call, &find_job, target, out_job, err));
        return add_tasks(call, *out_job, followed, max, n, err);
    }
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "%s", not_ion.message);
    }
    json_array_foreach(json_object_get(ion, "pipelines"), i, pipeline)
    {
        const char *job = json_string_value(json_object_get(pipeline, "job"));
        const char *called = json_string_value(json_object_get(pipeline, "name"));
        if (status == WEIR_OK && job != NULL && (only == NULL || strcmp(only, called) == 0)) {
            status = add_tasks(call, job, followed, max, n, err);
        }
    }
    json_decref(ion);
    return status;
}

/* What a task prints must not steer the terminal: control characters, also those of 0x80 to 0x9f in
 * UTF-8, become "?". Changes the text in place. */
static void disarm(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        bool is_c1 = c == 0xc2 && i + 1 < len && ((unsigned char)text[i + 1] & 0xe0) == 0x80;
        if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) {
            text[i] = '?';
        } else if (is_c1) {
            text[i] = text[i + 1] = '?';
        }
    }
}

/* How to print, and whose logs. */
struct printing {
    const char *job; /* NULL: of an ION, which goes on for ever */
    bool is_following, is_raw, has_times;
    int64_t tail, attempt;
    const char *since;      /* "&last_s=600" or "&since=…", of the first question; "": all */
    const regex_t *pattern; /* NULL: every line */
    struct cli_wait *wait;  /* of the job that is followed */
};

/* One whole line, without its end. The time in front of it is not searched. */
static void print_line(const struct printing *how, const struct followed *task, const char *line,
                       bool has_label)
{
    const char *text = how->has_times ? strchr(line, ' ') : NULL;
    if (regexec(how->pattern, text != NULL ? text + 1 : line, 0, NULL, 0) == 0) {
        printf("%s%s%s\n", has_label ? task->label : "", has_label ? " | " : "", line);
    }
}

/* What fits, line by line; the last one waits for its end. A line longer than the buffer is two. */
static void search_chunk(const struct printing *how, struct followed *task, char *text, size_t len,
                         bool has_label)
{
    for (size_t i = 0; i < len; i++) {
        text[i] = text[i] == '\0' ? '?' : text[i];
    }
    while (len > 0) {
        char *end = memchr(text, '\n', len);
        size_t line_len = end != NULL ? (size_t)(end - text) : len;
        if (task->begun.len + line_len > LINE_MAX_BYTES) {
            print_line(how, task, task->begun.data, has_label);
            weir_buf_reset(&task->begun);
        }
        (void)weir_buf_append(&task->begun, text,
                              line_len); /* a chunk is shorter than a line may be */
        if (end != NULL) {
            print_line(how, task, task->begun.data, has_label);
            weir_buf_reset(&task->begun);
        }
        text += line_len + (end != NULL);
        len -= line_len + (end != NULL);
    }
    (void)fflush(stdout);
}

/* The last line may have no end. */
static void end_search(const struct printing *how, struct followed *followed, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (followed[i].begun.len > 0) {
            print_line(how, &followed[i], followed[i].begun.data, n > 1);
        }
        weir_buf_fini(&followed[i].begun);
    }
}

static void print_chunk(const struct followed *task, const char *text, size_t len, bool has_label)
{
    while (len > 0) {
        const char *end = memchr(text, '\n', len);
        size_t line_len = end != NULL ? (size_t)(end - text) + 1 : len;
        if (has_label) {
            printf("%s | ", task->label);
        }
        (void)fwrite(text, 1, line_len, stdout);
        if (end == NULL && has_label) {
            putchar('\n');
        }
        text += line_len;
        len -= line_len;
    }
    (void)fflush(stdout);
}

/* Where the next of a log is: at first from the lines on that are wanted, which is not waited for. */
static const char *path_of_more(struct cli_call *call, const struct printing *how,
                                const struct followed *task, const char *wait_s)
{
    char *path = cli_path1(call, "/api/v1/tasks/{}/log", task->task);
    bool is_picked = how->tail >= 0 || how->since[0] != '\0';
    if (!is_picked || task->is_begun) {
        path = weir_arena_printf(call->arena, "%s?offset=%lld&wait_s=%s%s", path,
                                 (long long)task->offset, wait_s,
                                 how->job != NULL ? "&until_end=1" : "");
    } else if (how->tail >= 0) {
        path = weir_arena_printf(call->arena, "%s?tail=%lld%s", path, (long long)how->tail,
                                 how->since);
    } else {
        path = weir_arena_printf(call->arena, "%s?offset=0%s", path, how->since);
    }
    if (how->attempt > 0) {
        path = weir_arena_printf(call->arena, "%s&attempt=%lld", path, (long long)how->attempt);
    }
    return how->has_times ? weir_arena_printf(call->arena, "%s&times=1", path) : path;
}

static weir_status print_more(struct cli_call *call, const struct printing *how,
                              struct followed *task, const char *wait_s, bool has_label,
                              bool *out_had_more, struct weir_error *err)
{
    WEIR_AUTO(weir_buf_fini) struct weir_buf chunk;
    int64_t next;
    weir_buf_init(&chunk, CHUNK_MAX_BYTES);
    const char *path = path_of_more(call, how, task, wait_s);
    WEIR_TRY(weir_client_get_bytes(call->client, path, &chunk, &next, err));
    if (!how->is_raw && isatty(STDOUT_FILENO) == 1) {
        disarm(chunk.data, chunk.len);
    }
    if (how->pattern != NULL) {
        search_chunk(how, task, chunk.data, chunk.len, has_label);
    } else {
        print_chunk(task, chunk.data, chunk.len, has_label);
    }
    task->offset = next >= 0 ? next : task->offset + (int64_t)chunk.len;
    task->is_begun = true;
    *out_had_more = chunk.len > 0;
    return WEIR_OK;
}

/* Will nothing come any more: is it one job, and over? Tells why it waits, if it does. */
static weir_status is_over(struct cli_call *call, const struct printing *how, bool *out,
                           struct weir_error *err)
{
    json_t *job;
    *out = false;
    if (how->job == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(cli_rest(call, "GET", cli_path1(call, "/api/v1/jobs/{}", how->job), NULL, &job, err));
    *out = json_is_string(json_object_get(job, "finished_ms"));
    if (how->wait->what == NULL) {
        how->wait->what = weir_arena_printf(call->arena, "job %s", cli_text(call, job, "name"));
    }
    if (!*out) {
        cli_wait_tell(call, how->wait, cli_job_waits(job));
    }
    json_decref(job);
    return WEIR_OK;
}

static weir_status print_logs(struct cli_call *call, const struct printing *how,
                              struct followed *followed, size_t n, struct weir_error *err)
{
    bool has_ended = false; /* once more after the end: its last lines come with it */
    for (;;) {
        bool had_any = false, had_more, is_last = has_ended;
        if (how->is_following && !has_ended) {
            WEIR_TRY(is_over(call, how, &has_ended, err));
        }
        for (size_t i = 0; i < n; i++) {
            /* With several tasks none may hold the others up: the first one alone is waited for. */
            const char *wait_s = !how->is_following || had_any || has_ended || i > 0 ? "0"
                                 : n == 1 && how->job == NULL                        ? FOLLOW_WAIT_S
                                                                                     : "1";
            WEIR_TRY(print_more(call, how, &followed[i], wait_s, n > 1, &had_more, err));
            had_any = had_any || had_more;
        }
        if (!had_any && (!how->is_following || is_last)) {
            return WEIR_OK;
        }
    }
}

weir_status cli_follow_job(struct cli_call *call, const char *job, struct weir_error *err)
{
    struct followed *followed = WEIR_ARENA_ARRAY(call->arena, TASKS_MAX, struct followed);
    struct cli_wait wait = {0};
    const struct printing how = {
        .job = job, .is_following = true, .tail = -1, .since = "", .wait = &wait};
    size_t n = 0;
    WEIR_TRY(add_tasks(call, job, followed, TASKS_MAX, &n, err));
    return print_logs(call, &how, followed, n, err);
}

/* Print only what fits, line by line. */
static weir_status search_logs(struct cli_call *call, struct printing *how,
                               struct followed *followed, size_t n, struct weir_error *err)
{
    const struct logs_options *options = call->options;
    regex_t pattern;
    char why[160];
    int rc = regcomp(&pattern, options->grep,
                     REG_EXTENDED | REG_NOSUB | (options->ignores_case ? REG_ICASE : 0));
    if (rc != 0) {
        (void)regerror(rc, &pattern, why, sizeof why);
        return weir_error_set(err, WEIR_ERR_INVALID, "--grep: %s", why);
    }
    for (size_t i = 0; i < n; i++) {
        weir_buf_init(&followed[i].begun, LINE_MAX_BYTES + 1);
    }
    how->pattern = &pattern;
    weir_status status = print_logs(call, how, followed, n, err);
    end_search(how, followed, n);
    regfree(&pattern);
    return status;
}

/* *attempt becomes the one of --previous. */
static weir_status check_options(struct cli_call *call, const struct followed *followed, size_t n,
                                 int64_t *attempt, struct weir_error *err)
{
    const struct logs_options *options = call->options;
    if (options->is_previous && options->attempt > 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--previous or --attempt? Give one of the two");
    }
    for (size_t i = 0; i < n && options->is_previous; i++) {
        *attempt = WEIR_MAX(*attempt, followed[i].attempt - 1);
    }
    return options->is_previous && *attempt < 1
               ? weir_error_set(err, WEIR_ERR_NOT_FOUND,
                                "%s has been started once: there is no start before the last",
                                call->words[0])
               : WEIR_OK;
}

/* "10m" are so long ago by the server's clock. */
static weir_status read_since(struct cli_call *call, const char *text, const char **out,
                              struct weir_error *err)
{
    int64_t ms;
    *out = "";
    if (text == NULL) {
        return WEIR_OK;
    }
    if (weir_span_parse(text, &ms)) {
        *out = weir_arena_printf(call->arena, "&last_s=%lld", (long long)((ms + 999) / 1000));
        return WEIR_OK;
    }
    *out = cli_path1(call, "&since={}", text);
    return weir_time_parse(text, &ms) == WEIR_OK
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "--since: expected how long ago, as in 10m or 2h, or a time like "
                                "2026-01-31T12:00:00Z, got \"%.40s\"",
                                text);
}

static weir_status run_logs(struct cli_call *call, struct weir_error *err)
{
    const struct logs_options *options = call->options;
    struct followed *followed = WEIR_ARENA_ARRAY(call->arena, TASKS_MAX, struct followed);
    size_t n = 0;
    char *job;
    const char *since;
    WEIR_TRY(read_since(call, options->since, &since, err));
    WEIR_TRY(find_tasks(call, call->words[0], followed, TASKS_MAX, &n, &job, err));
    if (n == 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "%s has no task yet", call->words[0]);
    }
    int64_t attempt = options->attempt;
    WEIR_TRY(check_options(call, followed, n, &attempt, err));
    struct cli_wait wait = {0};
    struct printing how = {.job = job,
                           .wait = &wait,
                           .is_following = options->is_following,
                           .is_raw = options->is_raw,
                           .has_times = options->has_times,
                           .tail = options->tail,
                           .since = since,
                           .attempt = attempt};
    return options->grep != NULL ? search_logs(call, &how, followed, n, err)
                                 : print_logs(call, &how, followed, n, err);
}

const struct cli_command cli_logs = {
    .name = "logs",
    .usage =
        "[-f] [-n N] [--since TIME] [-g PATTERN [-i]] [--attempt N | --previous] [--timestamps] "
        "[--raw] JOB "
        "| ION | "
        "ION/PIPELINE",
    .summary = "Print what tasks have logged",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(logs_options, logs_options),
    .run = run_logs,
};
