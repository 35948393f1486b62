/** Visits: who goes into a task that runs, and the streams of it (visit/hub.h). */
#include "api/job/visit.h"
#include "api/auth/audit.h"
#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/views.h"
#include "api/job/service.h"
#include "control/sender.h"
#include "job/job.h"
#include "job/service.h"
#include "store/event.h"
#include "store/stmt.h"
#include "store/table.h"
#include "visit/hub.h"

#include "base/buf.h"
#include "base/log.h"
#include "http/stream.h"
#include "visit/frame.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define WHAT_MAX_BYTES 400
#define TERM_MAX_BYTES 64
#define PATH_MAX_BYTES 4096

/* ---- into which task --------------------------------------------------------------------------------- */

struct entry {
    struct api_call *call;
    const char *task; /* as it is asked for; NULL: the first that runs */
    struct weir_visit visit;
    const char *job_name;
};

static const char *label_of(const struct weir_task *task, struct weir_arena *arena)
{
    return weir_arena_printf(arena, "%s-%lld", task->role, (long long)task->rank);
}

static bool is_meant(const struct entry *entry, const struct weir_task *task)
{
    const char *word = entry->task;
    char rank[24];
    (void)snprintf(rank, sizeof rank, "%lld", (long long)task->rank);
    return word == NULL ? weir_task_phase_of(task) == WEIR_TASK_RUNNING
                        : strcmp(word, task->id) == 0 || strcmp(word, rank) == 0 ||
                              strcmp(word, label_of(task, entry->call->arena)) == 0;
}

static const char sql_service[] = "SELECT id FROM services WHERE job = :job";

/* A notebook is its owner's, if it is not shared: whoever is inside is them. */
static weir_status check_service(const struct entry *entry, struct weir_txn *txn, const char *job,
                                 struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    struct weir_service service;
    struct api_call *call = entry->call;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql_service, WEIR_BINDS(WEIR_BIND_TEXT("job", job)), &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    if (!has_row) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_txn_get(txn, &weir_service_resource, weir_stmt_text(row, 0, call->arena),
                          call->arena, &service, err));
    return service_is_open_to(&service, &call->identity)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_DENIED,
                                "%s \"%s\" is %s's own, and is not shared: ask them for --shared",
                                service.kind, service.name, service.owner);
}

static weir_status need(const struct weir_job *job, enum weir_right right, const char *why,
                        struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_DENIED,
                          "to go into job \"%.60s\" needs the right to %s %s, too: %s", job->name,
                          weir_right_verb(right), weir_right_noun(right), why);
}

/* Whoever is inside can end it, decide in its place, and act with its token: they may that in other ways, too. */
static weir_status check_rights(struct weir_txn *txn, const struct weir_job *job,
                                const struct weir_identity *who, struct weir_arena *arena,
                                struct weir_error *err)
{
    const struct control_sender_of of = {job->id, job->kind, job->ion, job->created_by,
                                         job->limited_to};
    const char *name;
    struct weir_identity sender;
    bool is_own = job->created_by != NULL && strcmp(job->created_by, who->user.name) == 0;
    if (!is_own && !weir_identity_may(who, WEIR_RIGHT_JOBS_CANCEL, job->project)) {
        return need(job, WEIR_RIGHT_JOBS_CANCEL, "it is somebody else's", err);
    }
    if (job->is_service && job->ion != NULL &&
        !weir_identity_may(who, WEIR_RIGHT_IONS_PROMOTE, job->project)) {
        return need(job, WEIR_RIGHT_IONS_PROMOTE, "what serves an ION can be changed in there",
                    err);
    }
    WEIR_TRY(control_sender_find(txn, &of, arena, &name, &sender, err));
    for (int i = 0; i < WEIR_RIGHT_COUNT; i++) {
        enum weir_right right = (enum weir_right)i;
        bool is_tasks = (weir_role_rights(WEIR_ROLE_WORKER) & weir_rights_of_projects() &
                         WEIR_RIGHTS_OF(right)) != 0;
        if (is_tasks && weir_identity_may(&sender, right, job->project) &&
            !weir_identity_may(who, right, job->project)) {
            return need(job, right, "its token may that, and is in there", err);
        }
    }
    return WEIR_OK;
}

