/** For the agent's tests: a server that says what should run and remembers what it was told. */
#ifndef WEIR_AGENT_FAKE_SERVER_H
#define WEIR_AGENT_FAKE_SERVER_H

#include "base/buf.h"
#include "base/clock.h"
#include "http/http.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAKE_TASKS_MAX 64

struct fake_task {
    char id[64];
    int attempt;
    json_t *document;               /* as the agent gets it; NULL: no longer listed */
    int n_running, n_saved, n_ends; /* reports */
    bool is_saved_late;             /* told after an end */
    bool is_end_foreseen;           /* told after the node said that it leaves */
    int64_t pid;
    char state[16];
    int exit_code, signal;
    char message[512];
    bool has_contradiction; /* two ends that differ */
    struct weir_buf log;
};

static struct {
    struct weir_http_server *http;
    pthread_mutex_t lock;
    struct fake_task tasks[FAKE_TASKS_MAX];
    int n_tasks;
    int64_t revision;
    atomic_int n_heartbeats, n_left;
    json_t *heartbeat;                            /* lock: the last one */
    atomic_bool is_away, is_log_broken, is_other; /* is_other: it knows no token */
    char url[64];
} fake;

static inline struct fake_task *fake_find(const char *id, int attempt)
{
    for (int i = 0; i < fake.n_tasks; i++) {
        if (fake.tasks[i].attempt == attempt && strcmp(fake.tasks[i].id, id) == 0) {
            return &fake.tasks[i];
        }
    }
    return NULL;
}

static inline int fake_number(const char *text, int fallback)
{
    return text != NULL ? (int)strtol(text, NULL, 10) : fallback;
}

static inline void fake_desired(struct weir_http_request *request,
                                struct weir_http_response *response)
{
    int after = fake_number(weir_http_request_query(request, "after"), -1);
    int wait_s = fake_number(weir_http_request_query(request, "wait_s"), 0);
    if (fake.revision <= after && !request->is_expired) {
        weir_http_response_wait(response, 1, wait_s * 1000);
        return;
    }
    json_t *list = json_array();
    for (int i = 0; i < fake.n_tasks; i++) {
        if (fake.tasks[i].document != NULL) {
            json_array_append_new(list, json_deep_copy(fake.tasks[i].document));
        }
    }
    weir_http_response_json(
        response, 200,
        json_pack("{s:I, s:o}", "revision", (json_int_t)fake.revision, "tasks", list));
}

static inline void fake_status(struct weir_http_request *request,
                               struct weir_http_response *response)
{
    json_t *body = json_loadb(request->body, request->body_len, 0, NULL);
    const char *state = json_string_value(json_object_get(body, "state"));
    const char *message = json_string_value(json_object_get(body, "message"));
    struct fake_task *task =
        fake_find(request->segments[3], (int)json_integer_value(json_object_get(body, "attempt")));
    if (task == NULL || state == NULL) {
        weir_http_response_errorf(response, WEIR_ERR_NOT_FOUND, "no such task");
    } else if (strcmp(state, "running") == 0) {
        task->n_running++;
        task->pid = json_integer_value(json_object_get(body, "pid"));
        weir_http_response_empty(response);
    } else if (strcmp(state, "saved") == 0) {
        task->n_saved++;
        task->is_saved_late = task->n_ends > 0;
        weir_http_response_empty(response);
    } else {
        int exit_code = (int)json_integer_value(json_object_get(body, "exit_code"));
        int signal_number = (int)json_integer_value(json_object_get(body, "signal"));
        task->has_contradiction =
            task->has_contradiction ||
            (task->n_ends > 0 && (strcmp(task->state, state) != 0 || task->exit_code != exit_code ||
                                  task->signal != signal_number));
        task->n_ends++;
        task->is_end_foreseen = json_object_get(fake.heartbeat, "leaving") != NULL;
        task->exit_code = exit_code;
        task->signal = signal_number;
        (void)snprintf(task->state, sizeof task->state, "%s", state);
        (void)snprintf(task->message, sizeof task->message, "%s", message != NULL ? message : "");
        weir_http_response_empty(response);
    }
    json_decref(body);
}

static inline void fake_log(struct weir_http_request *request, struct weir_http_response *response)
{
    size_t offset = (size_t)fake_number(weir_http_request_query(request, "offset"), 0);
    struct fake_task *task = fake_find(
        request->segments[3], fake_number(weir_http_request_query(request, "attempt"), -1));
    if (task == NULL) {
        weir_http_response_errorf(response, WEIR_ERR_NOT_FOUND, "no such task");
    } else if (fake.is_log_broken) {
        weir_http_response_errorf(response, WEIR_ERR_NOSPACE, "the disk is full");
    } else {
        int http_status = offset > task->log.len ? 409 : 200;
        size_t skip = offset > task->log.len ? 0 : task->log.len - offset;
        if (http_status == 200 && skip < request->body_len) {
            (void)weir_buf_append(&task->log, request->body + skip, request->body_len - skip);
        }
        weir_http_response_json(response, http_status,
                                json_pack("{s:I}", "offset", (json_int_t)task->log.len));
    }
}

