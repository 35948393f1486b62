#include "cli/job/inside.h"

#include "cli/core/find.h"

#include <string.h>

weir_status inside_find_job(struct cli_call *call, const char *word, char **out,
                            struct weir_error *err)
{
    return cli_find(call, &find_job, word, out, err);
}

weir_status inside_begin(struct cli_call *call, const char *word, json_t *body, struct inside *out,
                         struct weir_error *err)
{
    json_t *answer;
    const char *slash = strchr(word, '/');
    size_t len = slash != NULL ? (size_t)(slash - word) : strlen(word);
    *out = (struct inside){.call = call, .word = word};
    weir_status status =
        inside_find_job(call, weir_arena_memdup(call->arena, word, len), &out->job, err);
    if (status == WEIR_OK && slash != NULL) {
        out->task = weir_arena_strdup(call->arena, slash + 1);
        json_object_set_new(body, "task", json_string(out->task));
    }
    if (status == WEIR_OK) {
        status = cli_rest(call, "POST", cli_path1(call, "/api/v1/jobs/{}/visits", out->job), body,
                          &answer, err);
    }
    json_decref(body);
    WEIR_TRY(status);
    out->visit = cli_text(call, answer, "id");
    json_decref(answer);
    return WEIR_OK;
}

weir_status inside_open(const struct inside *inside, struct weir_line *line, struct weir_error *err)
{
    return weir_line_open(line, inside->call->client,
                          cli_path1(inside->call, "/api/v1/visits/{}/stream", inside->visit), NULL,
                          err);
}

void inside_tell(struct cli_call *call, const struct inside_end *end)
{
    call->exit_status = end->exit_status;
    if (!end->has_exit) {
        (void)fprintf(stderr, "weir: %s\n", end->message);
        call->exit_status = INSIDE_CUT_EXIT;
    }
}

/* A task of the answer that is meant. */
static bool is_meant(const struct inside *inside, const json_t *task)
{
    char *label =
        weir_arena_printf(inside->call->arena, "%s-%s", cli_text(inside->call, task, "role"),
                          cli_text(inside->call, task, "rank"));
    const char *word = inside->task;
    return word == NULL || strcmp(word, label) == 0 ||
           strcmp(word, cli_text(inside->call, task, "rank")) == 0 ||
           strcmp(word, cli_text(inside->call, task, "id")) == 0;
}

void inside_explain_cut(const struct inside *inside, char *out, size_t size)
{
    struct cli_call *call = inside->call;
    struct weir_error err = {0};
    json_t *tasks = NULL, *task, *meant = NULL;
    size_t i;
    if (cli_rest(call, "GET", cli_path1(call, "/api/v1/jobs/{}/tasks", inside->job), NULL, &tasks,
                 &err) != WEIR_OK) {
        (void)snprintf(out, size,
                       "the visit was cut: the server went away (%.200s); what it began has been "
                       "ended",
                       err.message);
        return;
    }
    json_array_foreach(json_object_get(tasks, "items"), i, task)
    {
        meant = meant == NULL && is_meant(inside, task) ? task : meant;
    }
    const char *state = meant != NULL ? cli_text(call, meant, "state") : "gone";
    const char *message = meant != NULL ? cli_text(call, meant, "message") : "-";
    if (strcmp(state, "RUNNING") != 0) {
        (void)snprintf(out, size, "the visit ended with its task, which is %s%s%.300s", state,
                       strcmp(message, "-") != 0 ? ": " : "",
                       strcmp(message, "-") != 0 ? message : "");
        weir_frame_disarm(out);
    } else {
        (void)snprintf(out, size,
                       "the visit was cut: the connection to the server or to the task's node "
                       "ended; what it began has been ended. The task runs on: try again");
    }
    json_decref(tasks);
}