static weir_status not_running(const struct weir_job *job, const struct weir_task *task,
                               const struct entry *entry, struct weir_error *err)
{
    if (weir_job_phase_is_final(weir_job_phase_of(&(struct weir_job_state){.job = *job}))) {
        return weir_error_set(
            err, WEIR_ERR_CONFLICT,
            "job \"%.60s\" is over (%s): nothing of it is left to look into; weir "
            "logs %.60s shows what it printed. --hold-on-failure 30m of weir job "
            "run keeps the place of a job that fails",
            job->name, job->state, job->name);
    }
    return weir_error_set(err, WEIR_ERR_CONFLICT,
                          "task %s of job \"%.60s\" does not run: it is %s; weir explain job %.60s "
                          "tells why",
                          task != NULL ? label_of(task, entry->call->arena) : "0", job->name,
                          task != NULL ? task->state : job->state, job->name);
}

static weir_status find_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct entry *entry = context;
    struct api_call *call = entry->call;
    struct weir_job_state state;
    const struct weir_task *task = NULL;
    WEIR_TRY(weir_job_load(txn, call->params[0], call->arena, &state, err));
    WEIR_TRY(check_service(entry, txn, state.job.id, err));
    WEIR_TRY(check_rights(txn, &state.job, &call->identity, call->arena, err));
    for (size_t i = 0; i < state.n_tasks && task == NULL; i++) {
        task = is_meant(entry, &state.tasks[i]) ? &state.tasks[i] : NULL;
    }
    if (task == NULL && entry->task != NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "job \"%.60s\" has no task \"%.60s\": it has %zu, from %s on",
                              state.job.name, entry->task, state.n_tasks,
                              state.n_tasks > 0 ? label_of(&state.tasks[0], call->arena) : "0");
    }
    if (task == NULL || weir_task_phase_of(task) != WEIR_TASK_RUNNING || task->node == NULL) {
        return not_running(&state.job, task != NULL || state.n_tasks == 0 ? task : &state.tasks[0],
                           entry, err);
    }
    entry->job_name = state.job.name;
    entry->visit.job = state.job.id;
    entry->visit.project = state.job.project;
    entry->visit.task = task->id;
    entry->visit.label = label_of(task, call->arena);
    entry->visit.attempt = task->attempt;
    entry->visit.node = task->node;
    return WEIR_OK;
}

/* ---- what is wanted there ----------------------------------------------------------------------------- */

static weir_status take_command(const struct api_call *call, json_t *order, struct weir_buf *what,
                                struct weir_error *err)
{
    const json_t *command = json_object_get(call->body, "command"), *word;
    size_t i, n_bytes = 0, n = json_array_size(command);
    if (!json_is_array(command) || n == 0 || n > WEIR_VISIT_WORDS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.command: expected 1 to %d words",
                              WEIR_VISIT_WORDS_MAX);
    }
    json_array_foreach(command, i, word)
    {
        const char *text = json_string_value(word);
        n_bytes += text != NULL ? strlen(text) + 1 : 0;
        if (text == NULL || n_bytes > WEIR_VISIT_TEXT_MAX) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.command[%zu]: expected text, of at most %u bytes in all words",
                                  i, WEIR_VISIT_TEXT_MAX);
        }
        (void)weir_buf_printf(what, "%s%.*s", i > 0 ? " " : "", WHAT_MAX_BYTES + 1, text);
    }
    json_object_set(order, "command", (json_t *)command);
    return WEIR_OK;
}

