/** weir job top: the processes of a job's tasks. */
#include "cli/job/inside.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TASKS_MAX      64
#define LINE_MAX_BYTES ((size_t)1 << 20)

struct top_options {
    struct cli_common common;
    bool is_watching;
};

static const struct weir_option top_options[] = {
    CLI_COMMON_OPTIONS(top_options),
    CLI_FLAG(top_options, is_watching, "watch", 'w', "Show it again every second, until Ctrl-C"),
};

/* What one task tells. */
struct told {
    char *label;
    struct inside inside;
    struct weir_line *line;
    struct weir_buf begun; /* of a line */
    json_t *before, *now;  /* the last two lines */
    bool is_over;
    char why[WEIR_ERROR_MESSAGE_BYTES];
};

/* A line may come in several frames. */
static void take(struct told *told)
{
    const char *text = told->line->payload;
    for (size_t left = told->line->frames.len; left > 0;) {
        const char *end = memchr(text, '\n', left);
        size_t n = end != NULL ? (size_t)(end - text) : left;
        (void)weir_buf_append(&told->begun, text, n);
        if (end != NULL) {
            json_t *all = json_loadb(told->begun.data, told->begun.len, 0, NULL);
            if (all != NULL) {
                json_decref(told->before);
                told->before = told->now;
                told->now = all;
            }
            weir_buf_reset(&told->begun);
            n++;
        }
        text += n;
        left -= n;
    }
}

static void listen_to(struct told *told)
{
    (void)weir_line_flush(told->line);
    while (!told->is_over && weir_line_next(told->line)) {
        if (told->line->frames.type == WEIR_FRAME_OUTPUT) {
            take(told);
        } else if (told->line->frames.type == WEIR_FRAME_FAILED) {
            weir_frame_disarm(told->line->payload);
            (void)snprintf(told->why, sizeof told->why, "%.500s", told->line->payload);
            told->is_over = true;
        }
    }
    told->is_over = told->is_over || told->line->is_over;
}

/* Until every task that goes on has told `n` lines more, or one second more than that takes is over. */
static void listen_all(struct told *all, size_t n_tasks, bool wants_two)
{
    int64_t due_ms = weir_mono_ms() + 5000, left_ms;
    bool is_waiting = true;
    while (is_waiting && (left_ms = due_ms - weir_mono_ms()) > 0) {
        struct pollfd fds[TASKS_MAX];
        is_waiting = false;
        for (size_t i = 0; i < n_tasks; i++) {
            listen_to(&all[i]);
            fds[i] = weir_line_poll(all[i].line, true);
            is_waiting =
                is_waiting ||
                (!all[i].is_over && (all[i].now == NULL || (wants_two && all[i].before == NULL)));
        }
        if (is_waiting) {
            (void)poll(fds, n_tasks, (int)left_ms);
        }
    }
}

/* Of one processor, between the two last lines. */
static double cpu_pct(const struct told *told, const json_t *process)
{
    size_t i;
    const json_t *other;
    int64_t pid = json_integer_value(json_object_get(process, "pid"));
    double ms = (double)(json_integer_value(json_object_get(told->now, "time_ms")) -
                         json_integer_value(json_object_get(told->before, "time_ms")));
    json_array_foreach(json_object_get(told->before, "processes"), i, other)
    {
        if (json_integer_value(json_object_get(other, "pid")) == pid && ms > 0) {
            return 100 *
                   (double)(json_integer_value(json_object_get(process, "cpu_ms")) -
                            json_integer_value(json_object_get(other, "cpu_ms"))) /
                   ms;
        }
    }
    return 0;
}

static json_t *rows_of(struct told *all, size_t n)
{
    size_t k;
    json_t *process, *rows = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_foreach(json_object_get(all[i].now, "processes"), k, process)
        {
            json_t *row = json_copy(process);
            json_object_set_new(row, "task", json_string(all[i].label));
            json_object_set_new(row, "cpu_pct",
                                json_real((double)(int64_t)(cpu_pct(&all[i], process) * 10) / 10));
            json_array_append_new(rows, row);
        }
    }
    return json_pack("{s:o}", "items", rows);
}

