/** For tests: who calls the API, over the request fixture. An admin is there; people of the other
 *  roles, agents and tasks are made as they are made in life. What is asked is answered with its
 *  status, and the answer's JSON stays until the next question. */
#ifndef WEIR_API_CALLER_FIXTURE_H
#define WEIR_API_CALLER_FIXTURE_H

#include "api/attempt_token.h"
#include "api/request_fixture.h"
#include "base/log.h"
#include "deploy/deploy.h"
#include "ion/ion.h"
#include "job/attempt.h"
#include "track/track.h"

#include <check.h>
#include <stdarg.h>

#define API "/api/v1"

/** An Authorization header's value. */
#define BEARER_BYTES 192

struct callers {
    struct request_fixture fixture;
    int64_t now_ms; /**< What the API's clock says; 0: the system's. */
    struct weir_clock clock;
    struct http_exchange *x; /**< The last question, with its answer. */
    json_t *body;            /**< Of the last answer; NULL: no JSON. */
    bool may_wait; /**< An answer may be to wait: else it is asked again until it is one. */
};

static struct callers callers;

/** Of clusters, for the next that is opened; NULL: the real ones. */
static const struct weir_registry *callers_drivers;

static inline int64_t callers_now(const struct weir_clock *clock)
{
    const struct callers *of = clock->context;
    return of->now_ms != 0 ? of->now_ms : weir_time_ms();
}

static inline void callers_open(void)
{
    weir_log_set_level(WEIR_LOG_ERROR);
    memset(&callers, 0, sizeof callers);
    callers.clock = (struct weir_clock){.now_ms = callers_now, .context = &callers};
    callers.fixture.clock = &callers.clock;
    callers.fixture.drivers = callers_drivers;
    request_fixture_open(&callers.fixture);
}

static inline void callers_forget(void)
{
    json_decref(callers.body);
    callers.body = NULL;
    request_fixture_free(callers.x);
    callers.x = NULL;
}

static inline void callers_close(void)
{
    callers_forget();
    request_fixture_close(&callers.fixture);
}

static inline int ask_bytes(const char *bytes, size_t len)
{
    callers_forget();
    callers.x = request_fixture_make(&callers.fixture, bytes, len);
    if (callers.x == NULL) {
        return 400; /* the HTTP server's own answer to a target that is malformed */
    }
    do { /* other threads freeze datasets */
        request_fixture_handle(&callers.fixture, callers.x);
    } while (callers.x->response.kind == ANSWER_WAIT && !callers.may_wait);
    const struct weir_http_response *response = &callers.x->response;
    callers.body = response->body != NULL
                       ? json_loadb(response->body, response->body_len, JSON_DECODE_ANY, NULL)
                       : NULL;
    return response->kind == ANSWER_READY ? response->http_status : 0;
}

WEIR_PRINTF(2, 0)

static inline int ask_list(const char *authorization, const char *format, va_list arguments)
{
    static char text[1 << 16], all[(1 << 16) + 1024];
    int len = vsnprintf(text, sizeof text, format, arguments);
    ck_assert_int_lt(len, (int)sizeof text);
    if (authorization == NULL) {
        return ask_bytes(text, (size_t)len);
    }
    const char *end = strchr(text, '\n'); /* of the first line */
    int head = end != NULL ? (int)(end - text) : len;
    int n = snprintf(all, sizeof all, "%.*s\nAuthorization: %s%s", head, text, authorization,
                     text + head);
    return ask_bytes(all, (size_t)n);
}

/** Ask as the admin: "METHOD target", header lines, an empty line, the body. @return The answer's
 *  status; 0: it is a stream of events, or to wait. */
static inline int WEIR_PRINTF(1, 2) ask(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int status = ask_list(NULL, format, arguments);
    va_end(arguments);
    return status;
}

/** The same with this Authorization. */
static inline int WEIR_PRINTF(2, 3) ask_as(const char *authorization, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int status = ask_list(authorization, format, arguments);
    va_end(arguments);
    return status;
}

/** A member of the last answer, by names with dots between: "error.message". NULL: not there. */
static inline const json_t *said(const char *path)
{
    const json_t *value = callers.body;
    while (*path != '\0' && value != NULL) {
        char name[64];
        size_t len = strcspn(path, ".");
        (void)snprintf(name, sizeof name, "%.*s", (int)len, path);
        value = json_is_array(value) ? json_array_get(value, strtoul(name, NULL, 10))
                                     : json_object_get(value, name);
        path += len + (path[len] == '.');
    }
    return value;
}

/** The same as text; "" where there is none. */
static inline const char *said_text(const char *path)
{
    const char *text = json_string_value(said(path));
    return text != NULL ? text : "";
}

/** A header of the last answer; NULL: it has none of that name. */
static inline const char *said_header(const char *name)
{
    for (const struct http_pair *pair = callers.x->response.headers; pair != NULL;
         pair = pair->next) {
        if (strcasecmp(pair->name, name) == 0) {
            return pair->value;
        }
    }
    return NULL;
}