static weir_status take_terminal(const struct api_call *call, json_t *order, struct weir_error *err)
{
    bool has_tty;
    const char *term;
    int64_t rows, columns;
    WEIR_TRY(api_body_bool(call, "tty", false, &has_tty, err));
    WEIR_TRY(api_body_text(call, "term", &term, err));
    WEIR_TRY(api_body_int(call, "rows", 24, &rows, err));
    WEIR_TRY(api_body_int(call, "columns", 80, &columns, err));
    bool is_term = term == NULL || (strlen(term) < TERM_MAX_BYTES &&
                                    strspn(term, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW"
                                                 "XYZ0123456789._+-") == strlen(term));
    if (!is_term || rows < 0 || rows > UINT16_MAX || columns < 0 || columns > UINT16_MAX) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "$.term, $.rows, $.columns: no name of a terminal, or no size of one");
    }
    json_object_set_new(order, "tty", json_boolean(has_tty));
    json_object_set_new(order, "term", json_string(term != NULL ? term : "dumb"));
    json_object_set_new(order, "rows", json_integer(rows));
    json_object_set_new(order, "columns", json_integer(columns));
    return WEIR_OK;
}

static weir_status take_path(const struct api_call *call, json_t *order, struct weir_buf *what,
                             struct weir_error *err)
{
    const char *path;
    WEIR_TRY(api_body_text(call, "path", &path, err));
    if (path == NULL || path[0] == '\0' || strlen(path) >= PATH_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.path: expected a path of a file");
    }
    json_object_set_new(order, "path", json_string(path));
    (void)weir_buf_printf(what, "%s", path);
    return WEIR_OK;
}

/* The visit's kind and order, and what the audit has of it. */
static weir_status take_order(struct entry *entry, json_t *order, struct weir_buf *what,
                              struct weir_error *err)
{
    static const char *const fields[] = {"task", "kind", "command", "tty",  "term",
                                         "rows", "port", "columns", "path", NULL};
    const struct api_call *call = entry->call;
    const char *kind;
    int64_t port;
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_body_text(call, "task", &entry->task, err));
    WEIR_TRY(api_body_text(call, "kind", &kind, err));
    WEIR_TRY(api_body_int(call, "port", 0, &port, err));
    if (kind == NULL || !weir_visit_kind_of(kind, &entry->visit.kind)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.kind: expected shell, exec, read, write, forward or top");
    }
    switch (entry->visit.kind) {
    case WEIR_VISIT_EXEC:
        WEIR_TRY(take_command(call, order, what, err));
        return take_terminal(call, order, err);
    case WEIR_VISIT_READ:
    case WEIR_VISIT_WRITE:
        return take_path(call, order, what, err);
    case WEIR_VISIT_FORWARD:
        json_object_set_new(order, "port", json_integer(port));
        (void)weir_buf_printf(what, "port %lld", (long long)port);
        return port > 0 && port <= UINT16_MAX
                   ? WEIR_OK
                   : weir_error_set(err, WEIR_ERR_INVALID, "$.port: expected a port, 1 to 65535");
    case WEIR_VISIT_SHELL:
        return take_terminal(call, order, err);
    default:
        return WEIR_OK;
    }
}

/* ---- routes --------------------------------------------------------------------------------------------- */

static weir_status write_begin(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct entry *entry = context;
    const struct weir_visit *visit = &entry->visit;
    struct api_call *call = entry->call;
    return audit_act(call, txn, "visit_begun", weir_arena_printf(call->arena, "job/%s", visit->job),
                     weir_arena_printf(call->arena, "%s in task %s of job %s%s%s (visit %s)",
                                       weir_visit_kind_name(visit->kind), visit->label,
                                       entry->job_name, visit->what[0] != '\0' ? ": " : "",
                                       visit->what, visit->id),
                     err);
}

/* Between two characters. */
static void cut_what(struct weir_buf *what)
{
    size_t at = WHAT_MAX_BYTES - 4;
    if (what->len > WHAT_MAX_BYTES) {
        while (at > 0 && (what->data[at] & 0xc0) == 0x80) {
            at--;
        }
        (void)snprintf(what->data + at, sizeof "...", "...");
    }
}