static inline void fake_handle(void *context, struct weir_http_request *request,
                               struct weir_http_response *response)
{
    (void)context;
    const char *token = weir_http_request_header(request, "Authorization");
    pthread_mutex_lock(&fake.lock);
    if (fake.is_away) {
        weir_http_response_errorf(response, WEIR_ERR_UNAVAILABLE, "away");
    } else if (fake.is_other || token == NULL || strcmp(token, "Bearer weir_node") != 0) {
        weir_http_response_errorf(response, WEIR_ERR_UNAUTH, "no token");
    } else if (request->n_segments == 4 && strcmp(request->method, "PUT") == 0) {
        fake.n_heartbeats++;
        json_decref(fake.heartbeat);
        fake.heartbeat = json_loadb(request->body, request->body_len, 0, NULL);
        weir_http_response_empty(response);
    } else if (request->n_segments == 4 && strcmp(request->method, "DELETE") == 0) {
        fake.n_left++;
        weir_http_response_empty(response);
    } else if (request->n_segments == 5 && strcmp(request->segments[4], "desired") == 0) {
        fake_desired(request, response);
    } else if (request->n_segments == 5 && strcmp(request->segments[4], "status") == 0) {
        fake_status(request, response);
    } else if (request->n_segments == 5 && strcmp(request->segments[4], "log") == 0) {
        fake_log(request, response);
    } else {
        weir_http_response_errorf(response, WEIR_ERR_NOT_FOUND, "no such route");
    }
    pthread_mutex_unlock(&fake.lock);
}

static inline void fake_start(void)
{
    struct weir_error err = {0};
    memset(&fake, 0, sizeof fake);
    pthread_mutex_init(&fake.lock, NULL);
    struct weir_http_config config = {.listen = "127.0.0.1:0"};
    ck_assert_msg(weir_http_server_start(&config, fake_handle, NULL, &fake.http, &err) == WEIR_OK,
                  "%s", err.message);
    (void)snprintf(fake.url, sizeof fake.url, "http://127.0.0.1:%d",
                   weir_http_server_port(fake.http));
}

static inline void fake_stop(void)
{
    weir_http_server_stop(fake.http, 1000);
    json_decref(fake.heartbeat);
    fake.heartbeat = NULL;
    for (int i = 0; i < fake.n_tasks; i++) {
        json_decref(fake.tasks[i].document);
        weir_buf_fini(&fake.tasks[i].log);
    }
}

static inline void fake_changed(void)
{
    fake.revision++;
    pthread_mutex_unlock(&fake.lock);
    weir_http_wake(fake.http, 1);
}

/** List a task that runs a shell script; the agent is told at once. Takes the reference to `env`,
 *  the task's own variables, which may be NULL. */
static inline struct fake_task *fake_add_with(const char *id, int attempt, const char *script,
                                              json_t *env)
{
    pthread_mutex_lock(&fake.lock);
    struct fake_task *task = &fake.tasks[fake.n_tasks++];
    (void)snprintf(task->id, sizeof task->id, "%s", id);
    task->attempt = attempt;
    task->exit_code = -99;
    weir_buf_init(&task->log, 64 << 20);
    task->document =
        json_pack("{s:s, s:s, s:i, s:s, s:i, s:[s,s,s], s:s, s:i, s:[]}", "id", id, "job", "j",
                  "attempt", attempt, "role", "command", "rank", 0, "argv", "/bin/sh", "-c", script,
                  "desired", "running", "stop_grace_ms", 500, "paths");
    if (env != NULL) {
        json_object_set_new(task->document, "env", env);
    }
    fake_changed();
    return task;
}

static inline struct fake_task *fake_add(const char *id, int attempt, const char *script)
{
    return fake_add_with(id, attempt, script, NULL);
}

static inline void fake_want_stopped(struct fake_task *task)
{
    pthread_mutex_lock(&fake.lock);
    json_object_set_new(task->document, "desired", json_string("stopped"));
    fake_changed();
}

static inline void fake_unlist(struct fake_task *task)
{
    pthread_mutex_lock(&fake.lock);
    json_decref(task->document);
    task->document = NULL;
    fake_changed();
}

/** Wait until the member is at least n (or 30 s are over: then the test fails). */
#define fake_await(expression)                                                                     \
    do {                                                                                           \
        int64_t give_up_ms_ = weir_mono_ms() + 30000;                                              \
        bool is_true_ = false;                                                                     \
        while (!is_true_) {                                                                        \
            pthread_mutex_lock(&fake.lock);                                                        \
            is_true_ = (expression);                                                               \
            pthread_mutex_unlock(&fake.lock);                                                      \
            ck_assert_msg(is_true_ || weir_mono_ms() < give_up_ms_, "%s", #expression);            \
            if (!is_true_) {                                                                       \
                (void)usleep(1000);                                                                \
            }                                                                                      \
        }                                                                                          \
    } while (0)

#endif