#define EXPECT_STATUS(code, call)                                                                  \
    do {                                                                                           \
        int status_ = (call);                                                                      \
        ck_assert_msg(status_ == (code), "%d instead of %d: %s", status_, (code),                  \
                      said_text("error.message"));                                                 \
    } while (0)

/** Ask as the admin; the status must be this one. */
#define EXPECT(code, ...) EXPECT_STATUS(code, ask(__VA_ARGS__))

/** It must be an error of this status, whose sentence holds `part`. */
#define EXPECT_ERROR(code, part, ...)                                                              \
    do {                                                                                           \
        EXPECT_STATUS(code, ask(__VA_ARGS__));                                                     \
        ck_assert_msg(strstr(said_text("error.message"), (part)) != NULL, "\"%s\" not in \"%s\"",  \
                      (part), said_text("error.message"));                                         \
    } while (0)

/** A user of this role with a token; `more` are further members of the token ("" or ",…"). */
static inline void make_caller(const char *name, const char *role, const char *more,
                               char out[BEARER_BYTES])
{
    EXPECT(200, "POST " API "/users\n\n{\"name\":\"%s\",\"kind\":\"person\",\"role\":\"%s\"}", name,
           role);
    EXPECT(200, "POST " API "/tokens\n\n{\"user\":\"%s\",\"name\":\"t\",\"role\":\"%s\"%s}", name,
           role, more);
    (void)snprintf(out, BEARER_BYTES, "Bearer %s", said_text("secret"));
}

/** What a task's attempt 1 shows. */
static inline void task_bearer(const char *task, char out[BEARER_BYTES])
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    (void)snprintf(out, BEARER_BYTES, "Bearer %s",
                   attempt_token_make(fixture_task_key, task, 1, &arena));
    weir_arena_fini(&arena);
}

/* ---- jobs that run, without an agent --------------------------------------------------------- */

/** One job with one task, placed on a node that is registered. */
struct placed_job {
    const char *id, *task, *kind, *node, *spec, *state;
    const char *run;            /**< Is made too; NULL: none. */
    const char *ion, *pipeline; /**< Must be there for a predict job: it is served by this one. */
    int64_t finished_ms;        /**< 0: it is not over. */
    const char *replica;        /**< Of a deployment, which is this job's from now on. */
};

static inline weir_status place_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct placed_job *placed = context;
    struct weir_run run = {.id = (char *)placed->run,
                           .name = "r",
                           .project = "default",
                           .kind = "train",
                           .status = "RUNNING",
                           .job = (char *)placed->id,
                           .created_ms = 1};
    struct weir_job job = {.id = (char *)placed->id,
                           .name = "j",
                           .project = "default",
                           .kind = (char *)placed->kind,
                           .is_service = strcmp(placed->kind, "predict") == 0 ||
                                         strcmp(placed->kind, "serve") == 0,
                           .spec = (char *)(placed->spec != NULL ? placed->spec : "{}"),
                           .state = (char *)(placed->state != NULL ? placed->state : "RUNNING"),
                           .attempt = 1,
                           .ion = (char *)placed->ion,
                           .pipeline = (char *)placed->pipeline,
                           .run = (char *)placed->run,
                           .created_by = "ann",
                           .created_ms = 1,
                           .started_ms = 1,
                           .finished_ms = placed->finished_ms};
    struct weir_task task = {.id = (char *)placed->task,
                             .job = job.id,
                             .role = "worker",
                             .cpu_millis = 1000,
                             .definition = "{}",
                             .node = (char *)placed->node,
                             .attempt = 1,
                             .state = "STARTING",
                             .desired = "running",
                             .exit_code = -1,
                             .started_ms = 1};
    const struct weir_job_state state = {.job = job, .tasks = &task, .n_tasks = 1};
    WEIR_TRY(weir_txn_insert(txn, &weir_job_resource, &job, err));
    WEIR_TRY(weir_txn_insert(txn, &weir_task_resource, &task, err));
    WEIR_TRY(weir_attempts_record(txn, &state, 1, err));
    if (placed->pipeline != NULL && strcmp(placed->kind, "predict") == 0) {
        struct weir_arena arena;
        weir_arena_init(&arena, 0);
        struct weir_ion_pipeline serves = {
            .id = weir_arena_printf(&arena, "%s:%s", placed->ion, placed->pipeline), .job = job.id};
        weir_status status =
            weir_txn_update(txn, &weir_ion_pipeline_resource, &serves, WEIR_FIELDS("job"), err);
        weir_arena_fini(&arena);
        WEIR_TRY(status);
    }
    if (placed->replica != NULL) {
        struct weir_deployment_replica replica = {
            .id = (char *)placed->replica, .job = job.id, .state = WEIR_DEPLOYED_STARTING};
        WEIR_TRY(weir_txn_update(txn, &weir_deployment_replica_resource, &replica,
                                 WEIR_FIELDS("job", "state"), err));
    }
    return placed->run != NULL ? weir_txn_insert(txn, &weir_run_resource, &run, err) : WEIR_OK;
}

static inline void place_job(const struct placed_job *placed)
{
    struct weir_error err;
    struct placed_job copy = *placed;
    must(weir_store_write(callers.fixture.store, place_in, &copy, &err), &err);
}

#endif