weir_status api_visit_create(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *order = json_object();
    struct entry entry = {.call = call};
    struct weir_buf what;
    char id[WEIR_VISIT_ID_BYTES];
    (void)txn;
    weir_buf_init(&what, (WHAT_MAX_BYTES + 2) * WEIR_VISIT_WORDS_MAX + PATH_MAX_BYTES);
    weir_status status = take_order(&entry, order, &what, err);
    cut_what(&what);
    char *text = weir_arena_strdup(call->arena, what.len > 0 ? what.data : "");
    weir_buf_fini(&what);
    weir_frame_disarm(text);
    WEIR_TRY(status);
    WEIR_TRY(api_read(call, find_in, &entry, err));
    entry.visit.what = text;
    entry.visit.who = call->actor;
    entry.visit.session = call->identity.session;
    entry.visit.token = call->identity.token;
    entry.visit.since_ms = call->now_ms;
    entry.visit.order = order;
    WEIR_TRY(weir_visits_begin(call->api->visits, &entry.visit, id, err));
    entry.visit.id = id;
    WEIR_TRY(api_write(call, write_begin, &entry, err)); /* else nobody comes to it */
    api_answer(call, weir_visit_json(&entry.visit, id));
    return WEIR_OK;
}

static weir_status see_job(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct api_call *call = context;
    struct weir_job job;
    return weir_txn_get(txn, &weir_job_resource, call->params[0], call->arena, &job, err);
}

weir_status api_visit_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    WEIR_TRY(see_job(txn, call, err));
    API_ANSWER(call, api_visit_list, .items = weir_visits_list(call->api->visits, call->params[0]));
    return WEIR_OK;
}

static weir_status check_upgrade(const struct api_call *call, struct weir_error *err)
{
    const char *to = weir_http_request_header(call->request, "Upgrade");
    return to != NULL && strcasecmp(to, WEIR_VISIT_PROTOCOL) == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "expected the headers Connection: Upgrade and Upgrade: %s",
                                WEIR_VISIT_PROTOCOL);
}

/* The visit is the caller's, and its job is still theirs to see. */
weir_status api_visit_stream(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_visit visit;
    struct weir_visit_seat *seat;
    const char *node;
    (void)txn;
    WEIR_TRY(
        weir_visits_get(call->api->visits, call->params[0], call->actor, call->arena, &visit, err));
    if (!weir_row_scope_sees(&call->rows, visit.project)) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no such visit");
    }
    WEIR_TRY(check_upgrade(call, err));
    WEIR_TRY(weir_visits_enter(call->api->visits, call->params[0], call->actor,
                               call->request->arena, &seat, &node, err));
    weir_http_response_upgrade(call->response, WEIR_VISIT_PROTOCOL, weir_visits_upgraded, seat);
    weir_http_wake(call->api->http, weir_node_topic(node));
    return WEIR_OK;
}

weir_status api_visit_place(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_visit_seat *seat;
    const char *secret = weir_http_request_header(call->request, WEIR_VISIT_SECRET);
    (void)txn;
    if (secret == NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no such visit");
    }
    WEIR_TRY(check_upgrade(call, err));
    int64_t stream = api_query_int(call, "stream");
    WEIR_TRY(weir_visits_arrive(call->api->visits, call->params[0], stream, secret,
                                call->request->arena, &seat, err));
    weir_http_request_is_known(call->request);
    weir_http_response_upgrade(call->response, WEIR_VISIT_PROTOCOL, weir_visits_upgraded, seat);
    return WEIR_OK;
}

json_t *api_visits_wanted(struct api_call *call, const char *node, int64_t *serial)
{
    return *serial >= -1 ? weir_visits_wanted(call->api->visits, node, serial) : NULL;
}

/* ---- ends ------------------------------------------------------------------------------------------------- */

static weir_status append(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_event_append(txn, context, NULL, err);
}