static void print(struct cli_call *call, struct told *all, size_t n)
{
    static const struct cli_column columns[] = {{"task", "TASK"},       {"pid", "PID"},
                                                {"cpu_pct", "CPU %"},   {"rss_bytes", "MEMORY"},
                                                {"threads", "THREADS"}, {"command", "COMMAND"}};
    json_t *rows = rows_of(all, n);
    if (cli_is_json(call)) {
        cli_print_json(json_object_get(rows, "items"));
    } else {
        cli_print_table(call, rows, columns, WEIR_ARRAY_LEN(columns));
    }
    json_decref(rows);
    for (size_t i = 0; i < n; i++) {
        if (all[i].is_over) {
            (void)fprintf(stderr, "weir: %s: %s\n", all[i].label,
                          all[i].why[0] != '\0' ? all[i].why : "its task has ended");
        }
    }
    (void)fflush(stdout);
}

static weir_status begin_task(struct cli_call *call, const char *job, const char *label,
                              struct told *told, struct weir_error *err)
{
    *told = (struct told){.label = weir_arena_strdup(call->arena, label)};
    told->line = weir_arena_alloc(call->arena, sizeof *told->line);
    weir_buf_init(&told->begun, LINE_MAX_BYTES);
    WEIR_TRY(inside_begin(call, weir_arena_printf(call->arena, "%s/%s", job, label),
                          json_pack("{s:s}", "kind", "top"), &told->inside, err));
    return inside_open(&told->inside, told->line, err);
}

/* Those of its tasks that run. */
static weir_status begin_all(struct cli_call *call, struct told *all, size_t *n,
                             struct weir_error *err)
{
    json_t *answer, *task;
    struct inside inside;
    size_t i;
    const char *word = call->words[0], *slash = strchr(word, '/');
    if (slash != NULL) {
        *n = 1;
        return begin_task(call, weir_arena_memdup(call->arena, word, (size_t)(slash - word)),
                          slash + 1, &all[0], err);
    }
    WEIR_TRY(inside_find_job(call, word, &inside.job, err));
    WEIR_TRY(cli_rest(call, "GET", cli_path1(call, "/api/v1/jobs/{}/tasks", inside.job), NULL,
                      &answer, err));
    weir_status status = WEIR_OK;
    json_array_foreach(json_object_get(answer, "items"), i, task)
    {
        if (status == WEIR_OK && *n < TASKS_MAX &&
            strcmp(cli_text(call, task, "state"), "RUNNING") == 0) {
            status =
                begin_task(call, inside.job,
                           weir_arena_printf(call->arena, "%s-%s", cli_text(call, task, "role"),
                                             cli_text(call, task, "rank")),
                           &all[(*n)++], err);
        }
    }
    json_decref(answer);
    if (status == WEIR_OK && *n == 0) {
        json_t *body = json_pack("{s:s}", "kind", "top");
        status = inside_begin(call, word, body, &inside, err); /* says why */
    }
    return status;
}

static weir_status run_top(struct cli_call *call, struct weir_error *err)
{
    const struct top_options *options = call->options;
    struct told *all = WEIR_ARENA_ARRAY(call->arena, TASKS_MAX, struct told);
    size_t n = 0;
    weir_status status = begin_all(call, all, &n, err);
    bool goes_on = status == WEIR_OK;
    while (goes_on) {
        listen_all(all, n, true);
        if (options->is_watching && !cli_is_json(call) && isatty(STDOUT_FILENO)) {
            printf("\033[H\033[2J");
        }
        print(call, all, n);
        goes_on = false;
        for (size_t i = 0; i < n; i++) {
            goes_on = goes_on || (options->is_watching && !all[i].is_over);
            json_decref(all[i].before);
            all[i].before = NULL;
        }
    }
    for (size_t i = 0; i < n; i++) {
        weir_line_close(all[i].line);
        weir_buf_fini(&all[i].begun);
        json_decref(all[i].before);
        json_decref(all[i].now);
    }
    return status;
}

const struct cli_command cli_job_top = {
    .name = "job top",
    .usage = "JOB[/TASK] [--watch] [-o json]",
    .summary = "Show the processes of a job's tasks that run, with their processors and memory",
    .help = "CPU % is of one processor, since the time before, at first a quarter of a second. "
            "weir describe job shows what its devices do.",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(top_options, top_options),
    .run = run_top,
};
