#include "cli/core/wait.h"

#include "base/clock.h"
#include "base/quantity.h"

#include <poll.h>
#include <string.h>

#define LOOK_EVERY_MS     250
#define LOOK_FIRST_MS     20 /* most waits are short: the look after this one comes twice as late */
#define UNTOLD_PATIENCE_S 2  /* so long it may start without a word */
#define SIGNAL_EXIT       128 /* as a shell: 128 + signal */

void cli_wait_tell(struct cli_call *call, struct cli_wait *wait, const char *reason)
{
    int64_t now_ms = weir_mono_ms();
    if (reason == NULL) {
        if (wait->told != NULL && now_ms - wait->since_ms >= 1000) {
            (void)fprintf(stderr, "weir: %s has waited %lld s\n", wait->what,
                          (long long)((now_ms - wait->since_ms) / 1000));
        }
        wait->told = NULL;
        wait->since_ms = 0;
        return;
    }
    wait->since_ms = wait->since_ms != 0 ? wait->since_ms : now_ms;
    if (reason[0] == '\0') {
        bool is_long = now_ms - wait->since_ms >= UNTOLD_PATIENCE_S * 1000;
        reason = wait->told == NULL && is_long ? "its start is under way" : wait->told;
    }
    if (reason != NULL && (wait->told == NULL || strcmp(reason, wait->told) != 0)) {
        (void)fflush(stdout);
        (void)fprintf(stderr, "weir: %s waits: %s\n", wait->what, reason);
        wait->told = weir_arena_strdup(call->arena, reason);
    }
}

/* ---- why ---------------------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    return text != NULL ? text : "";
}

const char *cli_job_waits(const json_t *job)
{
    const char *state = text_of(job, "state"), *reason = text_of(job, "reason");
    bool waits = strcmp(state, "PENDING") == 0 || strcmp(state, "RESTARTING") == 0 ||
                 strcmp(state, "STARTING") == 0;
    return waits ? reason : NULL;
}

const char *cli_service_waits(const json_t *service)
{
    return strcmp(text_of(service, "state"), "STARTING") == 0 ? text_of(service, "why") : NULL;
}

/* The first text of this member in a list; "": none has it. */
static const char *first_of(const json_t *list, const char *member)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        if (text_of(item, member)[0] != '\0') {
            return text_of(item, member);
        }
    }
    return "";
}

const char *cli_deployment_waits(const json_t *deployment)
{
    if (json_is_true(json_object_get(deployment, "is_settled"))) {
        return NULL;
    }
    const char *replica = first_of(json_object_get(deployment, "replicas"), "reason");
    const char *version = first_of(json_object_get(deployment, "versions"), "reason");
    return replica[0] != '\0'   ? replica
           : version[0] != '\0' ? version
                                : text_of(deployment, "reason");
}

/* ---- looking ------------------------------------------------------------------------------------ */

weir_status cli_wait_for(struct cli_call *call, const struct cli_awaited *awaited, json_t **out,
                         struct weir_error *err)
{
    struct cli_wait wait = {.what = awaited->what};
    int64_t begin_ms = weir_mono_ms(), until_ms = begin_ms + awaited->timeout_ms;
    int64_t comes_ms = awaited->timeout_ms > 0 ? WEIR_MIN(awaited->comes_ms, awaited->timeout_ms)
                                               : awaited->comes_ms;
    int pause_ms = LOOK_FIRST_MS;
    json_t *record = NULL;
    for (;;) {
        weir_status status = cli_rest(call, "GET", awaited->path, NULL, &record, err);
        if (status == WEIR_ERR_NOT_FOUND && weir_mono_ms() < begin_ms + comes_ms) {
            cli_wait_tell(call, &wait, "it is not there yet");
            (void)poll(NULL, 0, pause_ms);
            continue;
        }
        if (status != WEIR_OK) {
            return status;
        }
        if (awaited->is_there(record, awaited->wanted)) {
            cli_wait_tell(call, &wait, NULL);
            *out = record;
            return WEIR_OK;
        }
        cli_wait_tell(call, &wait, awaited->waits(record));
        if (awaited->timeout_ms > 0 && weir_mono_ms() >= until_ms) {
            *out = record;
            return weir_error_set(
                err, WEIR_ERR_TIMEOUT, "%s is %s after %lld s%s%s; it goes on", awaited->what,
                text_of(record, "state"), (long long)(awaited->timeout_ms / 1000),
                wait.told != NULL ? ": " : "", wait.told != NULL ? wait.told : "");
        }
        (void)poll(NULL, 0, pause_ms);
        pause_ms = WEIR_MIN(2 * pause_ms, LOOK_EVERY_MS);
        json_decref(record);
    }
}

weir_status cli_wait_timeout(const char *text, int64_t *out_ms, struct weir_error *err)
{
    return weir_span_parse(text, out_ms) && *out_ms > 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "--timeout: expected a time, as in 90s or 5m, got \"%.40s\"", text);
}

/* ---- the end ------------------------------------------------------------------------------------ */

weir_status cli_job_end(struct cli_call *call, const char *id, struct weir_error *err)
{
    json_t *job, *tasks, *task;
    size_t i;
    WEIR_TRY(cli_rest(call, "GET", cli_path1(call, "/api/v1/jobs/{}", id), NULL, &job, err));
    char *state = cli_text(call, job, "state"), *reason = cli_text(call, job, "reason");
    json_decref(job);
    if (strcmp(state, "SUCCEEDED") == 0) {
        return WEIR_OK;
    }
    (void)fflush(stdout);
    (void)fprintf(stderr, "weir: the job is %s: %s\n", state, reason);
    call->exit_status = weir_status_exit(WEIR_ERR_CANCELLED);
    if (strcmp(state, "FAILED") == 0) {
        call->exit_status = 1;
        WEIR_TRY(
            cli_rest(call, "GET", cli_path1(call, "/api/v1/jobs/{}/tasks", id), NULL, &tasks, err));
        json_array_foreach(json_object_get(tasks, "items"), i, task)
        {
            int code = (int)json_integer_value(json_object_get(task, "exit_code"));
            int number = (int)json_integer_value(json_object_get(task, "signal"));
            if (call->exit_status == 1 && (code > 0 || number > 0)) {
                call->exit_status = code > 0 ? code : SIGNAL_EXIT + number;
            }
        }
        json_decref(tasks);
    }
    return WEIR_OK;
}