/* What a node says of itself is perhaps no text, or cut within a character. */
static const char *as_text(char *text)
{
    bool is_text = weir_text_is_utf8(text);
    for (char *at = text; !is_text && *at != '\0'; at++) {
        *at = (*at & 0x80) != 0 ? '?' : *at;
    }
    return text;
}

static const char *how_of(const struct weir_visit_end *end, struct weir_arena *arena)
{
    return end->has_exit && end->exit_signal != 0
               ? weir_arena_printf(arena, "ended by signal %d", end->exit_signal)
           : end->has_exit ? weir_arena_printf(arena, "exit %d", end->exit_status)
           : end->failed != NULL
               ? as_text(weir_arena_printf(arena, "it did not work: %.200s", end->failed))
               : "its connection ended";
}

static void ended(void *context, const struct weir_visit_end *end)
{
    struct weir_api *api = context;
    const struct weir_visit *visit = &end->visit;
    struct weir_arena arena;
    struct weir_error err;
    weir_arena_init(&arena, 0);
    json_t *data = json_pack("{s:s,s:s,s:s,s:I}", "visit", visit->id, "kind",
                             weir_visit_kind_name(visit->kind), "task", visit->task, "lasted_ms",
                             (json_int_t)end->lasted_ms);
    if (end->has_exit) {
        json_object_set_new(data, "exit_status", json_integer(end->exit_status));
        json_object_set_new(data, "exit_signal", json_integer(end->exit_signal));
    }
    const struct weir_event event = {
        .time_ms = weir_clock_now_ms(api->clock),
        .topic = AUDIT_TOPIC,
        .kind = "visit_ended",
        .subject = weir_arena_printf(&arena, "job/%s", visit->job),
        .actor = (char *)visit->who,
        .message = weir_arena_printf(
            &arena, "%s of %s in task %s ended after %lld.%lld s: %s (visit %s).",
            weir_visit_kind_name(visit->kind), visit->who, visit->label,
            (long long)(end->lasted_ms / 1000), (long long)(end->lasted_ms % 1000 / 100),
            how_of(end, &arena), visit->id),
        .data = weir_json_text(data, &arena),
    };
    json_decref(data);
    if (weir_store_write(api->store, append, (void *)&event, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_ERROR, "audit_not_written", WEIR_KV_STR("kind", event.kind),
                 WEIR_KV_STR("error", err.message));
    }
    weir_arena_fini(&arena);
}

struct looking {
    struct weir_api *api;
    const struct weir_visit *visit;
    struct weir_arena *arena;
    bool may;
};

static weir_status look_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct looking *looking = context;
    const struct weir_visit *visit = looking->visit;
    struct weir_identity identity;
    weir_status status =
        weir_identity_by_id(txn, visit->session, visit->token,
                            weir_clock_now_ms(looking->api->clock), looking->arena, &identity, err);
    if (status == WEIR_OK) {
        struct weir_job job;
        status = weir_txn_get(txn, &weir_job_resource, visit->job, looking->arena, &job, err);
        looking->may = status == WEIR_OK &&
                       weir_identity_may(&identity, WEIR_RIGHT_JOBS_SUBMIT, job.project) &&
                       check_rights(txn, &job, &identity, looking->arena, err) != WEIR_ERR_DENIED;
    }
    return status == WEIR_ERR_UNAUTH || status == WEIR_ERR_NOT_FOUND ? WEIR_OK : status;
}

/* A database that does not answer throws nobody out. */
static bool may(void *context, const struct weir_visit *visit)
{
    struct weir_arena arena;
    struct weir_error err;
    struct looking looking = {.api = context, .visit = visit, .arena = &arena};
    weir_arena_init(&arena, 0);
    weir_status status = weir_store_read(looking.api->store, look_in, &looking, &err);
    weir_arena_fini(&arena);
    return looking.may || status != WEIR_OK;
}

const struct weir_visits_ops api_visits_ops = {ended, may};
